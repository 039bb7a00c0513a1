"""Where groups and target sets lie in the plane of a model's vectors that tells the groups apart.

The values of each user and item are the points of a picture.
"""

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
    members,
    pair_in_one_space,
)
from recbias.metrics.embeddings.linear_svc import most_aligned
from recbias.numerics.directions import principal_components


@dataclass(frozen=True, kw_only=True)
class LatentProjection:
    """The two principal components of the most biased users, and the items in the same plane.

        PC1(x) = (x - m) · c_1,    PC2(x) = (x - m) · c_2

    m is the mean and c_1, c_2 the first two principal components of the vectors of the ``top_n``
    users of each group that lie farthest towards their own side of the centroid difference. They
    are turned so that the mean of group A is not below that of B. Each figure is the mean
    coordinate of one set, named by its group, with the coordinate of every entity. Undefined for
    members of the groups on which the components were not fitted, and for an entity without a
    vector, or with a vector of 0. In a space of one dimension there is no PC2.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        targets: E and P: ``{of: items, attribute: genres, e: Romance, p: Action}``.
        top_n: How many of each group the components are fitted on.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The attribute is not there.
        NothingLeft: A value is carried by fewer than two, or fewer than two have a vector.

    Range:
        Any number; undefined without a vector, and for members it is not fitted on.

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
        """Return the kinds of evidence: the tables of the entities chosen."""
        return frozenset({"embeddings", self.groups.of, self.targets.of})

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the groups and targets."""
        members(evidence, self.groups.wanted)
        members(evidence, self.targets.wanted)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the mean coordinates of each set, with those of its entities."""
        (a, b), targets = pair_in_one_space(evidence, self.groups, self.targets)
        chosen = most_aligned(a.vectors, b.vectors, self.top_n)
        first, second = a.vectors[chosen[0]], b.vectors[chosen[1]]
        fitted = np.concatenate([first, second])
        axes = _turned(_components(fitted, evidence), first, second)
        middle = fitted.mean(axis=0)
        made = []
        for place, axis in enumerate(axes, start=1):
            target = f"PC{place}"
            made += [
                _of_some(each, some, (each.vectors[some] - middle) @ axis, target)
                for each, some in zip((a, b), chosen, strict=True)
            ]
            made += [
                each.mean_of((each.vectors - middle) @ axis, group=each.name, target=target)
                for each in targets
            ]
        return made


def _components(fitted: FloatArray, evidence: Evidence) -> FloatArray:
    """Return the first two components, ``float64 (2, d)``; NaN for what there is not."""
    wanted = min(2, fitted.shape[1])
    found = principal_components(fitted, wanted)
    if len(found) < wanted:
        warn(f"{evidence.metric}: the vectors of the groups span only {len(found)} dimension(s)")
    axes = np.full((wanted, fitted.shape[1]), np.nan)
    axes[: len(found)] = found
    return axes


def _turned(axes: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the axes, each turned so that the first vectors lie farther along it."""
    ahead = axes @ (first.mean(axis=0) - second.mean(axis=0))
    return np.where(ahead < 0, -1.0, 1.0)[:, None] * axes


def _of_some(group: EntitySet, some: AnyArray, values: FloatArray, target: str) -> Measurement:
    """Return the figure of some members of a group, by their places; the others have none."""
    of_all = np.full(len(group), np.nan)
    of_all[some] = values
    return group.mean_of(of_all, group=group.name, target=target)
