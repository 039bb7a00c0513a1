from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from recbias.core.errors import MissingRun
from recbias.core.measures import METRICS, TRIALS, Direction
from recbias.reports.render import count_asked, describe_data
from recbias.reports.run import RunTables, read_responses, read_run, read_trials
from recbias.reports.tables import build_reply_tables, tabulate_searches
from recbias.reports.views import (
    POPULARITY,
    collect_definitions,
    flag_best,
    select_accuracy_metric,
    select_first,
    select_headline,
)
from recbias.reports.wording import Table
from support.models.search_rows import write_search_run
from support.run_folders import RunSpec, make_run

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
    run = read_run(make_run(tmp_path))
    assert count_asked(run) == "5,949 users"
    assert dict(describe_data(run)) == {
        "Dataset": "ml-1m: 5,949 users, 2,810 items, 571,531 interactions",
        "Filters": "threshold (at least 4), k_core (k 10)",
        "Queries": "5,949 users (where age < 18)",
        "Split": "random (test 0.2, validation 0, folds 1)",
        "List length k": "10",
        "Seed": "42",
    }


@pytest.fixture
def run(tmp_path: Path) -> RunTables:
    world = RunSpec(models=("b", "a"), datasets=("y", "x"), seeds=(2, 1), folds=2, users=20)
    return read_run(make_run(tmp_path, world))


def test_the_headline_is_the_mean_over_seeds_and_folds(run: RunTables) -> None:
    frame = select_headline(run, run.metrics)
    assert set(frame["seed"]) == set(frame["fold"]) == {"all"}
    assert list(dict.fromkeys(frame["dataset"])) == ["all", "y", "x"]


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


def test_titles_without_an_item_and_repeated_requests_are_counted(tmp_path: Path) -> None:
    build(tmp_path, make_line(("No|Such", "unknown"), ("Heat", "matched")), make_line())
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    facts = {"repeated_requests": 10, "repeated_same_text": 7}
    manifest["stages"] = [{"kind": "answer", "model": "WOK", "facts": facts}] * 2
    path.write_text(json.dumps(manifest), encoding="utf-8")
    with (tmp_path / "responses.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(f"{json.dumps(make_line(('NO|such', 'unknown')))}\n")
    _, repeats, titles = build_reply_tables(read_run(tmp_path))
    assert read_rows(repeats) == [("WOK", "20", "14", "")]  # titles were not compared
    assert read_rows(titles) == [("WOK", "No|Such", "unknown", "2")]


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


def test_a_search_is_a_row_with_its_best_trial_and_the_importances(tmp_path: Path) -> None:
    table = tabulate_searches(write_search_run(tmp_path, importances={"b": 0.25, "a": 0.75}))
    assert table is not None
    assert [column.title for column in table.columns] == [
        *("model", "metric", "best", "trials", "pruned", "excluded", "failed", "time"),
        *("chosen settings", "importance"),
    ]
    assert read_rows(table) == [
        ("SLIM", "nDCG@10", "0.3500", "5", "1", "0", "1", "22 s", "alpha 1e-05", "a 0.75, b 0.25")
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("manifest.json", None, "manifest.json does not exist"),
        ("manifest.json", "{", "not the manifest of a run"),
        ("manifest.json", "[]", "not the manifest of a run"),
        ("metrics.csv", None, "metrics.csv does not exist"),
        ("metrics.csv", "", "cannot be read"),
        ("metrics.csv", ",".join(METRICS.names) + "\na,b,1,1,m,ten,,,,,,,,\n", "cannot be read"),
        ("metrics.csv", "dataset,model\n", "it has no column 'seed'"),
        ("trials.csv", "hello\n", "it has no column 'dataset'"),
        ("trials.csv", ",".join(TRIALS.names) + "\nd,m,1,1,1,0.1,done,1,,{\n", "no JSON"),
        ("responses.jsonl", '{"dataset": "d", "mod', "not a response of a run"),
        ("responses.jsonl", "[1]\n", "not a response of a run"),
    ],
)
def test_the_error_for_a_folder_without_a_run_has_a_remedy(
    tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    make_run(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")

    def read() -> None:
        run = read_run(tmp_path)
        list(read_trials(run))
        list(read_responses(run.folder))

    with pytest.raises(MissingRun, match=message) as caught:
        read()
    assert "recbias run" in caught.value.remedy
