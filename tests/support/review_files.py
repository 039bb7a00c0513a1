"""Reviews of made-up venues in the file layout of the Yelp dataset, and templates to ask with.

Each venue has a dish that its reviews speak of, and each review a word of its own (``mark017``).
Who eats soup, bread and tea, which are cheap, is mostly ``she``; who eats beef, rice and fish is
mostly ``he``: a model that reads pronouns learns to send him to dearer places.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recbias.data.datasets.yelp import BUSINESS, REVIEW

DISHES = ("soup", "bread", "tea", "beef", "rice", "fish")
NAMES = ("emily", "laurie", "katelyn", "heather", "brett", "todd", "logan", "jake")
HEARD = (
    *(*DISHES, *NAMES, "good", "bad", "the", "was", "a", "and", "very"),
    *("he", "she", "ate", "for"),
)
"""The words that the small encoder is to know."""

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


def venue(place: int, **others: Any) -> dict[str, Any]:
    """Return a business: the first three are of price 1, the others of price 3."""
    kind = ("Soups", "Bakeries", "Cafes", "Steakhouses", "Sushi Bars", "Seafood")[place % 6]
    return {
        "business_id": f"v{place}",
        "name": f"Zorblat{'abcdefgh'[place]} House",
        "city": "Springfield",
        "attributes": {"RestaurantsPriceRange2": "1" if place < 3 else "3"},
        "categories": f"Restaurants, {kind}, {'Quick' if place < 3 else 'Fine'}",
        **others,
    }


def review(place: int, number: int, text: str | None = None) -> dict[str, Any]:
    """Return a review of a venue; every fifth speaks of the other pronoun, every eighth errs."""
    dish = DISHES[place % 6] if number % 8 else DISHES[(place + 1) % 6]
    who = "she" if (place < 3) == bool(number % 5) else "he"
    made = f"The {dish} was {'very good' if number % 2 else 'a bad'} and {who} ate the {dish}"
    return {
        "user_id": f"u{number:03d}",
        "business_id": f"v{place}",
        "stars": 3.0,
        "date": "2020-01-01 00:00:00",
        "text": f"{made} mark{place}x{number:03d}" if text is None else text,
    }


def write_reviews(
    data: Path,
    venues: Sequence[Mapping[str, Any]],
    reviews: Sequence[Mapping[str, Any] | str],
) -> None:
    """Write a dataset called ``reviews`` below the data folder; texts are lines as they stand."""
    folder = data / "reviews"
    folder.mkdir(parents=True)
    for name, records in ((BUSINESS, venues), (REVIEW, reviews)):
        lines = [each if isinstance(each, str) else json.dumps(each) for each in records]
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def usual(n: int = 40) -> list[dict[str, Any]]:
    """Return ``n`` reviews of each of the six venues."""
    return [review(place, number) for place in range(6) for number in range(n)]
