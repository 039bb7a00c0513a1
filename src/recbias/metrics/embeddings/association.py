"""Association of target sets with two groups in the embedding space of a model.

The cosines of each entity with the members of the groups measure which group it is nearer to.
Entities without a vector, or with a vector of 0, are excluded and counted in a warning. All
intervals come from one bootstrap of the entities and of the members of the groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Le

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.evidence import Evidence
from recbias.core.measures import Bounds, Contrast, Direction, Measurement
from recbias.core.plugins import OnlyWith
from recbias.metrics.embeddings.directions import (
    COMPONENTS,
    DirectionChoice,
    DirectionEstimator,
    Sample,
    TopN,
    check_directions,
    name_direction,
    select_most_aligned,
)
from recbias.metrics.embeddings.sets import (
    ChoosingMetric,
    SetPair,
    SetValues,
    TargetMetric,
    add_interval,
    attach_estimate,
    centroid_difference,
    compute_cosine_tail,
    make_bootstrap_generator,
    measure_sets,
    normalize_vector,
    principal_components,
    select_groups_and_targets,
)
from recbias.statistics.bootstrap import resample_mean_rows
from recbias.statistics.permutation import Permutations


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
        """Return the groups, and the EAA of each entity of the targets."""
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

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return -2 and 2 for one set, which has units, and -4 and 4 for the difference."""
        return (-4.0, 4.0) if row.units is None else (-2.0, 2.0)

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
            every: AnyArray | slice = slice(None)
            of_sets = (*aligned, every, every)
            for entities, rows in zip((*groups, *targets), of_sets, strict=True):
                scores = entities.score((entities.vectors[rows] - center) @ axis, rows)
                row = Measurement.from_units(scores, group=entities.name, target=f"PC{number}")
                measurements.append(row)
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


