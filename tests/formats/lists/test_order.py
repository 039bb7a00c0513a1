from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import BrokenContract
from recbias.core.stage_context import collect_warnings
from recbias.formats.lists.order import ordered
from recbias.formats.lists.read import read_rows
from recbias.formats.lists.rows import ListRows


def rows(folder: Path, text: str) -> ListRows:
    path = folder / "mine.csv"
    path.write_text(text, encoding="utf-8")
    return read_rows(path)


def test_the_order_is_list_by_list_from_the_best(tmp_path: Path) -> None:
    read = rows(tmp_path, "query_id,item_id,score\na,x,1\nb,x,2\na,y,3\na,z,-inf\n")
    with collect_warnings() as notes:
        own, order = ordered(read)
    # rows 0 and 2 are of a, the better one first; the masked row is gone
    assert order.tolist() == [2, 0, 1]
    assert own.queries.tolist() == [0, 1, 0]
    assert notes == ["mine.csv: 1 rows with a score of minus infinity: left out"]


def test_a_row_that_was_left_out_does_not_move_the_line_of_a_fault(tmp_path: Path) -> None:
    read = rows(tmp_path, "query_id,item_id,score\na,x,-inf\na,y,1\na,y,2\n")
    with pytest.raises(BrokenContract, match="'y' stands twice") as caught:
        ordered(read)
    assert caught.value.where.endswith("mine.csv:4")
