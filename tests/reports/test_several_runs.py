from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.run import read_run
from recbias.reports.tables import build_runs_table
from support.run_folders import RunSpec, make_run


def test_all_runs_stand_in_one_table(tmp_path: Path) -> None:
    worlds = {
        "a": RunSpec(models=("MostPop", "ItemKNN"), metrics=("nDCG", "HR")),
        "b": RunSpec(models=("ItemKNN",), metrics=("HR", "Gini"), datasets=("x", "y")),
    }
    runs = {label: read_run(make_run(tmp_path / label, world)) for label, world in worlds.items()}
    table = build_runs_table(runs)
    titles = [column.title for column in table.columns]
    assert titles == ["run", "dataset", "model", "nDCG@10", "HR@10", "Gini@10"]
    heads = [tuple(cell.text for cell in row[:3]) for row in table.rows]
    assert heads == [
        ("a", "", "MostPop"),
        ("a", "", "ItemKNN"),
        ("b", "all", "ItemKNN"),
        ("b", "x", "ItemKNN"),
        ("b", "y", "ItemKNN"),
    ]
    metrics = pd.read_csv(tmp_path / "a" / "metrics.csv").set_index(["model", "metric"])["value"]
    assert table.rows[1][3].value == pytest.approx(metrics["ItemKNN", "nDCG"], rel=1e-12)
    assert [table.rows[1][5].text, table.rows[2][3].text] == ["", ""]
    assert not any(cell.best or cell.mark for row in table.rows for cell in row)
