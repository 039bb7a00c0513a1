"""R-RIPA: how far sets of items lie along the direction of a sensitive attribute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Le

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Contrast, Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.embeddings.bias_direction import (
    DirectionChoice,
    Sample,
    TopN,
    check_direction,
    name_of,
)
from recbias.metrics.embeddings.direction_permutation import Finder, drawn_again
from recbias.metrics.embeddings.entity_sets import (
    GroupPair,
    Pair,
    TargetPair,
    members,
    pair_in_one_space,
)
from recbias.metrics.embeddings.set_estimates import SetValues, told_of
from recbias.numerics.directions import chance_of_cosine, unit
from recbias.statistics.permutation.label_permutation import Permutations


@dataclass(frozen=True, kw_only=True)
class RRipa:
    """How far two sets of items lie apart along the direction from one group to the other.

        R-RIPA(E, ψ) = mean_{e in E} cos(e, ψ),    differential = R-RIPA(E, ψ) - R-RIPA(P, ψ)

    ψ is the ``direction`` that stands for the attribute of the ``groups`` A and B, turned so that
    A lies farther along it than B; E and P are the ``targets``. The first figure is the
    differential, then come the two R-RIPA with the cosine of every entity. Positive is towards A.

    Three tests. Between the targets, the members of E and P are dealt out again, as in the paper;
    the effect size is the differential in units of the sample standard deviation (n - 1) of the
    cosines of E and P together. It does not say that the direction is that of the attribute: sets
    that lie apart at all differ along most random directions too, which it finds significant.
    Between the groups, the members of A and B are dealt out again and the direction is found
    again: would two random groups set E and P as far apart, to either side? That is the test of
    whether the direction is special; a ``random`` direction is the same for all groups, so its p
    is 1, and that of a file has no such test. Between the directions: how often would a direction
    without preference set E and P as far apart? p follows exactly from the cosine of ψ with the
    gap between the mean unit vectors of E and P; but directions that are found lie where the
    vectors of the groups vary most, so for them read the test between the groups.

    Intervals are from a bootstrap of the items and of the members of the groups, from which the
    direction is found again. A direction that is partly chance makes every figure too small: the
    interval of ``centroid`` allows for that, lies around what the figure would be without, and is
    as wide as can be where the groups are too small to have a direction. Learned and principal
    directions (``svc``, ``csvc``, ``pca``, ``pca_centred``) are found again on fewer samples and
    relabellings; their intervals take Student's t, and do not allow for it. Undefined for an
    entity without a vector, or with a vector of 0; all is undefined, with a warning, where the
    groups have no direction, as when their vectors are all the same.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        targets: E and P: ``{of: items, attribute: genres, e: Romance, p: Action}``.
        direction_: ``centroid`` (mean of A minus mean of B), ``svc`` (weights of a linear support
            vector classifier), ``csvc`` (the same, learned from the most aligned members), ``pca``
            (first principal component of the differences of all pairs of A and B),
            ``pca_centred`` (the same, their mean taken away first), ``random`` (for control), or a
            ``.npy`` file of one vector.
        top_n: ``csvc``: how many of each group it learns from.
        sample: ``svc`` and ``csvc``: how many of each group take part at most.
        permutations: How many relabellings are drawn where there are more.
        refits: How many relabellings of the groups a direction other than ``centroid`` is found
            again on; the interval takes a third as many bootstrap samples.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The attribute is not there.
        NothingLeft: A value is carried by fewer than two, or fewer than two have a vector.
        BrokenContract: The vector of the file is not one of the model's space.

    Range:
        -2 to 2, -1 to 1 for one set; undefined without a vector or direction.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, equations 5
        and 6; the tests between groups and directions are not in it.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"embeddings", "users", "items"})
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = ""

    groups: GroupPair
    targets: TargetPair
    direction_: DirectionChoice = "centroid"
    top_n: TopN = 200
    sample: Sample = None
    permutations: Permutations = 10_000
    refits: Annotated[int, Gt(8), Le(100_000)] = 99

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
        finder = Finder(self.direction_, groups, evidence, self.top_n, self.sample, self.refits)
        axis = finder.find()
        if np.isnan(axis).any():
            return _undefined(targets)
        first, second = targets
        again = drawn_again(finder, axis, targets)
        samples = again.samples
        few = math.nan if samples[0].size == evidence.n_bootstrap else samples[0].size - 1
        values = first.directions @ axis, second.directions @ axis
        found = SetValues(targets, values, samples, few)
        figures = [found.difference(evidence), *found.mean_figures(evidence)]
        main, *of_sets = again.with_intervals(figures)
        test = found.test("targets", (first.name, second.name), self.permutations, evidence)
        tests = (
            told_of(test, main, (test.mean_a, test.mean_b)),
            *self._of_groups(finder, targets, main),
            _against_random(targets, axis, main, name_of(self.direction_)),
        )
        return [replace(main, contrasts=tests), *of_sets]

    def _of_groups(self, finder: Finder, targets: Pair, figure: Measurement) -> Iterator[Contrast]:
        """Yield the test of who is in which group, if the direction comes from the groups."""
        towards = _gap(targets)
        rng = finder.evidence.rng().spawn(3)[2]
        p = finder.p_value(towards, self.permutations, rng)
        if math.isnan(p):
            return
        a, b = finder.groups
        yield Contrast(
            between="groups",
            a=a.name,
            b=b.name,
            test="permutation",
            n=len(a) + len(b),
            mean_a=math.nan,
            mean_b=math.nan,
            difference=figure.value,
            statistic=figure.value,
            p=p,
            ci_low=figure.ci_low,
            ci_high=figure.ci_high,
        )


def _gap(targets: Pair) -> FloatArray:
    """Return the mean unit vector of E minus that of P, ``float64[d]``."""
    first, second = (each.directions.mean(axis=0) for each in targets)
    return np.asarray(first - second)


def _against_random(targets: Pair, axis: FloatArray, figure: Measurement, name: str) -> Contrast:
    """Return the test of how often a random direction does as well, which is exact."""
    cosine = float(np.clip(unit(_gap(targets)) @ axis, -1.0, 1.0))
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
