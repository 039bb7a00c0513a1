"""Parts of a gap, Shapley values, and honest groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
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
from recbias.statistics.decomposition import (
    METHODS,
    Method,
    add_curves,
    compute_shapley,
    decompose_gap,
    find_honest_groups,
)
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


def make_world(rng: np.random.Generator, n: int = 400) -> tuple[np.ndarray, ...]:
    """Return values, group A, and two properties: the gap is 2 x 0.5 by the first, and 0.3."""
    in_a = rng.random(n) < 0.4
    first = rng.normal(size=n) + 0.5 * in_a
    second = rng.normal(size=n)
    return 2 * first + 0.3 * in_a + 0.5 * rng.normal(size=n), in_a, first, second


def test_parts_by_regression_are_those_of_oaxaca_blinder_and_reimers() -> None:
    values = np.array([3.0, 5.0, 7.0, 1.0, 2.0, 3.0, 4.0])
    in_a = np.array([True, True, True, False, False, False, False])
    column = np.array([[2.0], [3.0], [4.0], [0.0], [1.0], [2.0], [3.0]])  # slopes: 2 and 1
    found = decompose_gap(values, in_a, [column], "regression")
    assert found.parts == pytest.approx([(3.0 - 1.5) * 1.5, 2.5 - 2.25])


def test_parts_by_regression_are_those_of_statsmodels() -> None:
    # pip install statsmodels==0.14.4, with x and y as below: OaxacaBlinder(y, DataFrame({"a": a,
    # "x": x, "z": z}), "a", hasconst=False).two_fold(two_fold_type="reimers")
    t = np.arange(60)
    in_a = t % 3 == 0
    x = np.column_stack([np.sin(t) + 0.5 * in_a, np.cos(2.0 * t)])
    y = 1.0 + x @ [2.0, -1.0] + 0.3 * in_a + 0.1 * np.sin(7.0 * t)
    found = decompose_gap(y, in_a, [x[:, :1], x[:, 1:]], "regression")
    assert found.parts[:2].sum() == pytest.approx(1.0859458445493593, abs=1e-10)
    assert found.parts[2] == pytest.approx(0.3045831733642316, abs=1e-10)


def test_parts_by_reweighting_of_a_binary_property_are_those_of_kitagawa() -> None:
    values = np.array([4.0, 4.0, 4.0, 2.0, 3.0, 1.0, 1.0, 1.0])
    in_a = np.array([True] * 4 + [False] * 4)
    column = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])[:, None]
    found = decompose_gap(values, in_a, [column], "reweighting")
    rates = (0.75 - 0.25) * ((4.0 - 2.0) + (3.0 - 1.0)) / 2
    assert found.parts == pytest.approx([rates, 3.5 - 1.5 - rates])


def test_reweighted_groups_have_the_means_of_each_other() -> None:
    # the weights ~ exp(l x) that move the mean of B to that of A, and the reverse, by bisection
    rng = np.random.default_rng(2)
    x = np.array([0.0, 1.0, 2.0] * 20 + [0.0, 1.0, 2.0, 2.0] * 15)
    in_a = np.arange(120) >= 60
    values = x**2 + 0.1 * rng.normal(size=120)
    found = decompose_gap(values, in_a, [x[:, None]], "reweighting")

    def move(rows: np.ndarray, target: float) -> float:
        low, high = -5.0, 5.0
        for _ in range(80):
            middle = (low + high) / 2
            weights = np.exp(middle * x[rows])
            low, high = (
                (middle, high) if weights @ x[rows] < target * weights.sum() else (low, middle)
            )
        return float(weights @ values[rows] / weights.sum() - values[rows].mean())

    expected = (move(~in_a, x[in_a].mean()) - move(in_a, x[~in_a].mean())) / 2
    assert found.parts[0] == pytest.approx(expected, abs=1e-9)


def test_groups_that_cannot_be_made_alike_have_no_parts_by_reweighting() -> None:
    values, in_a = np.arange(40.0), np.arange(40) >= 20
    found = decompose_gap(values, in_a, [values[:, None]], "reweighting")
    assert np.isnan([*found.parts, *found.ci_low]).all()
    assert found.gap == 20.0
    found = decompose_gap(values, in_a, [np.tile(values[:, None], 30)], "regression")
    assert np.isnan(found.parts).all()


def test_numbers_get_curves_and_labels_do_not() -> None:
    rng = np.random.default_rng(3)
    number, label, in_a = (
        rng.normal(size=(200, 1)),
        rng.random((200, 1)) < 0.5,
        np.arange(200) < 90,
    )
    curved, same = add_curves([number, label.astype(np.float64)], in_a)
    assert curved.shape == (200, 3)
    assert same.shape == (200, 1)
    above = number[:, 0] > np.quantile(number, 0.95)
    slopes = np.diff(curved[above][np.argsort(number[above, 0])], axis=0)
    assert np.ptp(slopes[:, 1:] / slopes[:, :1], axis=0) == pytest.approx([0.0, 0.0], abs=1e-9)
    few = add_curves([number[:50]], in_a[:50] & (np.arange(50) < 20))
    assert few[0].shape == (50, 1)


def test_a_number_that_hardly_overlaps_acts_by_a_line() -> None:
    """A curve, fitted within 12 to 24, reaches -54 at 60 for a gap of 0.3."""
    rng = np.random.default_rng(4)
    in_a = np.arange(400) < 200
    number = np.where(in_a, rng.integers(12, 25, 400), rng.integers(25, 61, 400)).astype(float)
    (column,) = add_curves([number[:, None]], in_a)
    assert column.shape == (400, 1)
    values = 0.5 - 0.01 * number + rng.normal(0, 0.05, 400)
    found = decompose_gap(values, in_a, [column], "regression")
    assert found.parts == pytest.approx([found.gap, 0.0], abs=0.05)
    assert found.parts.sum() == pytest.approx(found.gap, abs=1e-9)


def test_shapley_values_are_those_of_all_orders() -> None:
    rng = np.random.default_rng(1)
    worth: dict[tuple[int, ...], float] = {}

    def value(chosen: tuple[int, ...]) -> float:
        return worth.setdefault(tuple(sorted(chosen)), float(rng.normal()))

    shares = compute_shapley(4, value)
    expected = np.zeros(4)
    for order in permutations(range(4)):
        for at, player in enumerate(order):
            expected[player] += (value(order[: at + 1]) - value(order[:at])) / 24
    assert shares == pytest.approx(expected)


@pytest.mark.parametrize("method", METHODS)
def test_parts_add_up_to_the_gap_and_find_its_cause(method: Method) -> None:
    values, in_a, first, second = make_world(np.random.default_rng(5))
    found = decompose_gap(values, in_a, [first[:, None], second[:, None]], method)
    assert found.parts.sum() == pytest.approx(found.gap, abs=1e-12)
    truth = [2 * 0.5, 0.0, 0.3]
    assert (found.ci_low <= truth).all()
    assert (truth <= found.ci_high).all()
    assert found.ci_low[0] > 0 > found.ci_low[1]


@pytest.mark.parametrize("method", METHODS)
def test_errors_of_parts_are_those_of_the_jackknife(method: Method) -> None:
    values, in_a, first, second = make_world(np.random.default_rng(9), n=200)
    properties = [np.column_stack([first, first**2]), second[:, None]]
    found = decompose_gap(values, in_a, properties, method)
    parts = np.empty((200, 3))
    for left_out in range(200):
        rows = np.arange(200) != left_out
        own = [columns[rows] for columns in properties]
        parts[left_out] = decompose_gap(values[rows], in_a[rows], own, method).parts
    variance = np.zeros(3)
    for group in (in_a, ~in_a):
        of_group = parts[group]
        variance += (len(of_group) - 1) ** 2 / len(of_group) * of_group.var(axis=0, ddof=1)
    errors = (found.ci_high - found.parts) / 1.959964
    assert errors == pytest.approx(np.sqrt(variance), rel=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_intervals_of_parts_cover(method: Method) -> None:
    rng, n_worlds = np.random.default_rng(6), 200
    covered = np.zeros(3)
    for _ in range(n_worlds):
        values, in_a, first, second = make_world(rng)
        found = decompose_gap(values, in_a, [first[:, None], second[:, None]], method)
        truth = np.array([1.0, 0.0, 0.3])
        covered += (found.ci_low <= truth) & (truth <= found.ci_high)
    assert (covered / n_worlds >= 0.91).all()  # 99% of binomial draws
    assert (covered[[0, 2]] / n_worlds <= 0.985).all()  # cautious where a property has no part


def test_honest_groups_are_the_worst_off_ones() -> None:
    rng = np.random.default_rng(7)
    columns = rng.normal(size=(600, 3))
    values = rng.normal(size=600) - 2.0 * (columns[:, 1] > 0.5)
    worst = find_honest_groups(values, columns, rng)[0]
    assert worst.p_adjusted < 1e-4
    assert any(column == 1 and sign == ">" for column, sign, _ in worst.rule)
    assert worst.difference == pytest.approx(-2.0, abs=0.5)


def test_honest_groups_of_noise_are_not_found() -> None:
    rng, n_false = np.random.default_rng(8), 0
    for _ in range(100):
        leaves = find_honest_groups(rng.normal(size=200), rng.normal(size=(200, 4)), rng)
        n_false += any(leaf.p_adjusted < 0.05 for leaf in leaves)
    assert n_false <= 12  # 5 expected at most; 99.9% of binomial draws
