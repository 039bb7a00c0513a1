from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.grouping import Groups, group_by
from recbias.core.measures import Measurement, UnitScores
from recbias.statistics.groups import compute_gap
from recbias.statistics.inequality import GroupInequality, InequalityKind

ATKINSON = ("atkinson", "atkinson_within", "atkinson_total")


def measure(values: Sequence[float]) -> Measurement:
    ids = np.array([f"u{query}" for query in range(len(values))], dtype=object)
    return Measurement.from_units(UnitScores("user", ids, np.array(values)))


def group(labels: Sequence[str | None], *, by: str = "g", **columns: Any) -> Groups:
    ids = Vocabulary.of([str(query) for query in range(len(labels))])
    table = Attributes(ids, pd.DataFrame({"g": labels, **columns}), "query")
    return group_by(table, by, split_cells=True)


def compute(
    values: Sequence[float], labels: Sequence[str | None], kind: Any, **settings: Any
) -> Any:
    index = GroupInequality(kind=kind, **{"direction": "higher", **settings})
    return index.measure(measure(values), group(labels), np.random.default_rng(5))


VALUES, LABELS = [1.0, 4.0, 9.0, 9.0, 0.0, math.nan], ["a", "a", "b", "b", "b", None]
"""e_a = (3/2)², e_b = (6/3)², means 2.5 and 6, weights 2/5 and 3/5, mean 23/5, e = (9/5)²."""


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("atkinson", 1 - (9 / 5) ** 2 / (2 / 5 * 9 / 4 + 3 / 5 * 4)),
        ("atkinson_within", 5 / 23 * (1 - 2.25 / 2.5) + 18 / 23 * (1 - 4 / 6)),
        ("atkinson_total", 1 - (9 / 5) ** 2 / (23 / 5)),
        ("cross_entropy", (8.5 / (4 * 2.5) + 8.5 / (4 * 6) - 1) / 2),
        ("mad", 3.5),
        ("worst", 2.5),
        ("worst_quarter", 2.5),
    ],
)
def test_indices_equal_those_worked_by_hand(kind: Any, expected: float) -> None:
    index = compute(VALUES, LABELS, kind)
    assert index.value == pytest.approx(expected, abs=1e-9)
    assert (index.n, index.undefined) == (5, 1)
    assert (index.replicates is None) == (kind in {"mad", "worst", "worst_quarter"})
    assert math.isnan(index.ci_low) == (kind in {"mad", "worst", "worst_quarter"})


def test_the_worst_group_depends_on_the_direction() -> None:
    values, labels = [-3.0, 1.0, 2.0, 0.0, 0.5], list("abcde")
    worst = {
        direction: compute(values, labels, "worst", direction=direction).value
        for direction in ("higher", "lower", "zero")
    }
    assert worst == {"higher": -3.0, "lower": 2.0, "zero": -3.0}
    # the lower quartile of five means is the second: (-3 + 0) / 2
    assert compute(values, labels, "worst_quarter").value == -1.5


def compute_ede(values: Any) -> float:
    return float(np.mean(np.sqrt(values)) ** 2)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from("abc"), st.sampled_from("xy")),
        min_size=6,
        max_size=30,
    )
)
def test_indices_equal_an_independent_computation(rows: list[tuple[float, str, str]]) -> None:
    """Also of crossed groups: within and between make up the total."""
    values = np.array([value / 20 for value, _, _ in rows])
    keys = [f"{label}{other}" for _, label, other in rows]
    groups = group([label for _, label, _ in rows], by="g & h", h=[other for _, _, other in rows])
    parts = [values[np.array(keys) == key] for key in sorted(set(keys))]
    indices = {
        kind: GroupInequality(kind=kind, direction="higher", n_samples=2)
        .measure(measure(values.tolist()), groups, np.random.default_rng(0))
        .value
        for kind in get_args(InequalityKind)
    }
    means = np.array([part.mean() for part in parts])
    if len(parts) < 2:
        assert all(math.isnan(value) for value in indices.values())
        return
    assert indices["mad"] == pytest.approx(pdist(means[:, None], "cityblock").mean(), abs=1e-9)
    assert indices["worst"] == means.min()
    assert indices["worst_quarter"] == pytest.approx(
        means[means <= np.quantile(means, 0.25)].mean(), abs=1e-9
    )
    if values.sum() < 1e-6:
        return
    total, within, between = (indices[kind] for kind in ("atkinson_total", *ATKINSON[1::-1]))
    assert total == pytest.approx(1 - compute_ede(values) / values.mean(), abs=1e-9)
    expected = sum(
        part.sum() / values.sum() * (1 - compute_ede(part) / part.mean())
        for part in parts
        if part.sum() > 0
    )
    assert within == pytest.approx(expected, abs=1e-9)
    assert 1 - total == pytest.approx((1 - within) * (1 - between), abs=1e-9)
    assert all(0 <= index <= 1 for index in (total, within, between))


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([-1.0, 2.0, 3.0, 4.0], "aabb"),
        ([0.0, 0.0, 0.0, 0.0], "aabb"),
        ([1.0, 2.0, math.nan, math.nan], "aabb"),
        ([1.0, 2.0, 1.0, 2.0], "aaaa"),
    ],
)
def test_indices_without_a_meaning_are_undefined(values: list[float], labels: str) -> None:
    for kind in (*ATKINSON, "cross_entropy"):
        index = compute(values, list(labels), kind)
        assert math.isnan(index.value)
        assert (index.n, index.undefined) == (0, 4)


