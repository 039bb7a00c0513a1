"""Confidence sequences and e-values: inference that holds however often it is looked at.

The e-value of a mean is the capital of a bettor against it: under that mean it exceeds
``1 / alpha`` at any time with a probability of at most ``alpha`` (Ville). The means whose e-value
has never been that high are the confidence sequence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from recbias.core.dataset import AnyArray, FloatArray

_FIRST = 10
"""The number of values that differ from a mean of which the scale of the mixture is taken."""

_STEPS = 40  # the number of bisections of an end
_FAR = 2.0**30  # an end so many standard deviations away is infinite


class Bets(Protocol):
    """A way to bet against a mean."""

    def log_e(self, values: FloatArray, mean: float) -> FloatArray:
        """Return the logarithm of the e-value of a mean after each value."""


@dataclass(frozen=True)
class Betting:
    """Bets against the mean of bounded values: exact, at any number of values.

        K_t(m) = ½ Π (1 + min(λ_i, 1/2m) (z_i - m)) + ½ Π (1 - min(λ_i, 1/(2 - 2m)) (z_i - m))
        λ_i = √(2 log(2/α) / (σ²_{i-1} i log(1 + i))),    z: the values on a scale of 0 to 1

    The bet of a value depends on those before it only: σ² is their variance, with one value of
    mean ½ and variance ¼ added. All values have the same mean, given those before.

    Args:
        low: The least possible value.
        high: The largest possible value.
        alpha: The level that the bets are made for; they are valid for any.

    Source:
        Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B
        2024, sections 4.2 and 4.4.
    """

    low: float = 0.0
    high: float = 1.0
    alpha: float = 0.05

    def log_e(self, values: FloatArray, mean: float) -> FloatArray:
        """Return the logarithm of the e-value of a mean after each value."""
        width = self.high - self.low
        z, m = (values - self.low) / width, np.float64((mean - self.low) / width)
        t = np.arange(1, len(z) + 1)
        means = (0.5 + np.cumsum(z)) / (t + 1)
        variances = (0.25 + np.cumsum((z - means) ** 2)) / (t + 1)
        before = np.concatenate([[0.25], variances[:-1]])
        bets = np.sqrt(2 * math.log(2 / self.alpha) / (t * np.log1p(t) * before))
        with np.errstate(divide="ignore"):
            up = np.log1p(np.minimum(bets, 0.5 / m) * (z - m))
            down = np.log1p(-np.minimum(bets, 0.5 / (1 - m)) * (z - m))
        capital = np.logaddexp(np.cumsum(up), np.cumsum(down)) - math.log(2)
        return np.asarray(capital)


@dataclass(frozen=True)
class NormalMixture:
    """A mixture of bets against the mean of values without bounds.

        log E_t(m) = ½ log(ρ / (V + ρ)) + S² / (2 (V + ρ)),    S = Σ (x - m),  V = Σ (x - m)²

    Exact if the values are distributed symmetrically about m, as differences of two requests are
    under the hypothesis that they are answered alike (de la Peña 1999); else asymptotic: of
    lognormal values (σ = 1), 16 of 100 sequences lost the mean. ρ is chosen so that the sequence
    is narrowest after ``best_at`` values; its scale is that of the first ten values that are not
    m, which no symmetric distribution can use. Before them E is 1.

    Args:
        best_at: The number of values.
        alpha: The level that ρ is chosen for; it is valid for any.

    Source:
        Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic
        confidence sequences", Annals of Statistics 2021, equations 14 and 25, and table 3 of their
        "Time-uniform Chernoff bounds", Probability Surveys 2020.
    """

    best_at: float = 50.0
    alpha: float = 0.05

    def log_e(self, values: FloatArray, mean: float) -> FloatArray:
        """Return the logarithm of the e-value of a mean after each value."""
        rest = values - mean
        squares = rest**2
        is_other = squares > 0
        first = squares[is_other][:_FIRST]
        if first.size < _FIRST:
            return np.zeros(len(values))
        rho = find_best_rho(self.best_at * float(first.mean()), self.alpha)
        log_e = mix_normal(np.cumsum(rest), np.cumsum(squares), rho)
        log_e[np.cumsum(is_other) < _FIRST] = 0.0
        return log_e


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


def find_interval(sequence: Bets, values: FloatArray, alpha: float) -> tuple[float, float]:
    """Return the ends of the confidence sequence after the last value; infinite where it has none.

    Args:
        sequence: How the means are bet against.
        values: The values until now.
        alpha: The level.
    """
    centre, limit = float(values.mean()), math.log(1 / alpha)
    scale = float(values.std()) or max(abs(centre), 1.0) * 1e-9
    bounds = (getattr(sequence, "low", -math.inf), getattr(sequence, "high", math.inf))

    def is_in(mean: float) -> bool:
        return bool(sequence.log_e(values, mean)[-1] < limit)

    def find_end(sign: int) -> float:
        bound, step = bounds[sign > 0], scale
        while is_in(outside := float(np.clip(centre + sign * step, *bounds))):
            if outside == bound or step > _FAR * scale:
                return bound
            step *= 2
        inside = centre
        for _ in range(_STEPS):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if is_in(middle) else (inside, middle)
        return outside

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
