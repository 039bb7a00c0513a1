"""Plug-ins from settings: each field is checked strictly, and every fault has its place."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import ValidationError

from recbias.config.settings import Hint, Setting, accepts, checked, plain, settings
from recbias.config.type_text import (
    bare,
    choices,
    in_words,
    in_yaml,
    is_input_file,
    is_list,
    is_mapping,
    is_model_name,
    item_type,
    members,
    metadata,
    shown,
)
from recbias.core.errors import (
    BrokenContract,
    MissingFile,
    OutOfRange,
    UnknownKey,
    UserError,
    WrongType,
)
from recbias.core.registry import CODE_FAULTS
from recbias.core.registry import in_words as in_error_words
from recbias.core.suggestions import find_nearest, suggest
from recbias.formats.yaml.source_map import Document, Place
from recbias.formats.yaml.tree import is_file, similar_file

_OF_RANGE = ("than", "too_short", "too_long", "multiple", "pattern", "predicate", "value_error")
"""Parts of pydantic's names of the faults of a value that has the right type."""


LARGEST = 2**63 - 1
"""No number is above it, nor below its negative: what whole numbers in arrays can be."""


@dataclass
class Builder:
    """Fills dataclasses from what stands at a place of a document; faults go to the document.

    Args:
        document: The spec.
        owner: Whose settings they are, for messages: ``ItemKNN``.
        written: Each path that was resolved, as the user wrote it; filled on the way.
    """

    document: Document
    owner: str
    written: dict[Path, str] = field(default_factory=dict)

    def build(self, cls: type, raw: Mapping[str, Any], place: Place) -> Any:
        """Return the dataclass, or None where it has faults."""
        before = len(self.document.faults)
        known, values = settings(cls), self.values(cls, raw, place)
        if len(self.document.faults) > before:
            return None
        try:
            return cls(**{known[name].field.name: value for name, value in values.items()})
        except UserError as error:
            inner = (*place, error.where) if error.where in known else place
            self.document.carry(inner, error)
        except ValueError as error:
            self.document.blame(place, str(error), kind=OutOfRange)
        except CODE_FAULTS as error:
            found = f"{self.owner} cannot be made of its settings: {in_error_words(error)}"
            self.document.blame(place, found, remedy="mend its code", kind=BrokenContract)
        return None

    def values(self, cls: type, raw: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """Return the settings that are given and have no fault, by their name in a spec."""
        known = settings(cls)
        self._names(known, raw, place)
        made: dict[str, Any] = {}
        for name in [each for each in known if each in raw]:
            before = len(self.document.faults)
            value = self.value(known[name], raw[name], (*place, name))
            if len(self.document.faults) == before:
                made[name] = value
        return made

    def value(self, setting: Setting, raw: Any, place: Place) -> Any:
        """Return one checked value; None where it has a fault."""
        return self._checked(setting.hint, raw, place, _default_in_words(setting))

    def _names(self, known: Mapping[str, Setting], raw: Mapping[str, Any], place: Place) -> None:
        for name in [each for each in raw if each not in known]:
            found, remedy = f"not a setting of {self.owner}", suggest(name, known)
            self.document.blame((*place, name), found, remedy=remedy, kind=UnknownKey, key=True)
        for name in [each for each in known if known[each].needed and each not in raw]:
            remedy = f"add {name}: {in_words(known[name].hint)}"
            self.document.blame(place, f"{self.owner} needs {name}", remedy=remedy)

    def _checked(self, hint: Hint, raw: Any, place: Place, default: str) -> Any:
        chosen = _branch(hint, raw)
        if is_input_file(chosen) and isinstance(raw, str):
            return self._file(raw, place, choices(hint))
        if is_model_name(chosen) and isinstance(raw, str):
            return self._model(raw, place)
        if is_dataclass(bare(chosen)) and isinstance(raw, dict):
            return self._nested(bare(chosen), raw, place)
        if isinstance(raw, list) and _is_deep(item_type(chosen)):
            return self._entries(chosen, raw, place, default)
        return self._leaf(chosen, raw, place, default)

    def _file(self, raw: str, place: Place, instead: Sequence[Any] = ()) -> Path | None:
        """Return the path of a file that is there; ``instead`` could stand in its place."""
        path = (self.document.mark(place).folder / raw).absolute()
        if is_file(path):
            self.written[path] = raw
            return path
        names = [each for each in instead if isinstance(each, str)]
        found = f"{raw!r} is neither {', '.join(names)} nor a file"
        found = found if names else f"no file {raw!r}"
        close = find_nearest(raw, names, most=1)
        remedy = f"did you mean {close[0]}?" if close else similar_file(path)
        self.document.blame(place, found, remedy=remedy, kind=MissingFile)
        return None

    def _model(self, raw: str, place: Place) -> str:
        """Return the path of a model's folder, and any other name as it is."""
        written = self.document.mark(place).folder / Path(raw).expanduser()
        path = Path(os.path.normpath(written.absolute()))
        if not raw.startswith((".", "~")) and not (path / "config.json").is_file():
            return raw
        self.written[path] = raw
        return str(path)

    def _nested(self, cls: type, raw: dict[str, Any], place: Place) -> Any:
        names = [each for each in place if isinstance(each, str)]
        inner = Builder(self.document, f"{self.owner}.{names[-1]}", self.written)
        return inner.build(cls, raw, place)

    def _entries(self, hint: Hint, raw: list[Any], place: Place, default: str) -> Any:
        limits = metadata(hint)
        if limits and not accepts(Annotated[(list[Any], *limits)], raw):
            return self._fault(hint, raw, place, default=default, kinds=["too_short"])
        item: Any = item_type(hint)
        container: Any = get_origin(bare(hint))
        made = [self._checked(item, each, (*place, at), "") for at, each in enumerate(raw)]
        return container(made)

    def _leaf(self, hint: Hint, raw: Any, place: Place, default: str) -> Any:
        try:
            value = checked(hint, raw)
        except ValidationError as error:
            kinds: dict[Place, list[str]] = {}
            for each in error.errors(include_url=False, include_input=False):
                kinds.setdefault(_inside(raw, each["loc"]), []).append(each["type"])
        else:
            return self._bounded(value, hint, raw, place, default)
        for inner, found in kinds.items():
            wanted, value = _at(hint, raw, inner)
            self._fault(
                wanted, value, (*place, *inner), default="" if inner else default, kinds=found
            )
        return None

    def _bounded(self, value: Any, hint: Hint, raw: Any, place: Place, default: str) -> Any:
        """Return a value that arrays can hold."""
        for inner, large in _too_large(raw):
            said = f"must be {in_words(_at(hint, raw, inner)[0])}, found {in_yaml(large)[:24]}"
            said += ", which is too large"
            remedy = default or "give a smaller number"
            self.document.blame((*place, *inner), said, remedy=remedy, kind=OutOfRange)
            return None
        return value

    def _fault(
        self, hint: Hint, raw: Any, place: Place, *, default: str, kinds: list[str]
    ) -> None:
        is_choice = isinstance(raw, str) and "literal_error" in kinds
        is_range = is_choice or any(part in kind for kind in kinds for part in _OF_RANGE)
        self.document.blame(
            place,
            f"must be {in_words(hint)}, found {repr(raw) if is_choice else shown(raw)}",
            remedy=_remedy(hint, raw) or default or f"give {in_words(hint)}",
            kind=OutOfRange if is_range else WrongType,
        )


def _too_large(raw: Any, inner: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield, with their places, what no setting can be: infinities and what is past 64 bits."""
    if isinstance(raw, (list, dict)):
        for at, each in raw.items() if isinstance(raw, dict) else enumerate(raw):
            yield from _too_large(each, (*inner, at))
    elif isinstance(raw, (int, float)) and abs(raw) > LARGEST:
        yield inner, raw


def _branch(hint: Hint, raw: Any) -> Hint:
    """Return the member of a union that a value is meant for; the union where that is open."""
    for each in members(hint):
        if isinstance(raw, dict) and is_mapping(each):
            return each
        if isinstance(raw, list) and is_list(each):
            return each
        named = is_input_file(each) or is_model_name(each)
        if isinstance(raw, str) and named and raw not in choices(hint):
            return each
    return hint


def _is_deep(item: Hint) -> bool:
    return any(is_input_file(each) or is_dataclass(bare(each)) for each in members(item))


def _inside(raw: Any, location: tuple[int | str, ...]) -> Place:
    """Return the part of pydantic's location that is keys and positions of the value."""
    place: Place = ()
    for step in location:
        if isinstance(raw, dict) and step in raw:
            raw, place = raw[str(step)], (*place, step)
        elif isinstance(raw, list) and isinstance(step, int) and step < len(raw):
            raw, place = raw[step], (*place, step)
    return place


def _at(hint: Hint, raw: Any, inner: Place) -> tuple[Hint, Any]:
    """Return the type and the value inside a value."""
    for step in inner:
        arguments = get_args(bare(hint))
        if isinstance(raw, dict):
            hint = arguments[-1] if arguments else Any
        else:
            hint = item_type(hint) or (arguments[int(step)] if arguments else Any)
        raw = raw[step]
        hint = _branch(hint, raw)
    return hint, raw


def _remedy(hint: Hint, raw: Any) -> str:
    if isinstance(raw, str):
        return _remedy_for_text(hint, raw)
    if isinstance(raw, (bool, int, float)) and accepts(hint, str(raw)):
        return f"put it in quotes: '{in_yaml(raw)}'"
    if not isinstance(raw, list) and accepts(hint, [raw]):
        return f"write it as a list: [{in_yaml(raw)}]"
    return ""


def _remedy_for_text(hint: Hint, raw: str) -> str:
    close = find_nearest(raw, [each for each in choices(hint) if isinstance(each, str)], most=1)
    if close:
        return f"did you mean {close[0]}?"
    if raw.casefold() in {"yes", "no", "on", "off"} and bool in members(hint):
        return "write true or false"
    try:
        value = json.loads(raw)
    except ValueError:
        value = raw
    if value != raw and accepts(hint, value):
        return f"write it without quotes: {in_yaml(value)}"
    return f"write it as a list: [{raw}]" if accepts(hint, [raw]) else ""


def _default_in_words(setting: Setting) -> str:
    default = setting.default
    if setting.needed or default is None or is_dataclass(default):
        return ""
    return f"the default is {in_yaml(plain(default))}"
