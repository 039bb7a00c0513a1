from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.reports import plots as rows
from recbias.reports.views import list_single_datasets
from support.plot_rows import EXPOSURE, MODELS, make_exposure_units, make_shares, write_run
from support.run_folders import RunSpec


def test_rows_belong_to_one_metric_and_dataset(tmp_path: Path) -> None:
    run = write_run(tmp_path, [make_shares()])
    (metric,) = rows.find_metrics(run, "price_percentage")
    assert len(rows.list_rows(run, metric, "ml-1m")) == len(MODELS) * 4 * 2
    assert rows.list_rows(run, metric, "elsewhere") == []


def test_of_many_datasets_only_their_mean_is_plotted(tmp_path: Path) -> None:
    few = RunSpec(models=MODELS, metrics=("nDCG",), users=3, items=12, datasets=("a", "b"))
    assert rows.list_plotted_datasets(write_run(tmp_path / "few", [], few)) == ["all", "a", "b"]
    many = RunSpec(models=MODELS, metrics=("nDCG",), users=3, items=12, datasets=tuple("abcd"))
    run = write_run(tmp_path / "many", [], many)
    assert rows.list_plotted_datasets(run) == ["all"]
    assert list_single_datasets(run) == ["a", "b", "c", "d"]


def test_units_are_averaged_over_folds(tmp_path: Path) -> None:
    units = make_exposure_units(("BERT",), 4)
    repeated = {key: [*column, *column] for key, column in units.items()}
    repeated["value"] = [*units["value"], *(value + 1 for value in units["value"])]
    repeated["fold"] = ["1"] * 4 + ["2"] * 4
    run = write_run(tmp_path, [EXPOSURE], units=repeated)
    (metric,) = rows.find_metrics(run, "REC-ST")
    frame = rows.read_units(run, metric, "ml-1m")
    # 0, 1/4, 2/4, 3/4 of a tenth, and 1 more in the second fold: 0.5 above the first
    assert frame["value"].tolist() == pytest.approx([0.5, 0.525, 0.55, 0.575])
    assert set(frame["unit_id"]) == {"u0", "u1", "u2", "u3"}


def test_undefined_units_are_excluded(tmp_path: Path) -> None:
    units = make_exposure_units(("BERT",), 4)
    units["value"][0] = np.nan
    run = write_run(tmp_path, [EXPOSURE], units=units)
    (metric,) = rows.find_metrics(run, "REC-ST")
    assert len(rows.read_units(run, metric, "ml-1m")) == 3
    (tmp_path / "per_unit.parquet").unlink()
    assert rows.read_units(run, metric, "ml-1m").empty


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (["race=a&gender=F", "race=b&gender=M"], "race&gender"),
        (["categories=Coffee & Tea", "categories=Bars"], "categories"),
        (["x=1", "y=2"], ""),
        (["age<18", "not age<18"], ""),
        ([], ""),
    ],
)
def test_name_that_labels_share(labels: list[str], name: str) -> None:
    assert rows.get_label_name(labels) == name
