"""How much alike the directions are that several methods find for one attribute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Len

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.embeddings.bias_direction import (
    DirectionChoice,
    Named,
    Sample,
    TopN,
    check_direction,
    find_direction,
    name_of,
)
from recbias.metrics.embeddings.entity_sets import GroupPair, Pair, members, with_vectors


@dataclass(frozen=True, kw_only=True)
class DirectionSimilarity:
    """The cosine between every two directions that are found for one attribute.

        cos(ψ, ψ') = ψ · ψ' / (|ψ| |ψ'|)

    Each direction is turned so that group A lies farther along it than group B. A figure's target
    names the two: ``svc vs centroid``; ``csvc`` is made once for each ``top_n``, and named
    ``csvc 200``. Undefined, with a warning, where the groups have no such direction. There is no
    interval: nothing here is a mean.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        directions: Which: ``centroid``, ``svc``, ``csvc``, ``pca``, ``pca_centred``, ``random``,
            or a ``.npy`` file of one vector; as for R-RIPA. Two or more.
        top_n: ``csvc``: how many of each group it learns from, once for each number.
        sample: ``svc`` and ``csvc``: how many of each group take part at most.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The attribute is not there.
        NothingLeft: A value is carried by fewer than two, or fewer than two have a vector.
        BrokenContract: The vector of a file is not one of the model's space.

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
        """Return the kinds of evidence: the table of the groups."""
        return frozenset({"embeddings", self.groups.of})

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the groups and files."""
        members(evidence, self.groups.wanted)
        for each in self.directions:
            check_direction(each)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the cosine of every two directions."""
        groups = with_vectors(evidence, self.groups.wanted)
        found = list(self._found(groups, evidence))
        return [
            _figure(f"{first} vs {second}", float(one @ other), groups)
            for (first, one), (second, other) in combinations(found, 2)
        ]

    def _found(self, groups: Pair, evidence: Evidence) -> Iterator[tuple[str, FloatArray]]:
        for choice in self.directions:
            for top_n in self.top_n if choice == "csvc" else self.top_n[:1]:
                axis = find_direction(choice, groups, evidence, top_n=top_n, sample=self.sample)
                yield _name(choice, top_n), axis


def _name(choice: Named | Path, top_n: int) -> str:
    return f"csvc {top_n}" if choice == "csvc" else name_of(choice)


def _figure(target: str, cosine: float, groups: Pair) -> Measurement:
    size, left_out = sum(map(len, groups)), sum(each.left_out for each in groups)
    if math.isnan(cosine):
        return Measurement(value=math.nan, n=0, undefined=size + left_out, target=target)
    value = float(np.clip(cosine, -1.0, 1.0))
    return Measurement(value=value, n=size, undefined=left_out, target=target)
