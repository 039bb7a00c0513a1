"""Agreement between labels of the items beyond chance: a property of the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import MinLen

from recbias.core.arrays import FloatArray
from recbias.core.errors import OutOfRange, UnknownColumn
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.statistics.intervals import normal_interval
from recbias.statistics.rater_agreement import (
    Level,
    cohen_kappa,
    krippendorff_alpha,
    resample_alpha,
)

MAX_CATEGORIES = 20
"""A label with more distinct numbers is not categorical."""

_Z = 1.959963984540054


@dataclass(frozen=True, kw_only=True)
class _AgreementMetric(InheritsSections):
    """A metric of the labels of the items.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"items"})
    unit: ClassVar[str] = ""

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack a label."""
        self._read_labels(evidence)

    def _read_labels(self, evidence: Evidence) -> FloatArray:
        """Return the labels, ``float64[labels, items]``."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class _PairMetric(_AgreementMetric):
    """A metric of two labels of the items.

    Args:
        a: A column of the items: ``ngim.gender``. Each distinct number is a category.
        b: The other column, such as the labels of people.

    Raises:
        OutOfRange: A label has more than 20 distinct numbers and is not categorical.
    """

    a: str
    b: str

    def _read_labels(self, evidence: Evidence) -> FloatArray:
        pair = [_read_label(evidence, self.a, "a"), _read_label(evidence, self.b, "b")]
        for setting, labels in zip("ab", pair, strict=True):
            categories = np.unique(labels[~np.isnan(labels)])
            if categories.size > MAX_CATEGORIES:
                message = f"{categories.size:,} distinct numbers are not categories"
                remedy = "label by a threshold: {detector: column, from: ..., threshold: 0.5}"
                raise OutOfRange(message, where=setting, remedy=remedy)
        return np.stack(pair)


class LabelAccuracy(_PairMetric):
    """The share of items whose two labels are equal.

        accuracy = (1/n) Σ_i [ a_i = b_i ]

    The sum runs over the n items that have both labels; the others are counted as undefined. The
    95% interval is Wilson's. Where one label is rare the value is high for labels that agree by
    chance only: report ``cohen_kappa`` beside it. Undefined if no item has both labels.

    Range:
        0 to 1; undefined if no item has both labels.

    Source:
        Wilson, "Probable inference, the law of succession, and statistical inference", Journal of
        the American Statistical Association 1927 (the interval).
    """

    direction: ClassVar[Direction] = "higher"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the share, with its interval."""
        a, b = self._read_labels(evidence)
        equal = np.where(np.isnan(a + b), np.nan, (a == b).astype(np.float64))
        return [Measurement.from_values(equal, share=True)]


class CohenKappa(_PairMetric):
    """Agreement between two labels of the items beyond chance.

        κ = (p_o - p_e) / (1 - p_e)

    p_o is the share of the items whose labels are equal, p_e the share expected by chance given
    the frequencies of both labels. 1 is perfect agreement, 0 is agreement by chance, negative is
    less. Items without one of the two labels are excluded and counted as undefined. The 95%
    interval is κ ± 1.96 large-sample standard errors. Undefined if no item has both labels, or all
    labels are equal.

    Range:
        -1 to 1; undefined if all labels are equal.

    Source:
        Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
        Measurement 1960; the standard error: Fleiss, Cohen and Everitt, Psychological Bulletin
        1969.
    """

    direction: ClassVar[Direction] = "higher"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the agreement, with its interval."""
        a, b = self._read_labels(evidence)
        kappa, error = cohen_kappa(a, b)
        n_both = int(np.count_nonzero(~np.isnan(a + b)))
        return [_measure(kappa, n_both, a.size, (kappa - _Z * error, kappa + _Z * error))]


@dataclass(frozen=True, kw_only=True)
class KrippendorffAlpha(_AgreementMetric):
    """Agreement between any number of labels of the items beyond chance; labels may be missing.

        α = 1 - D_o / D_e

    D_o is the mean disagreement of two labels of one item, D_e that of any two labels. The
    disagreement of two labels is 1 if they differ (``nominal``), or the square of their difference
    (``interval``). 1 is perfect agreement, 0 is agreement by chance, negative is less. Items with
    fewer than two labels are excluded and counted as undefined. The 95% interval is α ± 1.96
    standard deviations over bootstrap samples of the items. Undefined if no item has two labels,
    or all labels are equal.

    Args:
        labels: At least two columns of the items: ``[ngim.gender, biasmeter.gender]``.
        level: ``nominal`` for 0/1 labels, ``interval`` for graded ones.

    Range:
        At most 1; undefined if all labels are equal.

    Source:
        Krippendorff, "Content Analysis: An Introduction to its Methodology", 2nd edition, 2004,
        chapter 11.
    """

    direction: ClassVar[Direction] = "higher"

    labels: Annotated[tuple[str, ...], MinLen(2)]
    level: Level = "nominal"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the agreement, with its interval."""
        ratings = self._read_labels(evidence)
        alpha = krippendorff_alpha(ratings, self.level)
        samples = resample_alpha(ratings, self.level, evidence.n_bootstrap, evidence.rng())
        n_several = int(np.count_nonzero((~np.isnan(ratings)).sum(axis=0) > 1))
        low, high = normal_interval(alpha, samples)
        return [_measure(alpha, n_several, ratings.shape[1], (float(low), float(high)))]

    def _read_labels(self, evidence: Evidence) -> FloatArray:
        return np.stack([_read_label(evidence, name, "labels") for name in self.labels])


def _read_label(evidence: Evidence, name: str, setting: str) -> FloatArray:
    evidence.need("items")
    try:
        return evidence.items.numbers(name)  # type: ignore[union-attr]  # need() raises on None
    except UnknownColumn as error:
        remedy = error.remedy or "choose a numeric column, or make one by a detector: labels:"
        raise UnknownColumn(error.message, where=setting, remedy=remedy) from error


def _measure(
    value: float, n_labelled: int, n_items: int, interval: tuple[float, float]
) -> Measurement:
    """Return the agreement on the labelled items; on none of them if it is undefined."""
    n = 0 if np.isnan(value) else n_labelled
    low, high = interval
    return Measurement(value=value, n=n, undefined=n_items - n, ci_low=low, ci_high=high)
