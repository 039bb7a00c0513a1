from __future__ import annotations

import numpy as np
import pytest

from recbias.core.errors import NothingLeft, UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.metrics.accuracy import hit_scores
from recbias.metrics.accuracy.named_items import named
from recbias.metrics.accuracy.shared_categories import item_categories, relevant_places, scored
from support.review_worlds import make_review_evidence, rank_items, sample_reviews

KINDS = ("A|B", "B", "C", None)


def test_items_that_share_a_category_are_relevant_and_the_item_itself_is() -> None:
    world = make_review_evidence([0, 1, 2, 3], [[3, 2, 1, 0]] * 4, categories=KINDS)
    categories = item_categories(world, "categories", ())
    found = relevant_places(named(world), np.arange(4), categories)
    assert found.tolist() == [
        [False, False, True, True],  # 0 shares B with 1
        [False, False, True, True],
        [False, True, False, False],
        [False, False, False, False],  # 3 has no category, not even shared with itself
    ]


def test_what_is_left_out_is_shared_with_nobody() -> None:
    world = make_review_evidence([0, 1], [[3, 2, 1, 0]] * 2, categories=KINDS)
    categories = item_categories(world, "categories", ("B",))
    found = relevant_places(named(world), np.arange(2), categories)
    assert found.tolist() == [[False, False, False, True], [False] * 4]


def test_a_category_that_all_items_share_is_said() -> None:
    world = make_review_evidence([0], [[0, 1]], categories=("Food|Bars", "Food", None))
    with collect_warnings() as notes:
        item_categories(world, "categories", ("Food",))
    assert not notes
    with collect_warnings() as notes:
        item_categories(world, "categories", ())
    what = "all items share the categories 'Food', so every item is relevant"
    assert notes == [f"the metric: {what}; without: [Food] leaves it out"]


def test_a_category_that_no_item_has_cannot_be_left_out() -> None:
    world = make_review_evidence([0], [[0, 1]], categories=("Bars", "Food"))
    with pytest.raises(UnknownColumn, match="no item has 'Bar' among its categories") as caught:
        item_categories(world, "categories", ("Bar",))
    assert caught.value.where == "without"
    assert "Bars" in caught.value.remedy


def test_a_column_that_is_not_there_or_empty_is_refused() -> None:
    with pytest.raises(UnknownColumn, match="no column 'genres'") as caught:
        item_categories(make_review_evidence([0], [[0]], categories=("A",)), "genres", ())
    assert caught.value.where == "attribute"
    with pytest.raises(NothingLeft, match="no item has a value of 'categories'"):
        item_categories(make_review_evidence([0], [[0]], categories=(None,)), "categories", ())


def test_each_review_has_its_own_value_whatever_the_order_of_the_items() -> None:
    items, scores = sample_reviews(4, 300, 20)
    kinds = ["|".join(f"k{place}" for place in {each % 4, each % 3}) for each in range(20)]
    ranked = rank_items(scores)
    world = make_review_evidence(items, ranked, categories=kinds)
    categories = item_categories(world, "categories", ())
    (found,) = scored(world, hit_scores.average_precision, categories)
    assert found.units is not None
    sets = [set(each.split("|")) for each in kinds]
    for review in range(0, 300, 7):
        hits = [bool(sets[other] & sets[items[review]]) for other in ranked[review]]
        at = [sum(hits[: place + 1]) / (place + 1) for place in range(20) if hits[place]]
        assert found.units.values[review] == pytest.approx(sum(at) / len(at), rel=1e-12)


def test_undefined_reviews_are_counted_and_said() -> None:
    world = make_review_evidence([3, 0, 3], [[0, 1, 2, 3]] * 3, categories=KINDS)
    with collect_warnings() as notes:
        (found,) = scored(world, hit_scores.ndcg, item_categories(world, "categories", ()))
    assert (found.n, found.undefined) == (1, 2)
    what = "are of items that share no category with any, and are undefined"
    assert notes == [f"the metric: 2 reviews {what}"]


def test_an_item_that_no_model_can_name_has_relevant_items_still() -> None:
    # item 0 is no candidate: of 1, 2 and 3 item 1 shares B with it
    world = make_review_evidence([0], [[2, 1, 3]], categories=KINDS)
    (found,) = scored(world, hit_scores.reciprocal_rank, item_categories(world, "categories", ()))
    assert found.value == 0.5
