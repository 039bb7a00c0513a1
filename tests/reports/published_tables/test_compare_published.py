from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from recbias.core.errors import MixedRuns, UnknownName
from recbias.reports.published import (
    COLUMNS,
    build_reference_table,
    compare_published,
    list_remarks,
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


def test_a_difference_equal_to_the_tolerance_is_within(tmp_path: Path) -> None:
    run = make_run_with(tmp_path, RunSpec(models=("ItemKNN",), metrics=("nDCG",)), [0.3093])
    assert compare_published(run, "children/a3", tolerance=0.01)["within"].tolist() == [True]


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


def test_the_label_takes_precedence_over_the_plug_in(tmp_path: Path) -> None:
    names = {"ItemKNN": "lenskit/ItemKNN", "other": "ItemKNN"}
    world = RunSpec(models=("other", "ItemKNN"), metrics=("nDCG",), names=names)
    table = compare_published(make_run_with(tmp_path, world, [0.1, 0.3]), "children/a3")
    assert table["system"].tolist() == ["ItemKNN"]


def test_all_models_of_a_plug_in_are_compared(tmp_path: Path) -> None:
    names = {"k=5": "ItemKNN", "k=9": "ItemKNN"}
    world = RunSpec(models=tuple(names), metrics=("nDCG",), names=names)
    table = compare_published(make_run_with(tmp_path, world, [0.1, 0.3]), "children/a3")
    assert table["system"].tolist() == ["k=5", "k=9"]


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


def test_a_renamed_baseline_matches(tmp_path: Path) -> None:
    world = RunSpec(models=("MostPop",), metrics=("log_popularity_difference",))
    table = compare_published(make_run_with(tmp_path, world, [1.0]), "wok/2")
    assert table["metric"].tolist() == ["popularity bias"]


def test_a_table_without_comparable_values_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MixedRuns, match="no figures that a run could have") as caught:
        compare_published(read_run(make_run(tmp_path)), "children/a2")
    assert "children/a3" in caught.value.remedy


def test_an_unknown_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        compare_published(read_run(make_run(tmp_path)), "children/a30")


def test_remarks_name_differences_and_missing_systems(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(datasets=("x", "y"), users=5)))
    remarks = list_remarks(run, "children/a3")
    assert "Al Nahadi" in remarks[0]
    assert any("mean_precision" in remark for remark in remarks)
    assert any(remark.startswith("Published, but not in this run: BPRMF") for remark in remarks)
    assert remarks[-1] == "Only the dataset x of the run is compared."


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


def test_sums_and_shares_of_one_table_have_decimals_of_their_own() -> None:
    values = {"published": [-521.34, 0.007], "measured": [-29.5, 0.002], "difference": [491.8, -5]}
    frame = pd.DataFrame({"system": "WG", "metric": ["GEAA", "p"], "within": False, **values})
    table = build_reference_table("aab/text", frame, [])
    assert [row[2].text for row in table.rows] == ["-521.34", "0.0070"]


def test_a_comparison_without_a_match_has_a_note() -> None:
    table = build_reference_table("wok/2", pd.DataFrame(columns=["table", "system"]), [])
    assert table.rows == ()
    assert "no model and metric" in table.notes[0]
