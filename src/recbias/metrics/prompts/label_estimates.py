"""The estimate for each label value and target, with its bootstrap samples and tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.prompts.label_contrasts import Contrasts
from recbias.metrics.prompts.label_units import Design
from recbias.statistics.bootstrap.cluster_bootstrap import (
    bootstrap_t_interval,
    compute_group_means,
)


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
