from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from recbias.core.errors import MixedRuns, UnknownName
from recbias.reports.published_tables.compare_published import (
    COLUMNS,
    compare_with,
    list_published,
    remarks,
)
from recbias.reports.views.run_tables import RunTables, read_run
from support.run_folders import RunSpec, make_run


def run_of(folder: Path, world: RunSpec, values: list[float]) -> RunTables:
    """Return a run whose figures, model by model within a metric, are ``values``."""
    make_run(folder, world)
    path = folder / "metrics.csv"
    pd.read_csv(path, keep_default_na=False).assign(value=values).to_csv(path, index=False)
    return read_run(folder)


def test_table_a3_stands_beside_a_run(tmp_path: Path) -> None:
    world = RunSpec(models=("ItemKNN", "EASE"), metrics=("nDCG", "MAP", "mean_precision"))
    run = run_of(tmp_path, world, [0.2939, 0.34, 0.17, 0.21, 0.31, 0.34])
    found = compare_with(run, "children/a3", tolerance=0.006)
    assert tuple(found.columns) == COLUMNS
    assert found["system"].tolist() == ["ItemKNN", "ItemKNN"]  # EASE is not published
    assert found["metric"].tolist() == ["nDCG", "MAP"]  # and MRR and HR are not measured
    assert found["k"].tolist() == [10.0, 10.0]
    # 0.2939 - 0.2993 = -0.0054; the thesis' MAP is mean_precision: 0.31 - 0.3023 = 0.0077
    assert found["published"].tolist() == [0.2993, 0.3023]
    assert found["difference"].tolist() == pytest.approx([-0.0054, 0.0077])
    assert found["relative"].tolist() == pytest.approx([-0.0054 / 0.2993, 0.0077 / 0.3023])
    assert found["within"].tolist() == [True, False]
    assert found["published_std"].isna().all()


def test_a_difference_of_the_tolerance_itself_is_within(tmp_path: Path) -> None:
    run = run_of(tmp_path, RunSpec(models=("ItemKNN",), metrics=("nDCG",)), [0.3093])
    assert compare_with(run, "children/a3", tolerance=0.01)["within"].tolist() == [True]


@pytest.mark.parametrize(
    ("label", "name", "system"),
    [
        ("BPR-MF", "BPR-MF", "BPRMF"),
        ("bpr_mf", "x", "BPRMF"),
        ("mine", "item-knn", "ItemKNN"),
        ("theirs", "lenskit/ItemKNN", "ItemKNN"),
    ],
)
def test_systems_meet_whatever_their_spelling(
    tmp_path: Path, label: str, name: str, system: str
) -> None:
    world = RunSpec(models=(label,), metrics=("nDCG",), names={label: name})
    found = compare_with(run_of(tmp_path, world, [0.3]), "children/a3")
    published = {"BPRMF": 0.2765, "ItemKNN": 0.2993}
    assert found["published"].tolist() == [published[system]]
    assert found["system"].tolist() == [label]


def test_the_label_goes_before_the_plug_in(tmp_path: Path) -> None:
    names = {"ItemKNN": "lenskit/ItemKNN", "other": "ItemKNN"}
    world = RunSpec(models=("other", "ItemKNN"), metrics=("nDCG",), names=names)
    found = compare_with(run_of(tmp_path, world, [0.1, 0.3]), "children/a3")
    assert found["system"].tolist() == ["ItemKNN"]


def test_two_models_of_one_plug_in_both_stand_beside_it(tmp_path: Path) -> None:
    names = {"k=5": "ItemKNN", "k=9": "ItemKNN"}
    world = RunSpec(models=tuple(names), metrics=("nDCG",), names=names)
    found = compare_with(run_of(tmp_path, world, [0.1, 0.3]), "children/a3")
    assert found["system"].tolist() == ["k=5", "k=9"]


def test_another_cutoff_is_another_metric(tmp_path: Path) -> None:
    run = run_of(tmp_path, RunSpec(models=("ItemKNN",), metrics=("nDCG",), k=5), [0.3])
    assert compare_with(run, "children/a3").empty


def test_an_undefined_figure_is_not_within(tmp_path: Path) -> None:
    run = run_of(tmp_path, RunSpec(models=("ItemKNN",), metrics=("nDCG",)), [math.nan])
    found = compare_with(run, "children/a3")
    assert found["within"].tolist() == [False]
    assert found["measured"].isna().all()


def test_the_mean_over_folds_is_compared(tmp_path: Path) -> None:
    world = RunSpec(models=("ItemKNN",), metrics=("nDCG",), folds=2, users=20)
    run = run_of(tmp_path, world, [0.1, 0.2, 0.15])
    assert compare_with(run, "children/a3")["measured"].tolist() == [0.15]


def test_stereotype_metrics_meet_by_their_label(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("MostPop",), metrics=("HIT_BAD(label=x)",)))
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["metrics"][0]["parameters"] = {"label": "ngim.gender", "k": 10}
    path.write_text(json.dumps(manifest), encoding="utf-8")
    run = read_run(tmp_path)
    found = compare_with(run, "children/a5")
    assert found["metric"].tolist() == ["HIT_BAD_Gender"]
    assert found["published"].tolist() == [1.0]
    assert compare_with(run, "children/a9").empty  # that is race


def test_the_most_popular_baseline_has_another_name_in_wok(tmp_path: Path) -> None:
    world = RunSpec(models=("MostPop",), metrics=("log_popularity_difference",))
    found = compare_with(run_of(tmp_path, world, [1.0]), "wok/2")
    assert found["metric"].tolist() == ["popularity bias"]


def test_a_table_without_figures_of_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MixedRuns, match="no figures that a run could have") as caught:
        compare_with(read_run(make_run(tmp_path)), "children/a2")
    assert "children/a3" in caught.value.remedy


def test_an_unknown_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        compare_with(read_run(make_run(tmp_path)), "children/a30")


def test_remarks_say_what_cannot_be_equal_and_what_is_absent(tmp_path: Path) -> None:
    said = remarks(
        read_run(make_run(tmp_path, RunSpec(datasets=("x", "y"), users=5))), "children/a3"
    )
    assert "Al Nahadi" in said[0]
    assert any("mean_precision" in each for each in said)
    assert any(each.startswith("Published, and not in this run: BPRMF") for each in said)
    assert said[-1] == "Of the run's datasets, x is compared."


def test_the_names_are_public_here() -> None:
    assert "children/a3" in list_published()
