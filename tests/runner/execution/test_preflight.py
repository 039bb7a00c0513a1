from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.errors import Faults

SPEC: dict[str, Any] = {
    "name": "early",
    "dataset": {"name": "demo", "n_users": 40, "n_items": 60, "per_user": 12},
    "split": {"name": "random", "test": 0.2},
    "models": ["MostPop"],
}


class Trained:
    """Notes which stages were worked out."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def started(self, stage: Any) -> None:
        self.kinds.append(stage.kind)

    def progressed(self, what: str, done: int, total: int) -> None:
        """Nothing to note."""

    def finished(self, record: Any) -> None:
        """Nothing to note."""


def test_a_label_that_no_query_carries_is_found_before_training(tmp_path: Path) -> None:
    spec = SPEC | {
        "metrics": [{"name": "nDCG", "by": "gneder"}, {"name": "HR", "by": "ages < 25"}]
    }
    watched = Trained()
    with pytest.raises(Faults) as caught:
        recbias.run(spec, out=tmp_path, observer=watched)
    assert len(caught.value.faults) == 2
    assert "metrics[0].by" in str(caught.value.faults[0])
    assert "gender" in caught.value.faults[0].remedy
    assert "fit" not in watched.kinds


def test_what_was_measured_already_is_not_asked_again(tmp_path: Path) -> None:
    spec = SPEC | {"metrics": [{"name": "nDCG", "by": "gender"}]}
    first = recbias.run(spec, out=tmp_path)
    watched = Trained()
    again = recbias.run(spec, out=tmp_path, observer=watched)
    assert watched.kinds == []
    assert again.metrics.equals(first.metrics)


def test_a_metric_of_the_whole_set_cannot_be_split(tmp_path: Path) -> None:
    with pytest.raises(Faults, match="no value for each query"):
        recbias.run(SPEC | {"metrics": [{"name": "Gini", "by": "gender"}]}, out=tmp_path)


def test_a_file_is_not_read_again_where_its_lists_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("query_id,item_id,rank\n1,x,1\n", encoding="utf-8")
    spec = SPEC | {
        "models": [{"name": "lists", "path": str(path)}, "MostPop"],
        "metrics": ["nDCG"],
    }
    first = recbias.run(spec, out=tmp_path)
    watched = Trained()
    again = recbias.run(spec, out=tmp_path, observer=watched)
    assert watched.kinds == []
    assert again.metrics.equals(first.metrics)


def test_broken_files_and_metrics_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("query_id,item_id,rank\n", encoding="utf-8")
    spec = SPEC | {
        "models": ["MostPop", {"name": "lists", "path": str(path)}],
        "metrics": [{"name": "nDCG", "by": "gneder"}],
    }
    watched = Trained()
    with pytest.raises(Faults) as caught:
        recbias.run(spec, out=tmp_path, observer=watched)
    found = [str(each) for each in caught.value.faults]
    assert found[0] == f"models[1].path: {path}: the file holds no list"
    assert found[1].startswith("metrics[0].by: ")
    assert not {"fit", "answer"} & set(watched.kinds)


@pytest.mark.parametrize(
    ("model", "place", "help_"),
    [
        ({"name": "ConvMF", "text": ["titel"]}, "models[0].text", "title"),
        ({"name": "DeepFM", "user_features": ["agee"]}, "models[0].user_features", "age"),
        ({"name": "DeepFM", "item_features": ["genre"]}, "models[0].item_features", "genres"),
        ({"name": "VSM", "attributes": ["genre"]}, "models[0].attributes", "genres"),
        ({"name": "AttributeItemKNN", "attributes": ["gnres"]}, "models[0].attributes", "genres"),
        ({"name": "AttributeUserKNN", "attributes": ["gnres"]}, "models[0].attributes", "genres"),
    ],
)
def test_a_column_that_a_model_reads_is_looked_for_before_any_training(
    tmp_path: Path, model: dict[str, Any], place: str, help_: str
) -> None:
    watched = Trained()
    with pytest.raises(Faults) as caught:
        recbias.run(SPEC | {"models": [model, "MostPop"]}, out=tmp_path, observer=watched)
    assert place in str(caught.value.faults[0])
    assert help_ in caught.value.faults[0].remedy
    assert "fit" not in watched.kinds


def test_a_device_that_is_not_there_is_found_before_any_training(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    missing = "cuda" if not torch.cuda.is_available() else "mps"
    if missing == "mps" and torch.backends.mps.is_available():
        pytest.skip("this machine has every device")
    spec = SPEC | {"models": ["MostPop", {"name": "BPR-MF", "device": missing}], "metrics": ["HR"]}
    watched = Trained()
    with pytest.raises(Faults, match=f"device {missing}") as caught:
        recbias.run(spec, out=tmp_path, observer=watched)
    assert "models[1].device" in str(caught.value.faults[0])
    assert "fit" not in watched.kinds
