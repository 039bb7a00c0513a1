from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import MalformedLine
from recbias.formats.lists.rows import ListRows
from recbias.formats.lists.tables import read_elliot, read_recbole, read_run, read_table


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def lines(rows: ListRows) -> list[tuple[str, str, float | None]]:
    queries, items = rows.query_ids.ids[rows.queries], rows.item_ids.ids[rows.items]
    scores = [None] * queries.size if rows.scores is None else rows.scores.tolist()
    return list(zip(queries.tolist(), items.tolist(), scores, strict=True))


def test_the_first_row_of_elliot_is_a_row(tmp_path: Path) -> None:
    rows, _ = read_elliot(written(tmp_path, "a.tsv", '1\t07\t0.5\n1\t"x\t-inf\r\n2\t07\t1e-3\n'))
    assert lines(rows) == [("1", "07", 0.5), ("1", '"x', -np.inf), ("2", "07", 0.001)]
    assert rows.in_order
    assert rows.place(0).endswith("a.tsv:1")


@pytest.mark.parametrize("delimiter", ["\t", ","])
def test_names_of_recbole_may_have_types(tmp_path: Path, delimiter: str) -> None:
    text = "score:float|item_id:token|user_id:token\n2|b|u\n2|a|u\n".replace("|", delimiter)
    rows, roles = read_recbole(written(tmp_path, "a.inter", text))
    assert lines(rows) == [("u", "b", 2.0), ("u", "a", 2.0)]
    assert roles == {"query_id": "user_id", "item_id": "item_id", "score": "score"}
    assert rows.in_order


def test_lines_of_recbole_may_be_in_the_order_of_the_lists(tmp_path: Path) -> None:
    rows, _ = read_recbole(written(tmp_path, "a.csv", "user,item\nu,b\nu,a\n"))
    assert lines(rows) == [("u", "b", None), ("u", "a", None)]


def test_a_table_says_which_column_was_which(tmp_path: Path) -> None:
    rows, roles = read_table(written(tmp_path, "a.txt", "user\titem\tx\trating\nu\ta\t0\t1\n"))
    assert lines(rows) == [("u", "a", 1.0)]
    assert roles == {"query_id": "user", "item_id": "item", "score": "rating"}
    assert not rows.in_order


def test_a_run_has_no_header(tmp_path: Path) -> None:
    (tmp_path / "a.run.gz").write_bytes(gzip.compress(b"q Q0 i 1 2.5 t\nq Q0  j 2 1 t\n"))
    rows, _ = read_run(tmp_path / "a.run.gz")
    assert lines(rows) == [("q", "i", 2.5), ("q", "j", 1.0)]


@pytest.mark.parametrize(
    ("text", "found", "line"),
    [
        ("1\t2\t3\n1\t2\n", "2 cells, not 3", 2),
        ("1\t2\t3\t4\n", "4 cells, not 3", 1),
        ("user\titem\tscore\n1\t2\t3\n", "the score 'score' is not a number", 1),
        ("1\t2\t3\n\t2\t3\n", "an empty query_id", 2),
    ],
)
def test_a_line_that_is_not_elliot_s_is_named(
    tmp_path: Path, text: str, found: str, line: int
) -> None:
    path = written(tmp_path, "a.tsv", text)
    with pytest.raises(MalformedLine, match=found) as caught:
        read_elliot(path)
    assert caught.value.where == f"{path}:{line}"


def test_a_name_with_two_types_is_ambiguous(tmp_path: Path) -> None:
    text = "user_id:token\tuser_id:float\titem_id:token\nu\t1\ti\n"
    with pytest.raises(MalformedLine, match="two columns are called 'user_id'"):
        read_recbole(written(tmp_path, "a.inter", text))
