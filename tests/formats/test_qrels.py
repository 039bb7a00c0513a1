from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from recbias.core.dataset.interactions import Interactions
from recbias.core.errors import MalformedLine, MissingFile
from recbias.core.stage_context import collect_warnings
from recbias.formats.interactions import is_qrels, read_qrels

TREC = "q1 0 d1 1\nq1 0 d2 0\nq1 0 d3 2\nq2 0 d1 0\n"
GRADES = {"q1": {"d1": 1, "d2": 0, "d3": 2}, "q2": {"d1": 0}}


def write(folder: Path, text: str, name: str = "test.qrels") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def pairs(rows: Interactions) -> list[tuple[str, str, float]]:
    users, items = rows.user_ids.ids[rows.users], rows.item_ids.ids[rows.items]
    return list(zip(users.tolist(), items.tolist(), rows.values.tolist(), strict=True))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("test.qrels", True), ("TEST.QREL.GZ", True), ("qrels.txt", True), ("a.json.gz", True)),
        *(("a.trec", True), ("test.csv", False), ("qrels", False), ("a.tsv.gz", False)),
    ],
)
def test_qrels_are_recognized_by_their_suffix(name: str, expected: bool) -> None:
    assert is_qrels(Path(name)) is expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.qrels", TREC),
        ("a.txt", TREC.replace(" ", "\t").replace("\n", "\r\n")),
        ("a.trec", "\ufeff" + TREC.replace(" 0 ", "  Q0\t ") + "\n \n"),
        ("a.json", json.dumps(GRADES)),
    ],
)
def test_relevant_items_are_the_rows(tmp_path: Path, name: str, text: str) -> None:
    with collect_warnings() as messages:
        rows = read_qrels(write(tmp_path, text, name), 1)
    assert pairs(rows) == [("q1", "d1", 1.0), ("q1", "d3", 2.0)]
    assert rows.user_ids.ids.tolist() == ["q1"]
    counts = "1 of 2 queries have no item of grade 1 or more"
    assert messages == [f"{name}: {counts} and are excluded from the evaluation"]


def test_a_higher_least_grade_selects_fewer_items(tmp_path: Path) -> None:
    with collect_warnings():
        assert pairs(read_qrels(write(tmp_path, TREC), 2)) == [("q1", "d3", 2.0)]
        assert len(read_qrels(write(tmp_path, TREC), 3)) == 0


@pytest.mark.parametrize(
    ("name", "text"), [("a.qrels.gz", TREC), ("a.json.gz", json.dumps(GRADES))]
)
def test_compressed_files_are_read(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    with collect_warnings():
        assert len(read_qrels(tmp_path / name, 1)) == 2


def test_ids_are_kept_as_written(tmp_path: Path) -> None:
    rows = read_qrels(write(tmp_path, '007 0 "a 1\n007 0 NA 1\n'), 1)
    assert pairs(rows) == [("007", '"a', 1.0), ("007", "NA", 1.0)]


@pytest.mark.parametrize("name", ["a.qrels", "a.json"])
def test_an_empty_file_has_no_rows(tmp_path: Path, name: str) -> None:
    assert len(read_qrels(write(tmp_path, "{}" if name == "a.json" else "", name), 1)) == 0


@pytest.mark.parametrize(
    ("name", "text", "message", "line"),
    [
        ("a.qrels", "q 0 d 1\n\nq 0 d\n", "3 cells, not 4", 3),
        ("a.qrels", "q Q0 d 1 2.5 tag\n", "6 cells, not 4", 1),
        ("a.qrels", "q 0 d 1\n\nq 0 e high\n", "the grade 'high' is not a number", 3),
        ("a.qrels", "q 0 d nan\n", "the grade 'nan' is not a number", 1),
        ("a.qrels", "q 0 d 1\nr 0 d 1\nq 0 d 0\n", "item 'd' of query 'q' is judged twice", 3),
        ("a.json", '{"q": {"d": 1},\n"r": ["d"]}', "query 'r' does not have the form", 2),
        ("a.json", '{"q": {"d": 1,\n"e": "x"}}', "the grade 'x' is not a number", 2),
        ("a.json", '{"q": {"d": 1,\n"e": null}}', "the grade None is not a number", 2),
        ("a.json", '{"q": {"d": 1}\n"r"', "not JSON", 2),
        ("a.json", "[]", "not an object", 1),
        ("a.json", '{"q": {"d": 1, "d": 1}}', "item 'd' of query 'q' is judged twice", 1),
    ],
)
def test_malformed_content_is_reported_with_its_line(
    tmp_path: Path, name: str, text: str, message: str, line: int
) -> None:
    path = write(tmp_path, text, name)
    with pytest.raises(MalformedLine, match=message) as caught:
        read_qrels(path, 1)
    assert caught.value.where == f"{path}:{line}"
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["a.json", "a.qrels"])
def test_text_that_is_not_utf_8_is_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b'{"q\xff":' if name == "a.json" else b"q\xff 0 d 1\n")
    with pytest.raises(MalformedLine, match="UTF"):
        read_qrels(tmp_path / name, 1)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="no such file"):
        read_qrels(tmp_path / "none.qrels", 1)
