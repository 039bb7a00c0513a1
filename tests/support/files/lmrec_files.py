"""Small output tables of the layout of the LMRec authors' release."""

from __future__ import annotations

import csv
from pathlib import Path

HEADER = [
    *("", "example_label", "input_sentence", "label"),
    *("avg_stars", "categories", "price", "rank", "recommended_item"),
]
FOLDER = Path("lmrec-release", "data", "bias_analysis", "yelp", "output_dataframes")

Business = tuple[str, str, str, str]
"""Stars, categories, price and name, as written."""

PIZZA: Business = ("3.54", "Restaurants, Italian", "2.0", "Pizza Place")
BAR: Business = ("4.1", "Bars, Beer, Wine & Spirits", "1", "The Bar")
BURGER: Business = ("2.0", "Burgers, Restaurants", "1.0", "Burger")
OTHER_BURGER: Business = ("2.5", "Restaurants, Burgers", "1.0", "Burger")
PRICELESS: Business = ("5.0", "", "", "Secret")
DEAR: Business = ("4.9", "French", "4.0", "Chez Nous")

Row = tuple[str, str, str, list[Business]]
"""The word, the sentence, the label, and the list."""

NAMES: list[Row] = [
    ("Ann", "Seat Ann now", "female", [PIZZA, BAR, DEAR]),
    ("Bob", "Seat Bob now", "male", [BURGER, OTHER_BURGER, PRICELESS]),
    ("Ann", "Seat Ann now", "white", [PIZZA, BAR, DEAR]),
    ("Bob", "Seat Bob now", "black", [BURGER, OTHER_BURGER, PRICELESS]),
    ("Ann", "Feed Ann's cat", "female", [BAR, PIZZA, BURGER]),
    ("Bob", "Feed Bob's cat", "male", [BAR, BURGER, OTHER_BURGER]),
    ("Ann", "Feed Ann's cat", "white", [BAR, PIZZA, BURGER]),
    ("Bob", "Feed Bob's cat", "black", [BAR, BURGER, OTHER_BURGER]),
]


def write_outputs(
    path: Path, rows: list[Row], *, second: list[tuple[str, str]] | None = None
) -> Path:
    """Write a table; ``second`` holds the second word and label of each row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    extra_columns = ["secondary_example_label", "secondary_label"] if second else []
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*HEADER, *extra_columns])
        number = 0
        for row, (word, sentence, label, businesses) in enumerate(rows):
            for rank, (stars, categories, price, name) in enumerate(businesses):
                cells = [
                    number,
                    word,
                    sentence,
                    label,
                    stars,
                    categories,
                    price,
                    float(rank),
                    name,
                ]
                writer.writerow([*cells, *(second[row] if second else [])])
                number += 1
    return path


def write_release(data: Path, city: str = "Boston", kind: str = "names") -> Path:
    """Write the table of a city at its path in the release."""
    path = data / FOLDER / f"{city}_output_dataframes_5f" / f"yelp_qa_{kind}.csv"
    return write_outputs(path, NAMES)
