"""Association of target sets with two groups in the embedding space of a model.

The cosines of each entity of E and P with the members of the groups A and B measure which group it
is nearer to. Entities without a vector, or with a vector of 0, are excluded and counted in a
warning. All intervals come from one bootstrap of the entities and of the members of the groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Contrast, Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.embeddings.entity_sets import SetPair, select_groups_and_targets
from recbias.metrics.embeddings.set_estimates import (
    SetValues,
    add_interval,
    attach_estimate,
    make_bootstrap_generator,
    measure_sets,
)
from recbias.metrics.embeddings.vector_metrics import TargetMetric
from recbias.statistics.bootstrap.set_bootstrap import resample_mean_rows
from recbias.statistics.permutation.label_permutation import Permutations


@dataclass(frozen=True, kw_only=True)
class _Association(TargetMetric):
    """The settings and steps of the metrics of this module.

    Args:
        permutations: Number of permutations sampled if there are more.
    """

    permutations: Permutations = 10_000

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings of the tests, which do not change the value."""
        return frozenset({"permutations"})

    def _measure_associations(self, evidence: Evidence) -> tuple[SetPair, SetValues]:
        """Return the groups, and the EAA of each entity of the targets.

        The mean of cosines is the product of the mean unit vectors, so only these are resampled.
        """
        groups, targets = select_groups_and_targets(evidence, self.groups, self.targets)
        gap = groups[0].directions.mean(axis=0) - groups[1].directions.mean(axis=0)
        rng = make_bootstrap_generator(evidence)
        a, b, e, p = (
            resample_mean_rows(entities.directions, evidence.n_bootstrap, rng)
            for entities in (*groups, *targets)
        )
        samples = ((a - b) * e).sum(axis=1), ((a - b) * p).sum(axis=1)
        values = targets[0].directions @ gap, targets[1].directions @ gap
        return groups, SetValues(targets, values, samples)

    def _test_groups(
        self, groups: SetPair, towards: FloatArray, estimate: Measurement, evidence: Evidence
    ) -> Contrast:
        """Return the permutation test of the group membership, for cosines with ``towards``."""
        a, b = groups
        sums = SetValues(groups, (a.directions @ towards, b.directions @ towards))
        return attach_estimate(sums.test("groups", self.permutations, evidence), estimate)


class EAA(_Association):
    """How much nearer an item is to one group of users than to the other in the embedding space.

        EAA(e) = mean_{a in A} cos(e, a) - mean_{b in B} cos(e, b)

    A and B are the ``groups``, E and P the ``targets``. Positive is nearer to A, negative nearer
    to B. The first value is mean_{e in E} EAA(e) - mean_{p in P} EAA(p); the next two are the
    means of E and of P, with the value of every entity. The test permutes the members of E and P;
    the effect size is the difference in units of the sample standard deviation (n - 1) of EAA over
    E and P together. Undefined for an entity without a vector, or with a vector of 0.

    Range:
        -4 to 4, -2 to 2 for one set; undefined without a vector.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, equation 1.
    """

    direction: ClassVar[Direction] = "zero"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the difference of the means, then the mean of each set."""
        _, associations = self._measure_associations(evidence)
        main = associations.measure_difference(evidence)
        test = associations.test("targets", self.permutations, evidence)
        return [
            replace(main, contrasts=(attach_estimate(test, main),)),
            *associations.measure_means(evidence),
        ]


class GEAA(_Association):
    """How much nearer a set of items is to one group of users than to the other: the sum of EAA.

        GEAA(E) = Σ_{e in E} EAA(e),    EAA(e) = mean_{a in A} cos(e, a) - mean_{b in B} cos(e, b)

    A and B are the ``groups``; there is one value for each of the ``targets`` E and P. As a sum,
    it grows with the size ``n`` of the set. The test permutes the members of A and B: would two
    random groups differ as much in their association with E? Its effect size is the gap between
    the groups in units of the sample standard deviation (n - 1) of their members' sums of cosines.

    Range:
        Any number, at most twice the size of the set.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, equation 2.
    """

    direction: ClassVar[Direction] = "zero"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the sum of each set."""
        groups, associations = self._measure_associations(evidence)
        sums = associations.measure_sums(evidence)
        measurements = []
        for target, estimate in zip(associations.sets, sums, strict=True):
            towards = target.directions.sum(axis=0)
            test = self._test_groups(groups, towards, estimate, evidence)
            measurements.append(replace(estimate, contrasts=(test,)))
        return measurements


class DEAA(_Association):
    """Whether two sets of items are nearer to different groups of users: the difference of GEAA.

        DEAA = GEAA(E) - GEAA(P),    GEAA(E) = Σ_{e in E} EAA(e)
        EAA(e) = mean_{a in A} cos(e, a) - mean_{b in B} cos(e, b)

    A and B are the ``groups``, E and P the ``targets``. Positive: E is nearer to A, or P nearer to
    B. A difference of sums grows with the sizes of the sets, so it cannot be compared between
    catalogues; the GEAA and the mean EAA of each set follow, with their sizes as ``n``.

    There are two tests. The test between the targets permutes the members of E and P, and compares
    DEAA with its expected value, which is not 0 if the sets differ in size. Its effect size is
    that of the paper: the difference of the mean EAA in units of the sample standard deviation
    (n - 1) of EAA over E and P together. The test between the groups permutes the members of A
    and B: would two random groups give as large a DEAA?

    Range:
        Any number, at most twice the size of both sets.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, equations 3
        and 4.
    """

    direction: ClassVar[Direction] = "zero"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return DEAA, the GEAA of each set, and the mean EAA of each."""
        groups, associations = self._measure_associations(evidence)
        e, p = associations.measure_sums(evidence)
        main = measure_sets(e.value - p.value, associations.sets)
        if e.replicates is not None and p.replicates is not None:
            main = add_interval(main, e.replicates - p.replicates)
        test = associations.test("targets", self.permutations, evidence)
        sum_e, sum_p = (target.directions.sum(axis=0) for target in associations.sets)
        tests = (
            replace(attach_estimate(test, main), mean_a=e.value, mean_b=p.value),
            self._test_groups(groups, sum_e - sum_p, main, evidence),
        )
        means = associations.measure_means(evidence, "mean of ")
        return [replace(main, contrasts=tests), e, p, *means]
