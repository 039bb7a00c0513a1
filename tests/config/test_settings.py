from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, Gt, Interval, Le, MaxLen, MinLen, MultipleOf

from recbias.config.settings import Builder, as_plain, describe_hint, read_settings, validate_value
from recbias.config.specs import validate_name
from recbias.core.errors import BrokenContract, Faults, OutOfRange, WrongType
from recbias.core.plugins import InputFile, ModelName
from recbias.formats.yaml import Document
from support.models import fake_plugins
from support.models.fake_plugins import Endpoint


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
    assert as_plain(value, {Path("/x/y"): "y"}) == {"a": ["y", "/x/z"], "b": ["c", "d"], "e": 1.5}
    assert as_plain(Odd(needed=1)) == {"needed": 1, "many": [1], "class": "x"}
    assert as_plain(fake_plugins.WOK(llm=fake_plugins.Endpoint(model="m"))) == {
        "llm": {"provider": "openai", "temperature": 0.0, "model": "m"},
        "stops": None,
        "direction": "centroid",
    }


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (int, "a whole number"),
        (float, "a number"),
        (str, "text"),
        (Path, "a path"),
        (Any, "anything"),
        (InputFile, "a file"),
        (Annotated[int, Ge(1)], "a whole number of at least 1"),
        (Annotated[float, Ge(0), Le(1)], "a number from 0 to 1"),
        (Annotated[float, Interval(gt=0, lt=1)], "a number above 0 and below 1"),
        (Annotated[int, MultipleOf(5)], "a whole number a multiple of 5"),
        (Annotated[int, Gt(0)] | None, "a whole number above 0 or nothing (null)"),
        (Literal["a", "b"], "one of a, b"),
        (Literal[True], "true"),
        (Literal["a"] | Annotated[int, Gt(0)], "a or a whole number above 0"),
        (tuple[int, ...], "a list of whole numbers"),
        (list[Any], "a list"),
        (frozenset[Literal["a", "b"]], "a list (each one of a, b)"),
        (tuple[int, str], "a list of 2: a whole number, text"),
        (
            Annotated[list[int], MinLen(2), MaxLen(3)],
            "a list of whole numbers with a length of at least 2 and with a length of at most 3",
        ),
        (Mapping[str, Any], "a mapping"),
        (Endpoint, "a mapping with provider, temperature, model"),
    ],
)
def test_type_and_range_are_described(hint: Any, words: str) -> None:
    assert describe_hint(hint) == words


@pytest.mark.parametrize("name", ["a", "children-ml1m", "v1.2_x", "7", "a" * 100])
def test_name_of_letters_digits_and_three_signs_is_valid(name: str) -> None:
    assert validate_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".x", "a/b", "a\\b", "a b", "é", "a\n", "a" * 101, "a:b", "~"]
)
def test_other_names_are_rejected(name: str) -> None:
    with pytest.raises(OutOfRange, match="cannot be the name of a folder"):
        validate_name(name)


@dataclass(frozen=True, kw_only=True)
class Nested:
    pair: tuple[int, int] = (1, 2)
    table: dict[str, list[int]] | None = None
    inner: tuple[fake_plugins.Endpoint, ...] = ()
    files: tuple[InputFile, ...] | None = None
    size: int | Literal["all"] = "all"

    def __post_init__(self) -> None:
        if self.size == 13:
            raise ValueError("thirteen is bad luck")
        if self.size == 14:
            raise Faults([OutOfRange("first", where="pair"), WrongType("second")])


def build(raw: dict[str, Any], cls: type = Nested, base: Path = Path()) -> tuple[Any, list[str]]:
    builder = Builder(Document({}, base=base), "Nested")
    plugin = builder.build(cls, raw, ("entry",))
    return plugin, [str(error) for _, error in builder.document.faults]


def test_faults_that_a_plugin_raises_have_the_location_of_its_entry() -> None:
    assert build({"size": 14})[1] == ["entry: first", "entry: second"]


@dataclass(frozen=True, kw_only=True)
class Reader:
    encoder: ModelName = "a-model"
    persons: Literal["none", "names"] | ModelName = "none"


@pytest.mark.parametrize(
    ("raw", "resolved"),
    [
        ("./enc", "./enc"),
        ("../enc", "../enc"),
        ("bert", "bert"),  # an existing folder with a model
        ("other", None),
        ("lab/encoder", None),
    ],
)
def test_model_folder_is_relative_to_the_spec(
    raw: str, resolved: str | None, tmp_path: Path
) -> None:
    for folder in ("bert", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bert" / "config.json").touch()
    builder = Builder(Document({}, base=tmp_path), "Reader")
    plugin = builder.build(Reader, {"encoder": raw, "persons": raw}, ())
    expected = raw if resolved is None else os.path.normpath(tmp_path / resolved)
    assert (plugin.encoder, plugin.persons) == (expected, expected)
    assert as_plain(plugin, builder.path_texts) == {"encoder": raw, "persons": raw}
