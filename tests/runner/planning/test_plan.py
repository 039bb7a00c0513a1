from __future__ import annotations

from pathlib import Path
from typing import Any

from recbias import api
from recbias.runner.planning.plan import Plan
from support.specs import make_small_spec


def planned(folder: Path, **changes: Any) -> Plan:
    return api.plan(make_small_spec(**changes), out=folder, data=folder)[0]


def test_every_stage_comes_after_its_inputs(tmp_path: Path) -> None:
    seen: set[str] = set()
    for stage in planned(tmp_path).stages:
        assert all(each.digest in seen for each in stage.inputs)
        seen.add(stage.digest)


def test_models_share_the_dataset_the_split_and_the_queries(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert len(plan.worlds) == 1
    assert len(plan.chains) == 2
    assert [stage.kind for stage in plan.stages][:3] == ["dataset", "split", "queries"]


def test_a_chain_measures_a_whole_before_its_parts(tmp_path: Path) -> None:
    chain = planned(tmp_path, metrics=[{"name": "nDCG", "by": "gender"}]).chains[0]
    titles = [each.title for each in chain.measuring]
    assert titles[0] == "measure nDCG of MostPop"
    assert len(titles) == 1 + len(chain.measures) == 1 + 4


def test_a_chain_searches_before_it_fits(tmp_path: Path) -> None:
    split = {"name": "random", "test": 0.2, "validation": 0.2}
    tune = {"metric": "nDCG", "trials": 2, "space": {"neighbors": {"int": [1, 9]}}}
    plan = planned(tmp_path, split=split, models=[{"name": "ItemKNN", "tune": tune}])
    kinds = [each.kind for each in plan.chains[0].stages]
    assert kinds == ["trial", "trial", "search", "fit", "answer", "measure", "measure"]
