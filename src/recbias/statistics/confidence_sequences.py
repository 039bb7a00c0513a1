"""Confidence sequences and e-values: inference that holds however often it is looked at.

The e-value of a mean is the capital of a bettor against it: under that mean it exceeds
``1 / alpha`` at any time with a probability of at most ``alpha`` (Ville). The means whose e-value
has never been that high are the confidence sequence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np

from recbias.core.dataset import AnyArray, FloatArray

_FAR = 2.0**30  # an end so many standard deviations away is infinite
_MOST = 0.9  # the share of its capital that a bet on a bounded value may lose
_EFFECTS: FloatArray = 0.75 * np.array(
    [NormalDist().inv_cdf(0.5 + (at + 0.5) / 24) for at in range(12)]
)
"""The sizes of effects that are bet on, in standard deviations: a half-normal distribution."""


class Bets(Protocol):
    """A way to bet against a mean."""

    def log_e(self, values: FloatArray, mean: float) -> FloatArray:
        """Return the logarithm of the e-value of a mean after each value."""


@dataclass(frozen=True)
class Betting:
    """Bets against the mean of bounded values: exact, at any number of values.

        K_t(m) = mean over d of Π (1 + λ_i(d) (x_i - m)),    λ_i(d) = d / σ_(i-1)

    over effects ``d`` of both signs, from 0.04 to 1.5 standard deviations; λ is cut so that no bet
    loses more than 0.9 of its capital. The bet of a value depends on those before it only: σ² is
    their variance, with a tenth of a value of the largest possible variance added. All values have
    the same mean, given those before.

    Args:
        low: The least possible value.
        high: The largest possible value.

    Source:
        Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B
        2024 (diversified Kelly betting); Cover, "Universal portfolios", Mathematical Finance 1991.
    """

    low: float = 0.0
    high: float = 1.0

    def log_e(self, values: FloatArray, mean: float) -> FloatArray:
        """Return the logarithm of the e-value of a mean after each value."""
        t, widest = np.arange(1, len(values) + 1), (self.high - self.low) ** 2 / 4
        means = ((self.low + self.high) / 2 + np.cumsum(values)) / (t + 1)
        variances = (0.1 * widest + np.cumsum((values - means) ** 2)) / (t + 0.1)
        before = np.sqrt(np.concatenate([[widest], variances[:-1]]))
        bets = np.concatenate([_EFFECTS, -_EFFECTS]) / before[:, None]
        with np.errstate(divide="ignore"):
            ends = _MOST / np.float64(mean - self.high), _MOST / np.float64(mean - self.low)
        gains = np.clip(bets, *ends) * (values - mean)[:, None]
        return _mix(np.log1p(gains))


@dataclass(frozen=True)
class Exchangeable:
    """Bets that the first of k values, which would be exchangeable, is larger or smaller.

        E_t(m) = mean over d of Π_i k / (1 + Σ_j exp(-2 d (y_ij - m) / s_i)),    j = 1 ... k - 1

    ``y_ij`` is the first value less the j-th of the others: a reply less equal requests of the
    same persona. If the first less the effect ``m`` is exchangeable with the others, each factor
    has mean 1, whatever their distribution: it is the exponential of the first divided by the mean
    of those of all k. That is so without an effect. With one that differs between personas, k = 2
    needs symmetric differences only, and with more values the e-value is the smaller one of this
    and that of their mean difference, so that it is valid if either is. ``d`` is an effect of
    either sign in standard deviations of y, and ``s_i`` the square root of twice the mean variance
    of the values of a persona until the i-th, which does not depend on their order.

    Source:
        Koning, "Post-hoc and anytime valid permutation and group invariance testing",
        arXiv:2310.01153, 2023; de la Peña, Annals of Probability 1999 (symmetric differences).
    """

    def log_e(self, values: FloatArray, mean: float) -> FloatArray:
        """Return the logarithm of the e-value after each row of ``float64[n, k - 1]``."""
        rest = values - mean
        log_e = _bet_on_first(rest)
        if rest.shape[1] > 1:
            log_e = np.minimum(log_e, _bet_on_first(rest.mean(axis=1, keepdims=True)))
        return log_e


def _bet_on_first(rest: FloatArray) -> FloatArray:
    n, k = len(rest), rest.shape[1] + 1
    variances = ((rest**2).sum(axis=1) - rest.sum(axis=1) ** 2 / k) / (k - 1)
    scales = np.sqrt(2.0 * np.cumsum(variances) / np.arange(1, n + 1))
    scales[scales == 0] = np.inf
    bets = 2.0 * np.concatenate([_EFFECTS, -_EFFECTS]) / scales[:, None]
    odds = np.ones(bets.shape)
    for column in rest.T:
        odds += np.exp(np.minimum(-bets * column[:, None], 700.0))
    return _mix(math.log(k) - np.log(odds))


def _mix(log_factors: FloatArray) -> FloatArray:
    """Return the logarithm of the mean over the bets of the products until each row."""
    sums = np.cumsum(log_factors, axis=0)
    most = sums.max(axis=1)
    return np.asarray(most + np.log(np.exp(sums - most[:, None]).mean(axis=1)))


def mix_normal(s: FloatArray, v: FloatArray, rho: float) -> FloatArray:
    """Return the logarithm of the normal mixture of sums ``s`` with intrinsic times ``v``."""
    return np.asarray(0.5 * np.log(rho / (v + rho)) + s**2 / (2 * (v + rho)))


def find_best_rho(v: float, alpha: float) -> float:
    """Return the ρ whose two-sided boundary is lowest at an intrinsic time.

        ρ = v / (2 log(1/α) + log(1 + 2 log(1/α)))

    >>> round(find_best_rho(50.0, 0.05), 3)
    6.3
    """
    log = 2 * math.log(1 / alpha)
    return v / (log + math.log1p(log))


def find_interval(
    sequence: Bets,
    values: FloatArray,
    alpha: float,
    known: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float]:
    """Return the ends of the confidence sequence after the last value; infinite where it has none.

    Args:
        sequence: How the means are bet against.
        values: The values until now.
        alpha: The level.
        known: Ends that hold already: those after earlier values, or the possible ones.
    """
    from scipy.optimize import brentq

    centre, limit = float(values.mean()), math.log(1 / alpha)
    scale = float(values.std()) or max(abs(centre), 1.0) * 1e-9

    def exceed(mean: float) -> float:
        return float(sequence.log_e(values, mean)[-1]) - limit

    if exceed(centre) >= 0:
        return known

    def find_end(sign: int) -> float:
        end, inside, step = known[sign > 0], centre, scale
        if sign * (end - centre) <= 0:
            return end
        while step <= _FAR * scale:
            outside = min(centre + step, end) if sign > 0 else max(centre - step, end)
            if exceed(outside) >= 0:
                return float(brentq(exceed, inside, outside, xtol=1e-9 * scale))
            if outside == end:
                return end
            inside, step = outside, 2 * step
        return end

    return find_end(-1), find_end(1)


@dataclass(frozen=True)
class Since:
    """When a gap began, if it did.

    Args:
        log_e: The logarithm of the e-value after each estimate of "there never was a gap".
        start: The position of the estimate since which a gap is most probable, after each.
    """

    log_e: FloatArray
    start: AnyArray


def find_since(
    estimates: FloatArray, covariance: FloatArray, alpha: float = 0.05, n_units: int = 0
) -> Since:
    """Return the evidence, after each estimate of a series, that the mean has left 0.

        log E_t = log Σ_k w_k E_t(k),    w_k = 1 / (k (k + 1)),
        E_t(k) = √(ρ / (V + ρ)) exp(S² / (2 (V + ρ))),    S = 1_k' C⁻¹ d,  V = 1_k' C⁻¹ 1_k

    1_k is 0 before the k-th estimate and 1 from it on, C the covariance of the first t estimates.
    Each E(k) is a mixture of likelihood ratios of nested normal vectors, so under means of 0 the
    weighted sum exceeds 1/α at any time with a probability of at most α, whatever the correlation
    of the estimates. The estimates are asymptotically normal; an inverse covariance that was
    estimated from n units is corrected by (n - t - 2) / (n - 1) (Hartlap et al. 2007).

    Args:
        estimates: The estimates, ``float64[t]``.
        covariance: Their covariance, ``float64[t, t]``.
        alpha: The level that ρ is chosen for, at the information of about four estimates.
        n_units: The number of units that the covariance was estimated from; 0 if it is known.

    Source:
        Hartlap, Simon and Schneider, "Why your model parameter confidences might be too
        optimistic", Astronomy and Astrophysics 2007; Shin, Ramdas and Rinaldo, "E-detectors: a
        nonparametric framework for sequential change detection", New England Journal of Statistics
        in Data Science 2024.
    """
    n = len(estimates)
    log_e, starts = np.zeros(n), np.zeros(n, dtype=np.int64)
    weights = -np.log(np.arange(1, n + 1) * np.arange(2, n + 2.0))
    rho = find_best_rho(4.0 / float(covariance[0, 0]), alpha)
    rest = 1.0  # the weight of starts that are yet to come, whose e-value is 1
    for t in range(1, n + 1):
        precision = np.linalg.inv(covariance[:t, :t])
        if n_units:
            precision *= max(n_units - t - 2, 0) / (n_units - 1)
        ones = np.tri(t).T  # a row for each start
        s = ones @ (precision @ estimates[:t])
        v = np.einsum("ki,ij,kj->k", ones, precision, ones)
        each = weights[:t] + mix_normal(s, v, rho)
        rest -= math.exp(weights[t - 1])
        log_e[t - 1] = np.logaddexp.reduce([*each, math.log(rest)])
        starts[t - 1] = int(np.argmax(each))
    return Since(log_e, starts)
