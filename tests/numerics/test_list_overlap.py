from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.metrics.identity import INVALID, OverlapForm, measure_overlap

FORMS: tuple[OverlapForm, ...] = ("jaccard", "rbo", "serp", "prag")
K = 6


def measure(a: list[int], b: list[int], form: OverlapForm, p: float = 0.9) -> float:
    """Return the overlap of two lists, whose end is filled with -1."""
    width = max(len(a), len(b), 1)
    tables = [np.array([row + [-1] * (width - len(row))]) for row in (a, b)]
    return float(measure_overlap(tables[0], tables[1], form, p=p).item())


def compute_rbo(a: list[int], b: list[int], p: float) -> float:
    """Return equation 32 of Webber et al. term by term, for lists that are not empty."""
    short, long = sorted([a, b], key=len)
    s, n = len(short), len(long)

    def count_shared(depth: int) -> int:
        return len({item for item in a[:depth] if item >= 0} & set(b[:depth]))

    first = sum(count_shared(d) / d * p**d for d in range(1, n + 1))
    second = sum(count_shared(s) * (d - s) / (s * d) * p**d for d in range(s + 1, n + 1))
    last = (count_shared(n) - count_shared(s)) / n + count_shared(s) / s
    return (1 - p) / p * (first + second) + last * p**n


def compute_serp(a: list[int], b: list[int]) -> float:
    """Return SERP* of FaiRLLM with the weights K, K - 1, ..., 1, over its largest value."""
    k = max(len(a), len(b))
    gains = sum(k - b.index(item) for item in a if item >= 0 and item in b)
    return gains / sum(range(1, k + 1))


def compute_prag(a: list[int], b: list[int]) -> float:
    """Return PRAG* of FaiRLLM by pairs of items, over its largest value."""
    k = max(len(a), len(b), 2)
    padded = b + [INVALID] * (k - len(b))
    pairs = list(combinations(padded, 2))

    def is_kept(first: int, second: int) -> bool:
        if first < 0 or first not in a:
            return False
        return second < 0 or second not in a or a.index(first) < a.index(second)

    return sum(is_kept(*pair) for pair in pairs) / len(pairs)


lists = st.lists(st.integers(0, 8), max_size=K, unique=True)


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("jaccard", 2 / 4),
        # shared to depth 1, 2, 3: 0, 2, 2; 0.5 (0/1 + 0.5 * 2/2 + 0.25 * 2/3) + 0.125 * 2/3
        ("rbo", 0.5 * (0 + 0.5 + 0.25 * 2 / 3) + 0.125 * 2 / 3),
        ("serp", (2 + 3) / 6),  # 1 has rank 2 in b, 2 has rank 1; the weights are 3, 2, 1
        ("prag", 2 / 3),  # of 21, 24, 14: 1 is before 2 in a
    ],
)
def test_forms_by_hand(form: OverlapForm, value: float) -> None:
    assert measure([1, 2, 3], [2, 1, 4], form, p=0.5) == pytest.approx(value)


def test_prag_takes_the_pairs_of_the_stated_list_as_the_authors_code_does() -> None:
    # 1 2 3 4 with an identity 8 1 2 9: of its six pairs, 12, 19 and 29 keep their order
    assert measure([1, 2, 3, 4], [8, 1, 2, 9], "prag") == 0.5


def test_published_serp_of_identical_lists_of_20_is_not_1() -> None:
    # the authors' code: 0.5 Σ_{i=0..19} (20 - i + 1) / (20 * 21) = 0.5 * 230 / 420
    assert 0.5 * sum(20 - rank + 1 for rank in range(20)) / (20 * 21) == pytest.approx(
        0.2738, 1e-3
    )
    assert measure(list(range(20)), list(range(20)), "serp") == 1.0


@given(lists.filter(bool), st.floats(0.01, 0.99))
def test_identical_lists_have_exactly_1_and_disjoint_ones_exactly_0(
    items: list[int], p: float
) -> None:
    others = [item + 100 for item in items]
    for form in FORMS:
        assert measure(items, items, form, p) == 1.0
        assert measure(items, others, form, p) == 0.0


@given(lists, lists, st.floats(0.05, 0.95))
def test_equals_a_computation_item_by_item(a: list[int], b: list[int], p: float) -> None:
    if not a or not b:
        for form in FORMS:
            value = measure(a, b, form, p)
            assert value == 0 if a or b else np.isnan(value)
        return
    assert measure(a, b, "jaccard") == pytest.approx(len({*a} & {*b}) / len({*a} | {*b}))
    assert measure(a, b, "rbo", p) == pytest.approx(compute_rbo(a, b, p))
    assert measure(a, b, "serp") == pytest.approx(compute_serp(a, b))
    assert measure(a, b, "prag") == pytest.approx(compute_prag(a, b))


@given(lists, lists)
def test_lies_between_0_and_1_and_jaccard_and_rbo_are_symmetric(
    a: list[int], b: list[int]
) -> None:
    values = [measure(a, b, form) for form in FORMS]
    assert all(np.isnan(value) or 0 <= value <= 1 for value in values)
    for form, value in zip(FORMS[:2], values[:2], strict=True):
        assert measure(b, a, form) == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize("form", FORMS)
def test_invalid_ranks_are_in_no_overlap_and_keep_their_rank(form: OverlapForm) -> None:
    assert measure([INVALID], [INVALID], form) == 0
    assert 0 < measure([1, INVALID], [1, INVALID], form) < 1 or form == "prag"
    assert measure([1, INVALID], [1, 2], form) == measure([1, 3], [1, 2], form)


def test_rows_are_measured_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.permuted(np.tile(np.arange(9), (50, 1)), axis=1)[:, :K] for _ in range(2))
    whole = [measure_overlap(a, b, form) for form in FORMS]
    monkeypatch.setattr("recbias.metrics.identity._BLOCK_CELLS", 7 * (K + 1) ** 2)
    for form, values in zip(FORMS, whole, strict=True):
        np.testing.assert_array_equal(measure_overlap(a, b, form), values)
