"""Three tests of whether a direction represents an attribute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Gt, Le, Len

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Contrast, Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.embeddings.bias_direction import (
    DirectionChoice,
    Sample,
    TopN,
    check_directions,
    find_direction,
    list_omitted_settings,
    name_direction,
)
from recbias.metrics.embeddings.entity_sets import EntitySet, SetPair, select_sets
from recbias.metrics.embeddings.set_estimates import measure_sets
from recbias.metrics.embeddings.vector_metrics import GroupMetric
from recbias.numerics.directions import normalize_rows, sample_cosines
from recbias.statistics.tests.rank_sums import compare_ranks
from recbias.statistics.tests.unpaired import compute_moments, welch_contrasts


@dataclass(frozen=True, kw_only=True)
class DirectionChecks(GroupMetric):
    """Whether a direction separates two groups better than a random direction does.

        mean_{a in A} cos(a, ψ) - mean_{b in B} cos(b, ψ)

    for each direction ψ, which is estimated from one half of each group and points from B to A; A
    and B are the other halves (or all members, with ``members: all``):

    1. the cosines of A with ψ differ from those of B (the value without a group);
    2. the cosines of A with ψ differ from its cosines with a random direction, likewise for B;
    3. the cosines of A with ψ differ from those of as many random vectors with ψ, likewise for B.

    The values of A and of B are their mean cosines with ψ, with the value of each member, and have
    the tests 2 and 3, against ``random direction`` and ``random vectors``. Random directions and
    vectors are standard normal, scaled to length 1, and sampled ``repeats`` times; the sample with
    the median p is reported (the larger of two medians). Each check is Welch's t-test, and the
    Wilcoxon-Mann-Whitney rank-sum test on the same values, with the rank-biserial correlation as
    its effect size. A direction should pass all three. The paper uses 0.05 / 15 = 0.0033 for 5
    directions and 3 checks; here all Welch tests are corrected together, and all rank-sum tests.

    The paper does not split the groups, so a direction is tested on the members that it was
    estimated from: even with random groups it passes the first check most of the time. That is
    ``members: all``, for comparison with the paper; its intervals and p-values of estimated
    directions are not valid. With halves the first check has an error rate of 5%, but less power
    for a weak direction. Checks 2
    and 3 do not test whether the direction is that of the attribute: if the vectors of all members
    have similar directions, as in most recommenders, nearly every direction passes them, also that
    of random groups.

    Only the tested members are counted. Undefined for one without a vector, or with a
    vector of 0; everything is undefined, with a warning, if the groups have no direction.

    Args:
        directions: One or more of ``centroid``, ``svc``, ``csvc``, ``pca``, ``pca_centred``,
            ``random``, or a ``.npy`` file of one vector; as for R-RIPA.
        top_n: ``csvc``: number of training members per group.
        sample: ``svc`` and ``csvc``: maximum number of members per group.
        members: The members that a direction is tested on: ``halves`` estimates it on one half of
            each group and tests it on the other, ``all`` does both on all members, as in the
            paper.
        repeats: Number of random directions and sets of random vectors.

    Raises:
        BrokenContract: The vector of a file has another size than those of the model.

    Range:
        -2 to 2, -1 to 1 for one group; undefined without a direction or vector.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, section 4.
    """

    direction: ClassVar[Direction] = "none"

    directions: Annotated[tuple[DirectionChoice, ...], Len(1)] = ("centroid",)
    top_n: TopN = 200
    sample: Sample = None
    members: Literal["halves", "all"] = "halves"
    repeats: Annotated[int, Gt(0), Le(100_000)] = 100

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings that do not change the value."""
        return list_omitted_settings(self.directions, "repeats")

    def check(self, evidence: Evidence) -> None:
        """Validate the groups and files before any training."""
        super().check(evidence)
        check_directions(self.directions, self.groups, None, evidence)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the difference and the mean cosine of the groups for each direction."""
        groups = select_sets(evidence, self.groups)
        halves = split_in_halves(groups, evidence)
        train, test = halves if self.members == "halves" else (groups, groups)
        measurements: list[Measurement] = []
        for choice in self.directions:
            if all(map(len, train)):
                axis = find_direction(
                    choice, train, evidence, top_n=self.top_n, sample=self.sample
                )
            else:
                reason = "no member in a half of a group has a vector"
                warn(f"{evidence.metric}: no direction, because {reason}")
                axis = np.full(train[0].vectors.shape[1], np.nan)
            measurements += self._measure(name_direction(choice), axis, test, evidence)
        return measurements

    def _measure(
        self, name: str, axis: FloatArray, groups: SetPair, evidence: Evidence
    ) -> Iterator[Measurement]:
        a, b = (group.directions @ axis for group in groups)
        tests = _test_median(a, [b], "groups", (groups[0].name, groups[1].name))
        gap = float(a.mean() - b.mean()) if all(map(len, groups)) else math.nan
        difference = measure_sets(gap, groups, target=name)
        if tests and difference.n:  # with Welch's interval
            low, high = tests[0].ci_low, tests[0].ci_high
            difference = replace(difference, contrasts=tuple(tests), ci_low=low, ci_high=high)
        yield replace(difference, axes={name: axis})
        rng = evidence.rng().spawn(3)[2]
        for group, cosines in zip(groups, (a, b), strict=True):
            axes = normalize_rows(rng.standard_normal((self.repeats, axis.size)))
            samples = (group.directions @ random_axis for random_axis in axes)
            tests = _test_median(cosines, samples, "directions", (name, "random direction"))
            samples = (sample_cosines(cosines.size, axis.size, rng) for _ in axes)
            tests += _test_median(cosines, samples, "groups", (group.name, "random vectors"))
            estimate = group.measure_mean(cosines, group=group.name, target=name)
            yield replace(estimate, contrasts=tuple(tests))


def split_in_halves(groups: SetPair, evidence: Evidence) -> tuple[SetPair, SetPair]:
    """Split each group at random into a half to estimate a direction and a half to test it.

    The halves depend only on the members, with or without a vector, so all models have the same.
    """
    rng = evidence.rng().spawn(4)[3]
    a, b = (_split_group(group, rng) for group in groups)
    return (a[0], b[0]), (a[1], b[1])


def _split_group(group: EntitySet, rng: np.random.Generator) -> tuple[EntitySet, EntitySet]:
    n = group.has_vector.size
    in_half = rng.permutation(n) < n // 2
    first, second = (
        replace(
            group,
            ids=group.ids[members],
            has_vector=group.has_vector[members],
            codes=group.codes[members[group.has_vector]],
            vectors=group.vectors[members[group.has_vector]],
            directions=group.directions[members[group.has_vector]],
            choosing=group.choosing[members[group.has_vector]],
        )
        for members in (in_half, ~in_half)
    )
    return first, second


def _test_median(
    values: FloatArray,
    samples: Sequence[FloatArray] | Iterator[FloatArray],
    between: str,
    names: tuple[str, str],
) -> list[Contrast]:
    """Return both tests of values, ``float64[n]``, against the sample with the median p-value."""
    tests = []
    for sample in samples:
        codes = np.repeat([0, 1], [values.size, sample.size])
        moments = compute_moments(np.concatenate([values, sample]), codes, 2)
        tests.append((welch_contrasts(names, moments, between=between)[0], sample))
    if all(math.isnan(test.p) for test, _ in tests):
        return []
    tests.sort(key=lambda row: row[0].p)
    welch, sample = tests[len(tests) // 2]
    return [welch, compare_ranks(names, values, sample, between=between)]
