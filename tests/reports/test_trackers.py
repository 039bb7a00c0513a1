from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core import packages
from recbias.core.errors import Faults
from recbias.reports.run import to_records
from recbias.reports.trackers import track_run

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the trackers

SPEC: dict[str, Any] = {
    "name": "tracked",
    "dataset": {"name": "demo", "n_users": 60, "n_items": 40},
    "split": {"name": "random", "test": 0.2},
    "models": ["MostPop", {"name": "EASE", "reg": 20.0}],
    "metrics": ["nDCG", {"name": "nDCG", "by": "gender", "gap": "groups"}],
    "report": {"formats": ["csv", "json", "html"]},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    return recbias.run(SPEC, out=tmp_path_factory.mktemp("out"), progress=False)


def test_mlflow_holds_each_model_with_its_intervals_below_the_run(
    run: recbias.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    track_run(run.folder, "mlflow")

    logged = mlflow.search_runs(experiment_names=["tracked"])
    logged = logged.set_index("tags.mlflow.runName")
    assert set(logged.index) == {run.folder.name, "MostPop", "EASE"}
    whole, ease = logged.loc[run.folder.name], logged.loc["EASE"]
    assert ease["tags.mlflow.parentRunId"] == whole["run_id"]
    assert set(logged["tags.recbias.spec_digest"]) == {run.manifest["spec_digest"]}
    assert ease["params.reg"] == "20.0"
    artifacts = {each.path for each in mlflow.MlflowClient().list_artifacts(whole["run_id"])}
    assert {"spec.yaml", "metrics.csv", "report.html", "report.json"} <= artifacts
    for group, key in {"": "nDCG_at_10", "gender=F": "nDCG_at_10.gender:F"}.items():
        of_ease = run.metrics[run.metrics["model"] == "EASE"]
        (row,) = to_records(of_ease[of_ease["group"] == group])
        for end, name in (("", "value"), (".ci_low", "ci_low"), (".ci_high", "ci_high")):
            assert ease[f"metrics.{key}{end}"] == row[name]


def test_wandb_holds_the_values_and_the_reports(
    run: recbias.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")
    for name, text in (("MODE", "offline"), ("DIR", tmp_path), ("DATA_DIR", tmp_path)):
        monkeypatch.setenv(f"WANDB_{name}", str(text))
    track_run(run.folder, "wandb")
    wandb.teardown()  # its service writes files later

    logged = [path.read_bytes() for path in tmp_path.glob("wandb/offline-run-*/*.wandb")]
    assert len(logged) == 3
    (ease,) = (content for content in logged if b"EASE" in content)
    (value,) = run.metrics.query("model == 'EASE' and metric == 'nDCG'")["ci_low"]
    assert b"nDCG_at_10.ci_low" in ease
    assert str(value).encode() in ease
    assert sum(b"report.html" in content for content in logged) == 1


def test_a_tracker_that_fails_keeps_the_run_and_says_how_to_repeat_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere://at.all")
    run = recbias.run({**SPEC, "track": "mlflow"}, out=tmp_path, progress=True)
    assert [*run.summary.columns] == ["nDCG@10"]
    again = f"again: recbias report {run.folder} --track mlflow"
    assert again in capsys.readouterr().err.replace("\n", " ")


def test_a_tracker_that_is_not_installed_is_refused_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "is_installed", lambda package: package != "wandb")
    with pytest.raises(Faults) as caught:
        recbias.run({**SPEC, "track": ["wandb"]}, out=tmp_path, progress=False)
    (fault,) = caught.value.faults
    assert "wandb" in fault.message
    assert ".[track]" in fault.remedy
    assert not (tmp_path / "tracked").exists()
