"""What the process does without RecBole: its files, and the state of a model."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from recbias.models import recbole_worker
from recbias.models.recbole_worker import (
    Refusal,
    export_state,
    group_rows,
    load_state,
    write_error,
    write_rows,
)

torch: Any = pytest.importorskip("torch")
WORKER = Path(str(recbole_worker.__file__))


def test_the_program_runs_on_python_3_8_without_the_rest_of_recbias() -> None:
    tree = ast.parse(WORKER.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name.startswith("recbias")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


USERS, ITEMS, RANKS = np.array([0, 0, 0, 2]), np.array([5, 4, 5, 5]), np.array([0, 1, 2, 0])


def test_rows_without_times_hold_each_pair_once(folder: Path) -> None:
    write_rows(USERS, ITEMS, RANKS, has_times=False)
    text = (folder / "rows" / "rows.inter").read_text(encoding="utf-8")
    assert text == "user_id:token\titem_id:token\n0\t4\n0\t5\n2\t5\n"


def test_groups_are_in_the_order_of_the_rows() -> None:
    groups = group_rows(np.array([3, 1, 3]), np.array([7, 8, 9]))
    assert [group.tolist() for group in groups] == [[], [8], [], [7, 9]]


class ToyModel(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, **other: Any) -> None:
        super().__init__()
        self.vectors = torch.nn.Embedding(2, 3)
        self.other = other

    def other_parameter(self) -> dict[str, Any]:
        return self.other

    def load_other_parameter(self, values: dict[str, Any]) -> None:
        self.other = values


def test_a_state_survives_a_file_without_python_objects(folder: Path) -> None:
    matrix = sparse.lil_matrix(np.array([[0, 2.5], [1, 0]]))
    model = ToyModel(w=matrix, vector=torch.arange(3), table=np.eye(2), count=7, none=None)
    np.savez("state.npz", **export_state(model))
    restored = ToyModel()
    with np.load("state.npz", allow_pickle=False) as state:
        load_state(restored, {name: state[name] for name in state.files})
    assert torch.equal(restored.vectors.weight, model.vectors.weight)
    assert restored.other["w"].toarray().tolist() == [[0, 2.5], [1, 0]]
    assert restored.other["vector"].tolist() == [0, 1, 2]
    assert restored.other["table"].tolist() == [[1, 0], [0, 1]]
    assert restored.other["count"] == 7
    assert "none" not in restored.other


def test_a_state_of_python_objects_is_refused() -> None:
    with pytest.raises(Refusal, match="ToyModel of RecBole keeps layer"):
        export_state(ToyModel(layer=object()))


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        (
            Refusal("bad", where="config.x", remedy="mend x"),
            {"message": "bad", "where": "config.x", "remedy": "mend x"},
        ),
        (KeyError("a\n b"), {"message": r"KeyError: 'a\n b'", "where": "", "remedy": ""}),
        (MemoryError(), {"message": "MemoryError", "where": "", "remedy": ""}),
    ],
)
def test_an_exception_becomes_a_file(
    folder: Path, error: BaseException, fields: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_error(type(error), error, None)
    assert json.loads((folder / "error.json").read_text(encoding="utf-8")) == fields
    assert type(error).__name__ in capsys.readouterr().err
