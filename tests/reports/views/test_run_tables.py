from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from recbias.core.errors import MissingRun
from recbias.core.measures import METRICS
from recbias.reports.run import read_run
from support.models.search_rows import write_search_run
from support.run_folders import HOSTILE, RunSpec, make_run


def test_labels_are_read_as_text_and_values_as_numbers(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(models=("nan", "NA", "1"))))
    assert set(run.metrics["model"]) == {"nan", "NA", "1"}
    assert set(run.metrics["seed"]) == {"42"}
    assert run.metrics["value"].dtype == "float64"
    assert run.significance["significant"].isin(["True", "False"]).all()
    assert run.manifest["name"] == "ml-1m"


def test_hostile_labels_are_read_unchanged(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(models=HOSTILE)))
    assert list(dict.fromkeys(run.metrics["model"])) == list(HOSTILE)


def test_an_empty_cell_is_nan(tmp_path: Path) -> None:
    make_run(tmp_path)
    path = tmp_path / "metrics.csv"
    pd.read_csv(path).assign(value=math.nan, k=math.nan).to_csv(path, index=False)
    run = read_run(tmp_path)
    assert run.metrics["value"].isna().all()
    assert run.metrics["k"].isna().all()


def test_values_are_read_with_full_precision(tmp_path: Path) -> None:
    make_run(tmp_path)
    path = tmp_path / "metrics.csv"
    frame = pd.read_csv(path)
    frame.loc[0, "value"] = 0.1 + 0.2
    frame.to_csv(path, index=False)
    assert read_run(tmp_path).metrics["value"].iloc[0] == 0.1 + 0.2


@pytest.mark.parametrize("text", [None, "", "dataset,model\n"])
def test_a_run_without_comparisons_has_none(tmp_path: Path, text: str | None) -> None:
    make_run(tmp_path, RunSpec(significance=False))
    if text:
        make_run(tmp_path, RunSpec(models=("only",)))
    elif text is not None:
        (tmp_path / "significance.csv").write_text(text, encoding="utf-8")
    assert read_run(tmp_path).significance.empty


def test_missing_parquet_files_are_none(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(lists=False, popularity=False)))
    assert run.lists is None
    assert run.popularity is None
    assert run.per_unit is not None
    assert len(run.per_unit) == 7 * 4 * 200


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("manifest.json", None, "manifest.json does not exist"),
        ("manifest.json", "{", "not JSON"),
        ("manifest.json", "[]", "not a JSON object"),
        ("metrics.csv", None, "metrics.csv does not exist"),
        ("metrics.csv", "", "cannot be read"),
        ("metrics.csv", "dataset,model\nx,y\n", "has no column seed"),
        ("significance.csv", "dataset\nx\n", "has no column model"),
        ("metrics.csv", ",".join(METRICS.names) + "\na,b,1,1,m,ten,,,,,,,,\n", "cannot be read"),
    ],
)
def test_the_error_for_a_folder_without_a_run_has_a_remedy(
    tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    make_run(tmp_path)
    (tmp_path / name).unlink()
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(MissingRun, match=message) as caught:
        read_run(tmp_path)
    assert "recbias run" in caught.value.remedy


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingRun, match="no such folder"):
        read_run(tmp_path / "nowhere")


def test_an_invalid_spec_is_empty(tmp_path: Path) -> None:
    assert read_run(make_run(tmp_path)).spec["split"]["test"] == 0.2
    (tmp_path / "spec.yaml").write_text("a: [", encoding="utf-8")
    assert read_run(tmp_path).spec == {}
    (tmp_path / "spec.yaml").unlink()
    assert read_run(tmp_path).spec == {}


def test_tables_of_searches_are_read_if_they_exist(tmp_path: Path) -> None:
    without = read_run(make_run(tmp_path / "a"))
    assert (without.trials, without.importances) == (None, None)
    run = write_search_run(tmp_path / "b", importances={"alpha": math.nan})
    assert run.trials is not None
    assert run.importances is not None
    # labels are text, as in metrics.csv; a trial without epochs has none
    assert run.trials["seed"].tolist() == ["42"] * 5
    assert run.trials["epochs"].isna().tolist() == [True, False, True, True, True]
    assert run.importances["importance"].isna().tolist() == [True]


def test_a_malformed_table_of_trials_is_an_error(tmp_path: Path) -> None:
    run = write_search_run(tmp_path)
    (tmp_path / "trials.csv").write_text("trial,value\n1,x\n")
    with pytest.raises(MissingRun, match=r"trials\.csv"):
        _ = run.trials
