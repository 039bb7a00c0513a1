"""How many predicted items share a category with the item reviewed, and at which ranks.

A ranked item is relevant if it has a category in common with the item reviewed, which is itself
relevant; an item without categories is not. A review is undefined if the item reviewed has no
category, or no ranked item shares one with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix
from recbias.core.errors import UnknownColumn
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.text_outputs import Predictions
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.metrics.accuracy import hit_scores
from recbias.metrics.accuracy.named_items import (
    Cutoff,
    Score,
    check_cutoff,
    compute_in_blocks,
    measure_reviews,
    require_predictions,
    validate_cutoff,
)
from recbias.metrics.prompts.slot_counts import check_attribute, require_items


@dataclass(frozen=True, kw_only=True)
class _CategoryMetric(InheritsSections):
    """A score of the ranks of the relevant items of each review.

    Args:
        attribute: The item column of the categories; a cell ``a|b`` has both.
        without: Categories to exclude, such as one that nearly every item has.

    Raises:
        UnknownColumn: The items have no such column, or no such category.

    Range:
        0 to 1; undefined for a review of an item without categories.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"predictions", "items"})
    unit: ClassVar[str] = "review"
    score: ClassVar[Score]

    attribute: str = "categories"
    without: tuple[str, ...] = ()

    def check(self, evidence: Evidence) -> None:
        """Refuse settings that do not suit the data, before any training."""
        build_category_matrix(evidence, self.attribute, self.without)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each review and their mean."""
        categories = build_category_matrix(evidence, self.attribute, self.without)
        return score_reviews(evidence, type(self).score, categories)


@dataclass(frozen=True, kw_only=True)
class CategoryPrecision(_CategoryMetric):
    """The share of the first k predicted items that have a category of the item reviewed.

        P@k = relevant items among the first k / k

    An item is relevant if it shares a category with the item reviewed, which is itself relevant.

    Args:
        k: Cutoff; by default the ``k`` of the spec.

    Raises:
        OutOfRange: There are fewer than ``k`` items to predict.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, table 3, P@5, P@10 and P@20.
    """

    direction: ClassVar[Direction] = "higher"

    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Refuse categories or a cutoff that do not suit the data, before any training."""
        check_cutoff(evidence, self.k)
        super().check(evidence)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each review and their mean."""
        categories = build_category_matrix(evidence, self.attribute, self.without)
        return score_reviews(evidence, hit_scores.precision, categories, self.k)


class CategoryRPrecision(_CategoryMetric):
    """The share of relevant items among the first R, where R is the number of relevant items.

        R-Precision = relevant items among the first R / R

    An item is relevant if it shares a category with the item reviewed, which is itself relevant. R
    is the number of relevant items in the whole ranking.

    Source:
        Buckley and Voorhees, "Retrieval system evaluation", 2005; Shen et al. 2022, table 3,
        R-Prec.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.r_precision


class CategoryMAP(_CategoryMetric):
    """Average precision of the whole ranking; items that share a category are relevant.

        AP = (1/R) Σ_r P@r · rel(r),    P@r = relevant items among the first r / r

    ``rel(r)`` is 1 if the item at rank r shares a category with the item reviewed, which is itself
    relevant. R is the number of relevant items in the whole ranking.

    Source:
        Buckley and Voorhees, "Evaluating evaluation measure stability", SIGIR 2000; Shen et al.
        2022, table 3, MAP.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.average_precision


class CategoryMRR(_CategoryMetric):
    """The reciprocal rank of the first item that shares a category with the item reviewed.

        MRR = (1/n) Σ_reviews 1 / rank of the first relevant item

    An item is relevant if it shares a category with the item reviewed, which is itself relevant.

    Source:
        Voorhees, "The TREC-8 question answering track report", 1999; Shen et al. 2022, table 3,
        category coverage.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.reciprocal_rank


class CategoryNDCG(_CategoryMetric):
    """nDCG of the whole ranking; items that share a category with the item reviewed are relevant.

        nDCG = Σ_r rel(r) / log2(r + 1)  /  Σ_{r ≤ R} 1 / log2(r + 1)

    ``rel(r)`` is 1 if the item at rank r shares a category with the item reviewed, which is itself
    relevant. R is the number of relevant items; the sum is over the whole ranking.

    Source:
        Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
        2002, with the discount log2(r + 1); Shen et al. 2022, table 3, nDCG.
    """

    direction: ClassVar[Direction] = "higher"
    score = hit_scores.ndcg


def build_category_matrix(evidence: Evidence, attribute: str, without: Sequence[str]) -> Matrix:
    """Return the categories of each item but those of ``without``, ``bool (n_items, m)`` CSR.

    A warning reports a category that all items have.

    Raises:
        UnknownColumn: There is no such column, or no such category.
        NothingLeft: No item has a category.
    """
    check_attribute(evidence, attribute)
    membership = require_items(evidence).membership(attribute)
    for category in without:
        if category not in membership.values:
            message = f"no item has {category!r} among its {attribute}"
            remedy = suggest(category, membership.values)
            raise UnknownColumn(message, where="without", remedy=remedy)
    columns = np.flatnonzero(~np.isin(membership.values, without))
    matrix = membership.matrix[:, columns]
    n_with_category = int(np.count_nonzero(np.diff(matrix.indptr)))
    item_counts = np.bincount(matrix.indices, minlength=columns.size)
    universal = np.flatnonzero(item_counts == n_with_category)
    if n_with_category > 1 and universal.size:
        name = membership.values[columns[universal[0]]]
        reason = f"all items share the {attribute} {name!r}, so every item is relevant"
        warn(f"{evidence.metric}: {reason}; exclude it by without: [{name}]")
    return matrix


def score_reviews(
    evidence: Evidence, score: Score, categories: Matrix, k: int | None = None
) -> Sequence[Measurement]:
    """Return the measurement of a score of the ranks of the relevant items.

    Reviews are sorted by item, because the reviews of one item have the same relevant items.
    """
    predictions = require_predictions(evidence)
    width = predictions.ranked.shape[1]
    validate_cutoff(k, width)
    order = np.argsort(predictions.items, kind="stable")

    def score_rows(rows: slice) -> FloatArray:
        hits = find_relevant_ranks(predictions, order[rows], categories)
        return score(hits, np.count_nonzero(hits, axis=1), k or width)

    values = np.empty(len(predictions))
    values[order] = compute_in_blocks(score_rows, predictions, bytes_a_row=categories.shape[0])
    undefined = int(np.count_nonzero(np.isnan(values)))
    if undefined:
        reason = "their items share no category with any ranked item"
        warn(f"{evidence.metric}: {undefined:,} reviews are undefined, because {reason}")
    return measure_reviews(predictions, values)


def find_relevant_ranks(
    predictions: Predictions, reviews: AnyArray, categories: Matrix
) -> BoolArray:
    """Return the ranks at which an item shares a category with the item reviewed."""
    items, rows = np.unique(predictions.items[reviews], return_inverse=True)
    shared = (categories[items] @ categories.T).toarray()
    relevant: BoolArray = np.take_along_axis(shared[rows], predictions.ranked[reviews], axis=1)
    return relevant
