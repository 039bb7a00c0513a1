from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from recbias.config.settings import Builder, as_plain
from recbias.core.errors import Faults, OutOfRange, WrongType
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
