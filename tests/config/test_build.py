from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from recbias.config.settings import Builder, as_plain
from recbias.core.errors import Faults, OutOfRange, UnknownKey, WrongType
from recbias.core.plugins import InputFile, ModelName
from recbias.formats.yaml import Document
from support.models import fake_plugins


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


def test_dataclass_has_the_values_of_the_mapping() -> None:
    raw = {
        "pair": [3, 4],
        "table": {"a": [1]},
        "inner": [{"model": "m"}],
        "size": 3,
    }
    plugin, faults = build(raw)
    assert faults == []
    assert plugin == Nested(
        pair=(3, 4), table={"a": [1]}, inner=(fake_plugins.Endpoint(model="m"),), size=3
    )


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        ({"pair": [1]}, "pair: must be a list of 2: a whole number, a whole number, found a list"),
        ({"pair": [1, "x"]}, "pair[1]: must be a whole number, found the text 'x'"),
        ({"table": {"a": [1, "x"]}}, "table.a[1]: must be a whole number, found the text 'x'"),
        ({"table": {"a": 1}}, "table.a: must be a list of whole numbers, found 1"),
        ({"table": 3}, "table: must be a mapping or nothing (null), found 3"),
        ({"inner": [{"model": "m"}, {}]}, "inner[1]: Nested.inner needs model"),
        (
            {"inner": [{"model": "m", "temperature": -1}]},
            "inner[0].temperature: must be a number of at least 0, found -1",
        ),
        ({"inner": [3]}, "inner[0]: must be a mapping with provider, temperature, model, found 3"),
        ({"files": ["none.csv"]}, "files[0]: no file 'none.csv'"),
        ({"files": [3]}, "files[0]: must be a file, found 3"),
        ({"files": ""}, "files: must be a list (each a file) or nothing (null), found nothing"),
        ({"size": "al"}, "size: must be a whole number or all, found 'al'"),
        ({"size": 1.5}, "size: must be a whole number or all, found 1.5"),
        (
            {"pair": [1, 10**20]},
            "pair[1]: must be a whole number, found 100000000000000000000, which is too large",
        ),
        (
            {"table": {"a": [1, -(10**20)]}},
            "table.a[1]: must be a whole number, found -100000000000000000000, which is too large",
        ),
        ({"sise": 1}, "sise: not a setting of Nested"),
        ({"size": 13}, ": thirteen is bad luck"),
    ],
)
def test_fault_has_its_location_and_the_expected_type(raw: dict[str, Any], fault: str) -> None:
    plugin, faults = build(raw)
    assert plugin is None
    assert faults == [f"entry{fault}" if fault.startswith(":") else f"entry.{fault}"]


def test_faults_that_a_plugin_raises_have_the_location_of_its_entry() -> None:
    assert build({"size": 14})[1] == ["entry: first", "entry: second"]


def test_files_are_relative_to_the_folder_and_recorded_as_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    builder = Builder(Document({}, base=tmp_path), "Nested")
    plugin = builder.build(Nested, {"files": ["a.csv"]}, ())
    assert plugin.files == (tmp_path / "a.csv",)
    assert builder.path_texts == {tmp_path / "a.csv": "a.csv"}


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


def test_validate_fields_excludes_invalid_settings() -> None:
    builder = Builder(Document({}), "ItemKNN")
    raw = {"neighbors": 3, "shrink": "x", "nothing": 1}
    assert builder.validate_fields(fake_plugins.ItemKNN, raw, ()) == {"neighbors": 3}
    assert [type(error) for _, error in builder.document.faults] == [UnknownKey, WrongType]
