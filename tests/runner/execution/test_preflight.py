from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.errors import Faults
from recbias.runner import preflight
from recbias.runner.execute import Silent
from support.commands import invoke_recbias, write_small_spec

SPEC: dict[str, Any] = {
    "name": "early",
    "dataset": {"name": "demo", "n_users": 40, "n_items": 60, "per_user": 12},
    "split": {"name": "random", "test": 0.2},
    "models": ["MostPop"],
}


class RecordingObserver(Silent):
    """Records the kinds of the computed stages."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def started(self, stage: Any) -> None:
        self.kinds.append(stage.kind)

    def progressed(self, what: str, done: int, total: int) -> None:
        """Ignore the event."""

    def finished(self, record: Any) -> None:
        """Ignore the event."""


def test_an_unknown_label_of_queries_is_reported_before_training(tmp_path: Path) -> None:
    spec = SPEC | {
        "metrics": [{"name": "nDCG", "by": "gneder"}, {"name": "HR", "by": "ages < 25"}]
    }
    observer = RecordingObserver()
    with pytest.raises(Faults) as caught:
        recbias.run(spec, out=tmp_path, observer=observer)
    assert len(caught.value.faults) == 2
    assert "metrics[0].by" in str(caught.value.faults[0])
    assert "gender" in caught.value.faults[0].remedy
    assert "fit" not in observer.kinds


@pytest.mark.parametrize("by", ["genres", "gender & genres", "genres == 'Drama'"])
def test_a_column_of_the_items_cannot_group_queries(by: str, tmp_path: Path) -> None:
    with pytest.raises(Faults) as caught:
        recbias.run(SPEC | {"metrics": [{"name": "nDCG", "by": by}]}, out=tmp_path)
    (fault,) = caught.value.faults
    assert "metrics[0].by: 'genres' is a column of the items" in str(fault)
    assert "{name: association, label: gender, attribute: genres}" in fault.remedy
    assert "gender, " in fault.remedy.rpartition("name one of ")[2]


def test_the_metric_that_is_suggested_for_groups_of_items_can_be_run(tmp_path: Path) -> None:
    metric = {"name": "association", "label": "gender", "attribute": "genres", "permutations": 9}
    assert recbias.run(SPEC | {"metrics": [metric]}, out=tmp_path).metrics["value"].notna().any()


def test_stored_metrics_are_not_checked_again(tmp_path: Path) -> None:
    spec = SPEC | {"metrics": [{"name": "nDCG", "by": "gender"}]}
    first = recbias.run(spec, out=tmp_path)
    observer = RecordingObserver()
    again = recbias.run(spec, out=tmp_path, observer=observer)
    assert observer.kinds == []
    assert again.metrics.equals(first.metrics)


def test_a_metric_without_values_by_query_cannot_be_grouped(tmp_path: Path) -> None:
    with pytest.raises(Faults, match="no value for each query"):
        recbias.run(SPEC | {"metrics": [{"name": "Gini", "by": "gender"}]}, out=tmp_path)


def test_a_file_whose_lists_are_stored_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("query_id,item_id,rank\n1,x,1\n1,1,2\n", encoding="utf-8")
    spec = SPEC | {
        "models": [{"name": "lists", "path": str(path), "seen": "keep"}, "MostPop"],
        "metrics": ["nDCG"],
    }
    first = recbias.run(spec, out=tmp_path)
    observer = RecordingObserver()
    again = recbias.run(spec, out=tmp_path, observer=observer)
    assert observer.kinds == []
    assert again.metrics.equals(first.metrics)


def test_faults_of_files_and_metrics_are_reported_together(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("query_id,item_id,rank\n", encoding="utf-8")
    spec = SPEC | {
        "models": ["MostPop", {"name": "lists", "path": str(path)}],
        "metrics": [{"name": "nDCG", "by": "gneder"}],
    }
    observer = RecordingObserver()
    with pytest.raises(Faults) as caught:
        recbias.run(spec, out=tmp_path, observer=observer)
    messages = [str(fault) for fault in caught.value.faults]
    assert messages[0] == f"models[1].path: {path}: the file holds no list"
    assert messages[1].startswith("metrics[0].by: ")
    assert not {"fit", "answer"} & set(observer.kinds)


@pytest.mark.parametrize(
    ("model", "setting", "suggestion"),
    [
        ({"name": "ConvMF", "text": ["titel"]}, "models[0].text", "title"),
        ({"name": "DeepFM", "user_features": ["agee"]}, "models[0].user_features", "age"),
        ({"name": "DeepFM", "item_features": ["genre"]}, "models[0].item_features", "genres"),
        ({"name": "VSM", "attributes": ["genre"]}, "models[0].attributes", "genres"),
        ({"name": "AttributeItemKNN", "attributes": ["gnres"]}, "models[0].attributes", "genres"),
        ({"name": "AttributeUserKNN", "attributes": ["gnres"]}, "models[0].attributes", "genres"),
    ],
)
def test_a_missing_column_is_reported_before_training(
    tmp_path: Path, model: dict[str, Any], setting: str, suggestion: str
) -> None:
    observer = RecordingObserver()
    with pytest.raises(Faults) as caught:
        recbias.run(SPEC | {"models": [model, "MostPop"]}, out=tmp_path, observer=observer)
    assert setting in str(caught.value.faults[0])
    assert suggestion in caught.value.faults[0].remedy
    assert "fit" not in observer.kinds


def test_a_missing_device_is_reported_before_training(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    missing = "cuda" if not torch.cuda.is_available() else "mps"
    if missing == "mps" and torch.backends.mps.is_available():
        pytest.skip("this machine has every device")
    spec = SPEC | {"models": ["MostPop", {"name": "BPR-MF", "device": missing}], "metrics": ["HR"]}
    observer = RecordingObserver()
    with pytest.raises(Faults, match=f"device {missing}") as caught:
        recbias.run(spec, out=tmp_path, observer=observer)
    assert "models[1].device" in str(caught.value.faults[0])
    assert "fit" not in observer.kinds


AUDIT = Path(__file__).parents[3] / "configs" / "audit"


def copy_audit(folder: Path) -> Path:
    """Return the spec of an audit in a folder, with its tables."""
    shutil.copytree(AUDIT, folder / "audit")
    return Path(shutil.copy(AUDIT.with_suffix(".yaml"), folder))


def test_plan_refuses_an_unknown_label_and_writes_nothing(tmp_path: Path) -> None:
    spec = write_small_spec(tmp_path)
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text.replace("[nDCG, HR, ", "[{name: nDCG, by: gendr}, "), encoding="utf-8")
    refused = invoke_recbias("plan", spec, folder=tmp_path)
    assert refused.code == 2
    assert "small.yaml:6:28: metrics[0].by: no query carries the label 'gendr'" in refused.err
    assert "help: did you mean gender?" in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]


def test_plan_refuses_given_lists_of_other_queries(tmp_path: Path) -> None:
    spec = copy_audit(tmp_path)
    assert invoke_recbias("plan", spec, folder=tmp_path).code == 0
    lists = tmp_path / "audit" / "ours.csv"
    header, *rows = lists.read_text(encoding="utf-8").splitlines()
    changed = [header, *(f"x{row}" for row in rows)]
    lists.write_text("\n".join(changed), encoding="utf-8")
    refused = invoke_recbias("plan", spec, folder=tmp_path)
    assert refused.code == 2
    assert "audit.yaml:11" in refused.err
    assert not (tmp_path / "results").exists()


def test_plan_does_not_read_a_dataset_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "MAX_CHECKED_BYTES", 100)
    text = copy_audit(tmp_path).read_text(encoding="utf-8")
    spec = tmp_path / "large.yaml"
    spec.write_text(text, encoding="utf-8")
    options = ("--set", "metrics=[{name: nDCG, by: gendr}]", "--set", "checks=[]")
    planned = invoke_recbias("plan", spec, *options, folder=tmp_path)
    assert planned.code == 0
    assert "lists of tables are checked when it is loaded" in planned.err


def test_models_of_the_order_are_refused_on_data_without_times(tmp_path: Path) -> None:
    rows = ["user_id,item_id", *(f"u{user},i{item}" for user in range(3) for item in range(4))]
    (tmp_path / "rows.csv").write_text("\n".join(rows))
    (tmp_path / "spec.yaml").write_text(
        "name: untimed\ndataset: {name: tables, interactions: rows.csv}\n"
        "split: {name: random, test: 0.3}\nk: 1\nmetrics: [nDCG]\n"
        "models: [MostPop, SASRec, GRU4Rec, BERT4Rec, LightGCN]\n"
    )
    for command in ("plan", "run"):
        result = invoke_recbias(command, "spec.yaml", folder=tmp_path)
        assert result.code == 2
        errors = [line for line in result.err.splitlines() if "error:" in line]
        assert len(errors) == 3
        for error, name in zip(errors, ("SASRec", "GRU4Rec", "BERT4Rec"), strict=True):
            assert f"{name} needs the order of a user's interactions" in error


def test_popularity_0_in_a_history_is_reported_before_training(tmp_path: Path) -> None:
    (tmp_path / "clicks.csv").write_text("user_id,item_id\n1,x\n1,y\n2,x\n", encoding="utf-8")
    (tmp_path / "items.csv").write_text("item_id,sold\nx,7\ny,0\n", encoding="utf-8")
    tables = {"interactions": str(tmp_path / "clicks.csv"), "items": str(tmp_path / "items.csv")}
    spec = {
        "name": "zero",
        "dataset": {"name": "tables", **tables},
        "models": ["MostPop"],
        "metrics": [{"name": "log_popularity_difference", "popularity": "sold"}],
    }
    observer = RecordingObserver()
    with pytest.raises(Faults, match="popularity 0, which has no logarithm: y") as caught:
        recbias.run(spec, out=tmp_path, observer=observer)
    assert "smoothing: 1" in caught.value.faults[0].remedy
    assert not {"fit", "answer"} & set(observer.kinds)
