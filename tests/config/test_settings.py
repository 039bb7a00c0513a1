from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from recbias.config.settings import accepts, adapter, checked, plain, settings
from recbias.core.errors import BrokenContract
from support import fake_plugins


@dataclass(frozen=True)
class Odd:
    needed: int
    many: list[int] = field(default_factory=lambda: [1])
    made: int = field(default=3, init=False)
    class_: str = "x"


@dataclass(frozen=True)
class Unreadable:
    size: NoSuchType = 3  # type: ignore[name-defined]  # noqa: F821  what the test is about


def test_the_settings_are_the_fields_that_can_be_given() -> None:
    known = settings(Odd)
    assert list(known) == ["needed", "many", "class"]
    assert [each.needed for each in known.values()] == [True, False, False]
    assert [each.default for each in known.values()] == [None, [1], "x"]
    assert known["class"].field.name == "class_"
    assert known["needed"].hint is int


@pytest.mark.parametrize("cls", [fake_plugins.NoDataclass, 3, len])
def test_what_is_no_dataclass_has_no_settings(cls: Any) -> None:
    with pytest.raises(BrokenContract, match="is not a dataclass"):
        settings(cls)


def test_a_type_that_cannot_be_read_is_a_broken_contract() -> None:
    with pytest.raises(BrokenContract, match="the types of Unreadable cannot be read"):
        settings(Unreadable)


@pytest.mark.parametrize(
    ("hint", "raw", "value"),
    [
        (float, 3, 3.0),
        (tuple[int, ...], [1, 2], (1, 2)),
        (frozenset[str], ["a"], frozenset({"a"})),
        (Path, "a/b", Path("a/b")),
        (int | None, None, None),
        (float, float("inf"), float("inf")),
    ],
)
def test_yaml_is_taken_for_the_nearest_python(hint: Any, raw: object, value: object) -> None:
    found = checked(hint, raw)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("hint", "raw"),
    [(int, "5"), (int, 5.0), (int, True), (bool, 1), (bool, "true"), (str, 5), (float, "1")],
)
def test_nothing_is_turned_into_another_type(hint: Any, raw: object) -> None:
    assert not accepts(hint, raw)
    with pytest.raises(ValidationError):
        checked(hint, raw)


def test_a_type_that_pydantic_does_not_know_is_a_broken_contract() -> None:
    with pytest.raises(BrokenContract, match="cannot be the type of a setting"):
        adapter(np.ndarray)


def test_values_become_plain_with_paths_as_written() -> None:
    value = {"a": (Path("/x/y"), Path("/x/z")), "b": frozenset({"d", "c"}), "e": np.float64(1.5)}
    assert plain(value, {Path("/x/y"): "y"}) == {
        "a": ["y", "/x/z"],
        "b": ["c", "d"],
        "e": 1.5,
    }
    assert plain(Odd(needed=1)) == {"needed": 1, "many": [1], "class": "x"}
    assert plain(fake_plugins.WOK(llm=fake_plugins.Endpoint(model="m"))) == {
        "llm": {"provider": "openai", "temperature": 0.0, "model": "m"},
        "stops": None,
        "direction": "centroid",
    }
