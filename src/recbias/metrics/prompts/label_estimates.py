"""A figure of each label value at each target, with its bootstrap samples and tests."""

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
class LabelFigures:
    """The figures of a metric of labels.

    Args:
        values: ``float64[g, m]``.
        replicates: On each bootstrap sample of each set of slots, ``float64[S, b, g, m]``.
        n: Units that each is of, ``int[g, m]``; 0 where it is not defined.
        undefined: Units that it is not of.
        counts: What it follows from, ``float64[g, m, ...]``.
    """

    values: FloatArray
    replicates: FloatArray
    n: AnyArray
    undefined: AnyArray
    counts: FloatArray

    def measurements(
        self, design: Design, targets: Sequence[str], tests: Contrasts
    ) -> list[Measurement]:
        """Return the figures, label value by label value."""
        joined, df = design.joined(self.values, self.replicates)
        samples = np.moveaxis(joined, 0, -1)
        low, high = bootstrap_t_interval(self.values, samples, df)
        return [
            Measurement(
                value=float(self.values[group, place]),
                n=int(self.n[group, place]),
                undefined=int(self.undefined[group, place]),
                group=name,
                target=target,
                ci_low=float(low[group, place]),
                ci_high=float(high[group, place]),
                replicates=samples[group, place],
                df=float(df[group, place]),
                contrasts=tests.get((group, place), ()),
                counts=self.counts[group, place],
            )
            for group, name in enumerate(design.groups.names)
            for place, target in enumerate(targets)
        ]


def bootstrap_means(evidence: Evidence, design: Design, values: FloatArray) -> FloatArray:
    """Return the mean of each label value on each bootstrap sample, ``float64[S, b, g, c]``.

    Names are drawn within their label; templates are drawn with all that stands in them. Where
    the words of several slots carry the label there are samples of each slot's words and of them
    together (see ``word_slots.slot_weights``); otherwise one set. The samples are the same for
    every model.
    """
    n_groups = len(design.groups.names)
    weights = design.weights(evidence.n_bootstrap, evidence.rng())
    return np.stack(
        [compute_group_means(values, design.group, n_groups, each) for each in weights]
    )
