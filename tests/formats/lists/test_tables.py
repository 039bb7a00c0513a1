from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from recbias.formats.lists.text_layouts import read_elliot, read_recbole, read_run, read_table

from recbias.core.errors import MalformedLine
from recbias.formats.lists import ListRows


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def to_tuples(rows: ListRows) -> list[tuple[str, str, float | None]]:
    queries, items = rows.query_ids.ids[rows.queries], rows.item_ids.ids[rows.items]
    scores = [None] * queries.size if rows.scores is None else rows.scores.tolist()
    return list(zip(queries.tolist(), items.tolist(), scores, strict=True))


def test_elliot_files_have_no_header(tmp_path: Path) -> None:
    rows, _ = read_elliot(write(tmp_path, "a.tsv", '1\t07\t0.5\n1\t"x\t-inf\r\n2\t07\t1e-3\n'))
    assert to_tuples(rows) == [("1", "07", 0.5), ("1", '"x', -np.inf), ("2", "07", 0.001)]
    assert rows.in_order
    assert rows.place(0).endswith("a.tsv:1")


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_recbole_columns_may_have_types(tmp_path: Path, delimiter: str) -> None:
    text = "score:float|item_id:token|user_id:token\n2|b|u\n2|a|u\n".replace("|", delimiter)
    rows, roles = read_recbole(write(tmp_path, "a.inter", text))
    assert to_tuples(rows) == [("u", "b", 2.0), ("u", "a", 2.0)]
    assert roles == {"query_id": "user_id", "item_id": "item_id", "score": "score"}
    assert rows.in_order


def test_recbole_lines_may_be_in_list_order(tmp_path: Path) -> None:
    rows, _ = read_recbole(write(tmp_path, "a.csv", "user,item\nu,b\nu,a\n"))
    assert to_tuples(rows) == [("u", "b", None), ("u", "a", None)]


def test_the_column_of_each_role_is_returned(tmp_path: Path) -> None:
    rows, roles = read_table(write(tmp_path, "a.txt", "user\titem\tx\trating\nu\ta\t0\t1\n"))
    assert to_tuples(rows) == [("u", "a", 1.0)]
    assert roles == {"query_id": "user", "item_id": "item", "score": "rating"}
    assert not rows.in_order


def test_trec_runs_have_no_header(tmp_path: Path) -> None:
    (tmp_path / "a.run.gz").write_bytes(gzip.compress(b"q Q0 i 1 2.5 t\nq Q0  j 2 1 t\n"))
    rows, _ = read_run(tmp_path / "a.run.gz")
    assert to_tuples(rows) == [("q", "i", 2.5), ("q", "j", 1.0)]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("1\t2\t3\n1\t2\n", "2 cells, not 3", 2),
        ("1\t2\t3\t4\n", "4 cells, not 3", 1),
        ("user\titem\tscore\n1\t2\t3\n", "the score 'score' is not a number", 1),
        ("1\t2\t3\n\t2\t3\n", "an empty query_id", 2),
    ],
)
def test_a_malformed_elliot_line_is_reported(
    tmp_path: Path, text: str, message: str, line: int
) -> None:
    path = write(tmp_path, "a.tsv", text)
    with pytest.raises(MalformedLine, match=message) as caught:
        read_elliot(path)
    assert caught.value.where == f"{path}:{line}"


def test_a_column_with_two_types_is_ambiguous(tmp_path: Path) -> None:
    text = "user_id:token\tuser_id:float\titem_id:token\nu\t1\ti\n"
    with pytest.raises(MalformedLine, match="two columns are called 'user_id'"):
        read_recbole(write(tmp_path, "a.inter", text))
