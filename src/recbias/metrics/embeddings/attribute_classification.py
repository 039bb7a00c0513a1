"""What a classifier of users' groups, learned from a model's vectors, says of users and items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.core.dataset.interactions import Interactions
from recbias.core.measurements.scores import Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.embeddings.audience import DECILES, audience_deciles, favourite_centroids
from recbias.metrics.embeddings.bias_direction import Sample, TopN
from recbias.metrics.embeddings.entity_sets import (
    FEWEST,
    GroupPair,
    Pair,
    TargetPair,
    members,
    pair_in_one_space,
    vectors_of,
)
from recbias.metrics.embeddings.linear_svc import Learned, Separator, learn
from recbias.metrics.embeddings.set_estimates import SetValues, with_interval
from recbias.numerics.directions import unit_rows


@dataclass(frozen=True, kw_only=True)
class AttributeClassification:
    """Whether the group of a user, and a group for each item, can be read off a model's vectors.

        says A where w · x + w_0 > 0

    w and w_0 are what a linear support vector classifier (C = 1) learns from the vectors of four
    fifths of the members of each group.

    - ``accuracy``: on the other fifth, and for each group; ``training accuracy``: on those it
      learned from.
    - ``precision of E``, ``recall of E``, ``F1 of E``: of the items of E and P, applied to which
      the classifier should say A for E; likewise B for P. The group of a figure is what it should
      say. Precision is undefined where it says so of none.
    - ``predicted A at 50-60%``: the share of items said to be of A, among all items whose audience
      (training users of A and B) is by so much of A; 90-100% has both ends.
    - ``accuracy from top 3 items``: a classifier that learns from the mean vector of each user's
      favourite training items instead: those of the highest rating, or most interactions.

    Accuracy is undefined for members on whom the classifier is not tested. The last two are given
    where the groups are of users and the targets of items. Intervals of precision and F1 are from
    a bootstrap of the items of each set, the others are t intervals.

    Args:
        groups: A and B: ``{of: users, attribute: gender, a: F, b: M}``.
        targets: E and P: ``{of: items, attribute: genres, e: Romance, p: Action}``.
        direction_: ``svc``, or ``csvc`` to learn from the most aligned training members only.
        top_n: ``csvc``: how many of each group it learns from.
        sample: How many of each group take part at most; with as many of each, accuracy is not
            reached by saying the larger group of everyone.
        lengths: ``keep`` learns from the vectors as they are; ``unit`` scales users and items to
            length 1 first, for models whose users' vectors are far longer than the items'.
        top_items: How many favourites of a user are averaged.

    Raises:
        MissingEvidence: There are no vectors, no table of users or items, or no interactions.
        UnknownColumn: The attribute is not there.
        NothingLeft: A value is carried by fewer than two, or fewer than two have a vector.

    Range:
        0 to 1; undefined without a vector, and for members it is not tested on.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, section 6.4,
        tables 1, 4 and 5.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"embeddings", "users", "items", "train"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    groups: GroupPair
    targets: TargetPair
    direction_: Literal["svc", "csvc"] = "svc"
    top_n: TopN = 200
    sample: Sample = None
    lengths: Literal["keep", "unit"] = "keep"
    top_items: Annotated[int, Gt(0)] = 3

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: interactions where users are classified by their items."""
        found = frozenset({"embeddings", self.groups.of, self.targets.of})
        return found | {"train"} if self._by_items else found

    def check(self, evidence: Evidence) -> None:
        """Raise what ``measure`` would raise of the groups and targets."""
        members(evidence, self.groups.wanted)
        members(evidence, self.targets.wanted)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the accuracy on users, then what is said of items."""
        groups, targets = pair_in_one_space(evidence, self.groups, self.targets)
        if self.lengths == "unit":
            groups, targets = _scaled(groups), _scaled(targets)
        learned = self._learned(groups[0].vectors, groups[1].vectors, evidence)
        made = [*_accuracies(learned, groups)]
        made += _of_targets(learned.separator, groups, targets, evidence)
        if self._by_items:
            made += self._by_decile(learned.separator, groups, evidence)
            made.append(self._from_favourites(evidence))
        return made

    @property
    def _by_items(self) -> bool:
        return (self.groups.of, self.targets.of) == ("users", "items")

    def _learned(self, a: AnyArray, b: AnyArray, evidence: Evidence) -> Learned:
        top_n = self.top_n if self.direction_ == "csvc" else None
        return learn(a, b, rng=evidence.rng(), sample=self.sample, top_n=top_n)

    def _items(self, evidence: Evidence) -> FloatArray:
        """Return the vectors of all items, ``float64 (n_items, d)``; NaN where there is none."""
        vectors = np.asarray(vectors_of(evidence, "items"), dtype=np.float64)
        if self.lengths == "unit":
            return unit_rows(vectors)
        return np.where(vectors.any(axis=1, keepdims=True), vectors, np.nan)

    def _by_decile(
        self, separator: Separator, groups: Pair, evidence: Evidence
    ) -> Iterator[Measurement]:
        deciles = audience_deciles(_train(evidence), *members(evidence, self.groups.wanted))
        vectors = self._items(evidence)
        known = np.isfinite(vectors).all(axis=1)
        said = np.full(known.size, np.nan)
        said[known] = separator.says_a(vectors[known])
        name = groups[0].name
        for decile in range(DECILES):
            target = f"predicted at {10 * decile}-{10 * decile + 10}% {name}"
            inside = np.flatnonzero(deciles == decile)
            scores = UnitScores("item", evidence.item_ids.ids[inside], said[inside])
            yield Measurement.from_units(scores, group=name, target=target)

    def _from_favourites(self, evidence: Evidence) -> Measurement:
        """Return the accuracy of the classifier of the favourites' mean vectors, on its fifth."""
        codes = members(evidence, self.groups.wanted)
        vectors = self._items(evidence)
        (a, own_a), (b, own_b) = (
            favourite_centroids(_train(evidence), vectors, each, self.top_items) for each in codes
        )
        target = f"accuracy from top {self.top_items} items"
        if min(len(a), len(b)) < FEWEST:
            warn(f"{evidence.metric}: {target}: a group has fewer than {FEWEST} users with items")
            return Measurement(math.nan, n=0, undefined=len(a) + len(b), target=target)
        learned = self._learned(a, b, evidence)
        first, second = learned.halves.test
        right = _right(learned.separator, (a, b), (first, second))
        ids = _train(evidence).user_ids.ids
        of_a = _scattered("user", ids[codes[0]], own_a[first], right[0])
        of_b = _scattered("user", ids[codes[1]], own_b[second], right[1])
        return Measurement.from_units(_together(of_a, of_b), target=target)


