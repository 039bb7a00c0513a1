from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.errors import Contradiction
from recbias.statistics.paired import Correction, Family, adjust, check_family, count_tests

METHODS: tuple[Correction, ...] = ("none", "bonferroni", "holm", "bh")
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array)

P = np.array([0.02, 0.001, 0.04, 0.3])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("none", [0.02, 0.001, 0.04, 0.3]),
        ("bonferroni", [0.08, 0.004, 0.16, 1.0]),
        # in order 0.001 x 4, 0.02 x 3, 0.04 x 2, 0.3 x 1
        ("holm", [0.06, 0.004, 0.08, 0.3]),
        # in order 0.001 x 4/1, 0.02 x 4/2, 0.04 x 4/3, 0.3 x 4/4
        ("bh", [0.04, 0.004, 0.16 / 3, 0.3]),
    ],
)
def test_adjusted_p_values_equal_those_worked_by_hand(
    method: Correction, expected: list[float]
) -> None:
    assert adjust(P, method).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("method", METHODS)
def test_nan_stays_and_is_not_counted(method: Correction) -> None:
    with_nan = np.insert(P, 2, np.nan)
    adjusted = adjust(with_nan, method)
    assert math.isnan(adjusted[2])
    assert np.delete(adjusted, 2).tolist() == adjust(P, method).tolist()
    assert count_tests(with_nan) == 4


def test_bonferroni_takes_a_size_of_the_users_own() -> None:
    assert adjust(P, "bonferroni", 19).tolist() == pytest.approx([0.38, 0.019, 0.76, 1.0])


@pytest.mark.parametrize("method", ["holm", "bh"])
def test_ranking_corrections_take_no_size(method: Correction) -> None:
    with pytest.raises(Contradiction, match=f"correction {method} ranks") as caught:
        adjust(P, method, 19)
    assert "bonferroni" in caught.value.remedy


@pytest.mark.parametrize(
    ("correction", "family"),
    [("holm", "metric"), ("bh", "report"), ("bonferroni", 19), ("none", 3)],
)
def test_families_that_go_with_their_correction(correction: Correction, family: Family) -> None:
    check_family(correction, family)


@given(p_values)
def test_benjamini_hochberg_agrees_with_scipy(p: np.ndarray) -> None:
    expected = stats.false_discovery_control(p, method="bh")
    np.testing.assert_allclose(adjust(p, "bh"), expected, rtol=1e-12, atol=1e-300)


@given(p_values)
def test_corrections_are_ordered_and_keep_the_order(p: np.ndarray) -> None:
    none, bonferroni, holm, bh = (adjust(p, method) for method in METHODS)
    slack = 1e-15
    assert (none <= bh + slack).all()
    assert (bh <= holm + slack).all()
    assert (holm <= bonferroni + slack).all()
    assert (bonferroni <= 1).all()
    order = np.argsort(p, kind="stable")
    for method in (bonferroni, holm, bh):
        assert (np.diff(method[order]) >= 0).all()


@pytest.mark.parametrize("method", ["bonferroni", "holm"])
def test_false_findings_in_null_worlds_are_as_rare_as_promised(
    method: Correction, rng: np.random.Generator
) -> None:
    # 2,000 worlds of 10 true nulls: any finding in at most alpha of them
    has_finding = [(adjust(row, method) <= 0.05).any() for row in rng.random((2000, 10))]
    assert abs(np.mean(has_finding) - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 2000)
