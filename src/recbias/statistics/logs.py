"""What a log of impressions says: off-policy values, position bias, and sensitivity.

Each estimator of the value of a policy from a log of another one is a sum over the rows divided by
another sum, so that users can be the clusters of its interval. ``weights`` are π(a | x) / p, the
probability of the shown item under the policy divided by that under which it was shown.

Under the position-based model a shown item is clicked if it is examined, which depends on its
position, and relevant. Clicks at two positions are compared within strata in which the relevance
does not depend on the position: all rows where positions are random, the rows of an item, or those
of a user and item, where variants of a system put it at different positions. Sensitivity is how
wrong an assumption must be for a conclusion to turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from recbias.core.dataset import AnyArray, BoolArray, FloatArray

Estimator: TypeAlias = Literal["ips", "snips", "direct", "dr", "iips", "rips", "sips", "slate_pi"]

SLATE_ESTIMATORS = frozenset({"iips", "rips", "sips", "slate_pi"})
"""The estimators of the reward of a request, the sum over its items; the others are of a row."""

WEIGHTED = ("ips", "snips", "dr", *sorted(SLATE_ESTIMATORS))
"""The estimators with weights of importance; ``direct`` has none."""


class Terms(NamedTuple):
    """What each row adds to the numerator, the denominator and the error of fitted values."""

    numerators: FloatArray
    denominators: FloatArray
    errors: FloatArray | None = None


def estimate_rows(
    estimator: Estimator,
    weights: FloatArray,
    rewards: FloatArray,
    expected: FloatArray,
    expected_shown: FloatArray,
) -> Terms:
    """Return the terms of an estimator of the mean reward of a row.

        ips     Σ w r / n            snips   Σ w r / Σ w
        direct  Σ q_π / n            dr      Σ ( q_π + w (r - q) ) / n

    For ``direct``, where q is the mean of the rewards of each item and w the ratio of the shares
    of the items, w (r - q) are the terms by which the variance of q counts: ``errors``. They add
    up to 0 over the log, but not over a group of users, to whose value they add nothing.

    Args:
        estimator: One that is not of ``SLATE_ESTIMATORS``.
        weights: w, ``float64[n]``.
        rewards: r, ``float64[n]``.
        expected: q_π = Σ_a π(a | x) q(x, a), the expected reward under the policy.
        expected_shown: q(x, a) of the item that was shown.

    >>> w, r, q = np.array([2.0, 0.5]), np.array([1.0, 0.0]), np.array([0.5, 0.5])
    >>> terms = estimate_rows("snips", w, r, q, q)
    >>> float(terms.numerators.sum() / terms.denominators.sum())
    0.8

    Source:
        Swaminathan and Joachims, NeurIPS 2015 (snips); Dudík, Langford and Li, ICML 2011 (dr).
    """
    ones = np.ones(rewards.size)
    if estimator == "ips":
        return Terms(weights * rewards, ones)
    if estimator == "snips":
        return Terms(weights * rewards, weights)
    errors = np.asarray(weights * (rewards - expected_shown))
    if estimator == "direct":
        return Terms(expected, ones, errors)
    return Terms(np.asarray(expected + errors), ones)


def estimate_slates(
    estimator: Estimator, weights: FloatArray, rewards: FloatArray, requests: AnyArray
) -> Terms:
    """Return the terms of an estimator of the sum of the rewards of a request.

        iips      Σ_l w_l r_l                     rewards depend on the item and its position
        rips      Σ_l ( Π_(j <= l) w_j ) r_l      and on the items above it
        sips      ( Π_l w_l ) Σ_l r_l             and on all items
        slate_pi  ( 1 + Σ_l (w_l - 1) ) Σ_l r_l   their sum is a sum of effects of the items

    ``w_l`` is the weight of the item at position l. Each is unbiased where rewards depend on the
    items as stated, and positions were filled independently of each other.

    Args:
        estimator: One of ``SLATE_ESTIMATORS``.
        weights: w, ``float64[n]``, in the order of the positions of each request.
        rewards: r, ``float64[n]``.
        requests: The request of each row; its rows stand together, ``int[n]``.

    >>> w, r = np.array([2.0, 0.5, 1.0]), np.array([0.0, 1.0, 1.0])
    >>> [float(sum(estimate_slates(name, w, r, np.array([0, 0, 0])).numerators))
    ...  for name in ("iips", "rips", "sips", "slate_pi")]
    [1.5, 2.0, 2.0, 3.0]

    Source:
        Li et al., KDD 2018 (iips); McInerney et al., KDD 2020 (rips); Swaminathan et al., NeurIPS
        2017 (slate_pi); implemented for independent positions as in Vlassis et al., ICML 2021.
    """
    is_first = np.diff(requests, prepend=requests[:1] - 1) != 0
    if estimator == "iips":
        factors = weights
    elif estimator == "slate_pi":
        starts = np.flatnonzero(is_first)
        sums = np.add.reduceat(weights - 1, starts)
        factors = np.repeat(1 + sums, np.diff(starts, append=requests.size))
    else:
        factors = _multiply(weights, requests, whole=estimator == "sips")
    return Terms(np.asarray(factors * rewards), is_first.astype(np.float64))


def _multiply(values: FloatArray, requests: AnyArray, *, whole: bool) -> FloatArray:
    """Return the product of the values of the request up to each row, or of the whole request."""
    starts = np.flatnonzero(np.diff(requests, prepend=requests[:1] - 1))
    lengths = np.diff(starts, append=requests.size)
    products = values.astype(np.float64)
    ranks = np.arange(requests.size) - np.repeat(starts, lengths)
    for rank in range(1, int(lengths.max(initial=0))):
        rows = np.flatnonzero(ranks == rank)
        products[rows] *= products[rows - 1]
    return np.repeat(products[starts + lengths - 1], lengths) if whole else products


def lose_mass(estimator: Estimator, mass: FloatArray, requests: AnyArray) -> FloatArray:
    """Return the probability that an estimator knows nothing of the reward of a row.

    Args:
        estimator: The estimator.
        mass: The probability that the policy shows what the log never shows there, ``float64[n]``.
        requests: The request of each row; its rows stand together, ``int[n]``.

    >>> lose_mass("rips", np.array([0.5, 0.5]), np.array([0, 0])).tolist()
    [0.5, 0.75]
    """
    if estimator in {"rips", "sips"}:
        return 1.0 - _multiply(1.0 - mass, requests, whole=estimator == "sips")
    if estimator == "slate_pi":
        whole = _multiply((mass == 0).astype(np.float64), requests, whole=True)
        return 1.0 - whole
    return mass


_STEPS = 50


@dataclass(frozen=True, eq=False)
class PositionBias:
    """The examination of each position, relative to the first, with its fit.

    Args:
        shown: The impressions by stratum and position, ``float64[s, k]``.
        clicks: The sum of the rewards, ``float64[s, k]``.
        wins: Weighted clicks at one position against another, ``float64[k, k]``.
        known: The positions that a chain of comparisons connects with the first.
        values: p_k / p_1; NaN where it is not known.
    """

    shown: FloatArray
    clicks: FloatArray
    wins: FloatArray
    known: BoolArray
    values: FloatArray

    def score_users(
        self, strata: AnyArray, positions: AnyArray, rewards: FloatArray, users: AnyArray, n: int
    ) -> FloatArray:
        """Return what the rows of each of ``n`` users add to the score of log p, ``[n, k]``.

        A row of stratum s at position k adds, for each other position j,

            (r - p_k ρ_s) · n_sj / (n_sk + n_sj) · p_j / (p_k + p_j)

        to the score of k and takes it from that of j; ρ_s = Σ r / Σ p is the relevance of the
        stratum, over its impressions.
        """
        values = np.where(self.known, self.values, 0.0)
        expected = self.shown @ values
        relevance = self.clicks @ self.known / np.where(expected > 0, expected, 1.0)
        residuals = np.where(
            self.known[positions], rewards - values[positions] * relevance[strata], 0.0
        )
        scores = np.zeros((values.size, n))
        here = self.shown[strata, positions]
        for other in np.flatnonzero(self.known):
            there = self.shown[strata, other]
            odds = values[other] / (values[positions] + values[other])
            terms = np.where(positions == other, 0.0, residuals * odds * there / (here + there))
            np.add.at(scores, (positions, users), terms)
            scores[other] -= np.bincount(users, terms, n)
        return scores.T

    def find_intervals(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the 95% interval of each position, from the scores of the users.

        The interval is that of log p, with the sandwich variance over users and Student's t; NaN
        where fewer than two users have a score.
        """
        from scipy.stats import t

        fitted = np.flatnonzero(self.known)[1:]
        low, high = self.values.copy(), self.values.copy()
        if fitted.size:
            n = int(np.any(scores != 0, axis=1).sum())
            if n < 2:
                low[fitted] = high[fitted] = np.nan
                return low, high
            bread = np.linalg.inv(self._information(fitted))
            influence = scores[:, fitted] @ bread
            errors = np.sqrt((influence**2).sum(axis=0) * n / (n - 1))
            width = np.exp(float(t.ppf(0.975, n - 1)) * errors)
            low[fitted], high[fitted] = self.values[fitted] / width, self.values[fitted] * width
        return low, high

    def _information(self, fitted: AnyArray) -> FloatArray:
        _, information = _differentiate(self.wins, np.where(self.known, self.values, 0.0))
        return np.asarray(information[np.ix_(fitted, fitted)])


