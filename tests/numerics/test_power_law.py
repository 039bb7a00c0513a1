from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import zeta

from recbias.core.dataset import AnyArray, FloatArray
from recbias.statistics import power_law
from recbias.statistics.power_law import fit_power_law, zipf_exponent


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


@pytest.mark.parametrize(("exponent", "xmin"), [(1.68, 1), (2.5, 1), (2.5, 6), (3.5, 3)])
def test_fit_recovers_a_planted_law(exponent: float, xmin: int, rng: np.random.Generator) -> None:
    counts = sample_law(exponent, xmin, 20_000, rng)
    if xmin > 1:  # below the tail something else
        counts = np.concatenate([counts, np.repeat(np.arange(1, xmin), 1500)])
    law = fit_power_law(counts)
    assert abs(law.xmin - xmin) <= 2
    # the standard error of the exponent is about (α - 1) / √n
    assert law.exponent == pytest.approx(exponent, abs=4 * (exponent - 1) / math.sqrt(law.n))
    assert law.ks < 1.63 / math.sqrt(law.n)  # the 1% point of the distance of a true law


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


def test_number_of_candidates_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = sample_law(2.0, 1, 5000, np.random.default_rng(1))
    whole = fit_power_law(counts)
    monkeypatch.setattr(power_law, "MAX_STARTS", 20)
    law = fit_power_law(counts)
    assert law.ks >= whole.ks
    assert law.exponent == pytest.approx(whole.exponent, abs=0.1)


@pytest.mark.parametrize("counts", [[], [0, 0], [3], [4, 4, 0]])
def test_fewer_than_two_distinct_values_are_undefined(counts: list[int]) -> None:
    law = fit_power_law(np.array(counts))
    assert math.isnan(law.exponent)
    assert math.isnan(law.ks)
    assert law.n == 0


def test_zipf_matches_hand_computation() -> None:
    # popularities 8 and 2 at ranks 1 and 2: slope (ln 2 - ln 8) / ln 2 = -2
    assert zipf_exponent(np.array([2, 0, 8])) == pytest.approx(2.0)
    assert zipf_exponent(np.array([5, 5, 5])) == 0.0
    assert math.isnan(zipf_exponent(np.array([5, 0])))


@given(exponent=st.floats(0.1, 3.0), scale=st.floats(1.0, 1e6))
def test_zipf_recovers_the_exponent_of_an_exact_law(exponent: float, scale: float) -> None:
    counts = scale * np.arange(1, 60) ** -exponent
    assert zipf_exponent(counts) == pytest.approx(exponent)
