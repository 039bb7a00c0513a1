from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.config.settings import as_plain, read_settings, validate_value
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


def test_unresolvable_type_is_a_broken_contract() -> None:
    with pytest.raises(BrokenContract, match="Unreadable has types that cannot be read"):
        read_settings(Unreadable)


@pytest.mark.parametrize(
    ("hint", "raw", "value"),
    [
        (float, 3, 3.0),
        (tuple[int, ...], [1, 2], (1, 2)),
        (frozenset[str], ["a"], frozenset({"a"})),
        (Path, "a/b", Path("a/b")),
        (int | None, None, None),
    ],
)
def test_value_from_yaml_is_converted_to_the_type(hint: Any, raw: object, value: object) -> None:
    converted = validate_value(hint, raw)
    assert converted == value
    assert type(converted) is type(value)


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
