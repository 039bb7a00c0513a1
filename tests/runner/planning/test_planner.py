from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from recbias import api
from recbias.core.errors import Faults, UserError
from recbias.runner.planning.plan import Plan
from support.specs import make_small_spec


def make_plan(folder: Path, **changes: Any) -> Plan:
    return api.plan(make_small_spec(**changes), out=folder, data=folder)[0]


def list_addresses(plan: Plan) -> dict[str, str]:
    return {stage.title: stage.digest for stage in plan.stages}


def test_every_seed_and_fold_has_a_data_context(tmp_path: Path) -> None:
    split = {"name": "random", "test": 0.2, "folds": 3}
    plan = make_plan(tmp_path, seed=None, seeds=[1, 2], split=split)
    assert [(context.keys.seed, context.keys.fold) for context in plan.data_contexts] == [
        *((1, 1), (1, 2), (1, 3)),
        *((2, 1), (2, 2), (2, 3)),
    ]


@pytest.mark.parametrize(
    ("change", "unchanged"),
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
def test_a_change_of_the_spec_changes_the_addresses_that_depend_on_it(
    tmp_path: Path, change: dict[str, Any], unchanged: set[str] | None
) -> None:
    before, after = (
        list_addresses(make_plan(tmp_path)),
        list_addresses(make_plan(tmp_path, **change)),
    )
    same_titles = {title for title, digest in after.items() if before.get(title) == digest}
    assert same_titles == (set(after) if unchanged is None else unchanged)


def test_an_address_depends_on_the_bytes_of_input_files(tmp_path: Path) -> None:
    path = tmp_path / "clicks.csv"
    dataset = {"name": "tables", "interactions": str(path)}
    path.write_text("user_id,item_id\na,1\nb,2\n")
    before = list_addresses(make_plan(tmp_path, dataset=dataset))
    path.write_text("user_id,item_id\na,1\nb,3\n")
    after = list_addresses(make_plan(tmp_path, dataset=dataset))
    assert before["load tables"] != after["load tables"]


def test_given_lists_are_addressed_by_their_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    models = [{"name": "lists", "path": str(path)}]
    path.write_text("query_id,item_id,rank\na,1,1\n")
    before = list_addresses(make_plan(tmp_path, models=models))
    path.write_text("query_id,item_id,rank\na,2,1\n")
    after = list_addresses(make_plan(tmp_path, models=models))
    assert before["ask lists"] != after["ask lists"]


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [("# Why.", "# Why else.", True), ("SIZE = 1", "SIZE = 2", False)],
    ids=["comment", "constant"],
)
def test_a_plugin_file_is_addressed_by_its_code(
    tmp_path: Path, old: str, new: str, is_same: bool
) -> None:
    path = tmp_path / "mine.py"
    models = [f"{path}:Mine"]
    source = """
        from recbias.models.unpersonalised import MostPop

        SIZE = 1  # Why.

        class Mine(MostPop):
            pass
    """
    path.write_text(dedent(source))
    before = list_addresses(make_plan(tmp_path, models=models))
    path.write_text(dedent(source).replace(old, new))
    assert (list_addresses(make_plan(tmp_path, models=models)) == before) == is_same


def test_missing_data_is_reported_before_any_stage_runs(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        make_plan(tmp_path, dataset="ml-1m")
    assert "recbias data fetch ml-1m" in "\n".join(caught.value.lines())


@pytest.mark.parametrize(
    ("change", "message", "remedy"),
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
def test_contradictions_in_the_spec_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str, remedy: str
) -> None:
    with pytest.raises(Faults) as caught:
        make_plan(tmp_path, **change)
    text = "\n".join(caught.value.lines())
    assert message in text
    assert remedy in text
