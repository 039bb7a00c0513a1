from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias import api
from recbias.core.errors import Faults, UserError
from recbias.runner.planning.plan import Plan
from support.specs import make_small_spec


def planned(folder: Path, **changes: Any) -> Plan:
    return api.plan(make_small_spec(**changes), out=folder, data=folder)[0]


def addresses(plan: Plan) -> dict[str, str]:
    return {stage.title: stage.digest for stage in plan.stages}


def test_every_seed_and_fold_is_a_world(tmp_path: Path) -> None:
    split = {"name": "random", "test": 0.2, "folds": 3}
    plan = planned(tmp_path, seed=None, seeds=[1, 2], split=split)
    assert [(each.keys.seed, each.keys.fold) for each in plan.worlds] == [
        *((1, 1), (1, 2), (1, 3)),
        *((2, 1), (2, 2), (2, 3)),
    ]


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"seed": 7}, set()),
        ({"k": 4}, {"load demo", "split demo", "ask demo", "fit ItemKNN", "fit MostPop"}),
        (
            {"models": ["MostPop", {"name": "ItemKNN", "neighbors": 3}]},
            {
                *("load demo", "split demo", "ask demo", "fit MostPop", "ask MostPop"),
                *("measure nDCG of MostPop", "measure HR of MostPop"),
            },
        ),
        ({"metrics": ["nDCG"]}, None),
        ({"name": "other"}, None),
        ({"report": {"formats": ["md"]}}, None),
    ],
)
def test_what_a_change_touches_has_another_address(
    tmp_path: Path, change: dict[str, Any], kept: set[str] | None
) -> None:
    before, after = addresses(planned(tmp_path)), addresses(planned(tmp_path, **change))
    same = {title for title, digest in after.items() if before.get(title) == digest}
    assert same == (set(after) if kept is None else kept)


def test_the_bytes_of_an_input_file_are_part_of_the_address(tmp_path: Path) -> None:
    path = tmp_path / "clicks.csv"
    dataset = {"name": "tables", "interactions": str(path)}
    path.write_text("user_id,item_id\na,1\nb,2\n")
    before = addresses(planned(tmp_path, dataset=dataset))
    path.write_text("user_id,item_id\na,1\nb,3\n")
    after = addresses(planned(tmp_path, dataset=dataset))
    assert before["load tables"] != after["load tables"]


def test_a_model_made_elsewhere_is_addressed_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    models = [{"name": "lists", "path": str(path)}]
    path.write_text("query_id,item_id,rank\na,1,1\n")
    before = addresses(planned(tmp_path, models=models))
    path.write_text("query_id,item_id,rank\na,2,1\n")
    after = addresses(planned(tmp_path, models=models))
    assert before["ask lists"] != after["ask lists"]


def test_missing_data_is_found_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        planned(tmp_path, dataset="ml-1m")
    assert "recbias data fetch ml-1m" in "\n".join(caught.value.lines())


@pytest.mark.parametrize(
    ("change", "found", "remedy"),
    [
        ({"split": None}, "nDCG needs test", "split"),
        ({"metrics": ["nDCG@30"]}, "nDCG@30 needs lists of 30, but k is 5", "set k: 30"),
        (
            {
                "dataset": {"name": "tables"},
                "split": None,
                "metrics": [{"name": "ARP", "popularity": "n_ratings"}],
                "models": ["MostPop"],
            },
            "ARP needs items",
            "items table",
        ),
        (
            {"dataset": {"name": "tables"}},
            "random has nothing to split",
            "interactions",
        ),
    ],
)
def test_parts_that_do_not_meet_are_refused(
    tmp_path: Path, change: dict[str, Any], found: str, remedy: str
) -> None:
    with pytest.raises(Faults) as caught:
        planned(tmp_path, **change)
    said = "\n".join(caught.value.lines())
    assert found in said
    assert remedy in said
