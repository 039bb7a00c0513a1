from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.published import (
    COLUMNS,
    compare_published,
    list_published,
    load_published,
    read_source,
)
from recbias.reports.run import RunTables, read_run
from support.run_folders import RunSpec, make_run


def make_run_with(folder: Path, world: RunSpec, values: list[float]) -> RunTables:
    """Return a run whose values, by metric and then by model, are ``values``."""
    make_run(folder, world)
    path = folder / "metrics.csv"
    pd.read_csv(path, keep_default_na=False).assign(value=values).to_csv(path, index=False)
    return read_run(folder)


def test_a_run_is_compared_with_table_a3(tmp_path: Path) -> None:
    world = RunSpec(models=("ItemKNN", "EASE"), metrics=("nDCG", "MAP", "mean_precision"))
    run = make_run_with(tmp_path, world, [0.2939, 0.34, 0.17, 0.21, 0.31, 0.34])
    table = compare_published(run, "children/a3", tolerance=0.006)
    assert tuple(table.columns) == COLUMNS
    assert table["system"].tolist() == ["ItemKNN", "ItemKNN"]  # EASE is not published
    assert table["metric"].tolist() == ["nDCG", "MAP"]  # and MRR and HR are not measured
    assert table["k"].tolist() == [10.0, 10.0]
    # 0.2939 - 0.2993 = -0.0054; the thesis' MAP is mean_precision: 0.31 - 0.3023 = 0.0077
    assert table["published"].tolist() == [0.2993, 0.3023]
    assert table["difference"].tolist() == pytest.approx([-0.0054, 0.0077])
    assert table["relative"].tolist() == pytest.approx([-0.0054 / 0.2993, 0.0077 / 0.3023])
    assert table["within"].tolist() == [True, False]
    assert table["published_std"].isna().all()


@pytest.mark.parametrize(
    ("label", "name", "system"),
    [
        ("BPR-MF", "BPR-MF", "BPRMF"),
        ("bpr_mf", "x", "BPRMF"),
        ("mine", "item-knn", "ItemKNN"),
        ("theirs", "lenskit/ItemKNN", "ItemKNN"),
    ],
)
def test_systems_match_in_any_spelling(tmp_path: Path, label: str, name: str, system: str) -> None:
    world = RunSpec(models=(label,), metrics=("nDCG",), names={label: name})
    table = compare_published(make_run_with(tmp_path, world, [0.3]), "children/a3")
    published = {"BPRMF": 0.2765, "ItemKNN": 0.2993}
    assert table["published"].tolist() == [published[system]]
    assert table["system"].tolist() == [label]


def test_stereotype_metrics_match_by_their_label(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("MostPop",), metrics=("HIT_BAD(label=x)",)))
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["metrics"][0]["parameters"] = {"label": "ngim.gender", "k": 10}
    path.write_text(json.dumps(manifest), encoding="utf-8")
    run = read_run(tmp_path)
    table = compare_published(run, "children/a5")
    assert table["metric"].tolist() == ["HIT_BAD_Gender"]
    assert table["published"].tolist() == [1.0]
    assert compare_published(run, "children/a9").empty  # that is race


@pytest.mark.parametrize("name", list_published())
def test_every_table_has_a_description_and_can_be_loaded(name: str) -> None:
    table = read_source(name)
    assert table.name == name
    assert table.title
    assert "20" in table.citation
    frame = load_published(name)
    assert len(frame) > 0
    assert not frame.columns.duplicated().any()
    if table.comparable:
        assert {"system", "metric", "cutoff", "value", "std"} <= set(frame.columns)
        assert table.joins or not table.metrics or set(table.metrics) & {*frame["metric"]}


CATEGORIES = ("Gender", "Orientation", "Age", "Appearance")
METHODS = ("Baseline", "LMD", "ADD", "HD", "CADA", "CTDA")
PRINTED = {
    "CDial-GPT": """\
        -2.51  4.28  2.74 -0.94
        -0.93  1.31 -2.39  0.40
         0.17 -0.54  0.50  0.03
        -2.12 -6.10 -0.63  1.27
        -1.74  0.65 -0.43 -0.55
        -0.22  0.11 -0.25  0.05""",
    "EVA2.0": """\
         1.48  3.04 -2.30  3.28
        -0.89  1.09 -0.18  2.55
        -0.54  0.77 -1.20  1.43
         1.21  0.27  0.40 -2.59
         0.89  0.46  0.72  0.80
         0.37 -0.79 -0.17  0.28""",
}
"""Table 3 as it is printed: a row for each method, and a column for each category."""


def test_table_3_of_chbias_has_the_printed_value_in_each_cell() -> None:
    table = load_published("chbias/3").set_index(["system", "method", "bias_category"])["value"]
    for system, text in PRINTED.items():
        for method, line in zip(METHODS, text.splitlines(), strict=True):
            row = [table[system, method, category] for category in CATEGORIES]
            assert row == [float(cell) for cell in line.split()], (system, method)
