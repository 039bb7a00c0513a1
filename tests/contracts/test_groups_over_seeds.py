"""Groups over several seeds and folds: one test, of the figures that the card shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.reports.conclusions import collect_conclusions
from recbias.reports.run import read_run
from recbias.reports.tables import build_group_tables
from recbias.reports.views import list_whole
from support.specs import make_small_spec

METRICS = [
    "nDCG",
    {"name": "nDCG", "by": "gender"},
    {"name": "HR", "by": "gender", "gap": "difference"},
]
SIDES = ["gender=F", "gender=M"]


def make_tables() -> dict[str, Any]:
    """Return 50 users of two genders with 5 to 14 of 30 items each."""
    rng = np.random.default_rng(3)
    ids = [f"u{user}" for user in range(50)]
    pairs = [(user, item) for user in ids for item in rng.permutation(30)[: rng.integers(5, 15)]]
    users = pd.DataFrame({"user_id": ids, "gender": [*"FMM"] * 16 + [*"FF"]})
    interactions = pd.DataFrame(pairs, columns=["user_id", "item_id"])
    return {"name": "tables", "interactions": interactions, "users": users}


def run_seeds(tmp_path: Path, seeds: list[int], folds: int = 1) -> recbias.Run:
    split = {"name": "random", "test": 0.2, "folds": folds}
    changes: dict[str, Any] = {"dataset": make_tables(), "models": ["Random"]}
    changes |= {"metrics": METRICS, "split": split, "seed": None, "seeds": seeds, "tests": None}
    return recbias.run(make_small_spec(**changes), out=tmp_path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    return run_seeds(tmp_path_factory.mktemp("seeds"), [1, 2, 3], folds=2)


def average_units(run: recbias.Run, metric: str) -> list[pd.Series]:
    """Return the mean of each user of both groups, from the values in the run folder."""
    per_unit = run.per_unit
    rows = per_unit[per_unit["metric"] == metric]
    groups = [rows[rows["group"] == side] for side in SIDES]
    return [group.groupby("unit_id")["value"].mean().dropna() for group in groups]


def test_table_and_conclusion_have_the_figures_of_the_test(run: recbias.Run) -> None:
    tables = read_run(run.folder)
    table = build_group_tables(tables)[0]
    assert table.title == "nDCG@5 by gender"
    f, m = average_units(run, "nDCG(by=gender)")
    titles = [column.title for column in table.columns]
    assert titles == ["model", f"F (n {len(f)})", f"M (n {len(m)})", "gap"]
    (values,) = table.rows
    means = [f.mean(), m.mean(), abs(f.mean() - m.mean())]
    assert [cell.value for cell in values[1:]] == pytest.approx(means)
    higher = "gender=M less gender=F" if m.mean() > f.mean() else "gender=F less gender=M"
    assert values[-1].note.startswith(higher)
    assert "Means over seeds and folds: n counts units, not values" in table.notes[-1]
    overall = run.per_unit[run.per_unit["metric"] == "nDCG"].dropna(subset="value")
    (row,) = list_whole(tables, "nDCG@5", "tables")
    assert (row["n"], row["undefined"]) == (n := overall["unit_id"].nunique(), 50 - n)
    (conclusion,) = (
        item
        for item in collect_conclusions(tables)
        if (item.metric, item.kind) == ("nDCG(by=gender)@5", "groups")
    )
    assert "seed 1" not in conclusion.sentence
    assert conclusion.n_tests == 1


def test_the_power_of_a_run_is_that_of_the_units(run: recbias.Run) -> None:
    power = recbias.power(run, difference=0.1)
    row = power[power["metric"] == "nDCG(by=gender)"].iloc[0]
    f, m = average_units(run, "nDCG(by=gender)")
    assert (row["seed"], row["n"]) == ("all", len(f) + len(m))
    assert 0.5 < row["needed_a"] / row["needed_b"] / (len(f) / len(m)) < 2
