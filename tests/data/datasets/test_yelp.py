from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Dataset
from recbias.core.errors import NothingLeft
from recbias.data.books_yelp import Yelp
from support.files.review_files import BUSINESS, REVIEW_YELP

BUSINESSES: list[dict[str, Any]] = [
    {
        "business_id": "b1",
        "name": "Café, „Zur Ecke“",
        "city": "Austin",
        "stars": 4.5,
        "attributes": {"RestaurantsPriceRange2": "2", "WiFi": "u'free'"},
        "categories": "Restaurants, Asian Fusion, Bars",
    },
    {"business_id": "b2", "city": "austin", "attributes": None, "categories": None},
    {
        "business_id": "b3",
        "city": "Boston",
        "attributes": {"RestaurantsPriceRange2": "None"},
        "categories": "Shopping",
    },
    {"business_id": "b4", "city": "Boston", "attributes": {"RestaurantsPriceRange2": "u'4'"}},
]
REVIEWS: list[dict[str, Any]] = [
    {
        "user_id": "u2",
        "business_id": "b1",
        "stars": 5,
        "date": "1970-01-01 00:01:00",
        "text": "👍",
    },
    {
        "user_id": "u1",
        "business_id": "b3",
        "stars": 1.0,
        "date": "1970-01-02 00:00:00",
        "text": "",
    },
    {
        "user_id": "u1",
        "business_id": "b9",
        "stars": 3.0,
        "date": "1970-01-02 00:00:00",
        "text": "x",
    },
    {"user_id": "u1", "business_id": "b1", "stars": None, "date": "", "text": "no stars"},
]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    folder = tmp_path / "yelp"
    folder.mkdir()
    for name, records in ((BUSINESS, BUSINESSES), (REVIEW_YELP, REVIEWS)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / name).write_text(lines, encoding="utf-8")
    return tmp_path


def load(source: Yelp, data: Path) -> Dataset:
    return source.load(data, np.random.default_rng(1))


def get_items(data: Dataset) -> pd.DataFrame:
    assert data.items is not None
    return data.items.frame


def test_missing_prices_and_categories_are_missing_cells(world: Path) -> None:
    with collect_warnings():
        frame = get_items(load(Yelp(), world))
    assert frame["price"].tolist() == ["$$", None, None, "$$$$"]
    np.testing.assert_array_equal(frame["price_level"], [2, np.nan, np.nan, 4])
    assert frame["categories"].tolist() == [
        "Restaurants|Asian Fusion|Bars",
        None,
        "Shopping",
        None,
    ]
    assert frame["name"].tolist() == ["Café, „Zur Ecke“", None, None, None]


def test_reviews_are_interactions_and_texts(world: Path) -> None:
    with collect_warnings() as warnings:
        data = load(Yelp(), world)
    rows = data.interactions
    assert rows.user_ids.ids.tolist() == ["u1", "u2"]
    assert rows.item_ids.ids.tolist() == ["b1", "b2", "b3", "b4"]
    assert (rows.users.tolist(), rows.items.tolist()) == ([1, 0], [0, 2])
    assert rows.values.tolist() == [5.0, 1.0]
    assert rows.times is not None
    assert rows.times.tolist() == [60, 86_400]
    assert data.reviews is not None
    assert data.reviews.texts.tolist() == ["👍", "", "no stars"]
    assert data.reviews.items.tolist() == [0, 2, 0]
    assert data.counts == {
        "bad_lines": 0,
        "reviews_of_unknown_businesses": 1,
        "reviews_without_stars": 1,
    }
    assert warnings == [f"{REVIEW_YELP}: excluded 1 row(s): reviews of unknown businesses"]


@pytest.mark.parametrize(
    ("source", "items"),
    [
        (Yelp(city="Austin"), ["b1", "b2"]),
        (Yelp(categories=("restaurants",)), ["b1"]),
        (Yelp(categories=("Bars", "Shopping")), ["b1", "b3"]),
        (Yelp(city="boston", categories=("Shopping",)), ["b3"]),
    ],
)
def test_items_are_restricted_to_a_city_and_categories(
    world: Path, source: Yelp, items: list[str]
) -> None:
    with collect_warnings() as warnings:
        assert load(source, world).item_ids.ids.tolist() == items
    assert warnings == []


@pytest.mark.parametrize(
    ("source", "message", "remedy"),
    [
        (Yelp(city="Austen"), "city 'Austen'", "did you mean austin"),
        (Yelp(categories=("Restaurant",)), "category 'Restaurant'", "did you mean Restaurants"),
        (Yelp(city="Boston", categories=("Bars",)), "category 'Bars'", "Shopping"),
    ],
)
def test_a_city_or_category_without_businesses_is_refused(
    world: Path, source: Yelp, message: str, remedy: str
) -> None:
    with pytest.raises(NothingLeft, match=message) as caught:
        load(source, world)
    assert remedy in caught.value.remedy


@pytest.mark.real_data
def test_the_published_layout_is_read(real_data: Path) -> None:
    data = load(Yelp(folder="yelp-layout", city="Hyderabad"), real_data)
    assert data.reviews is not None
    assert (len(data.reviews), len(data.item_ids)) == (9_955, 100)
    assert len(data.interactions) == 9_950  # five reviews have no stars
    prices = get_items(data)["price"].value_counts().to_dict()
    assert prices == {"$$": 43, "$$$": 31, "$": 16, "$$$$": 10}


@pytest.mark.real_data
def test_the_published_sample_is_read(real_data: Path) -> None:
    with collect_warnings():
        data = load(Yelp(folder="yelp-open-sample"), real_data)
    assert (len(data.interactions), len(data.item_ids)) == (77, 1_000)
    assert data.counts["reviews_of_unknown_businesses"] == 922
    # 577 businesses have the attribute, one of them with the text None
    assert int(get_items(data)["price_level"].notna().sum()) == 576
    restaurants = load(Yelp(folder="yelp-open-sample", categories=("Restaurants",)), real_data)
    assert len(restaurants.item_ids) == 332
