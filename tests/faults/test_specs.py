"""Large specs and specs of many faults: `recbias plan` ends soon, and names all of them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from support.commands import invoke_recbias


def write_entries(key: str, entries: Iterable[object]) -> str:
    return f"{key}: [{', '.join(map(str, entries))}]\n"


SMALL = "name: x\ndataset: demo\nmodels: [MostPop]\nmetrics: []\n"
LARGE = {
    "too many values": (SMALL + write_entries("seeds", range(100_001)), "5:8: more than 100,000"),
    "depth": (SMALL + "tests: " + "[" * 900_000, "is nested too deeply"),
    "a long list of text": (SMALL + write_entries("seeds", ["x"] * 99_000), "5:8: seeds: must"),
    "unknown models": (
        "name: x\ndataset: demo\n" + write_entries("models", [f"Modl{n}" for n in range(900)]),
        "3:10: models[0]: no model is called 'Modl0'",
    ),
}


@pytest.mark.parametrize(("text", "error"), LARGE.values(), ids=LARGE)
def test_a_large_spec_is_refused_in_three_seconds(tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    begin = time.process_time()
    result = invoke_recbias("plan", "x.yaml", folder=tmp_path)
    assert time.process_time() - begin < 3.0
    assert result.code == 2
    assert re.search(rf"^error: x.yaml:\s?{re.escape(error)}", result.err, re.MULTILINE)
    assert "\nhelp: " in result.err


@pytest.mark.parametrize(
    ("n", "seconds"), [(100, 3.0), pytest.param(300, 6.0, marks=pytest.mark.slow)]
)
def test_a_plan_of_many_stages_is_fast(tmp_path: Path, n: int, seconds: float) -> None:
    """What distinguishes a metric is found once, not once for every model."""
    models = [f"{{name: ItemKNN, neighbors: {at}, label: m{at}}}" for at in range(1, n + 1)]
    metrics = [f"{{name: nDCG, k: {at}, label: n{at}}}" for at in range(1, n + 1)]
    parts = write_entries("models", models) + write_entries("metrics", metrics)
    dataset = "dataset: {name: demo, n_users: 60, n_items: 400}\n"
    text = f"name: x\n{dataset}split: {{name: random, test: 0.2}}\nk: 300\n{parts}"
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    begin = time.process_time()
    result = invoke_recbias("plan", "x.yaml", folder=tmp_path)
    assert time.process_time() - begin < seconds
    assert (result.code, result.err) == (0, "")
    assert f"{n * n + 2 * n + 3} stages ({n * n} metrics)" in result.out


@pytest.mark.slow
def test_a_plan_of_many_trials_is_fast(tmp_path: Path) -> None:
    models = [
        f"{{name: ItemKNN, label: m{at}, tune: {{metric: nDCG, trials: 900,"
        f" space: {{neighbors: {{int: [{at + 1}, 2000]}}}}}}}}"
        for at in range(90)
    ]
    dataset = "dataset: {name: demo, n_users: 60, n_items: 400}\n"
    split = "split: {name: random, test: 0.2, validation: 0.1}\n"
    text = f"name: x\n{dataset}{split}metrics: [nDCG]\n{write_entries('models', models)}"
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    begin = time.process_time()
    result = invoke_recbias("plan", "x.yaml", folder=tmp_path)
    assert time.process_time() - begin < 12.0
    assert (result.code, result.err) == (0, "")
    assert "81000 trials" in result.out


MIXED = """\
name: mixed
dataset: {name: demo, n_users: 60, n_items: 30}
split: {name: random, test: 0.2}
device: "cuda:7"
models:
  - {name: ItemKNN, neighbors: -3}
  - LightGCN
metrics:
  - {name: nDCG, by: gendr}
  - {name: log_popularity_difference, popularity: no_column}
  - nDCG@30
"""
PARTS = (
    "6:32: models[0].neighbors: must be a whole number above 0, found -3",
    "11:5: metrics[2]: nDCG@30 needs lists of 30, but k is 10",
    "4:9: device: ",
    "9:22: metrics[0].by: no query carries the label 'gendr'",
    "10:51: metrics[1].popularity: the items have no column 'no_column'",
)


@pytest.mark.parametrize("n_found_later", [0, 2])
def test_a_fault_of_one_part_hides_none_of_another(tmp_path: Path, n_found_later: int) -> None:
    """Without the first two, all settings can be built, and the needs are compared at once."""
    lines = MIXED.splitlines(keepends=True)
    if n_found_later:
        lines[5], lines[10] = "\n", "\n"
    (tmp_path / "x.yaml").write_text("".join(lines), encoding="utf-8")
    result = invoke_recbias("plan", "x.yaml", folder=tmp_path)
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    expected = PARTS[n_found_later:]
    assert result.code == 2
    assert len(errors) == len(expected), errors
    for part in expected:
        error = part.replace("models[1]", f"models[{0 if n_found_later else 1}]")
        assert any(line.startswith(f"error: x.yaml:{error}") for line in errors), error
