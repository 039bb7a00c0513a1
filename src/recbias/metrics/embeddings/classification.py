"""Classification of users and items into two groups by their vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Gt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, FloatArray, Interactions, divide
from recbias.core.evidence import Evidence
from recbias.core.measures import Direction, Measurement, UnitScores
from recbias.core.plugins import OnlyWith
from recbias.metrics.embeddings.directions import (
    Hyperplane,
    Sample,
    TopN,
    TrainedClassifier,
    train_classifier,
)
from recbias.metrics.embeddings.sets import (
    DECILES,
    MIN_SIZE,
    ChoosingMetric,
    EntitySet,
    SetPair,
    SetValues,
    TargetMetric,
    add_interval,
    average_favourites,
    compute_audience_deciles,
    get_vectors,
    measure_sets,
    normalize_rows,
    select_groups_and_targets,
    select_members,
    spread_scores,
)
from recbias.statistics.groups import compare_ranks


def _concatenate_scores(a: UnitScores, b: UnitScores) -> UnitScores:
    """Return the scores of the units of both."""
    return UnitScores(a.unit, np.concatenate([a.ids, b.ids]), np.concatenate([a.values, b.values]))


def _measure_groups(
    a: UnitScores, b: UnitScores, names: Sequence[str], target: str
) -> Iterator[Measurement]:
    """Yield the mean of both groups together, and of each."""
    for name, scores in (("", _concatenate_scores(a, b)), (names[0], a), (names[1], b)):
        yield Measurement.from_units(scores, group=name, target=target)


def _measure_targets(
    separator: Hyperplane, groups: SetPair, targets: SetPair, evidence: Evidence
) -> Iterator[Measurement]:
    """Yield precision, F1 and recall of E as A, of P as B, and the values of both together."""
    e, p = targets
    e_as_a, p_as_a = (separator.predict_a(items.vectors).astype(np.float64) for items in targets)
    if np.unique(np.concatenate([e_as_a, p_as_a])).size == 1:
        reason = f"everything in {e.name} and {p.name} is classified as one group"
        warn(f"{evidence.metric}: {reason}; if vector lengths differ, lengths: unit may help")
    for group, positives, negatives, predicted in (
        (groups[0], e, p, (e_as_a, p_as_a)),
        (groups[1], p, e, (1.0 - p_as_a, 1.0 - e_as_a)),
    ):
        sizes = len(positives), len(negatives)
        hit, false = SetValues((positives, negatives), predicted).resample(evidence)
        for name, score in (("precision", _compute_precision), ("F1", _compute_f1)):
            estimate = measure_sets(
                float(score(predicted[0].mean(), predicted[1].mean(), *sizes)),
                targets,
                group=group.name,
                target=f"{name} of {positives.name}",
            )
            yield add_interval(estimate, score(hit, false, *sizes))
        target = f"recall of {positives.name}"
        yield positives.measure_mean(predicted[0], group=group.name, target=target)
    yield _measure_predictions(groups[0].name, targets, (e_as_a, p_as_a))
    yield _measure_correct(targets, (e_as_a, 1.0 - p_as_a))


def _measure_predictions(
    group: str, targets: SetPair, as_a: tuple[FloatArray, FloatArray]
) -> Measurement:
    """Return the share of the items of E and P that are classified as A, each counted once."""
    both = _concatenate_scores(*map(EntitySet.score, targets, as_a))
    _, first = np.unique(both.ids.astype(str), return_index=True)
    first = np.sort(first)
    once = UnitScores(both.unit, both.ids[first], both.values[first])
    target = f"predictions for {targets[0].name} and {targets[1].name}"
    return Measurement.from_units(once, group=group, target=target)


def _measure_correct(targets: SetPair, correct: tuple[FloatArray, FloatArray]) -> Measurement:
    """Return the share of correct predictions for E and P, and the test of E against P."""
    e, p = targets
    estimate = Measurement.from_values(np.concatenate(correct))
    return replace(
        estimate,
        target=f"accuracy of {e.name} and {p.name}",
        undefined=e.n_excluded + p.n_excluded,
        contrasts=(compare_ranks((e.name, p.name), *correct, between="targets"),),
    )


def _compute_precision(hit: AnyArray, false: AnyArray, n: int, m: int) -> FloatArray:
    """Return the precision from the shares predicted in a set of n and in another set of m."""
    return divide(n * hit, n * hit + m * false)


def _compute_f1(hit: AnyArray, false: AnyArray, n: int, m: int) -> FloatArray:
    """Return F1 from the same shares."""
    return np.asarray(2.0 * n * hit / (n * hit + m * false + n))


@dataclass(frozen=True, kw_only=True)
class AttributeClassification(ChoosingMetric, TargetMetric):
    """Whether a classifier can predict the group of users and items from their vectors.

        predict A if w · x + w_0 > 0

    w and w_0 are the weights of a linear support vector classifier (C = 1), trained on the vectors
    of four fifths of the members of each group.

    - ``accuracy``: on the other fifth, in total and per group; ``training accuracy``: on the
      training members.
    - ``precision of E``, ``recall of E``, ``F1 of E``: on the items of E and P, where A is the
      correct prediction for E; likewise B for P. The group of a value is the correct prediction.
      Precision is undefined if the group is never predicted.
    - ``predictions for E and P``: the share of the items of E and P that are classified as A. With
      the test ``chi_squared`` of a spec it is compared between models.
    - ``accuracy of E and P``: the share of correct predictions, with the rank-sum test
      (Mann-Whitney) of the correct predictions of E against those of P. The test is of this
      classifier: one that predicts A more often, be it by chance of its training, is right for
      more of E.
    - ``predicted A at 50-60%``: the share of items that are classified as A, among all items of
      whose audience (training users of A and B) this share is of A; 90-100% includes both ends.
    - ``accuracy from top 3 items``, in total and per group: of a classifier trained on the mean
      vector of each user's favourite training items instead: those with the highest rating, or
      most interactions.

    Accuracy is undefined for members that are not tested. The last two are measured if the groups
    are of users and the targets of items. Intervals of precision and F1 come from a bootstrap of
    the items of each set, the others are t intervals.

    Args:
        direction_: ``svc``, or ``csvc`` to train on the most aligned training members only.
        top_n: ``csvc``: number of training members per group.
        sample: Maximum number of members per group; with groups of equal size, predicting the
            larger group for everyone gives no high accuracy.
        lengths: ``keep`` uses the vectors unchanged; ``unit`` scales users and items to length 1
            first, for models whose user vectors are far longer than the item vectors.
        top_items: Number of favourites per user.

    Raises:
        MissingEvidence: There are no vectors, no table of users or items, or no interactions.

    Range:
        0 to 1; undefined without a vector, and for members that are not tested.

    Source:
        Beattie, Lin, Corpus and Ravichandran, "Evaluation framework for understanding sensitive
        attribute association bias in latent factor recommendation algorithms", 2023, section 6.4,
        tables 1, 4 and 5.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"embeddings", "users", "items", "train"})
    direction: ClassVar[Direction] = "none"

    chosen_in: Annotated[str | None, OnlyWith("direction", "csvc")] = None
    direction_: Literal["svc", "csvc"] = "svc"
    top_n: Annotated[TopN, OnlyWith("direction", "csvc")] = 200
    sample: Sample = None
    lengths: Literal["keep", "unit"] = "keep"
    top_items: Annotated[int, Gt(0)] = 3

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return super().needs_now() | ({"train"} if self._uses_items else set())

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the accuracy on users, then the measures of items."""
        groups, targets = select_groups_and_targets(evidence, self.groups, self.targets)
        if self.lengths == "unit":
            groups, targets = (
                (_scale_to_unit_length(first), _scale_to_unit_length(second))
                for first, second in (groups, targets)
            )
        (a, choosing_a), (b, choosing_b) = ((group.vectors, group.choosing) for group in groups)
        classifier = self._train(a, b, evidence, (choosing_a, choosing_b))
        measurements = [*_measure_accuracy(classifier, groups)]
        measurements += _measure_targets(classifier.separator, groups, targets, evidence)
        if self._uses_items:
            evidence.need("train")
            train: Interactions = evidence.train  # type: ignore[assignment]  # need() raises
            measurements += self._measure_deciles(classifier.separator, groups, evidence, train)
            measurements += self._measure_favourites(evidence, train)
        return measurements

    @property
    def _uses_items(self) -> bool:
        return (self.groups.of, self.targets.of) == ("users", "items")

    def _train(
        self,
        a: AnyArray,
        b: AnyArray,
        evidence: Evidence,
        choosing: tuple[AnyArray, AnyArray] | None = None,
    ) -> TrainedClassifier:
        return train_classifier(
            a,
            b,
            rng=evidence.rng(),
            sample=self.sample,
            top_n=self.top_n if self.direction_ == "csvc" else None,
            choosing=choosing,
        )

    def _get_item_vectors(self, evidence: Evidence) -> FloatArray:
        """Return the vectors of all items, ``float64 (n_items, d)``; NaN for a missing vector."""
        vectors = np.asarray(get_vectors(evidence, "items"), dtype=np.float64)
        if self.lengths == "unit":
            return normalize_rows(vectors)
        return np.where(vectors.any(axis=1, keepdims=True), vectors, np.nan)

    def _measure_deciles(
        self, separator: Hyperplane, groups: SetPair, evidence: Evidence, train: Interactions
    ) -> Iterator[Measurement]:
        codes = select_members(evidence, self.groups)
        deciles = compute_audience_deciles(train, *codes)
        vectors = self._get_item_vectors(evidence)
        has_vector = np.isfinite(vectors).all(axis=1)
        predicted = np.full(has_vector.size, np.nan)
        predicted[has_vector] = separator.predict_a(vectors[has_vector])
        name = groups[0].name
        for decile in range(DECILES):
            target = f"predicted at {10 * decile}-{10 * decile + 10}% {name}"
            items = np.flatnonzero(deciles == decile)
            scores = UnitScores("item", evidence.item_ids.ids[items], predicted[items])
            yield Measurement.from_units(scores, group=name, target=target)

    def _measure_favourites(self, evidence: Evidence, train: Interactions) -> list[Measurement]:
        """Return the test accuracy of the classifier of the mean vectors of favourite items."""
        codes = select_members(evidence, self.groups)
        vectors = self._get_item_vectors(evidence)
        (a, rows_a), (b, rows_b) = (
            average_favourites(train, vectors, users, self.top_items) for users in codes
        )
        target = f"accuracy from top {self.top_items} items"
        if min(len(a), len(b)) < MIN_SIZE:
            reason = f"a group has fewer than {MIN_SIZE} users with items"
            warn(f"{evidence.metric}: {target}: {reason}")
            return [Measurement(math.nan, n=0, undefined=len(a) + len(b), target=target)]
        classifier = self._train(a, b, evidence)
        test_a, test_b = classifier.test
        correct_a, correct_b = _score_predictions(classifier.separator, (a, b), (test_a, test_b))
        ids = train.user_ids.ids
        scores_a = spread_scores("user", ids[codes[0]], rows_a[test_a], correct_a)
        scores_b = spread_scores("user", ids[codes[1]], rows_b[test_b], correct_b)
        names = [f"{self.groups.attribute}={value}" for value in self.groups.values]
        return [*_measure_groups(scores_a, scores_b, names, target)]


def _scale_to_unit_length(entities: EntitySet) -> EntitySet:
    """Return the members with vectors of length 1, also those by which they are chosen."""
    choosing = normalize_rows(entities.choosing)
    return replace(entities, vectors=entities.directions, choosing=choosing)


def _score_predictions(
    separator: Hyperplane, vectors: tuple[AnyArray, AnyArray], rows: tuple[AnyArray, AnyArray]
) -> tuple[FloatArray, FloatArray]:
    """Return 1 for each correct prediction, else 0, for the given rows of A and of B."""
    correct_a = separator.predict_a(vectors[0][rows[0]]).astype(np.float64)
    wrong_b = separator.predict_a(vectors[1][rows[1]])
    return correct_a, 1.0 - wrong_b.astype(np.float64)


def _measure_accuracy(classifier: TrainedClassifier, groups: SetPair) -> Iterator[Measurement]:
    vectors = groups[0].vectors, groups[1].vectors
    names = [group.name for group in groups]
    test = _score_predictions(classifier.separator, vectors, classifier.test)
    scores_a, scores_b = map(EntitySet.score, groups, test, classifier.test)
    yield from _measure_groups(scores_a, scores_b, names, "accuracy")
    train = _score_predictions(classifier.separator, vectors, classifier.train)
    for name, values in (("", np.concatenate(train)), *zip(names, train, strict=True)):
        yield replace(Measurement.from_values(values), group=name, target="training accuracy")
