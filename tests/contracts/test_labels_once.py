from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import recbias
from recbias.language.local_models import LocalModel
from recbias.runner.store import VALUES
from support.commands import invoke_recbias
from support.models.small_encoder import write_small_encoder

WORDS = ("man", "woman", "he", "she", "the", "a", "nurse", "sings", "talks", "and", "doctor")
N_ITEMS = 12
TEXTS = [
    f"{'He' if item % 2 else 'She'} sings and the {'doctor' if item % 3 else 'nurse'} talks."
    for item in range(N_ITEMS)
]
DISTINCT = 2
"""The texts that differ where He and She are masked."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_encoder(tmp_path_factory.mktemp("masked"), WORDS, head=True)


@pytest.fixture
def count_masks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the masks that pass through the network since the last call."""
    counts: list[int] = []
    predict = LocalModel._predict_masks

    def count(self: LocalModel, ids: Any, *others: Any) -> Any:
        counts.append(len(ids))
        return predict(self, ids, *others)

    def take() -> int:
        total = sum(counts)
        counts.clear()
        return total

    monkeypatch.setattr(LocalModel, "_predict_masks", count)
    return take


def write_tables(folder: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [
        f"u{user},i{item}"
        for user in range(20)
        for item in rng.permutation(N_ITEMS)[: 6 if user else 2]
    ]
    (folder / "train.csv").write_text("user_id,item_id\n" + "\n".join(rows) + "\n")
    items = [f"i{item},{text}" for item, text in enumerate(TEXTS)]
    (folder / "items.csv").write_text("item_id,text\n" + "\n".join(items) + "\n")


def run(
    folder: Path, model: Path, *, filters: Sequence[Any] = (), seeds: Any = 1, **changes: Any
) -> Any:
    detector = {"name": "bias", "detector": "masked_lm", "model": str(model), "from": "text"}
    settings = {key: value for key, value in changes.items() if key != "fresh"}
    spec = {
        "name": "labels",
        "seeds" if isinstance(seeds, list) else "seed": seeds,
        "dataset": {
            "name": "tables",
            "interactions": "train.csv",
            "items": "items.csv",
            "filters": list(filters),
        },
        "split": {"name": "random", "test": 0.2},
        "k": 3,
        "models": ["MostPop"],
        "labels": [{**detector, "kinds": ["gender"], "device": "cpu", **settings}],
        "metrics": [{"name": "REC-ST", "label": "bias.gender"}],
        "report": {"formats": ["csv"]},
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec))
    return recbias.run(path, out=folder / "results", fresh=changes.get("fresh", False))


def test_a_text_is_labelled_once(
    tmp_path: Path, model: Path, count_masks: Callable[[], int]
) -> None:
    write_tables(tmp_path)
    run(tmp_path, model)
    assert count_masks() == DISTINCT  # one group word in each text
    run(tmp_path, model, seeds=[1, 2, 3])
    assert count_masks() == 0
    run(tmp_path, model, filters=[{"name": "k_core", "k": 3}])
    assert count_masks() == 0
    run(tmp_path, model, threshold=0.2, strict=False)
    assert count_masks() == 0
    run(tmp_path, model, score="normalized_entropy")
    assert count_masks() == DISTINCT
    run(tmp_path, model, fresh=True)
    assert count_masks() == DISTINCT


def test_another_model_labels_again(
    tmp_path: Path, model: Path, count_masks: Callable[[], int]
) -> None:
    write_tables(tmp_path)
    other = write_small_encoder(tmp_path / "other", WORDS[::-1], head=True)
    run(tmp_path, model)
    assert count_masks() == DISTINCT
    run(tmp_path, other)
    assert count_masks() == DISTINCT


def test_only_new_and_damaged_texts_are_labelled(
    tmp_path: Path, model: Path, count_masks: Callable[[], int]
) -> None:
    write_tables(tmp_path)
    run(tmp_path, model)
    (path,) = (tmp_path / "results" / "store" / VALUES).iterdir()
    path.write_bytes(path.read_bytes()[:-5])  # as a killed process leaves it
    items = tmp_path / "items.csv"
    items.write_text(items.read_text().replace(f"i0,{TEXTS[0]}", "i0,The woman sings."))
    count_masks()
    run(tmp_path, model)
    assert count_masks() == 2
    run(tmp_path, model, seeds=2)
    assert count_masks() == 0


def test_a_plan_labels_nothing_and_writes_nothing(
    tmp_path: Path, model: Path, count_masks: Callable[[], int]
) -> None:
    write_tables(tmp_path)
    run(tmp_path, model)
    assert count_masks() == DISTINCT
    planned = invoke_recbias("plan", "spec.yaml", "--out", "new", folder=tmp_path)
    assert planned.code == 0
    assert "labels, columns and given lists of tables are checked" in planned.err
    assert not (tmp_path / "new").exists()
    stored = invoke_recbias("plan", "spec.yaml", folder=tmp_path)
    assert "are checked when" not in stored.err