@dataclass(frozen=True, kw_only=True)
class RRipa(ChoosingMetric, TargetMetric):
    """The difference of two sets of items along the direction from one group to the other.

        R-RIPA(E, ψ) = mean_{e in E} cos(e, ψ),    differential = R-RIPA(E, ψ) - R-RIPA(P, ψ)

    ψ is the direction of the attribute of the ``groups`` A and B, which points from B to A; E and
    P are the ``targets``. The first value is the differential; the two R-RIPA follow, with the
    cosine of every entity. Positive is towards A.

    There are up to three tests. The test between the targets permutes the members of E and P, as
    in the paper; its effect size is the differential in units of the sample standard deviation
    (n - 1) of the cosines of E and P together. It does not show that the direction is that of the
    attribute: sets that differ at all also differ along most random directions. The test between
    the groups permutes the members of A and B and estimates the direction again: would two random
    groups separate E and P as much, in either direction? This tests whether the direction is
    special. A ``random`` direction is the same for all groups, so its p is 1; a direction from a
    file has no such test. The test between the directions compares a direction from a file, or a
    ``random`` one, with directions without preference; its p follows exactly from the cosine of ψ
    with the gap between the mean unit vectors of E and P. A direction estimated from vectors of
    the model has no such test: it has a preference without a difference between the groups, as it
    lies where the vectors vary most or least.

    A ``random`` direction has no orientation that two models share, so its values are not compared
    between models.

    Intervals come from a bootstrap of the items and of the members of the groups, with the
    direction estimated on each sample. Sampling error of the direction makes every value too
    small: the interval of ``centroid`` corrects this bias, and has the largest possible width if
    the groups are too small to have a direction. ``svc``, ``csvc``, ``pca`` and ``pca_centred``
    are estimated on fewer samples and permutations; their intervals are

        x / c ± t √( (se / c)² + (x / c - x)² ),    c = √( 2 κ / (1 + κ) )

    x is the value, se its bootstrap standard error and κ the mean cosine of the directions of
    random halves of the groups. For ``csvc``, whose members are chosen by the sampling error as
    well, they are x / c ± t √( (se / c)² + (x / c² - x)² ). For ``pca_centred`` they
    are x ± t √( se² + (x / c² - x)² ), for ``pca`` the same with c³, and c is the mean absolute
    cosine of the directions of the samples with ψ. If another component than ψ may be the first of
    all members there could be, since their variances differ by less than sampling errors, the
    interval has the largest possible width. They are undefined, with a warning, if c is below 0.5.

    Undefined for an entity without a vector, or with a vector of 0; everything is undefined, with
    a warning, if the groups have no direction, for example because all their vectors are equal.

    Args:
        direction_: ``centroid`` (mean of A minus mean of B), ``svc`` (weights of a linear support
            vector classifier), ``csvc`` (the same, trained on the most aligned members), ``pca``
            (first principal component of the differences of all pairs of A and B),
            ``pca_centred`` (the same after subtracting their mean), ``random`` (as a control), or
            a ``.npy`` file of one vector.
        top_n: ``csvc``: number of training members per group.
        sample: ``svc`` and ``csvc``: maximum number of members per group.
        permutations: Number of permutations sampled if there are more.
        refits: Number of permutations of the groups on which a direction other than ``centroid``
            is estimated; the interval uses a third as many bootstrap samples.

    Raises:
        BrokenContract: The vector of the file has another size than those of the model.

    Range:
        -2 to 2, -1 to 1 for one set; undefined without a vector or direction.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, equations 5
        and 6; the tests between groups and directions are not in it.
    """

    direction: ClassVar[Direction] = "zero"

    chosen_in: Annotated[str | None, OnlyWith("direction", "csvc")] = None
    direction_: DirectionChoice = "centroid"
    top_n: Annotated[TopN, OnlyWith("direction", "csvc")] = 200
    sample: Annotated[Sample, OnlyWith("direction", "svc", "csvc")] = None
    permutations: Permutations = 10_000
    refits: Annotated[
        int, Gt(8), Le(100_000), OnlyWith("direction", "svc", "csvc", *COMPONENTS)
    ] = 99

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return frozenset({"embeddings", self.groups.of, self.targets.of})

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings that do not change the value."""
        return frozenset({"permutations", "refits"})

    def check(self, evidence: Evidence) -> None:
        """Validate the groups, the targets and the file before any training."""
        super().check(evidence)
        check_directions((self.direction_,))

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return -1 and 1 for one set, which has units, and -2 and 2 for the differential."""
        return (-2.0, 2.0) if row.units is None else (-1.0, 1.0)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the differential, then R-RIPA of each set."""
        groups, targets = select_groups_and_targets(evidence, self.groups, self.targets)
        estimator = DirectionEstimator(
            self.direction_, groups, evidence, self.top_n, self.sample, self.refits
        )
        axis = estimator.estimate()
        if np.isnan(axis).any():
            means = [
                target.measure_mean(np.full(len(target), np.nan), target=target.name)
                for target in targets
            ]
            return [measure_sets(math.nan, targets), *means]
        rng = make_bootstrap_generator(evidence)
        directions = estimator.resample(axis, rng)
        axes, n_samples = directions.axes, len(directions.axes)
        e, p = (resample_mean_rows(target.directions, n_samples, rng) for target in targets)
        df = math.nan if n_samples == evidence.n_bootstrap else n_samples - 1.0
        values = targets[0].directions @ axis, targets[1].directions @ axis
        samples = (e * axes).sum(axis=1), (p * axes).sum(axis=1)
        cosines = SetValues(targets, values, samples, df)
        estimates = [cosines.measure_difference(evidence), *cosines.measure_means(evidence)]
        main, *means = map(directions.add_interval, estimates, (e - p, e, p))
        test = cosines.test("targets", self.permutations, evidence)
        tests = [attach_estimate(test, main), *self._test_groups(estimator, targets, main)]
        if estimator.is_fixed:
            tests.append(self._test_random_directions(targets, axis, main))
        named = {name_direction(self.direction_): axis}
        main = replace(main, contrasts=tuple(tests), axes=named)
        if self.direction_ == "random":
            return [_leave_uncompared(estimate) for estimate in (main, *means)]
        return [main, *means]

    def _test_groups(
        self, estimator: DirectionEstimator, targets: SetPair, estimate: Measurement
    ) -> Iterator[Contrast]:
        """Yield the test of the group membership, if the direction depends on the groups."""
        rng = estimator.evidence.rng().spawn(3)[2]
        p = estimator.compute_p_value(_compute_gap(targets), self.permutations, rng)
        if not math.isnan(p):
            a, b = estimator.groups
            others = {"test": "permutation", "n": len(a) + len(b), "p": p}
            test = Contrast.of_means("groups", (a.name, b.name), (math.nan, math.nan), **others)
            yield attach_estimate(test, estimate)

    def _test_random_directions(
        self, targets: SetPair, axis: FloatArray, estimate: Measurement
    ) -> Contrast:
        """Return the exact test against random directions."""
        cosine = float(np.clip(normalize_vector(_compute_gap(targets)) @ axis, -1.0, 1.0))
        names = name_direction(self.direction_), "random"
        p = compute_cosine_tail(cosine, axis.size)
        others = {"test": "random_direction", "n": estimate.n, "p": p}
        test = Contrast.of_means("directions", names, (estimate.value, 0.0), **others)
        return replace(attach_estimate(test, estimate), statistic=cosine)


def _leave_uncompared(estimate: Measurement) -> Measurement:
    """Return an estimate with its interval, and without samples by which models are compared."""
    samples = estimate.replicates
    if samples is not None and estimate.units is not None:
        undefined = np.full(samples.size, np.nan)
        return replace(estimate, replicates=undefined, df=math.nan, own_interval=True)
    return replace(estimate, replicates=None, df=math.nan, own_interval=True)


def _compute_gap(targets: SetPair) -> FloatArray:
    """Return the mean unit vector of E minus that of P, ``float64[d]``."""
    e, p = (target.directions.mean(axis=0) for target in targets)
    return np.asarray(e - p)
