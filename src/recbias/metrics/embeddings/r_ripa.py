"""R-RIPA: the association of sets of items with the direction of a sensitive attribute."""

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
    Pairs,
    Sample,
    TopN,
    check_directions,
    list_omitted_settings,
    name_direction,
)
from recbias.metrics.embeddings.direction_permutation import DirectionEstimator, resample_sets
from recbias.metrics.embeddings.entity_sets import SetPair, select_groups_and_targets
from recbias.metrics.embeddings.set_estimates import SetValues, attach_estimate, measure_sets
from recbias.metrics.embeddings.vector_metrics import ChoosingMetric, TargetMetric
from recbias.numerics.directions import compute_cosine_tail, normalize_vector
from recbias.statistics.permutation.label_permutation import Permutations


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
    file or of given ``pairs`` has no such test. The test between the directions compares a
    direction from a file, or a ``random`` one, with directions without preference; its p follows
    exactly from the cosine of ψ with the gap between the mean unit vectors of E and P. A direction
    estimated from vectors of the model has no such test: it has a preference without a difference
    between the groups, as it lies where the vectors vary most or least.

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
        pairs: ``pca`` and ``pca_centred``: a table with the columns ``a`` and ``b``, the
            identifiers of a member of A and of one of B in each row: the pairs whose differences
            are used; by default all pairs.
        permutations: Number of permutations sampled if there are more.
        refits: Number of permutations of the groups on which a direction other than ``centroid``
            is estimated; the interval uses a third as many bootstrap samples.

    Raises:
        BrokenContract: The vector of the file has another size than those of the model.
        UnknownIdentifier: A pair has an identifier that is not in its group.
        Contradiction: ``pairs`` are given for a direction that is not estimated from pairs.

    Range:
        -2 to 2, -1 to 1 for one set; undefined without a vector or direction.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, equations 5
        and 6; the tests between groups and directions are not in it.
    """

    direction: ClassVar[Direction] = "zero"

    direction_: DirectionChoice = "centroid"
    top_n: TopN = 200
    sample: Sample = None
    pairs: Pairs = None
    permutations: Permutations = 10_000
    refits: Annotated[int, Gt(8), Le(100_000)] = 99

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return frozenset({"embeddings", self.groups.of, self.targets.of})

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings that do not change the value."""
        return list_omitted_settings((self.direction_,), "permutations", "refits")

    def check(self, evidence: Evidence) -> None:
        """Validate the groups, the targets and the file before any training."""
        super().check(evidence)
        check_directions((self.direction_,), self.groups, self.pairs, evidence)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the differential, then R-RIPA of each set."""
        groups, targets = select_groups_and_targets(evidence, self.groups, self.targets)
        estimator = DirectionEstimator(
            self.direction_, groups, evidence, self.top_n, self.sample, self.refits, self.pairs
        )
        axis = estimator.estimate()
        if np.isnan(axis).any():
            means = [
                target.measure_mean(np.full(len(target), np.nan), target=target.name)
                for target in targets
            ]
            return [measure_sets(math.nan, targets), *means]
        e, p = targets
        resampled = resample_sets(estimator, axis, targets)
        samples = resampled.mean_cosines
        n_samples = samples[0].size
        df = math.nan if n_samples == evidence.n_bootstrap else n_samples - 1.0
        cosines = SetValues(targets, (e.directions @ axis, p.directions @ axis), samples, df)
        difference = cosines.measure_difference(evidence)
        main, *means = resampled.add_intervals([difference, *cosines.measure_means(evidence)])
        test = cosines.test("targets", self.permutations, evidence)
        tests = [attach_estimate(test, main), *self._test_groups(estimator, targets, main)]
        if estimator.is_fixed:
            tests.append(self._test_random_directions(targets, axis, main))
        axes = {name_direction(self.direction_): axis}
        main = replace(main, contrasts=tuple(tests), axes=axes)
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
            test = Contrast(
                between="groups",
                a=a.name,
                b=b.name,
                test="permutation",
                n=len(a) + len(b),
                mean_a=math.nan,
                mean_b=math.nan,
                difference=estimate.value,
                statistic=estimate.value,
                p=p,
            )
            yield attach_estimate(test, estimate)

    def _test_random_directions(
        self, targets: SetPair, axis: FloatArray, estimate: Measurement
    ) -> Contrast:
        """Return the exact test against random directions."""
        cosine = float(np.clip(normalize_vector(_compute_gap(targets)) @ axis, -1.0, 1.0))
        test = Contrast(
            between="directions",
            a=name_direction(self.direction_),
            b="random",
            test="random_direction",
            n=estimate.n,
            mean_a=estimate.value,
            mean_b=0.0,
            difference=estimate.value,
            statistic=cosine,
            p=compute_cosine_tail(cosine, axis.size),
        )
        return replace(attach_estimate(test, estimate), statistic=cosine)


def _leave_uncompared(estimate: Measurement) -> Measurement:
    """Return an estimate with its interval, and without samples by which models are compared.

    Undefined samples leave estimates with values of units without a p-value.
    """
    samples = estimate.replicates
    if samples is not None and estimate.units is not None:
        undefined = np.full(samples.size, np.nan)
        return replace(estimate, replicates=undefined, df=math.nan, own_interval=True)
    return replace(estimate, replicates=None, df=math.nan, own_interval=True)


def _compute_gap(targets: SetPair) -> FloatArray:
    """Return the mean unit vector of E minus that of P, ``float64[d]``."""
    e, p = (target.directions.mean(axis=0) for target in targets)
    return np.asarray(e - p)
