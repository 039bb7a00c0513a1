"""Where blocks end, and which reader reads them, changes nothing in what is read."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from recbias.formats.delimited.quotes import are_quotes_regular, is_in_quotes

from recbias.core.errors import MalformedLine
from recbias.formats.delimited import Layout, file_blocks, read_table, reader

COLUMNS: dict[str, Any] = {"id": "id", "note": "text"}
PIECES = ["a", ",", "\n", '"', "\ufeff", '5" n', '"x\ny"', "a,b\n", 'a,"b"\n', '""']

pieces = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def read(path: Path, layout: Layout, *, skip: bool, size: int = 2**20, arrow: bool = True) -> Any:
    """Return what is read in blocks of a size: rows and skipped lines, or the error."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("READ_SIZE", "SEEK_SIZE", "PIECE_SIZE"):
            patch.setattr(file_blocks, name, size)
        if not arrow:
            patch.setattr(reader, "read_with_arrow", lambda *_: None)
        try:
            rows = read_table(path, layout, bad_lines="skip" if skip else "error")
        except MalformedLine as error:
            return error.where, error.message
    return rows.table.to_pydict(), rows.bad_lines


@pytest.mark.filterwarnings("ignore:table.csv")
@example(text="a,b\n\ufeffc,d\n", size=4, quoted=False, skip=False)
@example(text='a,5" n\nb,"x\ny"\nc,d\n', size=4, quoted=True, skip=False)
@given(text=pieces, size=st.integers(1, 12), quoted=st.booleans(), skip=st.booleans())
def test_every_reader_and_size_of_block_gives_the_same(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int, quoted: bool, skip: bool
) -> None:
    path = tmp_path_factory.mktemp("table") / "table.csv"
    path.write_text("id,note\n" + text, encoding="utf-8", newline="")
    layout = Layout(columns=COLUMNS, quoted=quoted)
    expected = read(path, layout, skip=skip, arrow=False)
    assert read(path, layout, skip=skip) == expected
    assert read(path, layout, skip=skip, size=size) == expected
    assert read(path, layout, skip=skip, size=size, arrow=False) == expected


@pytest.mark.parametrize("quoted", [False, True])
def test_a_mark_is_removed_from_the_start_of_the_file_only(tmp_path: Path, quoted: bool) -> None:
    path = tmp_path / "table.csv"
    layout = Layout(columns=COLUMNS, quoted=quoted)
    path.write_text("\ufeffid,note\n\ufeffa,1\n\ufeffb,2\n", encoding="utf-8")
    assert read(path, layout, skip=False, size=4)[0]["id"] == ["\ufeffa", "\ufeffb"]
    headless = Layout(columns=COLUMNS, quoted=quoted, header=False)
    path.write_text("\ufeffa,1\n\ufeffb,2\n", encoding="utf-8")
    assert read(path, headless, skip=False, size=4)[0]["id"] == ["a", "\ufeffb"]


def test_a_stray_quote_before_the_end_of_a_block_hides_no_cell(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = [*((f"i{n}", "a plain note") for n in range(150_000)), ("stray", '5" nail')]
    rows += [(f"m{n}", "two\nlines") for n in range(100_000)]
    lines = "".join(f"{name},{note}\n" for name, note in rows[:150_001])
    quoted = io.StringIO(newline="")
    csv.writer(quoted, lineterminator="\n").writerows(rows[150_001:])
    path.write_text("id,note\n" + lines + quoted.getvalue(), encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_blocks, "READ_SIZE", 2**19)
        table = read_table(path, Layout(columns=COLUMNS, quoted=True)).table
    assert [*zip(*table.to_pydict().values(), strict=True)] == rows


@given(text=pieces)
def test_quotes_are_open_where_the_csv_module_says_so(text: str) -> None:
    content = io.StringIO(text, newline="")
    rows, is_open = csv.reader(content, strict=True), False
    while True:
        try:
            next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            is_open = "end of data" in str(error)
    assert is_in_quotes(text.encode(), ",") == is_open
    assert not (is_open and are_quotes_regular(text.encode(), ","))
