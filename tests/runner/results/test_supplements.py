from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias

CONFIGS = Path(__file__).parents[3] / "configs"
GROUPS = {"of": "users", "attribute": "gender", "a": "F", "b": "M"}
TARGETS = {"of": "items", "attribute": "genres", "e": "Romance", "p": "Action"}


def run_vectors(out: Path, metrics: list[dict[str, Any]], dtype: str = "float64") -> recbias.Run:
    folder = CONFIGS / "vectors"
    paths = {}
    for name in ("users", "items"):
        paths[name] = str(out / f"{name}.npy")
        np.save(paths[name], np.load(folder / f"{name}.npy").astype(dtype))
    tables = {name: str(folder / f"{name}.csv") for name in ("users", "items")}
    ids = {name: str(folder / f"{name}.txt") for name in ("user_ids", "item_ids")}
    return recbias.run(
        {
            "name": "supplements",
            "dataset": {
                "name": "tables",
                "interactions": str(folder / "clicks.csv"),
                **tables,
            },
            "models": [{"name": "vectors", "label": "ours", **paths, **ids}],
            "metrics": metrics,
        },
        out=out,
    )


@pytest.mark.filterwarnings("ignore")
def test_a_written_direction_can_be_read_again(tmp_path: Path) -> None:
    r_ripa = {"name": "R-RIPA", "groups": GROUPS, "targets": TARGETS, "permutations": 99}
    checks = {"name": "direction_checks", "groups": GROUPS, "repeats": 3}
    run = run_vectors(tmp_path, [r_ripa, checks])
    table = pd.read_csv(run.folder / "directions.csv")
    assert table["direction"].tolist() == ["centroid", "centroid"]
    assert table["metric"].is_unique
    assert not any("permutations" in name or "repeats" in name for name in table["metric"])
    axis = np.load(run.folder / table["file"][0])
    assert axis.dtype == np.float64
    assert axis.size == table["dimensions"][0]
    assert np.linalg.norm(axis) == pytest.approx(1.0)
    again = run_vectors(tmp_path, [r_ripa | {"direction": str(run.folder / table["file"][0])}])
    first = run.metrics[run.metrics["metric"] == table["metric"][0]]
    np.testing.assert_allclose(first["value"], again.metrics["value"], rtol=1e-12)
    stored = np.load(again.folder / pd.read_csv(again.folder / "directions.csv")["file"][0])
    np.testing.assert_allclose(stored, axis, rtol=1e-12)
