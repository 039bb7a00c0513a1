from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from support.commands import invoke_recbias, write_small_spec

GOOD = """\
name: broken
seed: 42
dataset:
  name: demo
  n_users: 80
  filters:
    - {name: k_core, k: 2}
split: {name: random, test: 0.2}
queries: {name: users, where: "age < 30"}
k: 5
models:
  - MostPop
  - {name: ItemKNN, neighbors: 10}
metrics:
  - nDCG
  - {name: HR, k: 3}
tests:
  - {name: paired_t, alpha: 0.05}
"""

BROKEN: list[tuple[str, str, str, int, str, str]] = [
    # name, valid text, invalid text, line, part of the error, part of the help
    ("unknown model", "- MostPop", "- MostPopular", 12, "MostPopular", "MostPop"),
    ("cutoff beyond the lists", "k: 3", "k: 30", 16, "lists of 30", "k: 30"),
    ("metric without a test set", "split: {name: random, test: 0.2}", "", 15, "test", "split"),
    ("missing plug-in file", "- MostPop", '- "./none.py:Model"', 12, "none.py", ""),
    ("not a condition", "age < 30", "import os", 9, "import os", "age < 18"),
    (
        "incomplete condition to group by",
        "- nDCG",
        '- {name: nDCG, by: "age <"}',
        15,
        "age <",
        "age < 18",
    ),
    (
        "unknown published table",
        "seed: 42",
        "report: {reference: children/a33}",
        2,
        "report.reference",
        "children/a3",
    ),
    (
        "published table without figures",
        "seed: 42",
        "report: {reference: children/a1}",
        2,
        "no figures",
        "compare with",
    ),
    (
        "too many trials",
        "neighbors: 10",
        "tune: {metric: nDCG, trials: 2001, space: thesis}",
        13,
        "2000",
        "20",
    ),
    ("a dataset called all", "name: demo", "name: demo\n  label: All", 5, "All", "another"),
]


@pytest.mark.parametrize(
    ("good", "bad", "line", "error", "remedy"),
    [case[1:] for case in BROKEN],
    ids=[case[0] for case in BROKEN],
)
def test_invalid_spec_is_reported_with_its_line(
    tmp_path: Path, good: str, bad: str, line: int, error: str, remedy: str
) -> None:
    assert good in GOOD
    spec = write_small_spec(tmp_path, GOOD.replace(good, bad), "broken.yaml")
    result = invoke_recbias("plan", spec.name, folder=tmp_path)
    assert result.code == 2, result.err
    error_line = result.err.splitlines()[0]
    assert error_line.startswith(f"error: broken.yaml:{line}:"), result.err
    assert error in error_line
    help_lines = [line for line in result.err.splitlines() if line.startswith("help: ")]
    assert help_lines, result.err
    assert remedy in help_lines[0]
    assert "Traceback" not in result.err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("good", "bad", "location"),
    [
        ("age < 30", "agee < 30", "broken.yaml:9:10: queries: "),
        ("age < 30", "age < 0", "broken.yaml:9:10: queries: "),
        ("k_core, k: 2", "k_core, k: 5000", "broken.yaml:4:3: dataset: "),
    ],
)
def test_fault_found_in_the_data_has_a_location_in_the_spec(
    tmp_path: Path, good: str, bad: str, location: str
) -> None:
    spec = write_small_spec(tmp_path, GOOD.replace(good, bad), "broken.yaml")
    result = invoke_recbias("run", spec.name, "--quiet", folder=tmp_path)
    assert result.code == 2
    assert result.err.startswith(f"error: {location}"), result.err
    assert "\nhelp: " in result.err


ODD_USERS = ["a,b", 'say "hi"', "new\nline", "🎬", "שלום", "007", "7", " x "]
ODD_ITEMS = ["i,1", 'i"2"', "i\n3", "🍕", "01", "1", "<b>&amp;</b>", "$_%"]


