"""Broken files: each reader returns their content, or an error with the file and a remedy."""

from __future__ import annotations

import dataclasses
import time
import typing
from pathlib import Path

import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import UserError
from recbias.core.text import make_printable
from recbias.registry import REGISTRIES
from support.commands import invoke_recbias
from support.faults.alarm import end_after
from support.faults.files.cases import list_forms, list_pairs, make_case
from support.faults.samples import CONTROLS, choose_seeds

SECONDS = 5.0
"""The processor time of a case; the alarm, of the clock, is for a reader that never ends."""
MAX_LENGTH = 2_000
"""Characters of an error of one file."""


@pytest.mark.parametrize("seed", choose_seeds(30, len(list_pairs())))
def test_a_broken_file_is_refused_with_place_and_remedy(tmp_path: Path, seed: int) -> None:
    case = make_case(seed)
    case.write(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    begin = time.process_time()
    error: UserError | None = None
    with end_after(60), collect_warnings() as warnings:
        try:
            case.form.read(tmp_path)
        except UserError as caught:
            error = caught
    assert time.process_time() - begin < SECONDS, case
    assert sorted(tmp_path.rglob("*")) == before, case
    assert not any("\n" in make_printable(warning) for warning in warnings)
    if error is not None:
        lines = [make_printable(line) for line in error.lines()]
        assert not CONTROLS.search("".join(lines)), case
        assert any(Path(name).name in "".join(lines) for name in case.form.files), (case, lines)
        assert lines[1].startswith("help: "), (case, lines)
        assert lines[1].strip() != "help:", (case, lines)
        assert sum(map(len, lines)) < MAX_LENGTH, case


def list_path_settings() -> set[str]:
    """Return each setting of a plug-in that names a file, as ``models/lists.path``."""
    return {
        f"{kind}/{name}.{setting}"
        for kind, registry in REGISTRIES.items()
        for name in registry.names()
        for setting, hint in get_hints(registry.load(name)).items()
        if "Path" in str(hint)
    }


def get_hints(kind: type) -> dict[str, object]:
    if not dataclasses.is_dataclass(kind):
        return {}
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def test_every_setting_that_names_a_file_is_attacked() -> None:
    names = {form.name.partition(" ")[0] for form in list_forms()}
    settings = list_path_settings()
    assert settings <= names
    assert len(settings) > 40


def test_every_dataset_that_reads_files_is_attacked() -> None:
    names = {form.name.partition(" ")[0].partition(".")[0] for form in list_forms()}
    readers = {
        name
        for name, target in REGISTRIES["datasets"].table.items()
        if hasattr(REGISTRIES["datasets"].load(name), "files")
        and not target.startswith("recbias.data.declared:")  # read by the loader of the others
    }
    others = {"demo", "ml-20m", "ml-25m", "ml-32m"}  # no files; those of ml-latest-small
    assert {f"datasets/{name}" for name in readers - others} <= names


def test_valid_files_are_read(tmp_path: Path) -> None:
    forms = list_forms()
    chosen = {number % len(forms) for number in choose_seeds(30, len(forms))}
    for number in chosen:
        form = forms[number]
        folder = tmp_path / str(number)
        for name, content in form.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        with collect_warnings():
            form.read(folder)


SPEC = """\
name: small
dataset: {name: tables, interactions: rows.csv}
split: {name: random, test: 0.3}
k: 2
models: [MostPop, {name: lists, label: given, path: lists.csv}]
metrics: [ItemCoverage]
"""
BROKEN_FILES = {
    "a quote": (
        "rows.csv",
        'user_id,item_id\nu,i\nv,"j\nw,i\n',
        "rows.csv:3: a quote is never closed",
    ),
    "CR": ("rows.csv", "user_id,item_id\ru,i\r", "rows.csv:1: its lines end with CR alone"),
    "no column": ("rows.csv", "user,item_id\nu,i\n", "rows.csv:1: there is no column 'user_id'"),
    "header only": ("rows.csv", "user_id,item_id\n", "rows.csv has no rows"),
    "lists": (
        "lists.csv",
        'query_id,item_id,rank\nu,"i,1\n',
        "lists.csv:2: a quote is never closed",
    ),
}


@pytest.mark.parametrize("fault", BROKEN_FILES)
def test_the_command_names_the_broken_file(tmp_path: Path, fault: str) -> None:
    name, content, message = BROKEN_FILES[fault]
    rows = "".join(f"u{n % 5},i{n % 7}\n" for n in range(35))
    (tmp_path / "rows.csv").write_text(f"user_id,item_id\n{rows}")
    (tmp_path / "lists.csv").write_text("query_id,item_id,rank\nu1,i1,1\n")
    (tmp_path / "small.yaml").write_text(SPEC)
    (tmp_path / name).write_text(content)
    result = invoke_recbias("run", "small.yaml", folder=tmp_path)
    assert result.code == 2
    assert message in result.err
    assert "\nhelp: " in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "results").exists() or not [*(tmp_path / "results").glob("small/*")]
