"""Projection of groups and target sets on the plane that separates the groups, for a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.embeddings.bias_direction import TopN
from recbias.metrics.embeddings.entity_sets import (
    EntitySet,
    GroupPair,
    TargetPair,
    select_groups_and_targets,
    select_members,
)
from recbias.metrics.embeddings.linear_svc import select_most_aligned
from recbias.numerics.directions import principal_components


@dataclass(frozen=True, kw_only=True)
class LatentProjection:
    """Coordinates of users and items on two principal components of the most biased users.

        PC1(x) = (x - m) · c_1,    PC2(x) = (x - m) · c_2

    m is the mean and c_1, c_2 the first two principal components of the vectors of the ``top_n``
    users of each group that are most aligned with the centroid difference, oriented so that the
    mean of group A is not below that of B. Each value is the mean coordinate of one set, named by
    its group, with the coordinate of every entity. Undefined for members of the groups on which
    the components were not fitted, and for an entity without a vector, or with a vector of 0. In a
    space of one dimension there is no PC2.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        targets: E and P: ``{of: items, attribute: genres, e: Romance, p: Action}``.
        top_n: Number of members per group that the components are fitted on.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The table has no such attribute.
        NothingLeft: Fewer than two members of a set have the value and a vector.

    Range:
        Any number; undefined without a vector, and for members that were not fitted on.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, section 5.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"embeddings", "users", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    groups: GroupPair
    targets: TargetPair
    top_n: TopN = 200

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return frozenset({"embeddings", self.groups.of, self.targets.of})

    def check(self, evidence: Evidence) -> None:
        """Validate the groups and targets before any training."""
        select_members(evidence, self.groups.selection)
        select_members(evidence, self.targets.selection)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean coordinates of each set, with those of its entities."""
        (a, b), targets = select_groups_and_targets(evidence, self.groups, self.targets)
        aligned = select_most_aligned(a.vectors, b.vectors, self.top_n)
        vectors_a, vectors_b = a.vectors[aligned[0]], b.vectors[aligned[1]]
        vectors = np.concatenate([vectors_a, vectors_b])
        axes = _orient(_fit_components(vectors, evidence), vectors_a, vectors_b)
        center = vectors.mean(axis=0)
        measurements = []
        for number, axis in enumerate(axes, start=1):
            target = f"PC{number}"
            for group, rows in zip((a, b), aligned, strict=True):
                values = (group.vectors[rows] - center) @ axis
                measurements.append(_measure_members(group, rows, values, target))
            for entities in targets:
                values = (entities.vectors - center) @ axis
                measurement = entities.measure_mean(values, group=entities.name, target=target)
                measurements.append(measurement)
        return measurements


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


def _orient(axes: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the axes with signs such that the mean of A is not below that of B."""
    gaps = axes @ (a.mean(axis=0) - b.mean(axis=0))
    return np.where(gaps < 0, -1.0, 1.0)[:, None] * axes


def _measure_members(
    group: EntitySet, rows: AnyArray, values: FloatArray, target: str
) -> Measurement:
    """Return the mean over some members of a group; the other members are undefined."""
    unit_values = np.full(len(group), np.nan)
    unit_values[rows] = values
    return group.measure_mean(unit_values, group=group.name, target=target)
