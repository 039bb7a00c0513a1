from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.views.findings import failures, findings, made, measured, phrase, warnings
from recbias.reports.views.run_tables import RunTables, read_run
from support.run_folders import RunSpec, make_run


def changed(folder: Path, **fields: object) -> RunTables:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}), encoding="utf-8")
    return read_run(folder)


def test_the_findings_name_the_best_and_how_sure_it_is(tmp_path: Path) -> None:
    make_run(
        tmp_path, RunSpec(models=("a", "b", "c"), metrics=("nDCG", "ARP"), significance=False)
    )
    path = tmp_path / "metrics.csv"
    values = [0.1, 0.3, 0.2, 5.0, 7.0, 6.0]
    pd.read_csv(path).assign(value=values, ci_low=0.05, ci_high=0.5).to_csv(path, index=False)
    assert findings(read_run(tmp_path)) == [
        "b has the best nDCG@10, the highest of 3 models: 0.3000 (95% interval 0.0500 to 0.5000).",
        "a has the best ARP@10, the lowest of 3 models: 5.0000 (95% interval 0.0500 to 0.5000).",
    ]


def test_the_findings_count_the_significant_comparisons(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("Random", "EASE"), metrics=("nDCG",)))
    said = findings(read_run(tmp_path))
    assert said[0].endswith(", significantly better than every other.")
    assert said[1].startswith("1 of 1 comparison shown here are significant (paired t-test")


def test_ties_share_the_first_place(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("a", "b"), metrics=("nDCG",), significance=False))
    path = tmp_path / "metrics.csv"
    pd.read_csv(path).assign(value=0.5).to_csv(path, index=False)
    assert findings(read_run(tmp_path))[0].startswith("a and b have the best nDCG@10")


@pytest.mark.parametrize("metrics", [("Gini",), ("Novelty",)])
def test_metrics_without_direction_have_no_best(tmp_path: Path, metrics: tuple[str, ...]) -> None:
    run = read_run(make_run(tmp_path, RunSpec(metrics=metrics, significance=False)))
    assert findings(run) == []


def test_what_was_measured_has_counts_filters_queries_and_split(tmp_path: Path) -> None:
    said = {each.name: each.said for each in measured(read_run(make_run(tmp_path)))}
    assert said == {
        "Dataset": "ml-1m: 5,949 users, 2,810 items, 571,531 interactions",
        "Filters": "threshold (at least 4), k_core (k 10)",
        "Asked": "5,949 users where age < 18",
        "Split": "random (test 0.2, validation 0, folds 1)",
        "List length k": "10",
        "Seed": "42",
    }


def test_what_was_there_before_the_filters_is_said(tmp_path: Path) -> None:
    make_run(tmp_path)
    counts = {"users": 3, "bad_lines": 2, "interactions_before_threshold": 1000209}
    run = changed(tmp_path, datasets=[{"label": "x", "counts": counts}])
    said = {each.name: each.said for each in measured(run)}
    assert said["Dataset"] == "x: 3 users, 2 bad lines"
    assert said["Before the filters"] == "1,000,209 interactions"


def test_a_bare_manifest_is_enough(tmp_path: Path) -> None:
    make_run(tmp_path)
    (tmp_path / "spec.yaml").unlink()
    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
    run = read_run(tmp_path)
    assert measured(run) == made(run) == []
    assert failures(run) == warnings(run) == []


def test_failures_say_what_would_help_and_warnings_are_said_once(tmp_path: Path) -> None:
    failed = {"stage": "fit X", "model": "X", "message": "out of\nmemory", "help": "ask for less"}
    run = read_run(make_run(tmp_path, RunSpec(failures=[failed], warnings=["w", "v", "w"])))
    assert failures(run) == ["fit X failed: out of memory. Help: ask for less"]
    assert warnings(run) == ["w", "v"]


def test_what_several_stages_warn_of_alike_is_said_once(tmp_path: Path) -> None:
    said = ["measure a of X: 3 lost", "measure a of Y: 3 lost", "measure a of Y: 2 lost"]
    run = read_run(make_run(tmp_path, RunSpec(warnings=said)))
    assert warnings(run) == ["3 lost (2 stages)", "measure a of Y: 2 lost"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("random", "random"),
        ({"name": "k_core", "k": 10}, "k_core (k 10)"),
        ({"name": "users", "sample": None}, "users"),
        ({"alpha": 0.5, "items": ["a", "b"]}, "alpha 0.5, items a, b"),
        ([], ""),
        (1e-05, "1e-05"),
    ],
)
def test_parts_of_a_spec_are_said_in_words(value: object, said: str) -> None:
    assert phrase(value) == said


def test_how_it_was_made_says_time_and_memory(tmp_path: Path) -> None:
    said = {each.name: each.said for each in made(read_run(make_run(tmp_path)))}
    assert said["Took"] == "12 s"
    assert said["Peak memory"] == "512 MB"
    assert "Commit" not in said
