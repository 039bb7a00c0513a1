from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import BrokenContract
from recbias.core.stage_context import collect_warnings
from recbias.formats.lists import ListRows, order_rows, read_rows


def read_lists(folder: Path, text: str) -> ListRows:
    path = folder / "mine.csv"
    path.write_text(text, encoding="utf-8")
    return read_rows(path)


def test_rows_are_sorted_by_list_and_score(tmp_path: Path) -> None:
    lists = read_lists(tmp_path, "query_id,item_id,score\na,x,1\nb,x,2\na,y,3\na,z,-inf\n")
    with collect_warnings() as notes:
        unmasked, order = order_rows(lists)
    # rows 0 and 2 are of a, the better one first; the masked row is excluded
    assert order.tolist() == [2, 0, 1]
    assert unmasked.queries.tolist() == [0, 1, 0]
    assert notes == ["mine.csv: 1 rows with a score of minus infinity are excluded"]


def test_excluded_rows_do_not_shift_the_reported_line(tmp_path: Path) -> None:
    lists = read_lists(tmp_path, "query_id,item_id,score\na,x,-inf\na,y,1\na,y,2\n")
    with collect_warnings(), pytest.raises(BrokenContract, match="'y' occurs twice") as caught:
        order_rows(lists)
    assert caught.value.where.endswith("mine.csv:4")
