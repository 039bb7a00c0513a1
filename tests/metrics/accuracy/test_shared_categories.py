from __future__ import annotations

import numpy as np
import pytest

from recbias.core.errors import NothingLeft, UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.metrics.accuracy import hit_scores
from recbias.metrics.accuracy.named_items import require_predictions
from recbias.metrics.accuracy.shared_categories import (
    build_category_matrix,
    find_relevant_ranks,
    score_reviews,
)
from support.review_worlds import make_review_evidence, rank_items, sample_reviews

KINDS = ("A|B", "B", "C", None)


def test_items_that_share_a_category_and_the_item_itself_are_relevant() -> None:
    world = make_review_evidence([0, 1, 2, 3], [[3, 2, 1, 0]] * 4, categories=KINDS)
    categories = build_category_matrix(world, "categories", ())
    relevant = find_relevant_ranks(require_predictions(world), np.arange(4), categories)
    assert relevant.tolist() == [
        [False, False, True, True],  # 0 shares B with 1
        [False, False, True, True],
        [False, True, False, False],
        [False, False, False, False],  # 3 has no category, not even shared with itself
    ]


def test_an_excluded_category_makes_no_item_relevant() -> None:
    world = make_review_evidence([0, 1], [[3, 2, 1, 0]] * 2, categories=KINDS)
    categories = build_category_matrix(world, "categories", ("B",))
    relevant = find_relevant_ranks(require_predictions(world), np.arange(2), categories)
    assert relevant.tolist() == [[False, False, False, True], [False] * 4]


def test_a_category_of_all_items_gives_a_warning() -> None:
    world = make_review_evidence([0], [[0, 1]], categories=("Food|Bars", "Food", None))
    with collect_warnings() as messages:
        build_category_matrix(world, "categories", ("Food",))
    assert not messages
    with collect_warnings() as messages:
        build_category_matrix(world, "categories", ())
    reason = "all items share the categories 'Food', so every item is relevant"
    assert messages == [f"the metric: {reason}; exclude it by without: [Food]"]


def test_excluding_a_category_that_no_item_has_is_an_error() -> None:
    world = make_review_evidence([0], [[0, 1]], categories=("Bars", "Food"))
    with pytest.raises(UnknownColumn, match="no item has 'Bar' among its categories") as caught:
        build_category_matrix(world, "categories", ("Bar",))
    assert caught.value.where == "without"
    assert "Bars" in caught.value.remedy


def test_a_missing_or_empty_column_is_an_error() -> None:
    with pytest.raises(UnknownColumn, match="no column 'genres'") as caught:
        build_category_matrix(make_review_evidence([0], [[0]], categories=("A",)), "genres", ())
    assert caught.value.where == "attribute"
    with pytest.raises(NothingLeft, match="no item has a value of 'categories'"):
        build_category_matrix(
            make_review_evidence([0], [[0]], categories=(None,)), "categories", ()
        )


def test_values_belong_to_their_reviews_in_any_order_of_items() -> None:
    items, scores = sample_reviews(4, 300, 20)
    kinds = ["|".join(f"k{kind}" for kind in {item % 4, item % 3}) for item in range(20)]
    ranked = rank_items(scores)
    world = make_review_evidence(items, ranked, categories=kinds)
    categories = build_category_matrix(world, "categories", ())
    (measurement,) = score_reviews(world, hit_scores.average_precision, categories)
    assert measurement.units is not None
    sets = [set(labels.split("|")) for labels in kinds]
    for review in range(0, 300, 7):
        hits = [bool(sets[other] & sets[items[review]]) for other in ranked[review]]
        precisions = [sum(hits[:rank]) / rank for rank in range(1, 21) if hits[rank - 1]]
        assert measurement.units.values[review] == pytest.approx(
            sum(precisions) / len(precisions), rel=1e-12
        )


def test_undefined_reviews_are_counted_in_a_warning() -> None:
    world = make_review_evidence([3, 0, 3], [[0, 1, 2, 3]] * 3, categories=KINDS)
    with collect_warnings() as messages:
        (measurement,) = score_reviews(
            world, hit_scores.ndcg, build_category_matrix(world, "categories", ())
        )
    assert (measurement.n, measurement.undefined) == (1, 2)
    reason = "their items share no category with any ranked item"
    assert messages == [f"the metric: 2 reviews are undefined, because {reason}"]


def test_reviews_of_items_without_training_rows_have_relevant_items() -> None:
    # item 0 is no candidate: of 1, 2 and 3 item 1 shares B with it
    world = make_review_evidence([0], [[2, 1, 3]], categories=KINDS)
    (measurement,) = score_reviews(
        world, hit_scores.reciprocal_rank, build_category_matrix(world, "categories", ())
    )
    assert measurement.value == 0.5
