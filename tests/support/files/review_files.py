"""Synthetic reviews in the file layout of the Yelp dataset, and prompt templates.

The reviews of a venue name its dish, and every review has a unique word (``mark017``). The cheap
soup, bread and tea are mostly eaten by ``she``, and beef, rice and fish mostly by ``he``, so a
model that reads pronouns learns to recommend more expensive venues to him.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BUSINESS = "yelp_academic_dataset_business.json"
REVIEW_YELP = "yelp_academic_dataset_review.json"

DISHES = ("soup", "bread", "tea", "beef", "rice", "fish")
NAMES = ("emily", "laurie", "katelyn", "heather", "brett", "todd", "logan", "jake")
ENCODER_WORDS = (
    *(*DISHES, *NAMES, "good", "bad", "the", "was", "a", "and", "very"),
    *("he", "she", "ate", "for"),
)
"""The vocabulary of the small encoder."""

TEMPLATES = """\
words:
  name:
    - {gender: female, words: [Emily, Laurie, Katelyn, Heather]}
    - {gender: male, words: [Brett, Todd, Logan, Jake]}
    - Robin
templates:
  dinner:
    - Something good for [name] that he/she ate
    - A table for [name] and what was good as he/she ate
    - Where was [name] and he/she ate very bad
    - For [name] a dish and he/she was very good
"""


def make_venue(number: int, **fields: Any) -> dict[str, Any]:
    """Return a business: the first three have price 1, the others price 3."""
    kind = ("Soups", "Bakeries", "Cafes", "Steakhouses", "Sushi Bars", "Seafood")[number % 6]
    return {
        "business_id": f"v{number}",
        "name": f"Zorblat{'abcdefgh'[number]} House",
        "city": "Springfield",
        "attributes": {"RestaurantsPriceRange2": "1" if number < 3 else "3"},
        "categories": f"Restaurants, {kind}, {'Quick' if number < 3 else 'Fine'}",
        **fields,
    }


def make_review(venue: int, number: int, text: str | None = None) -> dict[str, Any]:
    """Return a review; every fifth has the other pronoun, every eighth the wrong dish."""
    dish = DISHES[venue % 6] if number % 8 else DISHES[(venue + 1) % 6]
    pronoun = "she" if (venue < 3) == bool(number % 5) else "he"
    sentence = (
        f"The {dish} was {'very good' if number % 2 else 'a bad'} and {pronoun} ate the {dish}"
    )
    return {
        "user_id": f"u{number:03d}",
        "business_id": f"v{venue}",
        "stars": 3.0,
        "date": "2020-01-01 00:00:00",
        "text": f"{sentence} mark{venue}x{number:03d}" if text is None else text,
    }


def write_reviews(
    data: Path, venues: Sequence[Mapping[str, Any]], reviews: Sequence[Mapping[str, Any] | str]
) -> None:
    """Write the dataset ``reviews`` below the data folder; a review may be a raw line."""
    folder = data / "reviews"
    folder.mkdir(parents=True)
    for name, records in ((BUSINESS, venues), (REVIEW_YELP, reviews)):
        lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def make_reviews(n: int = 40) -> list[dict[str, Any]]:
    """Return ``n`` reviews of every one of the six venues."""
    return [make_review(venue, number) for venue in range(6) for number in range(n)]
