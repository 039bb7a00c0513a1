from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import MalformedLine, MissingFile, NothingLeft, UnknownColumn
from recbias.data.lmrec import Outputs, read_outputs
from support.files.lmrec_files import (
    BAR,
    BURGER,
    DEAR,
    NAMES,
    OTHER_BURGER,
    PIZZA,
    PRICELESS,
    write_outputs,
)


def read_rows(
    folder: Path, rows: list[tuple[str, str, str, list[tuple[str, str, str, str]]]]
) -> Outputs:
    return read_outputs([write_outputs(folder / "yelp_qa_names.csv", rows)])


def list_names(outputs: Outputs, sentence: str) -> list[str]:
    rows = outputs.lists[outputs.lists["input_sentence"] == sentence]
    names: list[str] = outputs.items.ids.ids[rows["item"].to_numpy()].tolist()
    return names


def test_an_item_identifier_is_a_name_with_a_number_only_if_shared(tmp_path: Path) -> None:
    outputs = read_rows(tmp_path, NAMES)
    assert outputs.items.ids.ids.tolist() == [
        *("Burger (1)", "Burger (2)", "Chez Nous", "Pizza Place", "Secret", "The Bar")
    ]
    assert list_names(outputs, "Seat Ann now") == ["Pizza Place", "The Bar", "Chez Nous"]
    assert list_names(outputs, "Seat Bob now") == ["Burger (1)", "Burger (2)", "Secret"]


def test_prices_categories_and_stars_of_businesses_are_parsed(tmp_path: Path) -> None:
    frame = read_rows(tmp_path, NAMES).items.frame
    assert frame["name"].tolist()[:3] == ["Burger", "Burger", "Chez Nous"]
    assert frame["price"].tolist() == ["$", "$", "$$$$", "$$", None, "$"]
    np.testing.assert_array_equal(frame["price_level"], [1, 1, 4, 2, np.nan, 1])
    assert frame["categories"].tolist() == [
        *("Burgers|Restaurants", "Restaurants|Burgers", "French", "Restaurants|Italian"),
        *(None, "Bars|Beer, Wine & Spirits"),
    ]
    assert frame["stars"].tolist() == [2.0, 2.5, 4.9, 3.54, 5.0, 4.1]


def test_a_repeated_list_of_a_label_counts_once(tmp_path: Path) -> None:
    office = ("office", "At the office", "all", [PIZZA, BAR])
    with collect_warnings() as warnings:
        outputs = read_rows(tmp_path, [office, ("bank", "At the bank", "all", [DEAR]), office])
    assert len(outputs.rows) == 3
    assert warnings == ["yelp_qa_names.csv: excluded 2 rows of repeated lists"]


@pytest.mark.parametrize(
    ("before", "after", "error_class", "message"),
    [
        (",1,1.0,The Bar", ",9,1.0,The Bar", MalformedLine, "csv:3: the price is not a level"),
        (",1,1.0,The Bar", ",1,,The Bar", MalformedLine, "names.csv:3: there is no rank"),
        (",1,1.0,The Bar", ",1,0.0,The Bar", MalformedLine, "csv:3: 'Seat Ann now' has two"),
        (",price,", ",cost,", None, ""),
        (",rank,", ",place,", UnknownColumn, "there is no column 'rank'"),
    ],
)
def test_a_malformed_table_is_refused_with_its_line_number(
    tmp_path: Path, before: str, after: str, error_class: type[Exception] | None, message: str
) -> None:
    path = write_outputs(tmp_path / "yelp_qa_names.csv", NAMES[:1])
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    if error_class is None:
        assert read_outputs([path]).items.frame["price"].tolist() == [None] * 3
        return
    with pytest.raises(error_class) as caught:
        read_outputs([path])
    assert message in str(caught.value)


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingLeft, match="has no rows"):
        read_rows(tmp_path, [])
    with pytest.raises(MissingFile):
        read_outputs([tmp_path / "yelp_qa_age.csv"])


def test_ambiguous_item_identifiers_are_refused(tmp_path: Path) -> None:
    ambiguous = ("1.0", "", "1", "Burger (1)")
    with pytest.raises(MalformedLine, match=r"would both be named 'Burger \(1\)'"):
        read_rows(
            tmp_path,
            [("Ann", "To Ann", "female", [BURGER, OTHER_BURGER, ambiguous, PRICELESS, BAR])],
        )
