from __future__ import annotations

import math
from functools import cache
from itertools import combinations, permutations
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import zeta
from scipy.stats import entropy as scipy_entropy
from scipy.stats import kendalltau, spearmanr

from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.evidence import rank_discounts
from recbias.language.groups import certainty_factor
from recbias.metrics.identity import INVALID, OverlapForm, measure_overlap
from recbias.statistics import inequality as power_law
from recbias.statistics.agreement import kendall_tau, spearman
from recbias.statistics.inequality import entropy, fit_power_law, gini, head, zipf_exponent

COUNTS = st.lists(st.integers(0, 1_000), min_size=1, max_size=30).filter(any)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([5], 0),
        ([2, 2, 2], 0),
        # n = 2: (-1 * 1 + 1 * 3) / (2 * 4)
        ([3, 1], 1 / 4),
        # n = 4: (-3 * 0 - 1 * 1 + 1 * 2 + 3 * 7) / (4 * 10)
        ([7, 0, 2, 1], 22 / 40),
        ([0, 0, 0, 0, 9], 4 / 5),
    ],
)
def test_gini_matches_hand_computation(counts: list[int], expected: float) -> None:
    assert float(gini(counts)) == pytest.approx(expected)


@given(COUNTS)
def test_gini_is_half_the_relative_mean_difference(counts: list[int]) -> None:
    x = np.array(counts, dtype=float)
    differences = np.abs(x[:, None] - x[None]).mean()
    assert float(gini(x)) == pytest.approx(differences / (2 * x.mean()), abs=1e-9)


@given(COUNTS)
def test_entropy_agrees_with_scipy(counts: list[int]) -> None:
    assert float(entropy(counts)) == pytest.approx(float(scipy_entropy(counts)), abs=1e-12)


def test_entropy_matches_hand_computation_in_nats() -> None:
    # shares 1/2, 1/4, 1/4: ln 2 / 2 + 2 ln 4 / 4 = 1.5 ln 2
    assert float(entropy([2, 1, 1, 0])) == pytest.approx(1.5 * math.log(2))
    value = float(entropy([0, 7]))
    assert value == 0
    assert math.copysign(1, value) == 1


@pytest.mark.parametrize(
    ("share", "of", "expected"),
    [
        # by popularity: item 2 (5), items 0 and 3 (2 each), item 1 (1); 10 in all
        (0.0, "interactions", []),
        (0.5, "interactions", [2]),
        (0.51, "interactions", [0, 2]),
        (0.7, "interactions", [0, 2]),
        (0.9, "interactions", [0, 2, 3]),
        (1.0, "interactions", [0, 1, 2, 3]),
        (0.0, "items", []),
        (0.25, "items", [2]),
        (0.26, "items", [0, 2]),
        (1.0, "items", [0, 1, 2, 3]),
    ],
)
def test_head_matches_hand_computation(
    share: float, of: Literal["interactions", "items"], expected: list[int]
) -> None:
    assert np.flatnonzero(head(np.array([2, 1, 5, 2]), share, of=of)).tolist() == expected


def test_kendall_matches_hand_computation() -> None:
    # orders of four models: metrics a 1 2 3 4, b 1 3 2 4, c 4 3 2 1, d 1 1 2 2
    table = [[1, 1, 4, 1], [2, 3, 3, 1], [3, 2, 2, 2], [4, 4, 1, 2]]
    agreement = kendall_tau(table)
    # a and b: 5 pairs alike, 1 reversed: 4/6; a and c: -1; b and c: -4/6
    # a and d: of the 4 pairs that d orders all alike: 4 / √(6 x 4)
    # b and d: 3 alike (1-3, 1-4, 2-4), 1 reversed (2-3): 2 / √24
    assert agreement.tau[0] == pytest.approx([1, 4 / 6, -1, 4 / 24**0.5])
    assert agreement.tau[1] == pytest.approx([4 / 6, 1, -4 / 6, 2 / 24**0.5])
    assert agreement.n.tolist() == [[4] * 4] * 4


@given(seed=st.integers(0, 2**32 - 1))
def test_kendall_agrees_with_scipy_on_shared_models(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 6, (9, 3)).astype(np.float64)  # with ties
    table[rng.random((9, 3)) < 0.15] = np.nan
    agreement = kendall_tau(table)
    for row in range(3):
        for other in range(3):
            both = ~np.isnan(table[:, [row, other]]).any(axis=1)
            assert agreement.n[row, other] == both.sum()
            if both.sum() > 1:
                expected = kendalltau(table[both, row], table[both, other]).statistic
                assert agreement.tau[row, other] == pytest.approx(expected, nan_ok=True)
            else:
                assert np.isnan(agreement.tau[row, other])


