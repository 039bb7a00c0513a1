"""Is a direction that of an attribute? The three checks that come before it is used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Le, Len

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.measurements.scores import Contrast, Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.embeddings.bias_direction import (
    DirectionChoice,
    Named,
    Sample,
    TopN,
    check_direction,
    find_direction,
    name_of,
)
from recbias.metrics.embeddings.entity_sets import (
    EntitySet,
    GroupPair,
    Pair,
    members,
    with_vectors,
)
from recbias.numerics.directions import random_cosines, unit_rows
from recbias.statistics.tests.unpaired import compute_moments, welch_contrasts


@dataclass(frozen=True, kw_only=True)
class DirectionChecks:
    """Whether a direction tells two groups apart better than a random one does.

        mean_{a in A} cos(a, ψ) - mean_{b in B} cos(b, ψ)

    for each direction ψ, found from one half of each group and turned so that A lies farther along
    it than B there; A and B are the other halves:

    1. the cosines of A with ψ differ from those of B (the figure without a group is by how much);
    2. the cosines of A with ψ differ from its cosines with a random direction, and so for B;
    3. the cosines of A with ψ differ from those of as many random vectors with ψ, and so for B.

    The figures of A and of B are their mean cosines with ψ, with the value of each member; the
    tests of 2 and 3 stand with them, against ``random direction`` and ``random vectors``. Random
    directions and vectors are standard normal, scaled to length 1, and drawn ``repeats`` times;
    what is given is the draw whose p is the median (of an even number, the larger of the two).
    Each check is Welch's t-test, with the rank-sum test of Wilcoxon, Mann and Whitney on the same
    values beside it, whose effect size is the rank-biserial correlation. A direction should pass
    all three; the paper takes 0.05 / 15 = 0.0033 for 5 directions and 3 checks, here the tests of
    one kind are corrected together, those of Welch apart from those of rank sums.

    The paper does not divide the groups. A direction then tells the very members apart that it was
    found from, whatever they are: with the groups dealt out at random it passes the first check
    most of the time. With halves the first check errs in 5 of 100. The price is fewer members, on
    either side: a weak direction is found and seen less easily. Checks 2 and 3 do not ask whether
    the direction is that of the attribute: where the vectors of all members point one way, as
    those of most recommenders do, nearly every direction passes them, that of random groups too.

    Only the half that is tested is counted. Undefined for a member of it without a vector, or with
    a vector of 0; all is undefined, with a warning, where the groups have no direction.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        directions: Which: ``centroid``, ``svc``, ``csvc``, ``pca``, ``pca_centred``, ``random``,
            or a ``.npy`` file of one vector; as for R-RIPA.
        top_n: ``csvc``: how many of each group it learns from.
        sample: ``svc`` and ``csvc``: how many of each group take part at most.
        repeats: How many random directions and sets of random vectors are drawn.

    Raises:
        MissingEvidence: There are no vectors, or no table of users or items.
        UnknownColumn: The attribute is not there.
        NothingLeft: A value is carried by fewer than two, or fewer than two have a vector.
        BrokenContract: The vector of a file is not one of the model's space.

    Range:
        -2 to 2, -1 to 1 for one group; undefined without a direction or vector.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, section 4.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"embeddings", "users", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    groups: GroupPair
    directions: Annotated[tuple[DirectionChoice, ...], Len(1)] = ("centroid",)
    top_n: TopN = 200
    sample: Sample = None
    repeats: Annotated[int, Gt(0), Le(100_000)] = 100

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: the table of the groups."""
        return frozenset({"embeddings", self.groups.of})

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the groups and files."""
        members(evidence, self.groups.wanted)
        for each in self.directions:
            check_direction(each)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return, for each direction, how far the groups lie apart and where each lies."""
        found, tested = halves(with_vectors(evidence, self.groups.wanted), evidence)
        made: list[Measurement] = []
        for each in self.directions:
            axis = self._found(each, found, evidence)
            made += self._of_direction(name_of(each), axis, tested, evidence)
        return made

    def _found(self, choice: Named | Path, groups: Pair, evidence: Evidence) -> FloatArray:
        if not all(map(len, groups)):
            warn(f"{evidence.metric}: nobody in a half of a group has a vector: no direction")
            return np.full(groups[0].vectors.shape[1], np.nan)
        return find_direction(choice, groups, evidence, top_n=self.top_n, sample=self.sample)

    def _of_direction(
        self, name: str, axis: FloatArray, groups: Pair, evidence: Evidence
    ) -> Iterator[Measurement]:
        a, b = (each.directions @ axis for each in groups)
        apart = _tests(a, [b], "groups", (groups[0].name, groups[1].name))
        yield _apart(groups, (a, b), apart, name)
        rng = evidence.rng().spawn(3)[2]
        for each, cosines in zip(groups, (a, b), strict=True):
            tests = [
                *self._random_directions(each, cosines, name, rng),
                *self._random_vectors(each, cosines, axis.size, rng),
            ]
            figure = each.mean_of(cosines, group=each.name, target=name)
            yield replace(figure, contrasts=tuple(tests))

    def _random_directions(
        self, group: EntitySet, cosines: FloatArray, name: str, rng: np.random.Generator
    ) -> list[Contrast]:
        drawn = unit_rows(rng.standard_normal((self.repeats, group.directions.shape[1])))
        others = (group.directions @ each for each in drawn)
        return _tests(cosines, others, "directions", (name, "random direction"))

    def _random_vectors(
        self, group: EntitySet, cosines: FloatArray, d: int, rng: np.random.Generator
    ) -> list[Contrast]:
        others = (random_cosines(cosines.size, d, rng) for _ in range(self.repeats))
        return _tests(cosines, others, "groups", (group.name, "random vectors"))


def halves(groups: Pair, evidence: Evidence) -> tuple[Pair, Pair]:
    """Return a random half of each group to find a direction from, and the other to test it on.

    Who is in which depends on the members only, with a vector or not: every model has the same.
    """
    rng = evidence.rng().spawn(4)[3]
    first, second = (_halves(each, rng) for each in groups)
    return (first[0], second[0]), (first[1], second[1])


def _halves(group: EntitySet, rng: np.random.Generator) -> tuple[EntitySet, EntitySet]:
    n = group.usable.size
    inside = rng.permutation(n) < n // 2
    return _part(group, inside), _part(group, ~inside)


def _part(group: EntitySet, inside: BoolArray) -> EntitySet:
    kept = inside[group.usable]
    return replace(
        group,
        ids=group.ids[inside],
        usable=group.usable[inside],
        codes=group.codes[kept],
        vectors=group.vectors[kept],
        directions=group.directions[kept],
    )


def _apart(
    groups: Pair, cosines: tuple[FloatArray, FloatArray], tests: Sequence[Contrast], target: str
) -> Measurement:
    """Return the difference of the mean cosines of the groups, with the interval of Welch."""
    size, left_out = sum(map(len, groups)), sum(each.left_out for each in groups)
    value = float(cosines[0].mean() - cosines[1].mean()) if all(map(len, groups)) else math.nan
    if math.isnan(value):
        return Measurement(value=value, n=0, undefined=size + left_out, target=target)
    figure = Measurement(
        value=value, n=size, undefined=left_out, target=target, contrasts=tuple(tests)
    )
    if not tests:
        return figure
    return replace(figure, ci_low=tests[0].ci_low, ci_high=tests[0].ci_high)


def _tests(
    values: FloatArray,
    drawn: Sequence[FloatArray] | Iterator[FloatArray],
    between: str,
    names: tuple[str, str],
) -> list[Contrast]:
    """Return both tests of values against others, of several draws that of the median p.

    Args:
        values: ``float64[n]``.
        drawn: What they are held against, draw by draw, each ``float64[m]``.
        between: What the two sides are.
        names: What they are called.
    """
    made = []
    for others in drawn:
        codes = np.repeat([0, 1], [values.size, others.size])
        found = compute_moments(np.concatenate([values, others]), codes, 2)
        made.append((welch_contrasts(names, found, between=between)[0], others))
    if all(math.isnan(test.p) for test, _ in made):
        return []
    made.sort(key=lambda each: each[0].p)
    welch, others = made[len(made) // 2]
    return [welch, _rank_sum(welch, values, others)]


def _rank_sum(welch: Contrast, values: FloatArray, others: FloatArray) -> Contrast:
    """Return the rank-sum test of the values that Welch's test was made of."""
    from scipy.stats import mannwhitneyu

    found = mannwhitneyu(values, others, alternative="two-sided", method="asymptotic")
    u = float(found.statistic)
    return replace(
        welch,
        test="rank_sum",
        statistic=u,
        p=float(found.pvalue),
        df=math.nan,
        ci_low=math.nan,
        ci_high=math.nan,
        effect_size=2.0 * u / (values.size * others.size) - 1.0,
    )
