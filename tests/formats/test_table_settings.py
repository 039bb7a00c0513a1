from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import AnyArray
from recbias.core.errors import Contradiction, MalformedLine, UnknownColumn
from recbias.formats.table_settings import Clean, TableSettings
from recbias.formats.tables import TableColumns, read_file


def read(path: Path, text: str, **settings: Any) -> tuple[dict[str, AnyArray], list[str]]:
    """Return the columns of a table, and the warnings."""
    path.write_text(text, encoding="utf-8")
    return read_again(path, **settings)


def read_again(path: Path, **settings: Any) -> tuple[dict[str, AnyArray], list[str]]:
    options = TableSettings(**settings)
    columns = TableColumns(needed={"user_id": "id"}, others=True, renamed=options.columns)
    with collect_warnings() as warnings:
        options.check_settings([path], [path])
        return options.read_columns(read_file(path, columns)), warnings


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "users.csv"


def test_labels_that_differ_by_space_or_case_are_warned_about_with_their_counts(
    path: Path,
) -> None:
    columns, (warning,) = read(path, "user_id,g\n1,F\n2, F\n3,M\n4,m\n5,M\n")
    assert columns["g"].tolist() == ["F", " F", "M", "m", "M"]
    assert "users.csv: g" in warning
    assert "' F' (1), 'F' (1), 'M' (2), 'm' (1)" in warning
    assert warning.endswith("clean: {trim: true, case: most_common} changes that")


def test_labels_are_trimmed_and_unified_on_request(path: Path) -> None:
    text = "user_id,g\n1,F\n2, F\n3,M\n4,m\n5,M\n"
    clean = Clean(trim=True, case="most_common")
    columns, warnings = read(path, text, clean=clean)
    assert (columns["g"].tolist(), warnings) == (["F", "F", "M", "M", "M"], [])
    columns, _ = read_again(path, clean=Clean(trim=True, case="lower"))
    assert columns["g"].tolist() == ["f", "f", "m", "m", "m"]


def test_values_within_a_cell_are_cleaned_too(path: Path) -> None:
    text = "user_id,l\n1,en| de\n2,EN|unknown\n3,unknown\n4,en\n"
    columns, _ = read(path, text, clean=Clean(trim=True, case="most_common"), missing=("Unknown",))
    assert columns["l"].tolist() == ["en|de", "en", None, "en"]


GENRES = 'user_id,l\n1,"Drama, Romance"\n2,Drama\n3,"Comedy,Drama"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GENRES, 'separator: {l: ","}'),
        ("user_id,l\n1,Drama;Romance\n2,Drama\n3,Comedy;Drama\n", 'separator: {l: ";"}'),
        ('user_id,l\n1,"A, B"\n2,"C, D"\n3,A\n', 'separator: {l: ","}'),
        ('user_id,tags\n1,"A, B"\n2,"A, B"\n3,C\n4,C\n', 'separator: {tags: ","}'),
        ('user_id,l\n1,"Lyon, France"\n2,"Lyon, France"\n3,"Nice, France"\n4,Berlin\n', None),
        ('user_id,l\n1,"Acme, Inc."\n2,"Acme, Inc."\n3,Plain\n4,Plain\n', None),
        ("user_id,l\n1,F\n2,nan\n3,F\n", "the text 'nan' as a value; missing: [nan]"),
        ("user_id,l\n1,F\n2,null\n3,F\n", "the text 'null' as a value; missing: [null]"),
        ('user_id,l\n1,"Piano, The"\n2,"Net, The"\n3,"Albany, NY"\n', None),  # always last
        ('user_id,l\n1,"Nov 15, 2020"\n2,"Nov 16, 2020"\n', None),
        ("user_id,l\n1,None\n2,Null\n", None),
    ],
)
def test_values_that_are_none_or_several_are_asked_about(
    path: Path, text: str, said: str | None
) -> None:
    _, warnings = read(path, text)
    assert [said in warning for warning in warnings if said] == [True] * bool(said)
    assert len(warnings) == bool(said)


def test_the_separator_splits_cells(path: Path) -> None:
    columns, warnings = read(path, GENRES, separator={"l": ","})
    assert columns["l"].tolist() == ["Drama|Romance", "Drama", "Comedy|Drama"]
    assert warnings == []
    with pytest.raises(UnknownColumn, match="no table has a column 'm'"):
        read_again(path, separator={"m": ","})


def test_missing_values_make_a_column_numeric(path: Path) -> None:
    text = "user_id,age\n1,20\n2,N/A\n3,-1\n4, n/a \n5,\n6,NULL\n"
    columns, _ = read(path, text, missing=("N/A", -1, None))
    np.testing.assert_array_equal(columns["age"], [20.0, *[math.nan] * 5])


def test_columns_are_renamed_and_cast(path: Path) -> None:
    text = 'customer,vip,price,code\n1,yes,"$1,200.50",7\n2,No,5 €,8\n3,,,9\n'
    types = {"member": "yes_no", "price": "number", "code": "text"}
    names = {"customer": "user_id", "vip": "member"}
    columns, warnings = read(path, text, columns=names, types=types)
    np.testing.assert_array_equal(columns["member"], [1.0, 0.0, math.nan])
    np.testing.assert_array_equal(columns["price"], [1200.5, 5.0, math.nan])
    assert columns["code"].tolist() == ["7", "8", "9"]
    assert not warnings


def test_parquet_tables_take_the_same_settings(tmp_path: Path) -> None:
    path = tmp_path / "users.parquet"
    frame = pd.DataFrame({"who": ["a", "b"], "age": [-1.0, 30.0], "g": [" F", "M"]})
    frame.to_parquet(path)
    columns, _ = read_again(
        path, columns={"who": "user_id"}, missing=(-1,), clean=Clean(trim=True)
    )
    np.testing.assert_array_equal(columns["age"], [math.nan, 30.0])
    assert columns["g"].tolist() == ["F", "M"]
    columns, _ = read_again(path, columns={"who": "user_id"}, types={"age": "text"})
    assert columns["age"].tolist() == ["-1", "30"]


def test_a_cell_of_another_type_is_refused_at_its_line(path: Path) -> None:
    with pytest.raises(MalformedLine, match=r"price is 'dear', not number: 1 such") as caught:
        read(path, "user_id,price\n1,$5\n2,dear\n", types={"price": "number"})
    assert caught.value.where == f"{path}:3"
    assert caught.value.remedy == "correct the table, or name such cells in missing: [...]"


def test_settings_that_name_no_column_are_refused(path: Path) -> None:
    with pytest.raises(UnknownColumn, match="no table has a column 'gendr'") as caught:
        read(path, "user_id,gender\n1,F\n", types={"gendr": "text"})
    assert (caught.value.where, caught.value.remedy) == ("types", "did you mean gender?")
    with pytest.raises(UnknownColumn, match="'customer'"):
        read_again(path, columns={"customer": "user_id"})
    with pytest.raises(Contradiction, match="two columns are called 'user_id'"):
        read_again(path, columns={"gender": "user_id"})


def test_columns_of_free_text_are_not_warned_about(path: Path) -> None:
    rows = "".join(f"{n},text {n} \n" for n in range(100))
    assert read(path, f"user_id,about\n{rows}")[1] == []
