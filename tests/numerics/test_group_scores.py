from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from recbias.language.groups import GroupScore, score_groups


def score(probabilities: list[float], named: int, kind: GroupScore) -> float:
    return float(score_groups(np.array([probabilities]), np.array([named]), kind)[0])


def test_the_published_example() -> None:
    he, sister = [0.02938519927, 0.97061480073], [0.36930293286, 0.63069706714]
    assert score(he, 0, "difference") == pytest.approx(-0.9412, abs=1e-4)
    assert score(sister, 1, "difference") == pytest.approx(0.2614, abs=1e-4)


def test_three_groups_by_hand() -> None:
    shares = [0.5, 0.3, 0.2]
    assert score(shares, 1, "difference") == pytest.approx(-0.2)
    assert score(shares, 1, "mean_difference") == pytest.approx(0.3 - 0.35)
    information = np.log(3) - entropy(shares)
    assert score(shares, 0, "entropy") == pytest.approx(information)
    assert score(shares, 1, "entropy") == pytest.approx(-information)
    assert score(shares, 0, "normalized_entropy") == pytest.approx(information / np.log(3))


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=5),
    st.sampled_from(["difference", "mean_difference", "normalized_entropy"]),
)
def test_scores_are_from_minus_1_to_1(weights: list[float], kind: GroupScore) -> None:
    shares = np.array(weights) + 1e-9
    values = score_groups(
        np.tile(shares / shares.sum(), (len(weights), 1)), np.arange(len(weights)), kind
    )
    assert (np.abs(values) <= 1 + 1e-9).all()


def test_certainty_has_the_limits_of_the_range() -> None:
    assert score([1, 0], 0, "entropy") == pytest.approx(np.log(2))
    assert score([0, 1], 0, "normalized_entropy") == pytest.approx(-1)
    assert score([0, 1, 0, 0, 0], 1, "entropy") == pytest.approx(np.log(5))
