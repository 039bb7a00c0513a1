from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MalformedLine
from recbias.formats.lists.ranx_json import read_json
from recbias.formats.lists.rows import ListRows


def written(folder: Path, text: str) -> Path:
    path = folder / "a.json"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def lists(rows: ListRows) -> dict[str, dict[str, float]]:
    values = rows.scores if rows.scores is not None else None
    made: dict[str, dict[str, float]] = {}
    for row, (query, item) in enumerate(zip(rows.queries, rows.items, strict=True)):
        score = float(values[row]) if values is not None else 0.0
        made.setdefault(rows.query_ids.ids[query], {})[rows.item_ids.ids[item]] = score
    return made


def test_a_run_of_ranx_is_read(tmp_path: Path) -> None:
    rows, _ = read_json(written(tmp_path, '{"q1": {"d1": 0.9, "d2": 1}, "q2": {"d1": -1e-3}}'))
    assert lists(rows) == {"q1": {"d1": 0.9, "d2": 1.0}, "q2": {"d1": -0.001}}
    assert rows.in_order


def test_lists_of_items_are_in_their_order(tmp_path: Path) -> None:
    rows, _ = read_json(written(tmp_path, '{"196": ["b", "a"], "7": [3]}'))
    assert rows.item_ids.ids[rows.items].tolist() == ["b", "a", "3"]
    assert rows.scores is None
    assert rows.ranks is None
    assert rows.in_order


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1),
        st.dictionaries(
            st.text(st.characters(codec="utf-8"), min_size=1), st.integers(-5, 5), min_size=1
        ),
    )
)
def test_any_run_comes_back(
    tmp_path_factory: pytest.TempPathFactory, run: dict[str, dict[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("runs") / "a.json.gz"
    path.write_bytes(gzip.compress(json.dumps(run).encode()))
    assert lists(read_json(path)[0]) == run


@pytest.mark.parametrize(
    ("text", "found", "line"),
    [
        ('{"q": {"i": 1},\n "r": }', "not JSON", 2),
        ("[1]", "not an object", 1),
        ('{"q": {"i": 1},\n"q": {"j": 1}}', "query 'q' stands there twice", 2),
        ('{"q": {"i": 1},\n"r": ["j"]}', "query 'r' breaks the shape", 2),
        ('{"q": {"i": 1},\n"r": 7}', "query 'r' breaks the shape", 2),
        ('{"q": {"i": 1,\n "j": "1"}}', 'a score is a number, not "1"', 2),
        ('{"q": {"i": 1,\n\n "j": null}}', "a score is a number, not null", 3),
        ('{"q": ["i",\n true]}', "an item is a text or a whole number, not true", 2),
        ('{"q": {\n"": 1}}', "an empty item_id", 2),
        ('{"": {"i": 1}}', "an empty query_id", 1),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, found: str, line: int) -> None:
    path = written(tmp_path, text)
    with pytest.raises(MalformedLine, match=found) as caught:
        read_json(path)
    assert caught.value.where == f"{path}:{line}"


@pytest.mark.parametrize(
    ("text", "row", "line"),
    [
        ('{"q: {": {"i\\"": 1, "j":\n2},\n"1": {"1": 3}}', 2, 3),
        ('{"q":\n["x", "y:",\n"z"], "r": [\n7]}', 3, 4),
    ],
)
def test_a_row_knows_its_line(tmp_path: Path, text: str, row: int, line: int) -> None:
    rows, _ = read_json(written(tmp_path, text))
    assert rows.place(row).endswith(f"a.json:{line}")


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"q\xff": {"i": 1}}')
    with pytest.raises(MalformedLine, match="not UTF-8"):
        read_json(tmp_path / "a.json")


def test_an_empty_run_has_no_rows(tmp_path: Path) -> None:
    assert read_json(written(tmp_path, "{}"))[0].queries.size == 0