def tally_positions(
    strata: AnyArray, positions: AnyArray, rewards: FloatArray, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    """Return the number of rows and the sum of rewards by stratum and position."""
    cells = np.ravel_multi_index((strata, positions), shape)
    size = shape[0] * shape[1]
    counts = np.stack([np.bincount(cells, part, size) for part in (np.ones(cells.size), rewards)])
    shown, clicks = counts.astype(np.float64).reshape(2, *shape)
    return shown, clicks


def fit_position_bias(shown: FloatArray, clicks: FloatArray) -> PositionBias:
    """Return the examination of each position, relative to the first.

        a_kj = Σ_s c_sk n_sj / (n_sk + n_sj),
        p maximises Σ_(k ≠ j) a_kj log( p_k / (p_k + p_j) )

    over all pairs of positions; ``n_sk`` and ``c_sk`` are the impressions and clicks of stratum s
    at position k. ``a_kj : a_jk`` estimates p_k : p_j from the items that were shown at both
    positions, whatever their relevance. With one stratum, p_k / p_1 is the ratio of the
    click-through rates. Undefined where no chain of pairs with clicks on both sides leads to the
    first position.

    Args:
        shown: ``float64[s, k]``.
        clicks: ``float64[s, k]``.

    >>> shown, clicks = np.array([[10.0, 20.0]]), np.array([[5.0, 4.0]])
    >>> fit_position_bias(shown, clicks).values.round(9).tolist()
    [1.0, 0.4]

    Source:
        Agarwal, Zaitsev, Wang, Li, Najork and Joachims, "Estimating position bias without
        intrusive interventions", WSDM 2019 (all pairs; the weight of an item is here that of
        Mantel and Haenszel, 1959, which is not 1 but larger with more impressions at both
        positions); with the likelihood of Bradley and Terry, 1952.
    """
    k = shown.shape[1]
    wins = np.zeros((k, k))
    for first in range(k):
        for second in range(first + 1, k):
            here, there = shown[:, first], shown[:, second]
            total = here + there
            total[total == 0] = 1.0
            wins[first, second] = clicks[:, first] @ (there / total)
            wins[second, first] = clicks[:, second] @ (here / total)
    known = np.arange(k) == 0
    linked = (wins > 0) & (wins.T > 0)
    for _ in range(k):
        known |= linked[known].any(axis=0)
    logs = np.zeros(k)
    fitted = np.flatnonzero(known)[1:]
    for _ in range(_STEPS if fitted.size else 0):
        gradient, information = _differentiate(wins, np.where(known, np.exp(logs), 0.0))
        step = np.linalg.solve(information[np.ix_(fitted, fitted)], gradient[fitted])
        logs[fitted] += np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-12:
            break
    return PositionBias(shown, clicks, wins, known, np.where(known, np.exp(logs), np.nan))


def _differentiate(wins: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gradient and the information of log p; a position of value 0 is left out."""
    is_in = (values[:, None] > 0) & (values > 0)
    shares = values[:, None] / np.where(is_in, values[:, None] + values, 1.0)
    both = np.where(is_in, wins + wins.T, 0.0)
    gradient = np.where(is_in, wins, 0.0).sum(axis=1) - (both * shares).sum(axis=1)
    information = -both * shares * shares.T
    np.fill_diagonal(information, 0.0)
    np.fill_diagonal(information, -information.sum(axis=1))
    return gradient, information


def bound_ratio(weights: FloatArray, rewards: FloatArray, factor: float) -> tuple[float, float]:
    """Return the least and the largest self-normalised mean under wrong propensities.

        max and min of  Σ λ w r / Σ λ w   over all  1/Γ ≤ λ_i ≤ Γ

    where each true propensity is between p / Γ and p Γ. At the maximum λ is Γ for the rewards
    above a threshold and 1/Γ for the others, so that it is found exactly among the sorted rewards.

    Args:
        weights: w = π / p of each row, or their sum over the rows with the same reward.
        rewards: r.
        factor: Γ, 1 or more.

    >>> low, high = bound_ratio(np.array([1.0, 3.0]), np.array([1.0, 0.0]), 2.0)
    >>> round(low, 4), round(high, 4)  # (1/2) / (1/2 + 6) and 2 / (2 + 3/2)
    (0.0769, 0.5714)

    Undefined (NaN) without a positive weight.

    Source:
        Tan, "A distributional approach for causal inference using propensity scores", JASA 2006;
        Zhao, Small and Bhattacharya, "Sensitivity analysis for inverse probability weighting
        estimators via the percentile bootstrap", JRSS B 2019.
    """
    return -_find_largest(weights, -rewards, factor), _find_largest(weights, rewards, factor)


def _find_largest(weights: FloatArray, rewards: FloatArray, factor: float) -> float:
    order = np.argsort(-rewards, kind="stable")
    terms = np.stack([weights * rewards, weights])[:, order]
    above = np.concatenate([np.zeros((2, 1)), np.cumsum(terms, axis=1)], axis=1)
    numerators, denominators = factor * above + (above[:, -1:] - above) / factor
    if not denominators[0] > 0:
        return math.nan
    return float((numerators / denominators).max())


def weigh_worst(rewards: FloatArray, bound: float, factor: float, *, highest: bool) -> FloatArray:
    """Return the factors λ of the rows at a bound of ``bound_ratio``."""
    is_raised = rewards > bound if highest else rewards < bound
    return np.where(is_raised, factor, 1.0 / factor)


class GapBound(NamedTuple):
    """A bound of the gap of two candidates, with the multipliers by which it is found."""

    value: float
    a: float
    b: float


def bound_gap(
    weights: FloatArray, rewards: FloatArray, factor: float, counts: FloatArray | None = None
) -> tuple[GapBound, GapBound]:
    """Return the least and the largest gap of two candidates under wrong propensities.

        max and min of  Σ λ w r / Σ w - Σ λ v r / Σ v    over all  1/Γ ≤ λ_i ≤ Γ
        with  Σ λ w = Σ w  and  Σ λ v = Σ v

    The true propensity of a row is p / λ: the same for both candidates, and such that the
    probabilities of each still add up to 1, so that the weights keep their mean. By the duality of
    linear programs the maximum is, with the multipliers a and b that make it least,

        a - b + Σ max_λ λ c,    c = w (r - a) / Σ w - v (r - b) / Σ v

    which is a bound with any a and b.

    Args:
        weights: Those of each row, w and v, ``float64[2, n]``.
        rewards: r.
        factor: Γ, 1 or more.
        counts: How many rows are like each.

    >>> w, r = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([1.0, 0.0, 1.0])
    >>> [round(bound.value, 4) for bound in bound_gap(w, r, 1.5)]  # λ = 1 is all that adds up to 2
    [-0.0, 0.0]

    Source:
        Dorn and Guo, "Sharp sensitivity analysis for inverse propensity weighting via quantile
        balancing", JASA 2023, for a mean; here for a difference with common propensities.
    """
    low = _bound_above(weights, -rewards, factor, counts)
    high = _bound_above(weights, rewards, factor, counts)
    return GapBound(-low.value, -low.a, -low.b), high


def _bound_above(
    weights: FloatArray, rewards: FloatArray, factor: float, counts: FloatArray | None
) -> GapBound:
    from scipy.optimize import linprog

    n = np.ones(rewards.size) if counts is None else counts
    shares = weights / (weights @ n)[:, None]
    gains = (shares[0] - shares[1]) * rewards
    found = linprog(-n * gains, A_eq=n * shares, b_eq=np.ones(2), bounds=(1 / factor, factor))
    a, b = (-found.eqlin.marginals * [1.0, -1.0]).tolist()
    terms = shares[0] * (rewards - a) - shares[1] * (rewards - b)
    return GapBound(float(a - b + n @ (terms * raise_positive(terms, factor))), a, b)


def raise_positive(terms: FloatArray, factor: float) -> FloatArray:
    """Return the factors λ with the largest sum of λ times ``terms``."""
    return np.where(terms > 0, factor, 1.0 / factor)


def find_turn(gap: Callable[[float], float], low: float, high: float, n_steps: int = 200) -> float:
    """Return the least x from ``low`` to ``high`` at which a gap has no longer its sign at low.

    The first change of sign on some steps, of which a monotonic gap needs one, is refined by
    bisection. NaN if there is none, or if the gap is 0 or undefined at ``low``.

    >>> round(find_turn(lambda x: 3.0 - x, 1.0, 10.0), 6)
    3.0
    """
    sign = np.sign(gap(low))
    if not sign * sign > 0:
        return math.nan
    left = low
    for right in np.linspace(low, high, n_steps + 1)[1:].tolist():
        if not gap(right) * sign > 0:
            break
        left = right
    else:
        return math.nan
    while right - left > 1e-9 * max(abs(right), 1.0):
        middle = (left + right) / 2.0
        left, right = (middle, right) if gap(middle) * sign > 0 else (left, middle)
    return float(right)
