from __future__ import annotations

import pytest

from recbias.runner.stage import FLOORS, Keys, Stage, address, code_digest, library_version


def stage(digest: str) -> Stage:
    return Stage("dataset", "load", digest, lambda: None, (), Keys())


def test_an_address_is_the_same_for_the_same_things() -> None:
    assert address("split", identity={"seed": 1}) == address("split", identity={"seed": 1})


@pytest.mark.parametrize(
    "other",
    [
        address("split", identity={"seed": 2}),
        address("fit", identity={"seed": 1}),
        address("split", identity={"seed": 1}, inputs=(stage("ab"),)),
        address("split", identity={"seed": 1}, libraries=("pyarrow",)),
    ],
    ids=["identity", "kind", "inputs", "libraries"],
)
def test_an_address_changes_with_everything_that_could_change_the_result(other: str) -> None:
    assert other != address("split", identity={"seed": 1})


@pytest.mark.parametrize(
    "floor", sorted({floor for floors in FLOORS.values() for floor in floors})
)
def test_the_code_of_every_floor_has_a_digest(floor: str) -> None:
    assert len(code_digest(floor)) == 64


def test_an_absent_library_has_no_version() -> None:
    assert library_version("no-such-package-anywhere") == ""
