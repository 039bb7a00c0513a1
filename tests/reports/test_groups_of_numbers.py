"""A run by bins and quantiles of a number: names of groups, named pairs, and changes of a gap."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.reports.conclusions import split_conclusions
from recbias.reports.run import name_groups, read_run
from recbias.reports.tables import build_group_tables
from recbias.reports.verdict import build_verdict
from recbias.reports.views import collect_questions
from recbias.reports.wording import format_interval

QUANTILES, BINS = "age in 4 quantiles", "age in [18, 30, 50]"
SPEC: dict[str, Any] = {
    "name": "numbers",
    "dataset": {"name": "demo", "n_users": 200, "n_items": 80},
    "split": {"name": "random", "test": 0.2},
    "models": ["ItemKNN", "PureSVD"],
    "metrics": [
        {"name": "nDCG", "by": QUANTILES, "gap": "groups"},
        {"name": "nDCG", "by": QUANTILES, "gap": "difference"},
        {"name": "HR", "by": BINS, "gap": "groups", "pairs": [["under 18", "50+"]]},
        {"name": "HR", "by": BINS, "gap": "difference"},
    ],
    "tests": [{"name": "paired_t"}],
}
CHECK = {"metric": "nDCG", "by": QUANTILES, "gap": "difference", "margin": 0.01}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    checks = [CHECK | {"not_above": name} for name in SPEC["models"]]
    return recbias.run(SPEC | {"checks": checks}, out=tmp_path_factory.mktemp("numbers"))


def test_quantiles_have_bounds_in_reports_and_ranks_in_files(run: recbias.Run) -> None:
    ranks = [f"age=quantile {rank} of 4" for rank in (1, 2, 3, 4)]
    groups = run.metrics.query("metric.str.contains('quantiles') and group != ''")["group"]
    assert list(dict.fromkeys(groups)) == ranks
    table, _ = build_group_tables(name_groups(read_run(run.folder)))
    names = [column.title for column in table.columns[1:-1]]
    bounds = [re.fullmatch(r"(\d+) to (\d+) \((\d) of 4\) \(n \d+\)", name) for name in names]
    numbers = [[*map(int, match.groups())] for match in bounds if match]
    assert [rank for *_, rank in numbers] == [1, 2, 3, 4]
    ends = [end for low, high, _ in numbers for end in (low, high)]
    assert ends == sorted({*ends})


def test_the_gap_of_a_table_has_the_interval_of_the_gap(run: recbias.Run) -> None:
    tables = build_group_tables(read_run(run.folder))
    for table, by in zip(tables, (QUANTILES, BINS), strict=True):
        rows = run.metrics[run.metrics["metric"].str.endswith(f"(by={by}, gap=difference)")]
        gaps = {row["model"]: row for row in rows.to_dict("records")}
        for model, *_, cell in table.rows:
            gap = gaps[model.text]
            assert cell.interval == format_interval(gap["ci_low"], gap["ci_high"], 4)
            assert by == BINS or "adjusted p" in cell.note  # only one pair of bins is tested


def test_a_table_has_one_number_of_decimals(run: recbias.Run) -> None:
    for table in build_group_tables(read_run(run.folder)):
        texts = [cell.text for row in table.rows for cell in row[1:]]
        assert {len(text.partition(".")[2]) for text in texts} == {4}


def test_the_change_of_a_gap_has_one_interval_whichever_model_is_first(run: recbias.Run) -> None:
    tests = run.significance.query("test == 'gap_change' and metric.str.startswith('nDCG')")
    (row,) = tests.to_dict("records")
    checks = {check["model"]: check for check in run.manifest["checks"] if check["value"]}
    names = ["difference", "ci_low", "ci_high"]
    ends = ("value", "ci_low", "ci_high")
    assert [checks[row["a"]][name] for name in ends] == [row[name] for name in names]
    mirrored = [-row[name] for name in ("difference", "ci_high", "ci_low")]
    assert [checks[row["b"]][name] for name in ends] == mirrored


def test_named_pairs_are_asked_about_and_come_first(tmp_path: Path) -> None:
    run = read_run(recbias.run(SPEC, out=tmp_path).folder)
    asked = [item for item in collect_questions(run) if item.metric.name == "HR"]
    assert "welch_anova" not in {item.comparisons[0].test for item in asked}
    first = split_conclusions(run)[0][0]
    assert first.metric == f"HR(by={BINS})@10"
    assert "between age=under 18 and age=50+" in build_verdict(run).line
