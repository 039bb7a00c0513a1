from __future__ import annotations

from pathlib import Path
from typing import Any

from recbias import api
from recbias.runner.plan import Plan
from support.specs import make_small_spec


def make_plan(folder: Path, **changes: Any) -> Plan:
    return api.plan(make_small_spec(**changes), out=folder, data=folder)[0]


def test_every_stage_comes_after_its_inputs(tmp_path: Path) -> None:
    earlier: set[str] = set()
    for stage in make_plan(tmp_path).stages:
        assert all(source.digest in earlier for source in stage.inputs)
        earlier.add(stage.digest)


def test_models_share_the_dataset_the_split_and_the_queries(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    assert len(plan.data_contexts) == 1
    assert len(plan.model_plans) == 2
    assert [stage.kind for stage in plan.stages][:3] == ["dataset", "split", "queries"]


def test_a_metric_is_measured_before_its_values_by_group(tmp_path: Path) -> None:
    model_plan = make_plan(tmp_path, metrics=[{"name": "nDCG", "by": "gender"}]).model_plans[0]
    titles = [stage.title for stage in model_plan.measuring]
    assert titles[0] == "measure nDCG of MostPop"
    assert len(titles) == 1 + len(model_plan.measures) == 1 + 4


def test_the_search_comes_before_the_fit(tmp_path: Path) -> None:
    split = {"name": "random", "test": 0.2, "validation": 0.2}
    tune = {"metric": "nDCG", "trials": 2, "space": {"neighbors": {"int": [1, 9]}}}
    plan = make_plan(tmp_path, split=split, models=[{"name": "ItemKNN", "tune": tune}])
    kinds = [stage.kind for stage in plan.model_plans[0].stages]
    assert kinds == ["trial", "trial", "search", "fit", "answer", "measure", "measure"]
