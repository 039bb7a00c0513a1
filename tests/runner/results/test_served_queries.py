"""Models without lists of some queries are compared on the queries that all of them serve."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import recbias

USERS = [f"u{number}" for number in range(1, 7)]
SPEC = """\
name: mine
dataset: {name: tables}
split: {name: given, train: train.csv, test: test.csv}
k: 1
models:
  - {name: lists, label: all, path: all.csv}
  - {name: lists, label: warm, path: warm.csv}
metrics: [HR, ItemCoverage]
tests: [paired_t]
checks: [{metric: HR, at_least: 0.4}]
report: {formats: [md]}
"""


def write_world(folder: Path, warm: dict[str, str]) -> Path:
    """Write six users with the relevant item b; ``all`` finds those of u4, u5 and u6."""
    lists = dict(zip(USERS, "cccbbb", strict=True))
    tables = {
        "train": pd.DataFrame({"user_id": USERS + ["u0"] * 2, "item_id": [*"aaaaaa", "b", "c"]}),
        "test": pd.DataFrame({"user_id": USERS, "item_id": "b"}),
        **{
            name: pd.DataFrame({"query_id": rows.keys(), "item_id": rows.values(), "rank": 1})
            for name, rows in (("all", lists), ("warm", warm))
        },
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    (folder / "mine.yaml").write_text(SPEC, encoding="utf-8")
    return folder / "mine.yaml"


def test_the_model_that_serves_fewer_may_be_the_better_one_where_both_serve(
    tmp_path: Path,
) -> None:
    spec = write_world(tmp_path, {"u1": "b", "u2": "b", "u3": "c"})
    run = recbias.run(spec, out=tmp_path / "results")
    metrics, tests = (frame.fillna({"group": ""}) for frame in (run.metrics, run.significance))
    hits = metrics[metrics["metric"] == "HR"]
    values = hits.set_index(["group", "model"])["value"].to_dict()
    assert values == {
        ("", "all"): 3 / 6,
        ("", "warm"): pytest.approx(2 / 6),
        ("served by all models", "all"): 0,  # of u1, u2 and u3
        ("served by all models", "warm"): pytest.approx(2 / 3),
    }
    served = metrics[metrics["group"] != ""]
    assert served[["metric", "n", "undefined"]].to_numpy().tolist() == [["HR", 3, 0]] * 2
    compared = tests[tests["metric"] == "HR"]
    assert compared[["group", "n"]].to_numpy().tolist() == [["", 6], ["served by all models", 3]]
    assert compared["family_size"].tolist() == [2, 2]
    assert len(run.manifest["checks"]) == 2  # of all users only
    report = (run.folder / "report.md").read_text(encoding="utf-8")
    assert "For the 3 of 6 users with lists of all models, " in report


def test_over_folds_no_number_of_users_is_named(tmp_path: Path) -> None:
    """The number of users of one fold is not that of the users whose means are compared."""
    spec = write_world(tmp_path, {"u1": "b", "u2": "b", "u3": "c"})
    text = spec.read_text(encoding="utf-8")
    spec.write_text(f"{text}queries: {{name: users, sample: 3, folds: 2}}\n", encoding="utf-8")
    run = recbias.run(spec, out=tmp_path / "results")
    report = (run.folder / "report.md").read_text(encoding="utf-8")
    assert "For the users with lists of all models, " in report


def test_all_are_those_with_a_value(tmp_path: Path) -> None:
    """The popularity of no list is undefined for the users u4 to u6 of ``warm``."""
    spec = write_world(tmp_path, {"u1": "b", "u2": "b", "u3": "c"})
    text = spec.read_text(encoding="utf-8").replace("[HR, ItemCoverage]", "[ARP]")
    spec.write_text(text.partition("tests:")[0] + "report: {formats: [md]}\n", encoding="utf-8")
    run = recbias.run(spec, out=tmp_path / "results")
    report = (run.folder / "report.md").read_text(encoding="utf-8")
    assert "Over all users with a value, " in report


def test_models_that_serve_the_same_queries_have_no_such_group(tmp_path: Path) -> None:
    spec = write_world(tmp_path, dict(zip(USERS, "bbbccc", strict=True)))
    run = recbias.run(spec, out=tmp_path / "results")
    assert run.metrics["group"].fillna("").unique().tolist() == [""]


def test_groups_known_as_probabilities_are_compared_on_the_queries_of_both_models(
    tmp_path: Path,
) -> None:
    lists = dict(zip(USERS, "abcaab", strict=True))
    spec = write_world(tmp_path, {user: item for user, item in lists.items() if user != "u3"})
    rows = pd.DataFrame({"query_id": lists.keys(), "item_id": lists.values(), "rank": 1})
    rows.to_csv(tmp_path / "all.csv", index=False)
    asked = pd.DataFrame({"query_id": USERS, "p": [0.9, 0.8, 0.6, 0.3, 0.2, 0.1]})
    asked.to_csv(tmp_path / "asked.csv", index=False)
    metric = {"name": "ARP", "by": "probability of p", "gap": "groups"}
    models = [
        {"name": "lists", "label": name, "path": f"{name}.csv", "seen": "keep"}
        for name in ("all", "warm")
    ]
    content = {
        "name": "mine",
        "dataset": {"name": "tables"},
        "split": {"name": "given", "train": "train.csv", "test": "test.csv"},
        "queries": {"name": "table", "path": "asked.csv"},
        "k": 1,
        "models": models,
        "metrics": [metric],
        "tests": ["paired_t"],
        "report": {"formats": ["csv"]},
    }
    spec.write_text(json.dumps(content), encoding="utf-8")
    run = recbias.run(spec, out=tmp_path / "results")
    between = run.significance[run.significance["between"] == "models"]
    # the lists of the five users that both serve are the same
    assert between["difference"].tolist() == [0, 0]
    assert between["n"].tolist() == [5, 5]
    means = run.metrics.groupby("group")["value"].nunique()
    assert means.tolist() == [2, 2]
