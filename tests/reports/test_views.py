from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias
from recbias.core.errors import MissingRun
from recbias.core.measures import METRICS, Direction
from recbias.reports.llm import build_reply_tables, collect_searches
from recbias.reports.provenance import build_stages_table, describe_data
from recbias.reports.run import RunTables, read_run
from recbias.reports.views import (
    POPULARITY,
    collect_definitions,
    collect_estimates,
    flag_best,
    select_accuracy_metric,
    select_first,
    select_headline,
)
from recbias.reports.wording import Table
from support.models.search_rows import FIVE_TRIALS, write_search_run
from support.run_folders import RunSpec, make_run


def test_labels_are_read_as_text_and_values_as_numbers(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(models=("nan", "NA", "1"))))
    assert set(run.metrics["model"]) == {"nan", "NA", "1"}
    assert set(run.metrics["seed"]) == {"42"}
    assert run.metrics["value"].dtype == "float64"
    assert run.significance["significant"].isin(["True", "False"]).all()
    assert run.manifest["name"] == "ml-1m"


NAN = math.nan


@pytest.mark.parametrize(
    ("values", "direction", "wins"),
    [
        ([0.1, 0.3, 0.2], "higher", [1]),
        ([0.1, 0.3, 0.2], "lower", [0]),
        ([-0.5, 0.4, 0.6], "zero", [1]),
        ([-0.4, 0.4], "zero", [0, 1]),
        ([0.3, 0.3, NAN], "higher", [0, 1]),
        ([NAN, NAN], "lower", []),
        ([0.1, 0.3], "none", []),
        ([], "higher", []),
    ],
)
def test_the_best_values_depend_on_the_direction_and_include_ties(
    values: list[float], direction: Direction, wins: list[int]
) -> None:
    assert [position for position, win in enumerate(flag_best(values, direction)) if win] == wins


@pytest.mark.parametrize(
    ("metrics", "accuracy", "popularity"),
    [
        (("HR", "nDCG", "Gini", "ARP"), "nDCG@10", "ARP@10"),
        (("HR", "MRR", "ARP", "log_popularity_difference"), "MRR@10",
         "log_popularity_difference@10"),
        (("Gini",), None, "Gini@10"),
        (("Novelty",), None, None),
    ],
)  # fmt: skip
def test_the_main_metrics_are_selected_by_name(
    tmp_path: Path, metrics: tuple[str, ...], accuracy: str | None, popularity: str | None
) -> None:
    run = read_run(make_run(tmp_path, RunSpec(metrics=metrics)))
    definitions = collect_definitions(run).values()
    selected = select_accuracy_metric(definitions), select_first(definitions, POPULARITY)
    assert [metric.title if metric else None for metric in selected] == [accuracy, popularity]


def test_data_and_settings_are_described(tmp_path: Path) -> None:
    assert dict(describe_data(read_run(make_run(tmp_path)))) == {
        "Dataset": "ml-1m: 5,949 users, 2,810 items, 571,531 interactions",
        "Filters": "threshold (at least 4), k_core (k 10)",
        "Queries": "5,949 users where age < 18",
        "Split": "random (test 0.2, validation 0, folds 1)",
        "List length k": "10",
        "Seed": "42",
    }


def test_the_cost_of_stages_is_shown_where_a_stage_has_it(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(models=("EASE", "SLIM"))))
    first, second = run.manifest["stages"]
    first["cost"] = {"cpu_seconds": 0.7, "gpu_seconds": 0.0}
    second |= {"reused": True, "seconds": 0.0, "peak_memory_mb": None, "cost": None}
    table = build_stages_table(run)
    assert [column.title for column in table.columns] == [
        *("stage", "kind", "duration", "CPU time", "peak memory", "from cache")
    ]
    assert [cell.text for cell in table.rows[0][2:]] == [
        "0.40 s",
        "0.70 s",
        "300 MB",
        "no",
    ]
    assert [cell.text for cell in table.rows[1][2:]] == ["", "", "", "yes"]


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


def make_line(*ranks: tuple[str, str], **changes: Any) -> dict[str, Any]:
    """Return a reply with (title, outcome) at each rank: 10 tokens of prompt, 5 of reply."""
    parsed = [{"title": title, "outcome": outcome} for title, outcome in ranks]
    return {
        "dataset": "ml-1m",
        "model": "WOK",
        "seed": 1,
        "fold": 1,
        "query_id": "1",
        "prompt": "p",
        "reply": "r",
        "outcome": "complete",
        "parsed": parsed,
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
        "cached": False,
        **changes,
    }


def build(folder: Path, *lines: dict[str, Any]) -> list[Table]:
    make_run(folder, RunSpec(models=("Random",), metrics=("HR",), users=5))
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "responses.jsonl").write_text(text, encoding="utf-8")
    return build_reply_tables(read_run(folder))


