from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

import recbias
from recbias.core.errors import MissingExtra
from recbias.runner.execution.ray import RayTasks
from support.specs import make_small_spec

HAS_RAY = importlib.util.find_spec("ray") is not None


@pytest.mark.skipif(HAS_RAY, reason="ray is installed")
def test_missing_ray_is_reported_with_the_install_command() -> None:
    with pytest.raises(MissingExtra, match="needs the package 'ray'") as caught:
        RayTasks(1)
    assert caught.value.remedy == "pip install 'recbias[ray]'"


@pytest.mark.skipif(not HAS_RAY, reason="ray is not installed")
@pytest.mark.filterwarnings("ignore")
def test_tasks_give_the_same_metrics(tmp_path: Path) -> None:
    space = {"neighbors": {"int": [1, 40]}}
    tune = {"metric": "nDCG", "trials": 3, "parallel": 2, "space": space}
    split = {"name": "random", "test": 0.2, "validation": 0.2}
    spec = make_small_spec(models=["MostPop", {"name": "ItemKNN", "tune": tune}], split=split)
    sequential = recbias.run(spec, out=tmp_path / "one")
    parallel = recbias.run(spec, out=tmp_path / "two", workers=2, executor="ray")
    expected, actual = [
        (run.folder / "metrics.csv").read_bytes() for run in (sequential, parallel)
    ]
    assert expected == actual
    first, second = [
        pd.read_csv(run.folder / "trials.csv").drop(columns="seconds")
        for run in (sequential, parallel)
    ]
    assert first.equals(second)
