"""Invalid specs are reported with line and remedy before any stage runs."""

from __future__ import annotations

from pathlib import Path

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
    ("unknown key", "seed: 42", "sede: 42", 2, "sede", "seed"),
    ("duplicate key", "k: 5", "k: 5\nk: 6", 11, "k", "keep one"),
    ("unknown model", "- MostPop", "- MostPopular", 12, "MostPopular", "MostPop"),
    ("unknown metric", "- nDCG", "- nDGC", 15, "nDGC", "nDCG"),
    ("unknown dataset", "name: demo", "name: dmeo", 4, "dmeo", "demo"),
    ("unknown filter", "name: k_core", "name: kcor", 7, "kcor", "k_core"),
    ("unknown split", "name: random", "name: randon", 8, "randon", "random"),
    ("unknown test", "name: paired_t", "name: paired", 18, "paired", "paired_t"),
    ("unknown query source", "name: users", "name: user", 9, "user", "users"),
    ("unknown setting", "neighbors: 10", "neighbours: 10", 13, "neighbours", "neighbors"),
    ("text for a number", "k: 5", "k: five", 10, "five", ""),
    ("number as text", "neighbors: 10", 'neighbors: "10"', 13, "neighbors", ""),
    ("negative k", "k: 5", "k: -5", 10, "k", ""),
    ("out of range", "alpha: 0.05", "alpha: 5", 18, "alpha", ""),
    ("share above one", "test: 0.2", "test: 2.0", 8, "test", ""),
    ("cutoff beyond the lists", "k: 3", "k: 30", 16, "lists of 30", "k: 30"),
    ("metric without a test set", "split: {name: random, test: 0.2}", "", 15, "test", "split"),
    ("same model twice", "{name: ItemKNN, neighbors: 10}", "MostPop", 13, "MostPop", "label"),
    ("no models", "  - MostPop\n  - {name: ItemKNN, neighbors: 10}", "  []", 12, "models", ""),
    ("not YAML", "split: {name: random", "split: {name: random]", 8, "", ""),
    ("a tag that runs code", "seed: 42", "seed: !!python/object:os.system 1", 2, "", ""),
    ("a path as a name", "name: broken", "name: ../broken", 1, "name", "letters"),
    ("bad correction", "alpha: 0.05", "correction: bonferoni", 18, "bonferoni", "bonferroni"),
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
        *("too many comparisons", "age < 30", " or ".join(["age < 3"] * 1001), 9),
        *("1,001 comparisons, more than 1,000", "list values with in"),
    ),
    ("a reversed range", "age < 30", "30 < age < 18", 9, "above 30", "18 < age < 30"),
    ("a reversed range in parts", "age < 30", "age > 30 and age < 18", 9, "above 30", "18 < age"),
    ("a level like 0", "alpha: 0.05", "alpha: 1.0e-17", 18, "alpha", "0.05"),
    ("too large a family", "alpha: 0.05", "family: 10000000000000000", 18, "family", "metric"),
    (
        *("unknown published table", "seed: 42", "report: {reference: children/a33}", 2),
        *("report.reference", "children/a3"),
    ),
    (
        *("published table without figures", "seed: 42", "report: {reference: children/a1}", 2),
        *("no figures", "compare with"),
    ),
    (
        "too many permutations",
        "paired_t, alpha: 0.05",
        "sign_flip, permutations: 10000001",
        18,
        "10000000",
        "10000",
    ),
    ("too many seeds", "seed: 42", f"seeds: {[*range(1001)]}", 2, "1000", "give"),
    (
        "too many trials",
        "neighbors: 10",
        "tune: {metric: nDCG, trials: 2001, space: thesis}",
        13,
        "2000",
        "20",
    ),
    ("a dataset called all", "name: demo", "name: demo\n  label: All", 5, "All", "another"),
    (
        "a dataset called pooled",
        "name: demo",
        "name: demo\n  label: pooled",
        5,
        "pooled",
        "another",
    ),
    (
        "a model called dataset",
        "{name: ItemKNN,",
        "{name: ItemKNN, label: (dataset),",
        13,
        "(dataset)",
        "another",
    ),
    ("no such base file", "seed: 42", "extends: base.yaml", 2, "base.yaml", ""),
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


def test_all_faults_are_reported_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = GOOD.replace("name: demo", "name: dmeo").replace("neighbors", "neighbours")
    spec = write_small_spec(tmp_path, text.replace("- nDCG", "- nDGC"), "broken.yaml")
    result = invoke_recbias("run", spec.name, folder=tmp_path)
    assert result.code == 2
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert [int(line.split(":")[2]) for line in errors] == [4, 13, 15]
    assert not (tmp_path / "results").exists()


def test_missing_spec_suggests_the_nearest_file(tmp_path: Path) -> None:
    write_small_spec(tmp_path, GOOD, "broken.yaml")
    result = invoke_recbias("run", "brokn.yaml", folder=tmp_path)
    assert result.code == 2
    assert "brokn.yaml" in result.err
    assert "broken.yaml" in result.err


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