def test_spearman_matches_hand_computation() -> None:
    # 10 30 20 against 1 2 3: ranks 1 3 2 and 1 2 3: 1 - 6 (0 + 1 + 1) / (3 x 8) = 0.5
    a = np.array([[10.0, 30.0, 20.0, np.nan], [5.0, 5.0, np.nan, 1.0]])
    b = np.array([[1.0, 2.0, 3.0, 0.0], [1.0, 2.0, 9.0, np.nan]])
    # of the second row 5 5 against 1 2 are left: equal values have no order
    assert spearman(a, b) == pytest.approx([0.5, np.nan], nan_ok=True)


@given(seed=st.integers(0, 2**32 - 1))
def test_spearman_agrees_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 5, (2, 3, 10)).astype(np.float64)
    a[rng.random(a.shape) < 0.2] = np.nan
    correlations = spearman(a, b)
    for row in range(3):
        defined = ~np.isnan(a[row])
        if np.unique(a[row][defined]).size > 1 and np.unique(b[row][defined]).size > 1:
            expected = spearmanr(a[row][defined], b[row][defined]).statistic
            assert correlations[row] == pytest.approx(expected)
        else:
            assert np.isnan(correlations[row])


def test_discounts_are_one_over_the_logarithm_of_rank_plus_one() -> None:
    # ranks 1, 2, 3: 1 / log2(2), 1 / log2(3), 1 / log2(4)
    np.testing.assert_allclose(rank_discounts(3), [1, 1 / math.log2(3), 1 / 2], rtol=1e-15)
    assert rank_discounts(0).size == 0


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


@pytest.mark.parametrize("form", FORMS)
def test_invalid_ranks_are_in_no_overlap_and_keep_their_rank(form: OverlapForm) -> None:
    assert measure([INVALID], [INVALID], form) == 0
    assert 0 < measure([1, INVALID], [1, INVALID], form) < 1 or form == "prag"
    assert measure([1, INVALID], [1, 2], form) == measure([1, 3], [1, 2], form)


@cache
def compute_survival(exponent: float, xmin: int) -> FloatArray:
    """P(X ≥ x) of the discrete law, for x from xmin on; it falls."""
    grid = np.arange(xmin, 200_000, dtype=np.float64)
    return np.asarray(zeta(exponent, grid) / zeta(exponent, xmin))


def sample_law(exponent: float, xmin: int, n: int, rng: np.random.Generator) -> AnyArray:
    """Exact draws of the discrete law, by inversion of its survival function on a grid."""
    return (
        xmin + np.searchsorted(-compute_survival(exponent, xmin), -rng.random(n), side="right") - 1
    )


def fit_by_search(counts: AnyArray) -> tuple[float, float, float]:
    """Each xmin by itself: scipy's optimiser, and the distance at every whole number."""
    best = (math.inf, math.nan, math.nan)
    for xmin in np.unique(counts)[:-1]:
        tail = counts[counts >= xmin]

        def compute_loss(a: float, tail: AnyArray = tail, xmin: float = xmin) -> float:
            return float(np.log(zeta(a, xmin)) + a * np.log(tail).mean())

        a = minimize_scalar(compute_loss, bounds=(1.000001, 20), options={"xatol": 1e-11}).x
        values = np.arange(xmin, tail.max() + 2)
        law = zeta(a, values) / zeta(a, xmin)
        share = np.array([(tail >= value).mean() for value in values])
        best = min(best, (float(np.abs(law - share).max()), float(xmin), float(a)))
    return best


def test_exponent_maximizes_the_likelihood() -> None:
    # p(x) ~ x^-2.5: of 10^6 in the proportions of the law the likelihood is highest at 2.5
    x = np.arange(1, 4000)
    counts = np.repeat(x, np.rint(1e6 * x**-2.5 / zeta(2.5, 1)).astype(int))
    law = fit_power_law(counts)
    assert law.xmin == 1
    assert law.exponent == pytest.approx(2.5, abs=0.005)
    assert law.pareto == law.exponent - 1
    assert law.ks < 0.001


def test_fit_matches_hand_computation() -> None:
    # 1 1 1 2: the only xmin is 1. Highest likelihood of 4 ln ζ(a) + a ln 2: -ζ'/ζ(a) = ln 2 / 4.
    # By a table of -ζ'/ζ (2: 0.5700, 3: 0.1648, 2.9: 0.1813) a lies near 2.95.
    law = fit_power_law(np.array([1, 2, 1, 1, 0]))
    slope = (math.log(zeta(law.exponent - 1e-5)) - math.log(zeta(law.exponent + 1e-5))) / 2e-5
    assert slope == pytest.approx(math.log(2) / 4, rel=1e-6)
    assert law.exponent == pytest.approx(2.95, abs=0.02)
    # P(X ≥ 2) = 1 - 1/ζ(a) against 1/4; behind 2, where S is 0, 1 - (1 + 2^-a)/ζ(a)
    at_2 = 1 - 1 / zeta(law.exponent)
    behind_2 = at_2 - 2**-law.exponent / zeta(law.exponent)
    assert law.ks == pytest.approx(max(abs(at_2 - 0.25), behind_2))
    assert (law.xmin, law.n) == (1, 4)


