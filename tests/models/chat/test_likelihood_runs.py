"""Runs of ``LMLikelihood`` beside a baseline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from support.models.small_causal import write_small_causal


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_causal(tmp_path_factory.mktemp("model"))


def make_spec(folder: Path, model: object) -> dict[str, Any]:
    """Write ten users who rated four of eight films each; return a spec about them."""
    rng = np.random.default_rng(4)
    rows = [
        {"user_id": f"u{user}", "item_id": f"i{item}", "rating": 5, "timestamp": rank}
        for user in range(10)
        for rank, item in enumerate(rng.permutation(8)[:4])
    ]
    pd.DataFrame(rows).to_csv(folder / "ratings.csv", index=False)
    films = {
        "item_id": [f"i{n}" for n in range(8)],
        "title": [f"Film {'abcdefgh'[n]}" for n in range(8)],
    }
    pd.DataFrame(films).to_csv(folder / "films.csv", index=False)
    return {
        "name": "titles",
        "seed": 1,
        "dataset": {
            "name": "tables",
            "interactions": str(folder / "ratings.csv"),
            "items": str(folder / "films.csv"),
        },
        "split": {"name": "leave_one_out", "which": "random"},
        "k": 3,
        "models": [
            "MostPop",
            {"name": "LMLikelihood", "model": str(model)},
            {"name": "LMLikelihood", "label": "debiased", "model": str(model), "debias": True},
        ],
        "metrics": ["HR", "log_popularity_difference", "unmatched"],
        "tests": ["paired_t"],
        "report": {"formats": ["csv"]},
    }


def test_a_run_compares_it_with_baselines_and_repeats_nothing(
    folder: Path, tmp_path: Path
) -> None:
    spec = make_spec(tmp_path, folder)
    run = recbias.run(spec, out=tmp_path / "results")
    table = run.metrics.pivot_table(index="model", columns="metric", values="value")
    assert set(table.index) == {"MostPop", "LMLikelihood", "debiased"}
    assert (table["unmatched"] == 0).all()
    assert run.metrics["value"].notna().all()
    again = recbias.run(spec, out=tmp_path / "results")
    manifest = json.loads((Path(again.folder) / "manifest.json").read_text())
    assert all(stage["reused"] for stage in manifest["stages"])
    pd.testing.assert_frame_equal(again.metrics, run.metrics)


def test_other_weights_in_the_folder_are_scored_again(tmp_path: Path) -> None:
    folder = write_small_causal(tmp_path / "model")
    spec = make_spec(tmp_path, folder)
    first = recbias.run(spec, out=tmp_path / "results")
    write_small_causal(folder, "gpt2")
    second = recbias.run(spec, out=tmp_path / "results")
    assert first.lists is not None
    assert second.lists is not None
    assert not second.lists["score"].equals(first.lists["score"])
