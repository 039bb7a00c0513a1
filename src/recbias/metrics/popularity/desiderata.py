"""The five desiderata of a metric of popularity bias, evaluated on random sets.

The metric is a function M(recommended, consumed) of two sets of popularities. Each desideratum is
evaluated on random sets of popularities sampled from power laws with a fixed seed.

1. *Well behaved with more data*: for sets from a power law without a mean (Pareto coefficient
   0.68, as the paper found on MovieLens), a few pairs of sets do not dominate the sum of the
   squared values, and the values of larger sets do not spread more.
2. *Zero centred*: M(x, x) = 0, whatever the order of the items of the two sets.
3. *Anti-symmetric*: M(x, y) = -M(y, x).
4. *More sensitive in the long tail*: an increase in popularity that is too small to change the
   order changes M more for the least popular recommended item than for the most popular one.
5. *Monotone in each component*: M increases with the popularity of every recommended item, and
   decreases with that of every consumed item.

Source:
    Lichtenberg, Buchholz and Schwöbel, "Large language models as recommender systems: a study of
    popularity bias", Gen-IR at SIGIR 2024, section 3 and Table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray

NAMES = (
    "well behaved with more data",
    "zero centred",
    "anti-symmetric",
    "more sensitive in the long tail",
    "monotone in each component",
)
"""The desiderata, in the order of the paper."""

SEED = 20240603
N_PAIRS, SIZE = 400, 8
"""The number of pairs of random sets and of items in each, for all desiderata but the first."""

HEAVY_COEFFICIENT, SIZES = 0.68, (8, 64, 512)
"""The Pareto coefficient and the sizes of the sets of the first desideratum."""

LARGEST_SHARE, LARGEST_GROWTH = 0.2, 1.25
"""The largest share of one pair in the sum of squares, and the largest growth of the spread."""

TOLERANCE = 1e-9


class ComparesSets(Protocol):
    """A metric of popularity bias that can be computed for two sets of popularities."""

    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the value of each pair of sets, ``float64[...]``.

        Args:
            recommended: Popularities above 0, best item first, ``float64[..., n]``.
            consumed: Popularities above 0, ``float64[..., m]``.
        """
        ...


@dataclass(frozen=True)
class Desideratum:
    """One desideratum.

    Args:
        number: Its number in the paper, from 1.
        name: Its name.
        met: Whether the metric satisfies it.
    """

    number: int
    name: str
    met: bool


def evaluate_desiderata(metric: ComparesSets) -> Sequence[Desideratum]:
    """Return which of the five desiderata a metric satisfies; the module describes them.

    >>> class MeanDifference:
    ...     def compare_sets(self, recommended, consumed):
    ...         return recommended.mean(axis=-1) - consumed.mean(axis=-1)
    >>> [desideratum.met for desideratum in evaluate_desiderata(MeanDifference())]
    [False, True, True, False, True]
    """
    rng = np.random.default_rng(SEED)
    x, y = (_sample_sets(rng) for _ in range(2))
    met = (
        _is_well_behaved(metric, rng),
        bool(_is_close(metric.compare_sets(x, rng.permuted(x, axis=1)), 0.0).all()),
        bool(_is_close(metric.compare_sets(x, y), -metric.compare_sets(y, x)).all()),
        _is_more_sensitive_in_the_tail(metric, x, y),
        _is_monotone(metric, x, y),
    )
    return [Desideratum(i + 1, name, met[i]) for i, name in enumerate(NAMES)]


def _is_well_behaved(metric: ComparesSets, rng: np.random.Generator) -> bool:
    spreads = []
    for size in SIZES:
        x, y = (_sample_power_law(HEAVY_COEFFICIENT, (N_PAIRS, size), rng) for _ in range(2))
        squares = metric.compare_sets(x, y) ** 2
        if squares.max() > LARGEST_SHARE * squares.sum():
            return False
        spreads.append(float(np.sqrt(squares.mean())))
    return spreads[-1] <= LARGEST_GROWTH * spreads[0]


def _is_more_sensitive_in_the_tail(
    metric: ComparesSets, recommended: FloatArray, consumed: FloatArray
) -> bool:
    before = metric.compare_sets(recommended, consumed)
    ascending = np.sort(recommended, axis=1)
    lowest, second_lowest = ascending[:, 0], ascending[:, 1]
    increase = np.minimum(second_lowest - lowest, 0.01 * lowest) / 2  # keeps the order
    least, most = (
        np.abs(metric.compare_sets(_increase(recommended, columns, increase), consumed) - before)
        for columns in (recommended.argmin(axis=1), recommended.argmax(axis=1))
    )
    return bool((least > most * (1.0 + 1e-6)).all())  # equal changes differ by rounding


def _is_monotone(metric: ComparesSets, recommended: FloatArray, consumed: FloatArray) -> bool:
    before = metric.compare_sets(recommended, consumed)
    for item in range(SIZE):
        columns = np.full(N_PAIRS, item)
        higher_recommended = _increase(recommended, columns, 0.1 * recommended[:, item])
        higher_consumed = _increase(consumed, columns, 0.1 * consumed[:, item])
        increases = metric.compare_sets(higher_recommended, consumed) > before
        decreases = metric.compare_sets(recommended, higher_consumed) < before
        if not (increases & decreases).all():
            return False
    return True


def _sample_sets(rng: np.random.Generator) -> FloatArray:
    """Sample sets from power laws with very heavy to light tails, ``float64[N_PAIRS, SIZE]``."""
    coefficients = np.exp(rng.uniform(np.log(0.7), np.log(10.0), (N_PAIRS, 1)))
    return _sample_power_law(coefficients, (N_PAIRS, SIZE), rng)


def _sample_power_law(
    coefficient: float | FloatArray, shape: tuple[int, int], rng: np.random.Generator
) -> FloatArray:
    """Sample from a Pareto distribution with minimum 1: P(X > x) = x ** -coefficient."""
    samples: FloatArray = (1.0 - rng.random(shape)) ** (-1.0 / np.asarray(coefficient))
    return samples


def _increase(sets: FloatArray, columns: AnyArray, by: FloatArray) -> FloatArray:
    """Return the sets with one popularity of each, at ``columns``, increased."""
    increased = sets.copy()
    increased[np.arange(len(sets)), columns] += by
    return increased


def _is_close(values: FloatArray, expected: FloatArray | float) -> BoolArray:
    return np.asarray(np.isclose(values, expected, rtol=TOLERANCE, atol=TOLERANCE))
