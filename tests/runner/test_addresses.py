from __future__ import annotations

from typing import Any

import pytest

from recbias.models.baselines import MostPop
from recbias.models.knn import ItemKNN
from recbias.runner.address import assign_address
from recbias.runner.stage import Keys, Stage


def make_stage(digest: str) -> Stage:
    return Stage("dataset", "load", digest, lambda: None, (), Keys())


def compute_address(
    *, kind: str, work: Any, inputs: tuple[Stage, ...] = (), **options: Any
) -> str:
    return assign_address(Stage(kind, "a stage", "", work, inputs, Keys()), **options).digest


def test_equal_stages_have_equal_addresses() -> None:
    digests = {
        compute_address(kind="split", work=ItemKNN(), identity={"seed": 1}) for _ in range(2)
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"identity": {"seed": 2}},
        {"kind": "fit"},
        {"inputs": (make_stage("ab"),)},
        {"libraries": ("pyarrow",)},
        {"work": MostPop()},
    ],
    ids=["identity", "kind", "inputs", "libraries", "source code"],
)
def test_an_address_changes_with_everything_that_could_change_the_result(
    change: dict[str, Any],
) -> None:
    stage: dict[str, Any] = {"kind": "split", "work": ItemKNN(), "identity": {"seed": 1}}
    assert compute_address(**stage | change) != compute_address(**stage)
