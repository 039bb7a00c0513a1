"""The cases: each form of a file with each fault that applies to its content."""

from __future__ import annotations

import gzip
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from support.faults.files.array_faults import ARCHIVES, ARRAYS
from support.faults.files.byte_faults import (
    OF_BYTES,
    OF_PACKS,
    OF_PATHS,
    OF_TEXTS,
    Change,
    replace_by,
)
from support.faults.files.cell_faults import (
    LITERALS,
    OF_PARQUET,
    OF_ROWS,
    change_json,
    change_parquet,
    change_rows,
    change_yaml,
    make_columns,
    repeat_key,
    select_parquet,
)
from support.faults.files.contents import pack
from support.faults.files.dataset_forms import list_dataset_forms
from support.faults.files.forms import Form
from support.faults.files.given_forms import list_given_forms
from support.faults.files.text_forms import list_text_forms


@dataclass(frozen=True)
class Case:
    """A form and a fault."""

    form: Form
    fault: str
    seed: int

    def __str__(self) -> str:
        return f"{self.form.name}: {self.fault}"

    def write(self, folder: Path) -> Path:
        """Write the files of the form, one of them with the fault; return its path."""
        for name, content in self.form.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        target = folder / self.form.target
        if self.fault in OF_PATHS:
            OF_PATHS[self.fault](target)
        else:
            change = list_changes(self.form)[self.fault]
            target.write_bytes(change(target.read_bytes(), random.Random(self.seed)))
        return target


@cache
def list_forms() -> tuple[Form, ...]:
    return (*list_given_forms(), *list_dataset_forms(), *list_text_forms())


def list_changes(form: Form) -> dict[str, Change]:
    """Return the faults of the content of a form, by name."""
    changes = _list_content_changes(form)
    if not form.is_packed:
        return {**OF_BYTES, **changes}
    inner = {name: partial(_change_packed, change) for name, change in changes.items()}
    return {**OF_BYTES, **OF_PACKS, **inner}


def _list_content_changes(form: Form) -> dict[str, Change]:
    changes: dict[str, Change] = dict(OF_TEXTS) if form.is_text else {}
    if form.is_delimited:
        return changes | {name: partial(_change_rows, name, form) for name in OF_ROWS}
    return {**changes, **_list_changes_of_kind(form.kind)}


def _list_changes_of_kind(kind: str) -> Mapping[str, Change]:
    if kind in {"json", "jsonl"}:
        is_lines = kind == "jsonl"
        changes = {name: partial(_change_json, text, is_lines) for name, text in LITERALS.items()}
        return {**changes, "a repeated key": repeat_key}
    if kind == "yaml":
        return {name: partial(_change_yaml, text) for name, text in LITERALS.items()}
    if kind == "parquet":
        columns = {
            f"a column of {name}": partial(_change_parquet, name) for name in make_columns(1)
        }
        return columns | {name: partial(_select_parquet, name) for name in OF_PARQUET}
    contents = {"array": ARRAYS, "archive": ARCHIVES}.get(kind, {})
    return {name: replace_by(content) for name, content in contents.items()}


def _change_packed(change: Change, data: bytes, rng: random.Random) -> bytes:
    return pack(change(gzip.decompress(data), rng))


def _change_rows(name: str, form: Form, data: bytes, rng: random.Random) -> bytes:
    return change_rows(data, form.kind, name, rng, header=form.header)


def _change_json(literal: str, lines: bool, data: bytes, rng: random.Random) -> bytes:
    return change_json(data, literal, rng, lines=lines)


def _change_yaml(literal: str, data: bytes, rng: random.Random) -> bytes:
    return change_yaml(data, literal, rng)


def _change_parquet(name: str, data: bytes, rng: random.Random) -> bytes:
    return change_parquet(data, name, rng)


def _select_parquet(name: str, data: bytes, rng: random.Random) -> bytes:
    return select_parquet(data, OF_PARQUET[name], rng)


@cache
def list_pairs() -> tuple[tuple[Form, str], ...]:
    """Return each form with each of its faults, in a random order that never changes."""
    pairs = [(form, fault) for form in list_forms() for fault in (*OF_PATHS, *list_changes(form))]
    random.Random(17).shuffle(pairs)
    return tuple(pairs)


def make_case(seed: int) -> Case:
    """Return a case; as many following seeds as there are pairs are all of them."""
    pairs = list_pairs()
    form, fault = pairs[seed % len(pairs)]
    return Case(form, fault, seed)
