"""Where in its ranking a model names items of the categories of the item reviewed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix
from recbias.core.errors import UnknownColumn
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.predictions import Predictions
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.metrics.accuracy.named_items import Score, blockwise, named, of_reviews, refuse_beyond
from recbias.metrics.prompts.slot_counts import check_attribute, known_items


def item_categories(evidence: Evidence, attribute: str, without: Sequence[str]) -> Matrix:
    """Return which items have which categories, ``bool (n_items, m)`` CSR.

    Args:
        evidence: What is known of the items.
        attribute: The column of the categories.
        without: Those that are left out; one that all items have and that is not is said.

    Raises:
        UnknownColumn: There is no such column, or no such category.
        NothingLeft: No item has a category.
    """
    check_attribute(evidence, attribute)
    found = known_items(evidence).membership(attribute)
    for each in without:
        if each not in found.values:
            what = f"no item has {each!r} among its {attribute}"
            raise UnknownColumn(what, where="without", remedy=suggest(each, found.values))
    kept = np.flatnonzero(~np.isin(found.values, without))
    matrix = found.matrix[:, kept]
    n_known = int(np.count_nonzero(np.diff(matrix.indptr)))
    shared = np.flatnonzero(np.bincount(matrix.indices, minlength=kept.size) == n_known)
    if n_known > 1 and shared.size:
        name = found.values[kept[shared[0]]]
        what = f"all items share the {attribute} {name!r}, so every item is relevant"
        warn(f"{evidence.metric}: {what}; without: [{name}] leaves it out")
    return matrix


def scored(
    evidence: Evidence, score: Score, categories: Matrix, k: int | None = None
) -> Sequence[Measurement]:
    """Return the one measurement of a score of where the relevant items are.

    The reviews are worked on item by item, for those of one item have the same relevant items.
    """
    predictions = named(evidence)
    width = predictions.ranked.shape[1]
    refuse_beyond(k, width)
    order = np.argsort(predictions.items, kind="stable")

    def work(rows: slice) -> FloatArray:
        hits = relevant_places(predictions, order[rows], categories)
        return score(hits, np.count_nonzero(hits, axis=1), k or width)

    values = np.empty(len(predictions))
    values[order] = blockwise(work, predictions, bytes_a_row=categories.shape[0])
    undefined = int(np.count_nonzero(np.isnan(values)))
    if undefined:
        what = "are of items that share no category with any, and are undefined"
        warn(f"{evidence.metric}: {undefined:,} reviews {what}")
    return of_reviews(predictions, values)


def relevant_places(predictions: Predictions, reviews: AnyArray, categories: Matrix) -> BoolArray:
    """Return which places of the rankings hold an item of a category of the item reviewed."""
    own, place = np.unique(predictions.items[reviews], return_inverse=True)
    shared = (categories[own] @ categories.T).toarray()
    found: BoolArray = np.take_along_axis(shared[place], predictions.ranked[reviews], axis=1)
    return found
