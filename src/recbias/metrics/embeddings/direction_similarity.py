"""Similarity of the directions that several methods estimate for one attribute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Len

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.embeddings.bias_direction import (
    DirectionChoice,
    Sample,
    TopN,
    check_direction,
    find_direction,
    name_direction,
)
from recbias.metrics.embeddings.entity_sets import GroupPair, SetPair, select_members, select_sets


@dataclass(frozen=True, kw_only=True)
class DirectionSimilarity:
    """The cosine of every two estimated directions of one attribute.

        cos(ψ, ψ') = ψ · ψ' / (|ψ| |ψ'|)

    Each direction points from group B to group A. The target names the two directions:
    ``svc vs centroid``; ``csvc`` is estimated once for each ``top_n``, and named ``csvc 200``.
    Undefined, with a warning, if the groups have no such direction. There is no interval.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        directions: Two or more of ``centroid``, ``svc``, ``csvc``, ``pca``, ``pca_centred``,
            ``random``, or a ``.npy`` file of one vector; as for R-RIPA.
        top_n: ``csvc``: numbers of training members per group.
        sample: ``svc`` and ``csvc``: maximum number of members per group.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The table has no such attribute.
        NothingLeft: Fewer than two members of a set have the value and a vector.
        BrokenContract: The vector of a file has another size than those of the model.

    Range:
        -1 to 1; undefined without a direction.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, table 2.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"embeddings", "users", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    groups: GroupPair
    directions: Annotated[tuple[DirectionChoice, ...], Len(2)] = (
        *("centroid", "svc", "csvc", "pca", "pca_centred"),
    )
    top_n: Annotated[tuple[TopN, ...], Len(1)] = (200,)
    sample: Sample = None

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return frozenset({"embeddings", self.groups.of})

    def check(self, evidence: Evidence) -> None:
        """Validate the groups and files before any training."""
        select_members(evidence, self.groups.selection)
        for choice in self.directions:
            check_direction(choice)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the cosine of every two directions."""
        groups = select_sets(evidence, self.groups.selection)
        directions = list(self._estimate(groups, evidence))
        return [
            _measure_similarity(f"{name_a} vs {name_b}", float(axis_a @ axis_b), groups)
            for (name_a, axis_a), (name_b, axis_b) in combinations(directions, 2)
        ]

    def _estimate(self, groups: SetPair, evidence: Evidence) -> Iterator[tuple[str, FloatArray]]:
        for choice in self.directions:
            for top_n in self.top_n if choice == "csvc" else self.top_n[:1]:
                axis = find_direction(choice, groups, evidence, top_n=top_n, sample=self.sample)
                yield f"csvc {top_n}" if choice == "csvc" else name_direction(choice), axis


def _measure_similarity(target: str, cosine: float, groups: SetPair) -> Measurement:
    n, n_excluded = sum(map(len, groups)), sum(group.n_excluded for group in groups)
    if math.isnan(cosine):
        return Measurement(value=math.nan, n=0, undefined=n + n_excluded, target=target)
    value = float(np.clip(cosine, -1.0, 1.0))
    return Measurement(value=value, n=n, undefined=n_excluded, target=target)
