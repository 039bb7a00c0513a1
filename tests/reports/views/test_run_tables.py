from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.core.errors import MissingRun
from recbias.core.measures import METRICS
from recbias.reports.run import read_run
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


def test_values_are_read_with_full_precision(tmp_path: Path) -> None:
    make_run(tmp_path)
    path = tmp_path / "metrics.csv"
    frame = pd.read_csv(path)
    frame.loc[0, "value"] = 0.1 + 0.2
    frame.to_csv(path, index=False)
    assert read_run(tmp_path).metrics["value"].iloc[0] == 0.1 + 0.2


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


def test_an_invalid_spec_is_empty(tmp_path: Path) -> None:
    assert read_run(make_run(tmp_path)).spec["split"]["test"] == 0.2
    (tmp_path / "spec.yaml").write_text("a: [", encoding="utf-8")
    assert read_run(tmp_path).spec == {}
    (tmp_path / "spec.yaml").unlink()
    assert read_run(tmp_path).spec == {}
