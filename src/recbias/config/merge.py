"""A spec from its layers: the file, the files that it extends, and overrides."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
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
from recbias.formats.yaml.source_map import Document, Mark, Place, key_path
from recbias.formats.yaml.tree import is_file, read_file, read_text, similar_file

EXTENDS = "extends"
"""The key that names the file under this one, relative to it."""

_LAST = 1 << 20
"""The rank of the first override: faults in overrides are shown after those in files."""


def read_spec(source: Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Document:
    """Return a spec with the files that it extends merged under it, and the overrides on top.

    Mappings merge key by key; lists and scalars replace what stands below. Relative paths are
    relative to the file in which they are written.

    Args:
        source: The experiment file, or its content.
        overrides: Each ``models.1.neighbors=40``, the value being YAML.

    Raises:
        Faults: It cannot be read.
    """
    try:
        if isinstance(source, Mapping):
            document = _with_base(read_mapping(source), ())
        else:
            document = _with_base(read_file(source), (source.resolve(),))
    except Faults:
        raise
    except UserError as error:
        raise Faults([error]) from error
    for number, text in enumerate(overrides):
        override(document, text, number)
    return document


def read_mapping(source: Mapping[str, Any]) -> Document:
    """Return a spec given from Python; it has no marks, and is not changed by what follows.

    Raises:
        WrongType: It holds what YAML cannot.
    """
    return Document(_plain(source, ()), base=Path())


def override(document: Document, text: str, number: int = 0) -> None:
    """Set one value, ``models.1.neighbors=40``; what is wrong with it becomes a fault.

    A bare name becomes a mapping where a setting of it is set: ``- ItemKNN`` becomes
    ``{name: ItemKNN, neighbors: 40}``.
    """
    start = Mark(f"--set {text}", rank=_LAST + number, folder=document.base, lined=False)
    try:
        path, equals, value_text = text.partition("=")
        if not equals or not path.strip():
            raise WrongType("is not KEY=VALUE", remedy="write --set models.1.neighbors=40")
        value = read_text(value_text, start)
        place = _Setting(document, start).set(_steps(path), value.data)
    except UserError as error:
        document.faults.append(
            (start, type(error)(error.message, where=start.file, remedy=error.remedy))
        )
        return
    document.faults += value.faults
    _forget_below(document, place)
    document.keys |= {(*place, *each): mark for each, mark in value.keys.items()}
    document.values |= {(*place, *each): start for each in value.values}
    document.values[place] = document.keys[place] = start


def _steps(path: str) -> list[str]:
    return re.sub(r"\[(\d+)\]", r".\1", path.strip()).split(".")


class _Setting:
    """One walk down a spec to the key that an override sets."""

    def __init__(self, document: Document, start: Mark) -> None:
        self.document = document
        self.start = start

    def set(self, steps: list[str], value: Any) -> Place:
        """Set the value and return its place."""
        inner: Any = self.document.data
        place: Place = ()
        for depth, step in enumerate(steps):
            key = self.key(inner, step, place)
            place = (*place, key)
            if depth == len(steps) - 1:
                inner[key] = value
            else:
                outer, inner = inner, self.opened(inner, key, place)
                outer[key] = inner
        return place

    def key(self, inner: Any, step: str, place: Place) -> str | int:
        """Return a step as a key of a mapping or a position in a list."""
        if isinstance(inner, dict):
            return step
        last = len(inner) - 1
        if not re.fullmatch("[0-9]{1,9}", step) or int(step) > last:
            found = f"{key_path(place)} is a list, and has no {step!r}"
            name = ".".join(map(str, place))
            known = f"{name}.0 to {name}.{last}" if last > 0 else f"{name}.0"
            raise UnknownKey(found, remedy=f"it has {known}" if inner else "it is empty")
        return int(step)

    def opened(self, inner: Any, key: str | int, place: Place) -> Any:
        """Return what stands at a key, as something that a setting can be set in."""
        value = inner.get(key) if isinstance(inner, dict) else inner[key]
        if value is None:
            self.document.keys.setdefault(place, self.start)
            self.document.values.setdefault(place, self.start)
            return {}
        if isinstance(value, str):
            self.document.values[*place, "name"] = self.document.mark(place)
            return {"name": value}
        if not isinstance(value, (dict, list)):
            found = f"{key_path(place)} is {value!r}, which has no settings"
            raise UnknownKey(found, remedy=f"set {key_path(place)} itself")
        return value


def _forget_below(document: Document, place: Place) -> None:
    for marks in (document.keys, document.values):
        for each in [each for each in marks if each[: len(place)] == place]:
            del marks[each]


def _with_base(document: Document, above: tuple[Path, ...]) -> Document:
    if EXTENDS not in document.data:
        return document
    named = document.data.pop(EXTENDS)
    if not isinstance(named, str):
        found = "must be the path of one file"
        raise document.error((EXTENDS,), found, kind=WrongType, remedy="write extends: other.yaml")
    target = document.base / named
    if not is_file(target):
        found, remedy = f"no file {named!r}", similar_file(target)
        raise document.error((EXTENDS,), found, kind=MissingFile, remedy=remedy)
    resolved = target.resolve()
    if resolved in above:
        circle = [*above[above.index(resolved) :], resolved]
        found = f"goes round in a circle: {' -> '.join(each.name for each in circle)}"
        raise document.error((EXTENDS,), found, kind=Contradiction, remedy="extend another file")
    base = _with_base(read_file(target, len(above) + 1), (*above, resolved))
    return _merged(base, document)


def _merged(base: Document, over: Document) -> Document:
    replaced: set[Place] = set()
    _merge(base.data, over.data, (), replaced)

    def kept(marks: Mapping[Place, Mark]) -> dict[Place, Mark]:
        starts = {place: [place[:end] for end in range(1, len(place) + 1)] for place in marks}
        return {each: marks[each] for each in marks if replaced.isdisjoint(starts[each])}

    return Document(
        base.data,
        kept(base.keys) | over.keys,
        kept(base.values) | over.values,
        over.base,
        [*base.faults, *over.faults],
    )


def _merge(base: dict[str, Any], over: dict[str, Any], place: Place, replaced: set[Place]) -> None:
    for key, value in over.items():
        here = (*place, key)
        below = base.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            _merge(below, value, here, replaced)
        else:
            base[key] = value
            replaced.add(here)


def _plain(value: Any, place: Place) -> Any:
    """Return a value from Python as YAML would give it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(each, (*place, str(key))) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, (*place, at)) for at, each in enumerate(value)]
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, float) and math.isnan(value):
        raise WrongType("must be a number, found NaN", where=key_path(place))
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, (bool, int, float)):
        return value
    found = f"a {type(value).__name__} has no form in YAML"
    raise WrongType(found, where=key_path(place), remedy="give text, numbers, lists and mappings")