def test_small_groups_are_excluded() -> None:
    values, labels = [1.0, 4.0, 9.0, 9.0, 100.0], list("aabbc")
    index = compute(values, labels, "atkinson", min_group=2)
    assert index.value == compute(values[:4], labels[:4], "atkinson").value
    assert (index.n, index.undefined) == (4, 1)
    other_groups = compute(
        [1.0, 4.0, math.nan, 9.0, 9.0, 9.0], list("aabbcc"), "atkinson", min_group=2
    )
    assert other_groups.replicates is None


def test_queries_in_several_groups_have_no_interval() -> None:
    index = compute([1.0, 4.0, 9.0, 9.0], ["a|b", "a", "b", "b"], "atkinson")
    assert index.value > 0
    assert math.isnan(index.ci_low)
    assert index.n == 4


@pytest.mark.parametrize("sizes", [(4, 6), (30, 9)])
def test_the_interval_of_two_groups_is_that_of_the_ratio_of_their_means(
    sizes: tuple[int, int], rng: np.random.Generator
) -> None:
    labels = "a" * sizes[0] + "b" * sizes[1]
    values = rng.random(sum(sizes)) + 1.0
    index = compute(values.tolist(), [*labels], "cross_entropy")
    gap = compute_gap(measure(values.tolist()), group([*labels]), "ratio", rng=rng)
    low, high = (((1 + end) ** 2 / (4 * end) - 1) / 2 for end in (gap.ci_high, gap.ci_low))
    assert (index.ci_low, index.ci_high) == pytest.approx((low, high))


def test_samples_are_of_the_queries_of_each_group_and_shared_by_models() -> None:
    rng = np.random.default_rng(2)
    values, labels = rng.random(40).tolist(), list("ab" * 20)
    index = compute(values, labels, "atkinson_total", n_samples=30)
    again = compute([4 * value for value in values], labels, "atkinson_total", n_samples=30)
    assert index.replicates == pytest.approx(again.replicates, abs=1e-9)
    samples, expected = np.random.default_rng(5), np.zeros((30, 2, 2))
    for code in range(2):
        members = np.array(values)[code::2]
        sample = members[samples.integers(20, size=(30, 19))]  # n - 1 of n
        sums = np.stack([sample.sum(axis=1), np.sqrt(sample).sum(axis=1)], axis=1)
        expected[:, code] = sums * (20 / 19)
    sizes = samples.multinomial(40, [0.5, 0.5], size=30)  # groups of 20 in a sample of all
    total, root = (expected * (sizes / 20)[..., None]).sum(axis=1).T
    assert index.replicates == pytest.approx(1 - (root / 40) ** 2 / (total / 40), abs=1e-9)


@pytest.mark.parametrize("kind", [*ATKINSON, "cross_entropy"])
def test_the_interval_holds_a_planted_inequality(kind: Any) -> None:
    def sample(rng: np.random.Generator, n: int) -> list[float]:
        return np.concatenate([rng.beta(2, 6, n), rng.beta(4, 4, n)]).tolist()  # type: ignore[no-any-return]

    rng = np.random.default_rng(0)
    truth = compute(sample(rng, 40_000), ["a"] * 40_000 + ["b"] * 40_000, kind, n_samples=1).value
    n_covered = 0
    for _ in range(80):
        index = compute(sample(rng, 60), ["a"] * 60 + ["b"] * 60, kind, n_samples=100)
        n_covered += index.ci_low <= truth <= index.ci_high
    assert n_covered >= 68  # 95% of 80 is 76; four standard errors are 8
