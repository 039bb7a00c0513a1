from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

import recbias
from recbias.core.errors import MissingExtra
from recbias.runner.execution.ray import RayTasks
from support.specs import make_small_spec

HERE = importlib.util.find_spec("ray") is not None


@pytest.mark.skipif(HERE, reason="ray is installed")
def test_without_ray_it_says_how_to_get_it() -> None:
    with pytest.raises(MissingExtra, match="needs the package 'ray'") as caught:
        RayTasks(1)
    assert caught.value.remedy == "pip install 'recbias[ray]'"


@pytest.mark.skipif(not HERE, reason="ray is not installed")
@pytest.mark.filterwarnings("ignore")
def test_tasks_give_the_same_figures(tmp_path: Path) -> None:
    space = {"neighbors": {"int": [1, 40]}}
    tune = {"metric": "nDCG", "trials": 3, "parallel": 2, "space": space}
    split = {"name": "random", "test": 0.2, "validation": 0.2}
    spec = make_small_spec(models=["MostPop", {"name": "ItemKNN", "tune": tune}], split=split)
    alone = recbias.run(spec, out=tmp_path / "one")
    together = recbias.run(spec, out=tmp_path / "two", workers=2, executor="ray")
    here, there = [(run.folder / "metrics.csv").read_bytes() for run in (alone, together)]
    assert here == there
    first, second = [
        pd.read_csv(run.folder / "trials.csv").drop(columns="seconds") for run in (alone, together)
    ]
    assert first.equals(second)
