from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import MalformedLine, MissingFile, NothingLeft, UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.data.datasets.lmrec_outputs import Outputs, kind_of, read_outputs
from support.lmrec_files import (
    BAR,
    BURGER,
    DEAR,
    NAMES,
    OTHER_BURGER,
    PIZZA,
    PRICELESS,
    write_outputs,
)


def outputs(
    folder: Path, rows: list[tuple[str, str, str, list[tuple[str, str, str, str]]]]
) -> Outputs:
    return read_outputs([write_outputs(folder / "yelp_qa_names.csv", rows)])


def listed(found: Outputs, sentence: str) -> list[str]:
    mine = found.places["input_sentence"] == sentence
    names: list[str] = found.items.ids.ids[found.places["item"][mine].to_numpy()].tolist()
    return names


def test_a_name_is_an_id_and_has_a_number_only_where_it_is_shared(tmp_path: Path) -> None:
    found = outputs(tmp_path, NAMES)
    assert found.items.ids.ids.tolist() == [
        *("Burger (1)", "Burger (2)", "Chez Nous", "Pizza Place", "Secret", "The Bar"),
    ]
    assert listed(found, "Seat Ann now") == ["Pizza Place", "The Bar", "Chez Nous"]
    assert listed(found, "Seat Bob now") == ["Burger (1)", "Burger (2)", "Secret"]


def test_businesses_have_prices_categories_and_stars(tmp_path: Path) -> None:
    frame = outputs(tmp_path, NAMES).items.frame
    assert frame["name"].tolist()[:3] == ["Burger", "Burger", "Chez Nous"]
    assert frame["price"].tolist() == ["$", "$", "$$$$", "$$", None, "$"]
    np.testing.assert_array_equal(frame["price_level"], [1, 1, 4, 2, np.nan, 1])
    assert frame["categories"].tolist() == [
        *("Burgers|Restaurants", "Restaurants|Burgers", "French", "Restaurants|Italian"),
        *(None, "Bars|Beer, Wine & Spirits"),
    ]
    assert frame["stars"].tolist() == [2.0, 2.5, 4.9, 3.54, 5.0, 4.1]


@pytest.mark.parametrize(
    ("price", "level"),
    [("2", 2.0), ("2.0", 2.0), ("$$", 2.0), (" $$$$ ", 4.0), ("", np.nan), ("nan", np.nan)],
)
def test_a_price_is_a_number_or_signs(tmp_path: Path, price: str, level: float) -> None:
    found = outputs(tmp_path, [("Ann", "To Ann", "female", [("1.0", "", price, "A")])])
    np.testing.assert_array_equal(found.items.frame["price_level"], [level])


def test_prices_may_be_written_in_two_ways_in_one_file(tmp_path: Path) -> None:
    rows = [
        ("Ann", f"{n} Ann", "female", [("1.0", "", p, "A")]) for n, p in enumerate(["2", "2.0"])
    ]
    assert outputs(tmp_path, rows).items.ids.ids.tolist() == ["A"]


def test_branches_alike_in_everything_are_two_where_a_list_holds_both(tmp_path: Path) -> None:
    rows = [
        ("Ann", "To Ann", "female", [BURGER, PIZZA, BURGER]),
        ("Bob", "To Bob", "male", [PIZZA, BURGER]),
    ]
    found = outputs(tmp_path, rows)
    assert listed(found, "To Ann") == ["Burger (1)", "Pizza Place", "Burger (2)"]
    assert listed(found, "To Bob") == ["Pizza Place", "Burger (1)"]


def test_ranks_order_the_rows(tmp_path: Path) -> None:
    path = write_outputs(tmp_path / "yelp_qa_names.csv", NAMES[:1])
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([head, *reversed(lines)]) + "\n", encoding="utf-8")
    names = ["Pizza Place", "The Bar", "Chez Nous"]
    assert listed(read_outputs([path]), "Seat Ann now") == names


def test_a_list_that_stands_twice_under_a_label_counts_once(tmp_path: Path) -> None:
    office = ("office", "At the office", "all", [PIZZA, BAR])
    with collect_warnings() as notes:
        found = outputs(tmp_path, [office, ("bank", "At the bank", "all", [DEAR]), office])
    assert len(found.rows) == 3
    assert notes == ["yelp_qa_names.csv: 2 rows of a list that stands twice count once"]


def test_several_files_share_their_businesses(tmp_path: Path) -> None:
    paths = [
        write_outputs(tmp_path / "yelp_qa_names.csv", NAMES),
        write_outputs(tmp_path / "yelp_qa_age.csv", [("aunt", "my aunt", "old", [PIZZA, BURGER])]),
    ]
    found = read_outputs(paths)
    assert len(found.items.ids) == 6
    assert found.rows["kind"].unique().tolist() == ["names", "age"]
    assert listed(found, "my aunt") == ["Pizza Place", "Burger (1)"]


@pytest.mark.parametrize(
    ("before", "after", "kind", "said"),
    [
        (",1,1.0,The Bar", ",9,1.0,The Bar", MalformedLine, "csv:3: the price is no level"),
        (",1,1.0,The Bar", ",1,,The Bar", MalformedLine, "names.csv:3: there is no rank"),
        (",1,1.0,The Bar", ",1,0.0,The Bar", MalformedLine, "csv:3: 'Seat Ann now' has two"),
        (",price,", ",cost,", None, ""),
        (",rank,", ",place,", UnknownColumn, "there is no column 'rank'"),
    ],
)
def test_a_faulty_table_is_refused_at_its_line(
    tmp_path: Path, before: str, after: str, kind: type[Exception] | None, said: str
) -> None:
    path = write_outputs(tmp_path / "yelp_qa_names.csv", NAMES[:1])
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    if kind is None:
        assert read_outputs([path]).items.frame["price"].tolist() == [None] * 3
        return
    with pytest.raises(kind) as caught:
        read_outputs([path])
    assert said in str(caught.value)


def test_a_sentence_with_another_list_under_another_label_is_refused(tmp_path: Path) -> None:
    other = ("Ann", "Seat Ann now", "white", [PIZZA, OTHER_BURGER, DEAR])
    with pytest.raises(MalformedLine, match=r"names.csv:6: 'Seat Ann now' has two .* rank 1"):
        outputs(tmp_path, [NAMES[0], other])


def test_a_file_without_rows_or_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NothingLeft, match="has no rows"):
        outputs(tmp_path, [])
    with pytest.raises(MissingFile):
        read_outputs([tmp_path / "yelp_qa_age.csv"])


def test_two_businesses_cannot_be_called_alike(tmp_path: Path) -> None:
    trap = ("1.0", "", "1", "Burger (1)")
    with pytest.raises(MalformedLine, match=r"would be called 'Burger \(1\)'"):
        outputs(
            tmp_path, [("Ann", "To Ann", "female", [BURGER, OTHER_BURGER, trap, PRICELESS, BAR])]
        )


def test_the_kind_is_in_the_name() -> None:
    assert kind_of(Path("a/yelp_qa_additionalOccupations.csv")) == "additionalOccupations"
