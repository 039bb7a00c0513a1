from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.reports.plots.drawing.interval import Interval
from recbias.reports.plots.papers import plot_rows as rows
from support.picture_rows import EXPOSURE, MODELS, by_group, exposure_units, run_with, shares
from support.run_folders import World

NAN = float("nan")


def test_rows_are_of_one_metric_and_dataset_and_defined(tmp_path: Path) -> None:
    measure = shares()
    run = run_with(tmp_path, [measure])
    (known,) = rows.metrics_of(run, "price_percentage")
    found = rows.rows_for(run, known, "ml-1m")
    assert len(found) == len(MODELS) * 4 * 2
    assert rows.rows_for(run, known, "elsewhere") == []


@pytest.mark.parametrize("written", ["price_percentage", "Price-Percentage"])
def test_plug_ins_are_found_as_users_write_them(tmp_path: Path, written: str) -> None:
    assert len(rows.metrics_of(run_with(tmp_path, [shares()]), written)) == 1


def test_metrics_by_group_are_found_by_their_parameters(tmp_path: Path) -> None:
    run = run_with(tmp_path, [shares(), by_group(("a", "b"))])
    (found,) = rows.definitions_where(run, {"gap": "groups"})
    assert found.name == "nDCG"


def test_of_many_datasets_only_all_together_have_pictures(tmp_path: Path) -> None:
    few = World(models=MODELS, metrics=("nDCG",), users=3, items=12, datasets=("a", "b"))
    assert rows.shown_datasets(run_with(tmp_path / "few", [], few)) == ["all", "a", "b"]
    many = World(models=MODELS, metrics=("nDCG",), users=3, items=12, datasets=tuple("abcd"))
    run = run_with(tmp_path / "many", [], many)
    assert rows.shown_datasets(run) == ["all"]
    assert rows.whole_datasets(run) == ["a", "b", "c", "d"]


def test_units_are_their_mean_over_folds(tmp_path: Path) -> None:
    units = exposure_units(("BERT",), 4)
    again = {**units, "value": [each + 1 for each in units["value"]]}
    both = {key: [*units[key], *again[key]] for key in units}
    both["fold"] = ["1"] * 4 + ["2"] * 4
    run = run_with(tmp_path, [EXPOSURE], units=both)
    (known,) = rows.metrics_of(run, "REC-ST")
    found = rows.units_of(run, known, "ml-1m")
    # 0, 1/4, 2/4, 3/4 of a tenth, and one more in the second fold: a half above the first
    assert found["value"].tolist() == pytest.approx([0.5, 0.525, 0.55, 0.575])
    assert set(found["unit_id"]) == {"u0", "u1", "u2", "u3"}


def test_undefined_units_are_left_out(tmp_path: Path) -> None:
    units = exposure_units(("BERT",), 4)
    units["value"][0] = np.nan
    run = run_with(tmp_path, [EXPOSURE], units=units)
    (known,) = rows.metrics_of(run, "REC-ST")
    assert len(rows.units_of(run, known, "ml-1m")) == 3
    (tmp_path / "per_unit.parquet").unlink()
    assert rows.units_of(run, known, "ml-1m").empty


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (Interval(0.5, 0.4, 0.6), "0.500 (95% interval 0.400 to 0.600)"),
        (Interval(-0.5, NAN, NAN), "-0.500"),
        (Interval(123.4, NAN, NAN), "123.40"),
    ],
)
def test_figures_in_words(figure: Interval, said: str) -> None:
    assert rows.said(figure) == said


@pytest.mark.parametrize(
    ("labels", "head"),
    [
        (["race=a&gender=F", "race=b&gender=M"], "race&gender"),
        (["categories=Coffee & Tea", "categories=Bars"], "categories"),
        (["x=1", "y=2"], ""),
        (["age<18", "not age<18"], ""),
        ([], ""),
    ],
)
def test_what_labels_are_values_of(labels: list[str], head: str) -> None:
    assert rows.heads(labels) == head


def test_no_names_are_said_as_nothing() -> None:
    assert rows.listed([]) == ""
    assert rows.listed(["one"]) == "one"
