from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias.core.files import compute_digest
from recbias.models.baselines import MostPop
from recbias.models.knn import ItemKNN
from recbias.runner.address import assign_address, digest_sources, library_version
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


def test_an_absent_library_has_no_version() -> None:
    assert library_version("no-such-package-anywhere") == ""


def test_an_address_is_the_digest_of_canonical_json() -> None:
    work: Any = ItemKNN()
    inputs = (Stage("fit", "fit", "a" * 64, work, (), Keys()),)
    stage = Stage("measure", "measure", "", work, inputs, Keys())
    identity = {"seed": 1, "metric": {"name": '"é\ud83d', "at": (1.0, Path("x"))}}
    expected = compute_digest(
        {
            "kind": "measure",
            "identity": identity,
            "inputs": ["a" * 64],
            "code": digest_sources(work),
            "libraries": {
                name: library_version(name) for name in ("numpy", "scipy", "pandas", "absent")
            },
        }
    )
    assert assign_address(stage, identity, libraries=("absent",)).digest == expected