def read_rows(table: Table) -> list[tuple[str, ...]]:
    return [tuple(cell.text for cell in row) for row in table.rows]


def test_outcomes_and_tokens_are_counted_over_folds(tmp_path: Path) -> None:
    (table,) = build(
        tmp_path,
        make_line(("Heat (1995)", "matched")),
        make_line(outcome="length", cached=True),
        make_line(outcome="refusal", fold=2),
        make_line(outcome="failed", model="other", usage=None),
    )
    assert [column.title for column in table.columns] == [
        *("model", "replies", "complete", "length", "refusal", "empty", "failed"),
        *("stored before", "tokens in", "tokens out"),
    ]
    assert read_rows(table) == [
        ("WOK", "3", "1", "1", "1", "0", "0", "1", "30", "15"),
        ("other", "1", "0", "0", "0", "0", "1", "0", "0", "0"),
    ]


def test_repeated_requests_are_counted_over_folds(tmp_path: Path) -> None:
    build(tmp_path, make_line(("Heat (1995)", "matched")))
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    names = ("repeated_requests", "repeated_same_text", "repeated_same_titles")
    manifest["stages"] = [
        {"kind": "answer", "model": "WOK", "facts": dict(zip(names, counts, strict=True))}
        for counts in [(10, 7, 8), (10, 10, 10)]
    ]
    manifest["stages"].append(
        {"kind": "answer", "model": "other", "facts": dict(zip(names[:2], (4, 3), strict=True))}
    )
    path.write_text(json.dumps(manifest), encoding="utf-8")
    _, table = build_reply_tables(read_run(tmp_path))
    assert table.title == "Repeatability of the replies"
    assert [column.title for column in table.columns] == [
        *("model", "repeated", "same text", "same titles")
    ]
    # titles of the other model are not compared
    assert read_rows(table) == [("WOK", "20", "17", "18"), ("other", "4", "3", "")]


def test_a_search_has_its_trials_and_importances(tmp_path: Path) -> None:
    (search,) = collect_searches(write_search_run(tmp_path))
    assert (search.title, search.metric, search.direction) == ("SLIM", "nDCG@10", "higher")
    assert [trial["trial"] for trial in search.trials] == [1, 2, 3, 4, 5]
    assert [trial["settings"] for trial in search.trials] == [
        settings for _, _, settings in FIVE_TRIALS
    ]
    assert search.summary == "nDCG@10 0.3500 in trial 3 of 5"
    assert "(3 done, 1 pruned, 1 failed), with alpha 1e-05" in search.sentence
    assert search.importances == {"alpha": 0.75, "similarity": 0.25}


def test_the_table_of_trials_has_one_column_per_setting(tmp_path: Path) -> None:
    (search,) = collect_searches(write_search_run(tmp_path))
    table = search.table
    titles = ["trial", "nDCG@10", "alpha", "similarity", "outcome", "epochs", "time"]
    assert [column.title for column in table.columns] == titles
    numeric = [column.title for column in table.columns if column.numeric]
    assert numeric == ["nDCG@10", "alpha", "epochs", "time"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["1", "0.2000", "0.5", "cosine", "done", "", "1.50 s"],
        ["2", "0.0500", "0.001", "dice", "pruned", "10", "3.00 s"],
        ["3", "0.3500", "1e-05", "none", "best", "", "4.50 s"],
        ["4", "", "9", "dice", "failed", "", "6.00 s"],
        ["5", "0.3000", "0.25", "cosine", "done", "", "7.50 s"],
    ]
    assert [row[1].best for row in table.rows] == [False, False, True, False, False]
    # the score of a pruned trial is not comparable: it is marked and sorted last
    assert [row[1].mark for row in table.rows] == ["", "p", "", "", ""]
    assert [math.isnan(row[1].value) for row in table.rows] == [False, True, False, True, False]
    assert table.notes[0].startswith("p: pruned")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("manifest.json", None, "manifest.json does not exist"),
        ("manifest.json", "{", "not JSON"),
        ("manifest.json", "[]", "not a JSON object"),
        ("metrics.csv", None, "metrics.csv does not exist"),
        ("metrics.csv", "", "cannot be read"),
        ("metrics.csv", "dataset,model\nx,y\n", "has no column seed"),
        ("significance.csv", "dataset\nx\n", "has no column model"),
        ("metrics.csv", ",".join(METRICS.names) + "\na,b,1,1,m,ten,,,,,,,,\n", "cannot be read"),
    ],
)
def test_the_error_for_a_folder_without_a_run_has_a_remedy(
    tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    make_run(tmp_path)
    (tmp_path / name).unlink()
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(MissingRun, match=message) as caught:
        read_run(tmp_path)
    assert "recbias run" in caught.value.remedy