def _train(evidence: Evidence) -> Interactions:
    evidence.need("train")
    return evidence.train  # type: ignore[return-value]  # need() raises on None


def _scaled(sets: Pair) -> Pair:
    first, second = sets
    return replace(first, vectors=first.directions), replace(second, vectors=second.directions)


def _right(
    separator: Separator, vectors: tuple[AnyArray, AnyArray], places: tuple[AnyArray, AnyArray]
) -> tuple[FloatArray, FloatArray]:
    """Return of whom the right group is said, 1 or 0, for some of A and some of B."""
    of_a = separator.says_a(vectors[0][places[0]]).astype(np.float64)
    of_b = separator.says_a(vectors[1][places[1]])
    return of_a, 1.0 - of_b.astype(np.float64)


def _accuracies(learned: Learned, groups: Pair) -> Iterator[Measurement]:
    vectors = groups[0].vectors, groups[1].vectors
    right = _right(learned.separator, vectors, learned.halves.test)
    of_a, of_b = (
        _scattered(each.unit, each.ids, np.flatnonzero(each.usable)[places], own)
        for each, places, own in zip(groups, learned.halves.test, right, strict=True)
    )
    yield Measurement.from_units(_together(of_a, of_b), target="accuracy")
    for name, scores in zip(_names(groups), (of_a, of_b), strict=True):
        yield Measurement.from_units(scores, group=name, target="accuracy")
    trained = _right(learned.separator, vectors, learned.halves.train)
    for name, values in (
        ("", np.concatenate(trained)),
        *zip(_names(groups), trained, strict=True),
    ):
        yield replace(Measurement.from_values(values), group=name, target="training accuracy")


def _scattered(unit: str, ids: Ids, places: AnyArray, values: FloatArray) -> UnitScores:
    """Return values at some places of ``ids``; undefined at the others."""
    of_all = np.full(ids.size, np.nan)
    of_all[places] = values
    return UnitScores(unit, ids, of_all)


def _together(a: UnitScores, b: UnitScores) -> UnitScores:
    return UnitScores(a.unit, np.concatenate([a.ids, b.ids]), np.concatenate([a.values, b.values]))


def _names(sets: Pair) -> tuple[str, str]:
    return sets[0].name, sets[1].name


def _of_targets(
    separator: Separator, groups: Pair, targets: Pair, evidence: Evidence
) -> Iterator[Measurement]:
    """Yield precision, recall and F1 of E as A, then of P as B."""
    says_a = [separator.says_a(each.vectors).astype(np.float64) for each in targets]
    says_b = [1.0 - each for each in says_a]
    if len({each for said in says_a for each in np.unique(said)}) == 1:
        what = f"everything in {targets[0].name} and {targets[1].name} is said to be of one group"
        warn(f"{evidence.metric}: {what}; where lengths of vectors differ, lengths: unit may help")
    e, p = targets
    for group, own, other, said in (
        (groups[0], e, p, (says_a[0], says_a[1])),
        (groups[1], p, e, (says_b[1], says_b[0])),
    ):
        values = SetValues((own, other), said)
        means = [each.mean() for each in said]
        hits, false = values.resampled(evidence)
        for name, figure in (("precision", _precision), ("F1", _f1)):
            found = Measurement(
                value=float(figure(means[0], means[1], len(own), len(other))),
                n=len(own) + len(other),
                undefined=own.left_out + other.left_out,
                group=group.name,
                target=f"{name} of {own.name}",
            )
            yield with_interval(_defined(found), figure(hits, false, len(own), len(other)))
        yield own.mean_of(said[0], group=group.name, target=f"recall of {own.name}")


def _defined(figure: Measurement) -> Measurement:
    if not math.isnan(figure.value):
        return figure
    return replace(figure, n=0, undefined=figure.n + figure.undefined)


def _precision(hit: AnyArray, false: AnyArray, n: int, m: int) -> FloatArray:
    """Return the precision of shares said of a set of n, and wrongly of another of m."""
    said = np.asarray(n * hit + m * false)
    undefined = np.full(said.shape, np.nan)
    return np.asarray(np.divide(n * hit, said, out=undefined, where=said > 0))


def _f1(hit: AnyArray, false: AnyArray, n: int, m: int) -> FloatArray:
    """Return F1 likewise: twice the hits by what is said and what is there."""
    return np.asarray(2.0 * n * hit / (n * hit + m * false + n))
