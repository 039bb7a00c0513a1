"""How far labels of the items agree beyond chance: figures of the catalogue, not of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import MinLen

from recbias.core.arrays import FloatArray
from recbias.core.errors import OutOfRange, UnknownColumn
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.statistics.intervals import normal_interval
from recbias.statistics.rater_agreement import (
    Level,
    cohen_kappa,
    krippendorff_alpha,
    resample_alpha,
)

_NEEDS = frozenset({"items"})
MOST_CATEGORIES = 20
"""A label of more different numbers is a measurement."""

_Z = 1.959963984540054


@dataclass(frozen=True, kw_only=True)
class CohenKappa:
    """How far two labels of the items agree beyond chance.

        κ = (p_o - p_e) / (1 - p_e)

    p_o is the share of the items to which both give the same label, p_e the share that chance
    would give with as many of each. 1 is full agreement, 0 is that of chance, below 0 is less.
    Items that lack one of the two do not count, and are counted as undefined. The 95% interval is
    κ ± 1.96 standard errors for large samples. Undefined where no item has both labels, or all
    labels are the same.

    Args:
        a: A column of the items: ``ngim.gender``. Each distinct number in it is a category.
        b: The other column.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.
        OutOfRange: A label has more than 20 different numbers, and so is no category.

    Range:
        -1 to 1; undefined where all labels are the same.

    Source:
        Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
        Measurement 1960; the standard error: Fleiss, Cohen and Everitt, Psychological Bulletin
        1969.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = ""

    a: str
    b: str

    def check(self, evidence: Evidence) -> None:
        """Refuse a label that the items do not have."""
        self._labels(evidence)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figure, with its interval."""
        a, b = self._labels(evidence)
        kappa, error = cohen_kappa(a, b)
        both = int(np.count_nonzero(~np.isnan(a + b)))
        return [_figure(kappa, both, a.size, (kappa - _Z * error, kappa + _Z * error))]

    def _labels(self, evidence: Evidence) -> tuple[FloatArray, FloatArray]:
        a, b = _column(evidence, self.a, "a"), _column(evidence, self.b, "b")
        for name, column in (("a", a), ("b", b)):
            known = np.unique(column[~np.isnan(column)])
            if known.size > MOST_CATEGORIES:
                found = f"{known.size:,} different numbers are no categories to agree on"
                remedy = "label by a threshold: {detector: column, from: ..., threshold: 0.5}"
                raise OutOfRange(found, where=name, remedy=remedy)
        return a, b


@dataclass(frozen=True, kw_only=True)
class KrippendorffAlpha:
    """How far any number of labels of the items agree beyond chance, gaps allowed.

        α = 1 - D_o / D_e

    D_o is the mean disagreement of two labels of one item, D_e that of any two labels. Two labels
    disagree by 1 where they are not the same (``nominal``) or by the square of their difference
    (``interval``). 1 is full agreement, 0 is that of chance, below 0 is less. Items with fewer
    than two labels do not count, and are counted as undefined. The 95% interval is α ± 1.96
    standard deviations over bootstrap samples of the items. Undefined where no item has two
    labels, or all labels are the same.

    Args:
        labels: Two columns of the items or more: ``[ngim.gender, biasmeter.gender]``.
        level: ``nominal`` for 0/1 labels, ``interval`` for graded ones.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.

    Range:
        At most 1; undefined where all labels are the same.

    Source:
        Krippendorff, "Content Analysis: An Introduction to its Methodology", 2nd edition, 2004,
        chapter 11.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = ""

    labels: Annotated[tuple[str, ...], MinLen(2)]
    level: Level = "nominal"

    def check(self, evidence: Evidence) -> None:
        """Refuse a label that the items do not have."""
        self._ratings(evidence)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figure, with its interval."""
        ratings = self._ratings(evidence)
        alpha = krippendorff_alpha(ratings, self.level)
        samples = resample_alpha(ratings, self.level, evidence.n_bootstrap, evidence.rng())
        several = int(np.count_nonzero((~np.isnan(ratings)).sum(axis=0) > 1))
        low, high = normal_interval(alpha, samples)
        return [_figure(alpha, several, ratings.shape[1], (float(low), float(high)))]

    def _ratings(self, evidence: Evidence) -> FloatArray:
        return np.stack([_column(evidence, each, "labels") for each in self.labels])


def _column(evidence: Evidence, name: str, where: str) -> FloatArray:
    evidence.need("items")
    try:
        return evidence.items.numbers(name)  # type: ignore[union-attr]  # need() raises on None
    except UnknownColumn as error:
        remedy = error.remedy or "name a column of numbers, or make one by a detector: labels:"
        raise UnknownColumn(error.message, where=where, remedy=remedy) from error


def _figure(value: float, counted: int, n_items: int, ends: tuple[float, float]) -> Measurement:
    """Return the figure of ``counted`` of the items; of none of them where it is undefined."""
    n = 0 if np.isnan(value) else counted
    return Measurement(value=value, n=n, undefined=n_items - n, ci_low=ends[0], ci_high=ends[1])
