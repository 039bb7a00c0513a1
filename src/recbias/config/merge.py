"""Merge a spec from its layers: the files that it extends, the file itself, and overrides."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from recbias.core.errors import (
    Contradiction,
    Faults,
    MissingFile,
    UnknownKey,
    UserError,
    WrongType,
)
from recbias.core.suggestions import normalize_name
from recbias.formats.yaml.source_map import Document, KeyPath, Mark, format_key_path
from recbias.formats.yaml.tree import is_file, read_file, read_text, suggest_file

EXTENDS = "extends"
"""The key of the file that a spec extends, relative to the file that has the key."""

_OVERRIDE_RANK = 1 << 20
"""The rank of the first override, so that its faults are listed after those of files."""


def read_spec(source: Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Document:
    """Return a spec merged with the files that it extends and with overrides.

    Mappings are merged key by key; lists and scalars replace the value of the extended file, and
    so does another plug-in, since it does not have the settings of the first.
    Relative paths are relative to the file in which they are written.

    Raises:
        Faults: The spec cannot be read.
    """
    try:
        if isinstance(source, Mapping):
            document = _extend(read_mapping(source), ())
        else:
            document = _extend(read_file(source), (source.resolve(),))
    except Faults:
        raise
    except UserError as error:
        raise Faults([error]) from error
    for number, text in enumerate(overrides):
        apply_override(document, text, number)
    return document


def read_mapping(source: Mapping[str, Any]) -> Document:
    """Return a copy of a spec from Python as a document without marks.

    Raises:
        WrongType: It holds a value that YAML cannot represent.
    """
    return Document(_to_yaml_data(source, ()), base=Path())


def apply_override(document: Document, text: str, number: int = 0) -> None:
    """Apply an override such as ``models.1.neighbors=40``; faults are recorded in the document.

    A plug-in that is given by its name only becomes a mapping: ``- ItemKNN`` becomes
    ``{name: ItemKNN, neighbors: 40}``. A text such as ``--device=cpu`` is an option of its own.
    """
    source = text if text.startswith("--") else f"--set {text}"
    mark = Mark(source, rank=_OVERRIDE_RANK + number, folder=document.base, lined=False)
    try:
        path, equals, value_text = text.removeprefix("--").partition("=")
        if not equals or not path.strip():
            raise WrongType("is not KEY=VALUE", remedy="write --set models.1.neighbors=40")
        value = read_text(value_text, mark)
        steps = re.sub(r"\[(\d+)\]", r".\1", path.strip()).split(".")
        location = _Override(document, mark).set(steps, value.data)
    except UserError as error:
        fault = type(error)(error.message, where=mark.file, remedy=error.remedy)
        document.faults.append((mark, fault))
        return
    document.faults += value.faults
    for marks in (document.keys, document.values):
        for inner in [inner for inner in marks if inner[: len(location)] == location]:
            del marks[inner]
    document.keys |= {(*location, *inner): key_mark for inner, key_mark in value.keys.items()}
    document.values |= {(*location, *inner): mark for inner in value.values}
    document.values[location] = document.keys[location] = mark


@dataclass
class _Override:
    """Sets one value of a document, and creates the mappings that lead to it."""

    document: Document
    mark: Mark

    def set(self, steps: list[str], value: Any) -> KeyPath:
        container: Any = self.document.data
        location: KeyPath = ()
        for step in steps[:-1]:
            key = self.parse_key(container, step, location)
            location = (*location, key)
            container[key] = self.open_container(container, key, location)
            container = container[key]
        key = self.parse_key(container, steps[-1], location)
        container[key] = value
        return (*location, key)

    def parse_key(self, container: Any, step: str, location: KeyPath) -> str | int:
        if isinstance(container, dict):
            return step
        last = len(container) - 1
        if not re.fullmatch("[0-9]{1,9}", step) or int(step) > last:
            name = ".".join(map(str, location))
            indexes = f"{name}.0 to {name}.{last}" if last > 0 else f"{name}.0"
            raise UnknownKey(
                f"{format_key_path(location)} is a list without {step!r}",
                remedy=f"it has {indexes}" if container else "it is empty",
            )
        return int(step)

    def open_container(self, container: Any, key: str | int, location: KeyPath) -> Any:
        """Return the list or mapping at a key; a missing value or a name becomes a mapping."""
        value = container.get(key) if isinstance(container, dict) else container[key]
        if value is None:
            self.document.keys.setdefault(location, self.mark)
            self.document.values.setdefault(location, self.mark)
            return {}
        if isinstance(value, str):
            self.document.values[*location, "name"] = self.document.mark(location)
            return {"name": value}
        if not isinstance(value, (dict, list)):
            message = f"{format_key_path(location)} is {value!r}, which has no settings"
            raise UnknownKey(message, remedy=f"set {format_key_path(location)} itself")
        return value


def _extend(document: Document, chain: tuple[Path, ...]) -> Document:
    """Return a document merged over the file that it extends; ``chain`` led here."""
    if EXTENDS not in document.data:
        return document
    name = document.data.pop(EXTENDS)
    if not isinstance(name, str):
        message, remedy = "must be the path of one file", "write extends: other.yaml"
        raise document.error((EXTENDS,), message, kind=WrongType, remedy=remedy)
    path = document.base / name
    if not is_file(path):
        message, remedy = f"no file {name!r}", suggest_file(path)
        raise document.error((EXTENDS,), message, kind=MissingFile, remedy=remedy)
    target = path.resolve()
    if target in chain:
        cycle = " -> ".join(file.name for file in (*chain[chain.index(target) :], target))
        message, remedy = f"these files extend each other: {cycle}", "extend another file"
        raise document.error((EXTENDS,), message, kind=Contradiction, remedy=remedy)
    base = _extend(read_file(path, len(chain) + 1), (*chain, target))
    replaced: set[KeyPath] = set()
    _merge_data(base.data, document.data, (), replaced)
    return Document(
        base.data,
        _exclude_below(base.keys, replaced) | document.keys,
        _exclude_below(base.values, replaced) | document.values,
        document.base,
        [*base.faults, *document.faults],
    )


def _exclude_below(marks: Mapping[KeyPath, Mark], replaced: set[KeyPath]) -> dict[KeyPath, Mark]:
    """Return the marks of values that are neither replaced nor inside a replaced value."""
    return {
        location: mark
        for location, mark in marks.items()
        if replaced.isdisjoint(location[: end + 1] for end in range(len(location)))
    }


def _merge_data(
    base: dict[str, Any], over: dict[str, Any], location: KeyPath, replaced: set[KeyPath]
) -> None:
    for key, value in over.items():
        base_value = base.get(key)
        if isinstance(base_value, dict) and _can_merge(base_value, value):
            _merge_data(base_value, value, (*location, key), replaced)
        else:
            base[key] = value
            replaced.add((*location, key))


def _can_merge(base: dict[str, Any], over: Any) -> bool:
    """Return whether a value is a mapping that does not name another plug-in than the base."""
    if not isinstance(over, dict):
        return False
    names = [normalize_name(str(entry["name"])) for entry in (base, over) if "name" in entry]
    return len(set(names)) < 2


def _to_yaml_data(value: Any, location: KeyPath) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {
            str(key): _to_yaml_data(item, (*location, str(key))) for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_to_yaml_data(item, (*location, index)) for index, item in enumerate(value)]
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, float) and math.isnan(value):
        raise WrongType("must be a number, found NaN", where=format_key_path(location))
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, (bool, int, float)):
        return value
    message = f"{type(value).__name__} values cannot be written in YAML"
    remedy = "give text, numbers, lists and mappings"
    raise WrongType(message, where=format_key_path(location), remedy=remedy)