def write_rows(path: Path, head: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(head)
        writer.writerows(rows)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Write train, test, queries and lists with unusual identifiers; return their folder."""
    head = ["user_id", "item_id"]
    train = [[user, ODD_ITEMS[n % 4]] for n, user in enumerate(ODD_USERS)]
    test = [[user, ODD_ITEMS[4 + n % 4]] for n, user in enumerate(ODD_USERS[:-1])]
    write_rows(tmp_path / "train.csv", head, train)
    write_rows(tmp_path / "test.csv", head, test)
    write_rows(tmp_path / "queries.csv", ["query_id", "age"], [[user, "9"] for user in ODD_USERS])
    lists = [[user, ODD_ITEMS[4 + n % 4], "1"] for n, user in enumerate(ODD_USERS[:-2])]
    write_rows(tmp_path / "mine.csv", ["query_id", "item_id", "rank"], lists)
    (tmp_path / "spec.yaml").write_text(
        "name: odd\n"
        "dataset: tables\n"
        "split: {name: given, train: train.csv, test: test.csv}\n"
        "queries: {name: table, path: queries.csv}\n"
        "k: 3\n"
        "models:\n"
        "  - {name: lists, label: '<script>alert(1)</script>|&_%$', path: mine.csv}\n"
        "  - MostPop\n"
        "metrics: [nDCG, HR, log_popularity_difference(smoothing=1)]\n"
        "tests: [paired_t]\n",
        encoding="utf-8",
    )
    return tmp_path


def test_identifiers_are_unchanged_in_the_results(odd: Path) -> None:
    result = invoke_recbias("run", "spec.yaml", folder=odd)
    assert result.code == 0, result.err
    run = odd / "results" / "odd" / "latest"
    lists = pd.read_parquet(run / "lists.parquet")
    rows = lists[lists["model"] != "MostPop"]
    assert rows["query_id"].tolist() == ODD_USERS[:-2]
    assert rows["item_id"].tolist() == [ODD_ITEMS[4 + n % 4] for n in range(6)]
    units = pd.read_parquet(run / "per_unit.parquet")
    assert set(units["unit_id"]) == set(ODD_USERS)


def test_missing_lists_count_as_zero_and_undefined_values_are_excluded(odd: Path) -> None:
    result = invoke_recbias("run", "spec.yaml", folder=odd)
    assert result.code == 0, result.err
    run = odd / "results" / "odd" / "latest"
    table = pd.read_csv(run / "metrics.csv")
    row = table[(table["model"] != "MostPop") & (table["metric"] == "nDCG")].iloc[0]
    # 8 queries; the last has no test item: undefined. "7" has test items, no list: 0. 6 are hit
    assert (row["n"], row["undefined"]) == (7, 1)
    assert row["value"] == pytest.approx(6 / 7)
    units = pd.read_parquet(run / "per_unit.parquet")
    last_user = units[(units["unit_id"] == " x ") & (units["metric"] == "nDCG")]
    assert last_user["value"].isna().all()
    warnings = "\n".join(json.loads((run / "manifest.json").read_text())["warnings"])
    assert "2" in warnings
    assert "list" in warnings


def test_of_many_faults_25_are_printed_and_the_others_counted(tmp_path: Path) -> None:
    names = ", ".join(f"Absent{number}" for number in range(40))
    text = GOOD.replace("  - MostPop\n  - {name: ItemKNN, neighbors: 10}", f"  [{names}]")
    spec = write_small_spec(tmp_path, text, "broken.yaml")
    result = invoke_recbias("plan", spec.name, folder=tmp_path)
    assert result.err.count("error: broken.yaml:") == 25
    assert "15 more" in result.err.splitlines()[-1] + result.err.splitlines()[-2]
    document = json.loads(invoke_recbias("plan", spec.name, "--json", folder=tmp_path).out)
    assert len(document["errors"]) == 40
