"""Whether a measure of popularity bias has the five properties that one should have.

Each property is tried on random sets of popularities drawn from power laws, with a fixed seed;
nothing is looked up. The measure is a function M(recommended, consumed) of two sets of
popularities.

1. *Well behaved with more data*: for sets from a power law without a mean (Pareto coefficient
   0.68, as the paper found on MovieLens), no few pairs of sets hold most of the sum of the squared
   figures, and larger sets do not spread the figures further.
2. *Zero centred*: M(x, x) = 0, in whatever order the items of the two sets stand.
3. *Anti-symmetric*: M(x, y) = -M(y, x).
4. *More sensitive in the long tail*: the same rise of popularity, too small to change the order,
   moves M by more when the least popular recommended item has it than when the most popular has.
5. *Monotone in each component*: M rises with the popularity of every recommended item, and falls
   with that of every consumed one.

Source:
    Lichtenberg, Buchholz and Schwöbel, "Large language models as recommender systems: a study of
    popularity bias", Gen-IR at SIGIR 2024, section 3 and Table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray

NAMES = (
    "well behaved with more data",
    "zero centred",
    "anti-symmetric",
    "more sensitive in the long tail",
    "monotone in each component",
)
"""The properties, in the paper's order."""

SEED = 20240603
N_PAIRS, SIZE = 400, 8
"""Pairs of random sets, and the items of each, for all properties but the first."""

WITHOUT_A_MEAN, SIZES = 0.68, (8, 64, 512)
"""The Pareto coefficient and the sizes of the sets of the first property."""

LARGEST_SHARE, LARGEST_GROWTH = 0.2, 1.25
"""What one pair may hold of the sum of squares, and by how much the spread may grow."""

TOLERANCE = 1e-9


class ComparesSets(Protocol):
    """A measure of popularity bias that can be worked out for two sets of popularities."""

    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the figure of each pair of sets, ``float64[...]``.

        Args:
            recommended: Popularities above 0, best item first, ``float64[..., n]``.
            consumed: Popularities above 0, ``float64[..., m]``.
        """
        ...


@dataclass(frozen=True)
class Desideratum:
    """One property.

    Args:
        number: Its number in the paper, from 1.
        name: What it is called.
        met: Whether the measure has it.
    """

    number: int
    name: str
    met: bool


def desiderata(measure: ComparesSets) -> Sequence[Desideratum]:
    """Return which of the five properties a measure has; see the module for what each is.

    >>> class MeanDifference:
    ...     def of_sets(self, recommended, consumed):
    ...         return recommended.mean(axis=-1) - consumed.mean(axis=-1)
    >>> [each.met for each in desiderata(MeanDifference())]
    [False, True, True, False, True]
    """
    rng = np.random.default_rng(SEED)
    one, other = (_random_sets(rng) for _ in range(2))
    met = (
        _is_well_behaved(measure, rng),
        bool(_near(measure.of_sets(one, rng.permuted(one, axis=1)), 0.0).all()),
        bool(_near(measure.of_sets(one, other), -measure.of_sets(other, one)).all()),
        _is_more_sensitive_in_the_tail(measure, one, other),
        _is_monotone(measure, one, other),
    )
    named = zip(NAMES, met, strict=True)
    return [Desideratum(number, name, each) for number, (name, each) in enumerate(named, 1)]


def _is_well_behaved(measure: ComparesSets, rng: np.random.Generator) -> bool:
    spreads = []
    for size in SIZES:
        one, other = (_power_law(WITHOUT_A_MEAN, (N_PAIRS, size), rng) for _ in range(2))
        squares = measure.of_sets(one, other) ** 2
        if squares.max() > LARGEST_SHARE * squares.sum():
            return False
        spreads.append(float(np.sqrt(squares.mean())))
    return spreads[-1] <= LARGEST_GROWTH * spreads[0]


def _is_more_sensitive_in_the_tail(
    measure: ComparesSets, given: FloatArray, chosen: FloatArray
) -> bool:
    before = measure.of_sets(given, chosen)
    lowest = np.sort(given, axis=1)
    rise = np.minimum(lowest[:, 1] - lowest[:, 0], 0.01 * lowest[:, 0]) / 2  # keeps the order
    least, most = (
        np.abs(measure.of_sets(_raised(given, each, rise), chosen) - before)
        for each in (given.argmin(axis=1), given.argmax(axis=1))
    )
    return bool((least > most * (1.0 + 1e-6)).all())  # equal moves differ by rounding


def _is_monotone(measure: ComparesSets, given: FloatArray, chosen: FloatArray) -> bool:
    before = measure.of_sets(given, chosen)
    for place in range(SIZE):
        at = np.full(N_PAIRS, place)
        more_given = _raised(given, at, 0.1 * given[:, place])
        more_chosen = _raised(chosen, at, 0.1 * chosen[:, place])
        rises = measure.of_sets(more_given, chosen) > before
        falls = measure.of_sets(given, more_chosen) < before
        if not (rises & falls).all():
            return False
    return True


def _random_sets(rng: np.random.Generator) -> FloatArray:
    """Return sets of power laws from very heavy to light tails, ``float64[N_PAIRS, SIZE]``."""
    coefficients = np.exp(rng.uniform(np.log(0.7), np.log(10.0), (N_PAIRS, 1)))
    return _power_law(coefficients, (N_PAIRS, SIZE), rng)


def _power_law(
    coefficient: float | FloatArray, shape: tuple[int, int], rng: np.random.Generator
) -> FloatArray:
    """Return draws of a Pareto distribution from 1: P(X > x) = x ** -coefficient."""
    drawn: FloatArray = (1.0 - rng.random(shape)) ** (-1.0 / np.asarray(coefficient))
    return drawn


def _raised(sets: FloatArray, places: FloatArray, by: FloatArray) -> FloatArray:
    raised = sets.copy()
    raised[np.arange(len(sets)), places] += by
    return raised


def _near(one: FloatArray, other: FloatArray | float) -> BoolArray:
    return np.asarray(np.isclose(one, other, rtol=TOLERANCE, atol=TOLERANCE))
