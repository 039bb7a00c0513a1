"""Association of target sets with two groups in the space of a model's vectors.

The cosines of each entity of E and P with the members of the groups A and B say which group it
lies nearer to. Cosines do not depend on the length of a vector. Who or what has no vector, or a
vector of 0, is left out and counted in a warning. Every interval is from one bootstrap of the
entities and of the members of the groups, so that a mean and the sum it belongs to have the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Contrast, Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.embeddings.entity_sets import (
    GroupPair,
    Pair,
    TargetPair,
    members,
    pair_in_one_space,
)
from recbias.metrics.embeddings.set_estimates import SetValues, resampling, told_of, with_interval
from recbias.statistics.bootstrap.set_bootstrap import resample_mean_rows
from recbias.statistics.permutation.label_permutation import Permutations

_NEEDS = frozenset({"embeddings", "users", "items"})
_SOURCE = (
    "Beattie, Lin, Corpus and Ravichandran, Evaluation framework for understanding sensitive "
    "attribute association bias in latent factor recommendation algorithms, 2023, equation"
)


@dataclass(frozen=True, kw_only=True)
class EAA:
    """How much nearer an item lies to one group of users than to the other.

        EAA(e) = mean_{a in A} cos(e, a) - mean_{b in B} cos(e, b)

    A and B are the ``groups``, E and P the ``targets``. Positive is nearer to A, negative nearer
    to B. The first figure is mean_{e in E} EAA(e) - mean_{p in P} EAA(p); the next two are the
    means of each set, with the value of every entity. The test deals the members of E and P out
    again; the effect size is the difference in units of the sample standard deviation (n - 1) of
    EAA over E and P together. Undefined for an entity without a vector, or with a vector of 0.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        targets: E and P: ``{of: items, attribute: genres, e: Romance, p: Action}``.
        permutations: How many relabellings are drawn where there are more.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The attribute is not there.
        NothingLeft: A value is carried by fewer than two, or fewer than two have a vector.

    Range:
        -4 to 4, -2 to 2 for one set; undefined without a vector.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, equation 1.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = ""

    groups: GroupPair
    targets: TargetPair
    permutations: Permutations = 10_000

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: the tables of the entities chosen."""
        return frozenset({"embeddings", self.groups.of, self.targets.of})

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the groups and targets."""
        members(evidence, self.groups.wanted)
        members(evidence, self.targets.wanted)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the difference of the means, then the mean of each set."""
        _, found = _associations(evidence, self.groups, self.targets)
        main = found.difference(evidence)
        test = found.test("targets", _names(found.sets), self.permutations, evidence)
        told = told_of(test, main, (test.mean_a, test.mean_b))
        return [replace(main, contrasts=(told,)), *found.mean_figures(evidence)]


@dataclass(frozen=True, kw_only=True)
class GEAA:
    """How much nearer a whole set of items lies to one group of users than to the other.

        GEAA(E) = Σ_{e in E} EAA(e),    EAA(e) = mean_{a in A} cos(e, a) - mean_{b in B} cos(e, b)

    A and B are the ``groups``; there is a figure of each of the ``targets`` E and P. It is a sum:
    it grows with the set, whose size is ``n``. The test deals the members of A and B out again:
    would two random groups lie as far apart, seen from E? Its effect size is the gap between the
    groups in units of the sample standard deviation (n - 1) of their members' sums of cosines.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        targets: E and P: ``{of: items, attribute: genres, e: Romance, p: Action}``.
        permutations: How many relabellings are drawn where there are more.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The attribute is not there.
        NothingLeft: A value is carried by fewer than two, or fewer than two have a vector.

    Range:
        Any number, at most twice the size of the set.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, equation 2.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = ""

    groups: GroupPair
    targets: TargetPair
    permutations: Permutations = 10_000

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: the tables of the entities chosen."""
        return frozenset({"embeddings", self.groups.of, self.targets.of})

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the groups and targets."""
        members(evidence, self.groups.wanted)
        members(evidence, self.targets.wanted)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the sum of each set."""
        groups, found = _associations(evidence, self.groups, self.targets)
        made = []
        for each, figure in zip(found.sets, found.sum_figures(evidence), strict=True):
            towards = each.directions.sum(axis=0)
            test = _of_groups(groups, towards, figure, self.permutations, evidence)
            made.append(replace(figure, contrasts=(test,)))
        return made


@dataclass(frozen=True, kw_only=True)
class DEAA:
    """Whether two sets of items lie nearer to different groups of users.

        DEAA = GEAA(E) - GEAA(P),    GEAA(E) = Σ_{e in E} EAA(e)
        EAA(e) = mean_{a in A} cos(e, a) - mean_{b in B} cos(e, b)

    A and B are the ``groups``, E and P the ``targets``. Positive: E lies nearer to A, or P nearer
    to B. A difference of sums grows with the sets, so it is not compared between catalogues; the
    GEAA and the mean EAA of each set follow, with their sizes as ``n``.

    Two tests. Between the targets, the members of E and P are dealt out again; it asks how often
    DEAA comes as far from its expected value under that, which is not 0 where the sets are of
    different sizes. Its effect size is that of the paper: the difference of the mean EAA in units
    of the sample standard deviation (n - 1) of EAA over E and P together. Between the groups, the
    members of A and B are dealt out again; it asks whether two random groups would do as well.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        targets: E and P: ``{of: items, attribute: genres, e: Romance, p: Action}``.
        permutations: How many relabellings are drawn where there are more.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The attribute is not there.
        NothingLeft: A value is carried by fewer than two, or fewer than two have a vector.

    Range:
        Any number, at most twice the size of both sets.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, equations 3
        and 4.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = ""

    groups: GroupPair
    targets: TargetPair
    permutations: Permutations = 10_000

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: the tables of the entities chosen."""
        return frozenset({"embeddings", self.groups.of, self.targets.of})

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the groups and targets."""
        members(evidence, self.groups.wanted)
        members(evidence, self.targets.wanted)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return DEAA, the GEAA of each set, and the mean EAA of each."""
        groups, found = _associations(evidence, self.groups, self.targets)
        e, p = found.sum_figures(evidence)
        main = _difference(e, p)
        test = found.test("targets", _names(found.sets), self.permutations, evidence)
        first, second = found.sets
        towards = first.directions.sum(axis=0) - second.directions.sum(axis=0)
        tests = (
            told_of(test, main, (e.value, p.value)),
            _of_groups(groups, towards, main, self.permutations, evidence),
        )
        return [replace(main, contrasts=tests), e, p, *found.mean_figures(evidence, "mean of ")]


def _associations(
    evidence: Evidence, groups: GroupPair, targets: TargetPair
) -> tuple[Pair, SetValues]:
    """Return the groups, and the EAA of each entity of the targets."""
    of_groups, of_targets = pair_in_one_space(evidence, groups, targets)
    a, b = of_groups
    gap = a.directions.mean(axis=0) - b.directions.mean(axis=0)
    first, second = of_targets
    values = first.directions @ gap, second.directions @ gap
    return of_groups, SetValues(of_targets, values, _resampled(evidence, of_groups, of_targets))


def _resampled(evidence: Evidence, groups: Pair, targets: Pair) -> tuple[FloatArray, FloatArray]:
    """Return the mean EAA of each set where both its entities and the groups are drawn again.

    The mean of cosines is the product of the mean unit vectors, so only these are drawn.
    """
    rng = resampling(evidence)
    a, b, e, p = (
        resample_mean_rows(each.directions, evidence.n_bootstrap, rng)
        for each in (*groups, *targets)
    )
    return ((a - b) * e).sum(axis=1), ((a - b) * p).sum(axis=1)


def _of_groups(
    groups: Pair, towards: FloatArray, figure: Measurement, permutations: int, evidence: Evidence
) -> Contrast:
    """Return the test of who is in which group, of a sum of cosines with each member.

    Args:
        groups: A and B.
        towards: The sum of the unit vectors that the cosines are with, ``float64[d]``.
        figure: The figure: the mean over A minus the mean over B of that sum.
        permutations: How many relabellings are drawn where there are more.
        evidence: Where chance comes from.
    """
    a, b = groups
    sums = SetValues(groups, (a.directions @ towards, b.directions @ towards))
    test = sums.test("groups", _names(groups), permutations, evidence)
    return told_of(test, figure, (test.mean_a, test.mean_b))


def _difference(first: Measurement, second: Measurement) -> Measurement:
    figure = Measurement(
        value=first.value - second.value,
        n=first.n + second.n,
        undefined=first.undefined + second.undefined,
    )
    samples = [each.replicates for each in (first, second) if each.replicates is not None]
    return with_interval(figure, samples[0] - samples[1])


def _names(sets: Pair) -> tuple[str, str]:
    return sets[0].name, sets[1].name
