"""A sweep gives the results of the models, datasets and seeds that it stands for."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import recbias
from support.commands import invoke_recbias
from support.specs import make_small_spec

LABELS = ["ItemKNN(neighbors=5)", "ItemKNN(neighbors=20)"]
SWEEP = {"models.1.neighbors": [5, 20], "seed": [1, 2]}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def swept(out: Path) -> recbias.Run:
    return recbias.run(make_small_spec(sweep=SWEEP), out=out)


def test_sweep_is_one_table_of_the_models_written_out(swept: recbias.Run, tmp_path: Path) -> None:
    models = ["MostPop"] + [
        {"name": "ItemKNN", "label": f"ItemKNN(neighbors={n})", "neighbors": n} for n in (5, 20)
    ]
    written = recbias.run(
        make_small_spec(models=models, seed=None, seeds=[1, 2]), out=tmp_path / "out"
    )
    assert list(dict.fromkeys(swept.metrics["model"])) == ["MostPop", *LABELS]
    pd.testing.assert_frame_equal(swept.metrics, written.metrics)
    pd.testing.assert_frame_equal(swept.significance, written.significance)
    assert swept.folder.name.split("-")[1] == written.folder.name.split("-")[1]


def test_models_of_a_sweep_are_one_family(swept: recbias.Run) -> None:
    rows = swept.significance[swept.significance["metric"] == "nDCG"]
    assert {tuple(pair) for pair in rows[["a", "b"]].to_numpy()} == {
        ("MostPop", LABELS[0]),
        ("MostPop", LABELS[1]),
        (LABELS[0], LABELS[1]),
    }
    assert set(rows["family_size"]) == {3}


def test_resolved_spec_runs_to_the_same_results(swept: recbias.Run, out: Path) -> None:
    again = recbias.run(swept.folder / "spec.yaml", out=out)
    assert again.folder == swept.folder


def test_stored_results_of_single_runs_are_used(out: Path, swept: recbias.Run) -> None:
    single = recbias.run(make_small_spec(seed=2), out=out, overrides=["models.1.neighbors=20"])
    stages = [stage for stage in single.manifest["stages"] if not stage["reused"]]
    assert stages == []
    rows = swept.metrics[(swept.metrics["model"] == LABELS[1]) & (swept.metrics["seed"] == 2)]
    own = single.metrics[single.metrics["model"] == "ItemKNN"]
    assert rows["value"].tolist() == own["value"].tolist()


def test_plan_says_what_a_sweep_stands_for(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "name: s\ndataset: {name: demo, n_users: 60, n_items: 50}\nmodels: [MostPop, ItemKNN]\n"
        "split: {name: random, test: 0.2}\nmetrics: [nDCG]\n"
        "sweep: {models.ItemKNN.neighbors: [5, 20], dataset.n_users: [40, 60], seed: [1, 2]}\n"
    )
    result = invoke_recbias("plan", "spec.yaml", folder=tmp_path)
    assert result.code == 0, result.err
    lines = [line for line in result.out.splitlines() if line.startswith("sweep: ")]
    assert lines == [
        "sweep: 2 models: ItemKNN(neighbors=5), ItemKNN(neighbors=20)",
        "sweep: 2 datasets: demo(n_users=40), demo(n_users=60)",
        "sweep: 2 seeds: 1, 2",
    ]
    many = [f"--set=sweep.models.1.{name}={[*range(100)]}" for name in ("shrink", "alpha")]
    refused = invoke_recbias("run", "spec.yaml", *many, folder=tmp_path)
    assert refused.code == 2
    assert "sweep: has 80,000 combinations, more than 1,000" in refused.err
