from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recbias.formats.lists.text_layouts import read_json

from recbias.core.errors import MalformedLine
from recbias.formats.lists import ListRows


def write(folder: Path, text: str) -> Path:
    path = folder / "a.json"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def to_scores(rows: ListRows) -> dict[str, dict[str, float]]:
    scores = rows.scores
    scores_by_query: dict[str, dict[str, float]] = {}
    for row, (query, item) in enumerate(zip(rows.queries, rows.items, strict=True)):
        score = float(scores[row]) if scores is not None else 0.0
        scores_by_query.setdefault(rows.query_ids.ids[query], {})[rows.item_ids.ids[item]] = score
    return scores_by_query


def test_scores_by_item_are_read(tmp_path: Path) -> None:
    rows, _ = read_json(write(tmp_path, '{"q1": {"d1": 0.9, "d2": 1}, "q2": {"d1": -1e-3}}'))
    assert to_scores(rows) == {"q1": {"d1": 0.9, "d2": 1.0}, "q2": {"d1": -0.001}}
    assert rows.in_order


def test_lists_of_items_are_in_list_order(tmp_path: Path) -> None:
    rows, _ = read_json(write(tmp_path, '{"196": ["b", "a"], "7": [3]}'))
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
def test_any_run_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, run: dict[str, dict[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("runs") / "a.json.gz"
    path.write_bytes(gzip.compress(json.dumps(run).encode()))
    assert to_scores(read_json(path)[0]) == run


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ('{"q": {"i": 1},\n "r": }', "not JSON", 2),
        ("[1]", "not an object", 1),
        ('{"q": {"i": 1},\n"q": {"j": 1}}', "the query 'q' occurs twice", 2),
        ('{"q": {"i": 1},\n"r": ["j"]}', "query 'r' does not have the form", 2),
        ('{"q": {"i": 1},\n"r": 7}', "query 'r' does not have the form", 2),
        ('{"q": {"i": 1,\n "j": "1"}}', 'a score is a number, not "1"', 2),
        ('{"q": {"i": 1,\n\n "j": null}}', "a score is a number, not null", 3),
        ('{"q": ["i",\n true]}', "an item is a text or a whole number, not true", 2),
        ('{"q": {\n"": 1}}', "an empty item_id", 2),
        ('{"": {"i": 1}}', "an empty query_id", 1),
    ],
)
def test_malformed_content_is_reported_with_its_line(
    tmp_path: Path, text: str, message: str, line: int
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(MalformedLine, match=message) as caught:
        read_json(path)
    assert caught.value.where == f"{path}:{line}"


@pytest.mark.parametrize(
    ("text", "row", "line"),
    [
        ('{"q: {": {"i\\"": 1, "j":\n2},\n"1": {"1": 3}}', 2, 3),
        ('{"q":\n["x", "y:",\n"z"], "r": [\n7]}', 3, 4),
    ],
)
def test_rows_are_located_by_line(tmp_path: Path, text: str, row: int, line: int) -> None:
    rows, _ = read_json(write(tmp_path, text))
    assert rows.place(row).endswith(f"a.json:{line}")


def test_text_that_is_not_utf_8_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"q\xff": {"i": 1}}')
    with pytest.raises(MalformedLine, match="not UTF-8"):
        read_json(tmp_path / "a.json")


def test_an_empty_object_has_no_rows(tmp_path: Path) -> None:
    assert read_json(write(tmp_path, "{}"))[0].queries.size == 0