def test_intervals_cover_the_planted_exponent() -> None:
    """α ± 1.96 (α - 1) / √n, the interval of Clauset et al., holds in about 95 of 100 samples."""
    n_covered = 0
    for seed in range(100):
        counts = sample_law(2.5, 6, 400, np.random.default_rng(seed))
        tail = fit_power_law(np.append(counts, 7))
        n_covered += abs(tail.exponent - 2.5) <= 1.96 * (tail.exponent - 1) / math.sqrt(tail.n)
    assert n_covered >= 80  # choosing xmin costs some


@given(seed=st.integers(0, 2**32 - 1))
def test_fit_equals_exhaustive_search_for_any_block_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.geometric(0.2, 40) * rng.integers(1, 3, 40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power_law, "BLOCK_CELLS", int(rng.integers(1, 60)))
        law = fit_power_law(rng.permutation(counts))
    ks, xmin, exponent = fit_by_search(counts)
    assert law.ks == pytest.approx(ks, abs=1e-6)
    assert (law.xmin, law.exponent) == pytest.approx((xmin, exponent), rel=1e-5)


def test_zipf_matches_hand_computation() -> None:
    # popularities 8 and 2 at ranks 1 and 2: slope (ln 2 - ln 8) / ln 2 = -2
    assert zipf_exponent(np.array([2, 0, 8])) == pytest.approx(2.0)
    assert zipf_exponent(np.array([1, 2])) == pytest.approx(1.0)
    assert zipf_exponent(np.array([5, 5, 5])) == 0.0
    assert math.isnan(zipf_exponent(np.array([5, 0])))


OPEN = st.floats(-0.99, 0.99).filter(lambda score: score == 0 or abs(score) > 1e-6)


def combine(scores: list[float]) -> float:
    return float(certainty_factor(scores, [0] * len(scores), 1)[0])


def fold_scores(scores: list[float]) -> float:
    """The rule as it is written, score after score."""
    factor = scores[0]
    for score in scores[1:]:
        if factor >= 0 and score >= 0:
            factor = factor + score - factor * score
        elif factor <= 0 and score <= 0:
            factor = factor + score + factor * score
        else:
            factor = (factor + score) / (1 - min(abs(factor), abs(score)))
    return factor


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.4], 0.4),
        ([0.5, 0.6], 0.8),  # 0.5 + 0.6 - 0.3
        ([-0.5, -0.6], -0.8),
        ([0.6, -0.2], 0.5),  # 0.4 / (1 - 0.2)
        ([0.2, -0.6], -0.5),
        ([0.5, 0.6, -0.2], 0.75),  # (0.8 - 0.2) / (1 - 0.2)
        ([0.3, -0.3], 0.0),
        ([0.0, 0.0], 0.0),
        ([0.7, 0.0], 0.7),
    ],
)
def test_combination_matches_hand_computation(scores: list[float], expected: float) -> None:
    assert combine(scores) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1.0, -0.99], 1.0),  # 0.01 / (1 - 0.99)
        ([-1.0, 0.5, 0.5], -1.0),
        ([1.0, 1.0], 1.0),
        ([1.0, -1.0], 0.0),  # undefined by the rule
        ([1.0, 0.5, -1.0], 0.0),
    ],
)
def test_certain_scores_decide(scores: list[float], expected: float) -> None:
    for order in permutations(scores):
        assert combine(list(order)) == expected


@given(st.lists(OPEN, min_size=1, max_size=8))
def test_closed_form_equals_the_pairwise_rule(scores: list[float]) -> None:
    assert combine(scores) == pytest.approx(fold_scores(scores), abs=1e-9)


def test_many_groups_agree_with_the_pairwise_rule(rng: np.random.Generator) -> None:
    scores, groups = rng.uniform(-0.9, 0.9, 2_000), rng.integers(0, 300, 2_000)
    factors = certainty_factor(scores, groups, 300)
    for group in range(0, 300, 37):
        group_scores = scores[groups == group].tolist()
        assert factors[group] == pytest.approx(
            fold_scores(group_scores) if group_scores else 0.0, abs=1e-9
        )
