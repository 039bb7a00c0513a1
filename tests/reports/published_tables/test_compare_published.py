from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from recbias.core.errors import MixedRuns
from recbias.reports.published import (
    COLUMNS,
    build_reference_table,
    compare_published,
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


def test_a_different_cutoff_does_not_match(tmp_path: Path) -> None:
    run = make_run_with(tmp_path, RunSpec(models=("ItemKNN",), metrics=("nDCG",), k=5), [0.3])
    assert compare_published(run, "children/a3").empty


def test_an_undefined_value_is_not_within(tmp_path: Path) -> None:
    run = make_run_with(tmp_path, RunSpec(models=("ItemKNN",), metrics=("nDCG",)), [math.nan])
    table = compare_published(run, "children/a3")
    assert table["within"].tolist() == [False]
    assert table["measured"].isna().all()


def test_the_mean_over_folds_is_compared(tmp_path: Path) -> None:
    world = RunSpec(models=("ItemKNN",), metrics=("nDCG",), folds=2, users=20)
    run = make_run_with(tmp_path, world, [0.1, 0.2, 0.15])
    assert compare_published(run, "children/a3")["measured"].tolist() == [0.15]


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


def test_a_table_without_comparable_values_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MixedRuns, match="no figures that a run could have") as caught:
        compare_published(read_run(make_run(tmp_path)), "children/a2")
    assert "children/a3" in caught.value.remedy


def test_the_table_has_one_row_per_compared_value() -> None:
    frame = pd.DataFrame(
        {
            "table": ["children/a3"],
            "system": ["ItemKNN"],
            "metric": ["nDCG"],
            "published": [0.2993],
            "measured": [0.2939],
            "difference": [-0.0054],
            "within": [True],
        }
    )
    table = build_reference_table("children/a3", frame, ["a remark"])
    assert table.title == "Comparison with children/a3"
    assert [cell.text for cell in table.rows[0]] == [
        *("ItemKNN", "nDCG", "0.2993", "0.2939", "-0.0054", "yes")
    ]
    assert table.notes == ("a remark",)
