from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias
from recbias.reports.run import RunTables, read_run
from recbias.reports.views import (
    collect_estimates,
    select_headline,
)
from support.run_folders import RunSpec, make_run


@pytest.fixture
def run(tmp_path: Path) -> RunTables:
    world = RunSpec(models=("b", "a"), datasets=("y", "x"), seeds=(2, 1), folds=2, users=20)
    return read_run(make_run(tmp_path, world))


def test_the_headline_is_the_mean_over_seeds_and_folds(run: RunTables) -> None:
    frame = select_headline(run, run.metrics)
    assert set(frame["seed"]) == set(frame["fold"]) == {"all"}
    assert list(dict.fromkeys(frame["dataset"])) == ["all", "y", "x"]


def test_an_undefined_value_counts_once_in_groups_known_as_probabilities(tmp_path: Path) -> None:
    # u0 has no test item, and each user is in both groups
    users = [f"u{number}" for number in range(8)]
    rows: dict[str, list[tuple[Any, ...]]] = {
        "users": [(user, 0.1 * number) for number, user in enumerate(users, 2)],
        "train": [(user, item) for user in users for item in "ab"],
        "test": [(user, "c") for user in users[1:]],
        "lists": [(user, item, rank) for user in users for rank, item in enumerate("dc", 1)],
        "items": [(item,) for item in "abcd"],
    }
    names = {
        "users": ["user_id", "p"],
        "lists": ["query_id", "item_id", "rank"],
        "items": ["item_id"],
    }
    paths = {name: str(tmp_path / f"{name}.csv") for name in rows}
    for name, cells in rows.items():
        columns = names.get(name, ["user_id", "item_id"])
        pd.DataFrame(cells, columns=columns).to_csv(paths[name], index=False)
    spec = {
        "name": "uncertain",
        "dataset": {"name": "tables", "users": paths["users"], "items": paths["items"]},
        "split": {"name": "given", "train": paths["train"], "test": paths["test"]},
        "queries": {"name": "users"},
        "k": 2,
        "models": [{"name": "lists", "label": "mine", "path": paths["lists"]}],
        "metrics": [{"name": "HR", "by": "weight of p", "gap": "difference"}],
        "report": {"formats": ["csv", "md"]},
    }
    folder = recbias.run(spec, out=tmp_path / "results").folder
    gap = collect_estimates(read_run(folder)).query("group == ''")
    assert gap["undefined"].tolist() == [1]
    page = (folder / "report.md").read_text(encoding="utf-8")
    ending = "undefined values are excluded from the mean (1 for mine)."
    assert f"HR@2, gap by weight of p: {ending}" in page
