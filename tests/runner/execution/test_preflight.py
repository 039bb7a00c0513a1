from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.errors import Faults
from recbias.runner.plan import Observer
from support.commands import invoke_recbias

SPEC: dict[str, Any] = {
    "name": "early",
    "dataset": {"name": "demo", "n_users": 40, "n_items": 60, "per_user": 12},
    "split": {"name": "random", "test": 0.2},
    "models": ["MostPop"],
}


class RecordingObserver(Observer):
    """Records the kinds of the computed stages."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def started(self, stage: Any) -> None:
        self.kinds.append(stage.kind)

    def progressed(self, what: str, done: int, total: int) -> None:
        """Ignore the event."""

    def finished(self, record: Any) -> None:
        """Ignore the event."""


@pytest.mark.parametrize("by", ["genres", "gender & genres", "genres == 'Drama'"])
def test_a_column_of_the_items_cannot_group_queries(by: str, tmp_path: Path) -> None:
    with pytest.raises(Faults) as caught:
        recbias.run(SPEC | {"metrics": [{"name": "nDCG", "by": by}]}, out=tmp_path)
    (fault,) = caught.value.faults
    assert "metrics[0].by: 'genres' is a column of the items" in str(fault)
    assert "{name: association, label: gender, attribute: genres}" in fault.remedy
    assert "gender, " in fault.remedy.rpartition("name one of ")[2]


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


AUDIT = Path(__file__).parents[3] / "configs" / "audit"


def copy_audit(folder: Path) -> Path:
    """Return the spec of an audit in a folder, with its tables."""
    shutil.copytree(AUDIT, folder / "audit")
    return Path(shutil.copy(AUDIT.with_suffix(".yaml"), folder))


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
