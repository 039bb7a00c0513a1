"""The estimates of label values, which of them are compared, and both sides of each comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Contrast, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.prompts.label_units import Design
from recbias.statistics.bootstrap.cluster_bootstrap import (
    bootstrap_t_interval,
    compute_group_means,
)

Contrasts: TypeAlias = Mapping[tuple[int, int], tuple[Contrast, ...]]
"""The tests that belong to the estimate of a label value and a target."""

MAX_PAIRED = 10
"""If a label has more values, each is compared with the rest instead of with each other."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two sides that are compared.

    Args:
        a: A label value, the first side.
        b: The label values of the second side: one, or the rest.
    """

    a: int
    b: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SideEstimates:
    """The estimates of both sides of each comparison.

    Args:
        a: Of the first side, ``float64[s, m]``.
        b: Of the second side, ``float64[s, m]``.
        samples: Their difference on each bootstrap sample, ``float64[S, b, s, m]``.
    """

    a: FloatArray
    b: FloatArray
    samples: FloatArray

    @classmethod
    def from_groups(
        cls, values: FloatArray, replicates: FloatArray, comparisons: Sequence[Comparison]
    ) -> SideEstimates:
        """Return the estimates of both sides; that of several label values is their mean.

        Args:
            values: The estimate of each label value, ``float64[g, m]``.
            replicates: On each bootstrap sample, ``float64[S, b, g, m]``.
            comparisons: The comparisons.
        """
        a = [comparison.a for comparison in comparisons]
        weights = np.zeros((len(comparisons), len(values)))
        for row, comparison in enumerate(comparisons):
            weights[row, comparison.b] = 1.0 / len(comparison.b)
        samples = replicates[..., a, :] - _average(weights, replicates)
        return cls(values[a], _average(weights, values), samples)

    def select(self, comparisons: Sequence[int]) -> SideEstimates:
        """Return the estimates of some of the comparisons."""
        rows = list(comparisons)
        return SideEstimates(self.a[rows], self.b[rows], self.samples[..., rows, :])


def list_comparisons(n_groups: int, classes: AnyArray | None = None) -> list[Comparison]:
    """Return the comparisons within each class of label values.

    Up to ten label values of a class are compared in pairs, more of them each with the rest.

    >>> [(comparison.a, comparison.b) for comparison in list_comparisons(3)]
    [(0, (1,)), (0, (2,)), (1, (2,))]
    """
    classes = np.zeros(n_groups, dtype=np.intp) if classes is None else classes
    comparisons: list[Comparison] = []
    for code in np.unique(classes):
        members = np.flatnonzero(classes == code).tolist()
        if len(members) <= MAX_PAIRED:
            comparisons += [Comparison(a, (b,)) for a, b in combinations(members, 2)]
        else:
            comparisons += list_rest_comparisons(members)
    return comparisons


def list_rest_comparisons(members: Sequence[int]) -> list[Comparison]:
    """Return the comparison of each label value with all others together.

    >>> [(comparison.a, comparison.b) for comparison in list_rest_comparisons([0, 1, 2])]
    [(0, (1, 2)), (1, (0, 2)), (2, (0, 1))]
    """
    return [Comparison(a, tuple(b for b in members if b != a)) for a in members]


def _average(weights: FloatArray, estimates: FloatArray) -> FloatArray:
    """Return weighted means, ``float64[..., s, m]``; NaN if an estimate with a weight is NaN."""
    means = weights @ np.nan_to_num(estimates)
    undefined = (weights > 0).astype(np.float64) @ np.isnan(estimates) > 0
    return np.asarray(np.where(undefined, np.nan, means))


@dataclass(frozen=True, eq=False)
class LabelEstimates:
    """The estimates of a metric for each label value and target.

    Args:
        values: ``float64[g, m]``.
        replicates: On each bootstrap sample of each set of slots, ``float64[S, b, g, m]``.
        n: The number of units of each estimate, ``int[g, m]``; 0 if it is undefined.
        undefined: The number of units that do not contribute.
        counts: The counts that determine each estimate, ``float64[g, m, ...]``.
    """

    values: FloatArray
    replicates: FloatArray
    n: AnyArray
    undefined: AnyArray
    counts: FloatArray

    def to_measurements(
        self, design: Design, targets: Sequence[str], tests: Contrasts
    ) -> list[Measurement]:
        """Return one measurement for each label value and target, by label value."""
        combined, df = design.combine_samples(self.values, self.replicates)
        samples = np.moveaxis(combined, 0, -1)
        low, high = bootstrap_t_interval(self.values, samples, df)
        return [
            Measurement(
                value=float(self.values[group, column]),
                n=int(self.n[group, column]),
                undefined=int(self.undefined[group, column]),
                group=name,
                target=target,
                ci_low=float(low[group, column]),
                ci_high=float(high[group, column]),
                replicates=samples[group, column],
                df=float(df[group, column]),
                contrasts=tests.get((group, column), ()),
                counts=self.counts[group, column],
            )
            for group, name in enumerate(design.groups.names)
            for column, target in enumerate(targets)
        ]


def bootstrap_means(evidence: Evidence, design: Design, values: FloatArray) -> FloatArray:
    """Return the mean of each label value on each bootstrap sample, ``float64[S, b, g, c]``.

    Names are resampled within their label value, templates with all their units. If the words of
    several slots carry the label, there is a set of samples for each set of slots, otherwise one.
    The samples are the same for every model.
    """
    n_groups = len(design.groups.names)
    weights = design.sample_weights(evidence.n_bootstrap, evidence.rng())
    return np.stack(
        [compute_group_means(values, design.group, n_groups, sample) for sample in weights]
    )
