"""Similarity of the directions that several methods estimate for one attribute."""

from __future__ import annotations

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
    Pairs,
    Sample,
    TopN,
    check_directions,
    find_direction,
    list_omitted_settings,
    name_direction,
)
from recbias.metrics.embeddings.entity_sets import SetPair, select_sets
from recbias.metrics.embeddings.set_estimates import measure_sets
from recbias.metrics.embeddings.vector_metrics import ChoosingMetric, GroupMetric


@dataclass(frozen=True, kw_only=True)
class DirectionSimilarity(ChoosingMetric, GroupMetric):
    """The cosine of every two estimated directions of one attribute.

        cos(ψ, ψ') = ψ · ψ' / (|ψ| |ψ'|)

    Each direction points from group B to group A. The target names the two directions:
    ``svc vs centroid``; ``csvc`` is estimated once for each ``top_n``, and named ``csvc 200``.
    Undefined, with a warning, if the groups have no such direction. There is no interval.

    Args:
        directions: Two or more of ``centroid``, ``svc``, ``csvc``, ``pca``, ``pca_centred``,
            ``random``, or a ``.npy`` file of one vector; as for R-RIPA.
        top_n: ``csvc``: numbers of training members per group.
        sample: ``svc`` and ``csvc``: maximum number of members per group.
        pairs: ``pca`` and ``pca_centred``: a table of pairs; as for R-RIPA.

    Raises:
        BrokenContract: The vector of a file has another size than those of the model.

    Range:
        -1 to 1; undefined without a direction.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, table 2.
    """

    direction: ClassVar[Direction] = "none"

    directions: Annotated[tuple[DirectionChoice, ...], Len(2)] = (
        *("centroid", "svc", "csvc", "pca", "pca_centred"),
    )
    top_n: Annotated[tuple[TopN, ...], Len(1)] = (200,)
    sample: Sample = None
    pairs: Pairs = None

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings that do not change the value."""
        return list_omitted_settings(self.directions)

    def check(self, evidence: Evidence) -> None:
        """Validate the groups and files before any training."""
        super().check(evidence)
        check_directions(self.directions, self.groups, self.pairs, evidence)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the cosine of every two directions."""
        groups = select_sets(evidence, self.groups)
        return [
            measure_sets(
                float(np.clip(axis_a @ axis_b, -1.0, 1.0)),
                groups,
                target=f"{name_a} vs {name_b}",
                axes={name_a: axis_a, name_b: axis_b},
            )
            for (name_a, axis_a), (name_b, axis_b) in combinations(
                self._estimate(groups, evidence), 2
            )
        ]

    def _estimate(self, groups: SetPair, evidence: Evidence) -> Iterator[tuple[str, FloatArray]]:
        for choice in self.directions:
            for top_n in self.top_n if choice == "csvc" else self.top_n[:1]:
                axis = find_direction(
                    choice, groups, evidence, top_n=top_n, sample=self.sample, pairs=self.pairs
                )
                yield f"csvc {top_n}" if choice == "csvc" else name_direction(choice), axis
