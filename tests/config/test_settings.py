from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from recbias.config.settings import as_plain, is_valid, read_settings, validate_value
from recbias.core.errors import BrokenContract
from support.models import fake_plugins


@dataclass(frozen=True)
class Odd:
    needed: int
    many: list[int] = field(default_factory=lambda: [1])
    derived: int = field(default=3, init=False)
    class_: str = "x"


@dataclass(frozen=True)
class Unreadable:
    size: NoSuchType = 3  # type: ignore[name-defined]  # noqa: F821  what the test is about


def test_settings_are_the_fields_of_the_constructor() -> None:
    settings = read_settings(Odd)
    assert list(settings) == ["needed", "many", "class"]
    assert [setting.needed for setting in settings.values()] == [True, False, False]
    assert [setting.default for setting in settings.values()] == [None, [1], "x"]
    assert settings["class"].field.name == "class_"
    assert settings["needed"].hint is int


def test_unresolvable_type_is_a_broken_contract() -> None:
    with pytest.raises(BrokenContract, match="the types of Unreadable cannot be read"):
        read_settings(Unreadable)


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
def test_value_from_yaml_is_converted_to_the_type(hint: Any, raw: object, value: object) -> None:
    converted = validate_value(hint, raw)
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(
    ("hint", "raw"),
    [(int, "5"), (int, 5.0), (int, True), (bool, 1), (bool, "true"), (str, 5), (float, "1")],
)
def test_value_of_another_type_is_rejected(hint: Any, raw: object) -> None:
    assert not is_valid(hint, raw)
    with pytest.raises(ValidationError):
        validate_value(hint, raw)


def test_as_plain_gives_json_data_with_paths_as_written() -> None:
    value = {"a": (Path("/x/y"), Path("/x/z")), "b": frozenset({"d", "c"}), "e": np.float64(1.5)}
    assert as_plain(value, {Path("/x/y"): "y"}) == {
        "a": ["y", "/x/z"],
        "b": ["c", "d"],
        "e": 1.5,
    }
    assert as_plain(Odd(needed=1)) == {"needed": 1, "many": [1], "class": "x"}
    assert as_plain(fake_plugins.WOK(llm=fake_plugins.Endpoint(model="m"))) == {
        "llm": {"provider": "openai", "temperature": 0.0, "model": "m"},
        "stops": None,
        "direction": "centroid",
    }
