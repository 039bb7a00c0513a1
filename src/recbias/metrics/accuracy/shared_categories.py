"""Relevance of predicted items by the categories that they share with the item reviewed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix
from recbias.core.errors import UnknownColumn
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.sentences import Predictions
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.metrics.accuracy.named_items import (
    Score,
    compute_in_blocks,
    measure_reviews,
    require_predictions,
    validate_cutoff,
)
from recbias.metrics.prompts.slot_counts import check_attribute, require_items


def build_category_matrix(evidence: Evidence, attribute: str, without: Sequence[str]) -> Matrix:
    """Return the categories of each item, ``bool (n_items, m)`` CSR.

    A warning reports a category that all items have.

    Args:
        evidence: The evidence with the items table.
        attribute: The column of the categories.
        without: The categories to exclude.

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
