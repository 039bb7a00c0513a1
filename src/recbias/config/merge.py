"""Merge a spec from its layers: the files that it extends, the file itself, and overrides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from recbias.config.changes.overrides import apply_override
from recbias.core.errors import (
    Contradiction,
    Faults,
    MissingFile,
    UserError,
    WrongType,
)
from recbias.core.suggestions import normalize_name
from recbias.formats.yaml.source_map import Document, KeyPath, Mark, format_key_path
from recbias.formats.yaml.tree import is_file, read_file, suggest_file

EXTENDS = "extends"
"""The key of the file that a spec extends, relative to the file that has the key."""


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
