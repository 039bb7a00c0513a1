"""R-RIPA: how far sets of items lie along the direction of a sensitive attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import FloatArray
from recbias.core.evidence import Evidence
from recbias.core.scores import Contrast, Direction, Measurement
from recbias.metrics.bias_direction import (
    DirectionChoice,
    Sample,
    TopN,
    check_direction,
    find_direction,
    name_of,
)
from recbias.metrics.entity_sets import GroupPair, Pair, TargetPair, members, pair_in_one_space
from recbias.metrics.set_figures import SetValues, told_of
from recbias.numerics.directions import chance_of_cosine, unit


@dataclass(frozen=True, kw_only=True)
class RRipa:
    """How far two sets of items lie apart along the direction from one group to the other.

        R-RIPA(E, ψ) = mean_{e in E} cos(e, ψ),    differential = R-RIPA(E, ψ) - R-RIPA(P, ψ)

    ψ is the ``direction`` that stands for the attribute of the ``groups`` A and B, turned so that
    A lies farther along it than B; E and P are the ``targets``. The first figure is the
    differential, then come the two R-RIPA with the cosine of every entity. Positive is towards A.

    Two tests. Between the targets, the members of E and P are dealt out again; the effect size is
    the differential in units of the sample standard deviation (n - 1) of the cosines of E and P
    together. Between the directions: how often would a random direction set E and P as far apart,
    to either side? Sets that lie apart at all differ along most random directions too, so the
    first test finds many of them significant; the second does not. Its statistic is the cosine of
    ψ with the gap between the mean unit vectors of E and P, from which its p follows exactly.

    The interval of the differential is from a bootstrap of the items, with the direction as it was
    found. Undefined for an entity without a vector, or with a vector of 0; all is undefined, with
    a warning, where the groups have no direction, as when their vectors are all the same.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        targets: E and P: ``{of: items, attribute: genres, e: Romance, p: Action}``.
        direction_: ``centroid`` (mean of A minus mean of B), ``svc`` (weights of a linear support
            vector classifier), ``csvc`` (the same, learned from the most aligned members), ``pca``
            (first principal component of the differences of 1,000 random pairs of A and B),
            ``pca_centred`` (the same, their mean taken away first), ``random`` (for control), or a
            ``.npy`` file of one vector.
        top_n: ``csvc``: how many of each group it learns from.
        sample: ``svc`` and ``csvc``: how many of each group take part at most.
        permutations: How many relabellings are drawn where there are more.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The attribute is not there.
        NothingLeft: A value is carried by fewer than two, or fewer than two have a vector.
        BrokenContract: The vector of the file is not one of the model's space.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, equations 5
        and 6; the second test is not in it.
    """

    version: ClassVar[int] = 1
    needs: ClassVar[frozenset[str]] = frozenset({"embeddings", "users", "items"})
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = ""
    formula: ClassVar[str] = "mean over E of cos(e, direction) - mean over P of cos(p, direction)"
    values: ClassVar[str] = "-2 to 2, -1 to 1 for one set; undefined without a vector or direction"
    source: ClassVar[str] = (
        "Beattie, Lin, Corpus and Ravichandran, Evaluation framework for understanding sensitive "
        "attribute association bias in latent factor recommendation algorithms, 2023, equations 5 "
        "and 6"
    )

    groups: GroupPair
    targets: TargetPair
    direction_: DirectionChoice = "centroid"
    top_n: TopN = 200
    sample: Sample = None
    permutations: Annotated[int, Gt(0)] = 10_000

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: the tables of the entities chosen."""
        return frozenset({"embeddings", self.groups.of, self.targets.of})

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the groups, the targets and a file."""
        members(evidence, self.groups.wanted)
        members(evidence, self.targets.wanted)
        check_direction(self.direction_)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the differential, then R-RIPA of each set."""
        groups, targets = pair_in_one_space(evidence, self.groups, self.targets)
        axis = find_direction(
            self.direction_, groups, evidence, top_n=self.top_n, sample=self.sample
        )
        if np.isnan(axis).any():
            return _undefined(targets)
        first, second = targets
        found = SetValues(targets, (first.directions @ axis, second.directions @ axis))
        main = found.difference(evidence)
        test = found.test("targets", (first.name, second.name), self.permutations, evidence)
        tests = (
            told_of(test, main, (test.mean_a, test.mean_b)),
            _against_random(targets, axis, main, name_of(self.direction_)),
        )
        return [replace(main, contrasts=tests), *found.mean_figures()]


def _against_random(targets: Pair, axis: FloatArray, figure: Measurement, name: str) -> Contrast:
    """Return the test of how often a random direction does as well, which is exact."""
    first, second = (each.directions.mean(axis=0) for each in targets)
    cosine = float(np.clip(unit(first - second) @ axis, -1.0, 1.0))
    return Contrast(
        between="directions",
        a=name,
        b="random",
        test="random_direction",
        n=figure.n,
        mean_a=figure.value,
        mean_b=0.0,
        difference=figure.value,
        statistic=cosine,
        p=chance_of_cosine(cosine, axis.size),
        ci_low=figure.ci_low,
        ci_high=figure.ci_high,
    )


def _undefined(targets: Pair) -> list[Measurement]:
    """Return figures of which nothing is defined."""
    nothing = [each.mean_of(np.full(len(each), np.nan), target=each.name) for each in targets]
    both = sum(each.undefined for each in nothing)
    return [Measurement(value=math.nan, n=0, undefined=both), *nothing]
