from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from recbias.statistics.permutation import (
    GroupExchange,
    GroupSpread,
    LabelExchange,
    permute_groups,
    permute_labels,
)


def permute(
    scores: list[float] | np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    groups: list[int],
    strata: list[int] | None = None,
    **settings: int,
) -> GroupSpread:
    values = np.column_stack([scores, np.ones(len(groups))])
    codes = np.zeros(len(groups), dtype=int) if strata is None else np.array(strata)
    return permute_groups(
        values,
        np.array(groups),
        codes,
        n_groups=settings.pop("n_groups", max(groups) + 1),
        rng=np.random.default_rng(0),
        **settings,
    )


def test_every_labelling_within_strata_occurs_once() -> None:
    strata = (np.array([0, 1, 2]), np.array([0, 0, 1]))
    exchange = GroupExchange(strata)
    labellings = np.concatenate(list(exchange.enumerate_labellings(4)))
    expected = {
        first + second for first in permutations((0, 1, 2)) for second in permutations((0, 0, 1))
    }
    assert {tuple(row) for row in labellings.tolist()} == expected
    assert len(labellings) == exchange.n_labellings == 18


def test_sampled_labellings_keep_the_labels_of_each_stratum() -> None:
    exchange = GroupExchange((np.array([0, 1, 2]), np.array([3, 3, 4])))
    blocks = list(exchange.sample_labellings(7, 3, np.random.default_rng(0)))
    assert [len(block) for block in blocks] == [3, 3, 1]
    for row in np.concatenate(blocks):
        assert sorted(row[:3].tolist()) == [0, 1, 2]
        assert sorted(row[3:].tolist()) == [3, 3, 4]


def test_spread_and_p_by_hand() -> None:
    # means 1, 2, 6: range 5; std √((4 + 1 + 9) / 3); of 3! labellings in a stratum each has them
    spread = permute([1.0, 2.0, 6.0], [0, 1, 2])
    assert (spread.range.value, spread.range.p) == (5.0, 1.0)
    assert spread.std.value == pytest.approx(np.sqrt(14 / 3))
    # two strata of the same order: 36 labellings; with the same order in both, 6, the range is 5
    double = permute([1.0, 2.0, 6.0, 1.0, 2.0, 6.0], [0, 1, 2] * 2, [0, 0, 0, 1, 1, 1])
    assert double.range.p == pytest.approx(6 / 36)


def test_range_of_two_groups_has_the_p_of_the_test_of_two_labels() -> None:
    rng = np.random.default_rng(1)
    scores, groups = rng.normal(size=9), [0, 0, 0, 0, 1, 1, 1, 1, 1]
    gap = scores[:4].mean() - scores[4:].mean()
    exchange = LabelExchange(np.array([9]), np.array([4]))
    values, observed = scores[None, :, None], np.array([[[gap]]])
    p = permute_labels(values, observed, exchange, np.subtract, rng=rng).item()
    spread = permute(scores, groups)
    assert spread.range.value == pytest.approx(abs(gap))
    assert spread.range.p == pytest.approx(p)
    assert spread.std.p == pytest.approx(p)


def test_differences_between_strata_do_not_count() -> None:
    noise = np.random.default_rng(2).normal(0, 0.01, 30)
    level = np.repeat(np.arange(10.0), 3)
    effect = np.tile([0.0, 0.0, 0.05], 10)
    groups, strata = [0, 1, 2] * 10, np.repeat(np.arange(10), 3).tolist()
    assert permute(level + noise + effect, groups, strata, n_permutations=999).range.p == 0.001
    assert permute(level + noise + effect, groups, n_permutations=999).range.p > 0.5


def test_means_are_weighted_by_the_observations_of_a_unit() -> None:
    values = np.array([[3.0, 3.0], [0.0, 1.0], [1.0, 1.0]])  # means (3 + 0) / 4 and 1
    rng = np.random.default_rng(0)
    spread = permute_groups(values, np.array([0, 0, 1]), np.zeros(3), n_groups=2, rng=rng)
    assert spread.means.tolist() == [0.75, 1.0]


@pytest.mark.parametrize(
    ("groups", "strata", "n_groups"), [([0, 0, 1], [0, 0, 0], 3), ([0, 1], [0, 1], 2)]
)
def test_p_is_undefined_without_a_group_or_without_labels_to_exchange(
    groups: list[int], strata: list[int], n_groups: int
) -> None:
    spread = permute([1.0, 2.0, 3.0][: len(groups)], groups, strata, n_groups=n_groups)
    assert np.isnan(spread.range.p)
    assert np.isnan(spread.range.value) == (n_groups == 3)
