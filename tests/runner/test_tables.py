from __future__ import annotations

from pathlib import Path

import pandas as pd

from recbias.runner.tables import TableWriter


def test_pieces_are_one_table(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with TableWriter(path) as writer:
        writer.add(pd.DataFrame({"model": ["a", "b"], "rank": [1, 2]}))
        writer.add(pd.DataFrame())
        writer.add(pd.DataFrame({"model": ["c", None], "rank": [3, 4]}))
    table = pd.read_parquet(path)
    assert table["model"].astype(object).where(table["model"].notna(), None).tolist() == [
        "a",
        "b",
        "c",
        None,
    ]
    assert table["rank"].tolist() == [1, 2, 3, 4]


def test_no_piece_is_no_file(tmp_path: Path) -> None:
    with TableWriter(tmp_path / "t.parquet"):
        pass
    assert not (tmp_path / "t.parquet").exists()
