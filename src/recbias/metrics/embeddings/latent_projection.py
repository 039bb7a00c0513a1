"""Projection of groups and target sets on the plane that separates the groups, for a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.embeddings.bias_direction import TopN
from recbias.metrics.embeddings.entity_sets import SetPair, select_groups_and_targets
from recbias.metrics.embeddings.set_estimates import measure_sets
from recbias.metrics.embeddings.vector_metrics import ChoosingMetric, TargetMetric
from recbias.numerics.directions import (
    centroid_difference,
    normalize_vector,
    principal_components,
)
from recbias.numerics.linear_svc import select_most_aligned


@dataclass(frozen=True, kw_only=True)
class LatentProjection(ChoosingMetric, TargetMetric):
    """Coordinates of users and items on two principal components of the most biased users.

        PC1(x) = (x - m) · c_1,    PC2(x) = (x - m) · c_2

    m is the mean and c_1, c_2 the first two principal components of the vectors of the ``top_n``
    users of each group that are most aligned with the centroid difference, oriented so that the
    mean of group A is not below that of B. Each value is the mean coordinate of one set, named by
    its group, with the coordinate of every entity. Undefined for members of the groups on which
    the components were not fitted, and for an entity without a vector, or with a vector of 0. In a
    space of one dimension there is no PC2. ``PC1 vs centroid`` is the absolute cosine of c_1 with
    the difference of the mean vectors of all members of A and of B: an axis has no sign.

    Args:
        top_n: Number of members per group that the components are fitted on.

    Range:
        Any number; undefined without a vector, and for members that were not fitted on.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, section 5.
    """

    direction: ClassVar[Direction] = "none"

    top_n: TopN = 200

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean coordinates of each set, with those of its entities."""
        groups, targets = select_groups_and_targets(evidence, self.groups, self.targets)
        aligned = select_most_aligned(groups[0].choosing, groups[1].choosing, self.top_n)
        a, b = (group.vectors[rows] for group, rows in zip(groups, aligned, strict=True))
        vectors = np.concatenate([a, b])
        axes = _fit_components(vectors, evidence)
        gaps = axes @ (a.mean(axis=0) - b.mean(axis=0))
        axes = np.where(gaps < 0, -1.0, 1.0)[:, None] * axes
        center = vectors.mean(axis=0)
        measurements = []
        for number, axis in enumerate(axes, start=1):
            for group, rows in zip(groups, aligned, strict=True):
                values = np.full(len(group), np.nan)
                values[rows] = (group.vectors[rows] - center) @ axis
                measurements.append(
                    group.measure_mean(values, group=group.name, target=f"PC{number}")
                )
            for entities in targets:
                values = (entities.vectors - center) @ axis
                measurements.append(
                    entities.measure_mean(values, group=entities.name, target=f"PC{number}")
                )
        return [*measurements, _compare_with_centroid(axes[0], groups)]


def _compare_with_centroid(axis: FloatArray, groups: SetPair) -> Measurement:
    """Return |cosine| of the first component and the centroid direction; NaN without one."""
    a, b = groups
    centroid = normalize_vector(centroid_difference(a.vectors, b.vectors))
    cosine = min(abs(float(axis @ centroid)), 1.0) if centroid.any() else math.nan
    return measure_sets(cosine, groups, target="PC1 vs centroid")


def _fit_components(vectors: FloatArray, evidence: Evidence) -> FloatArray:
    """Return the first two components, ``float64 (2, d)``; NaN for a missing component."""
    n_components = min(2, vectors.shape[1])
    components = principal_components(vectors, n_components)
    rank = len(components)
    if rank < n_components:
        warn(f"{evidence.metric}: the vectors of the groups span only {rank} dimension(s)")
    axes = np.full((n_components, vectors.shape[1]), np.nan)
    axes[:rank] = components
    return axes
