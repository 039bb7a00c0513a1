from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from recbias import api

DOCS = Path(__file__).parents[2] / "docs"
SPEC = {
    "name": "table",
    "dataset": {"name": "demo", "n_users": 40, "n_items": 30, "per_user": 6},
    "split": {"name": "random"},
    "k": 5,
    "models": ["Random", {"name": "ItemKNN", "neighbors": 7}],
    "metrics": ["nDCG"],
    "report": {"formats": ["csv"], "reference": "children/a3"},
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_run_table", DOCS / "make_run_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_agrees_with_run_folder(script: ModuleType, tmp_path: Path) -> None:
    run = api.run(SPEC, out=tmp_path).folder
    values = pd.read_csv(run / "metrics.csv").set_index("model")["value"]
    rows = {row["model"]: row for row in script.read_rows(run, "nDCG")}
    assert set(rows) == {"Random", "ItemKNN"}
    for model, row in rows.items():
        assert float(row["measured"]) == pytest.approx(values[model], abs=5e-5)
        assert float(row["seconds"]) >= 0
        assert float(row["MB"]) > 1
    assert "neighbors 7" in rows["ItemKNN"]["settings"]
    text = script.render_markdown(script.read_rows(run, "nDCG"))
    assert text.splitlines()[0].startswith("| model | published |")
    assert len(text.splitlines()) == 4
