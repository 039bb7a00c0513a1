"""Build plug-ins from the settings of a spec: pydantic validates, each fault gets its place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError

from recbias.config.settings import (
    Hint,
    Setting,
    describe_hint,
    describe_value,
    follow,
    get_item_type,
    get_longest,
    is_input_file,
    is_model_name,
    is_selected_model,
    is_valid,
    list_choices,
    read_settings,
    render_yaml,
    select_member,
    strip_annotations,
    suggest_remedy,
    validate_value,
)
from recbias.core.errors import (
    CODE_FAULTS,
    BrokenContract,
    MissingFile,
    OutOfRange,
    UnknownKey,
    UserError,
    WrongType,
    describe_exception,
)
from recbias.core.models.selected_models import SelectedModel
from recbias.core.registry import is_file as is_plugin_file
from recbias.core.suggestions import find_nearest, suggest
from recbias.formats.yaml import Document, KeyPath, is_file, suggest_file

_RANGE_FAULTS = ("than", "too_short", "too_long", "multiple", "pattern", "predicate")
"""Parts of the names of pydantic's errors for a value of the right type outside its range."""

_LARGEST = 2**63 - 1
"""The largest number that fits the arrays in which settings are stored."""

ResolveEntry: TypeAlias = Callable[[str, Any, KeyPath], Any]
"""Resolves the entry of a plug-in: kind, entry and location; None if it has a fault."""


@dataclass
class Builder:
    """Fills dataclasses with the values of a document; faults are recorded in the document.

    Args:
        owner: The plug-in whose settings they are, for messages: ``ItemKNN``.
        path_texts: The text that the user wrote for each resolved path; filled by the builder.
        resolve_entry: Resolves the model that is a setting of another model.
        entry_keys: The keys that may stand beside the settings, for suggestions: ``label``.
    """

    document: Document
    owner: str
    path_texts: dict[Path, str] = field(default_factory=dict)
    resolve_entry: ResolveEntry | None = None
    entry_keys: tuple[str, ...] = ()

    def build(self, cls: type, raw: Mapping[str, Any], location: KeyPath) -> Any:
        """Build a dataclass from its settings; return None if there is a fault."""
        read_settings(cls)
        return self.validate(cls, raw, location)

    def validate_fields(
        self, cls: type, raw: Mapping[str, Any], location: KeyPath
    ) -> dict[str, Any]:
        """Return the valid settings of a mapping by key; the faults of the others are recorded."""
        built, settings = self.build(cls, raw, location), read_settings(cls)
        given = {name: setting for name, setting in settings.items() if name in raw}
        if built is not None:
            return {name: getattr(built, setting.field.name) for name, setting in given.items()}
        values: dict[str, Any] = {}
        for name, setting in given.items():
            with suppress(ValidationError):
                values[name] = validate_value(setting.hint, raw[name])
        return values

    def validate(self, hint: Hint, raw: Any, location: KeyPath, default: str = "") -> Any:
        """Return a value as its type has it, None if there is a fault.

        ``default`` is the help line of a fault of the value as a whole.
        """
        n_faults = len(self.document.faults)
        preparation = _Preparation(self, location)
        prepared = preparation.prepare(hint, raw, ())
        if preparation.too_long:  # each item of it may have a fault
            for inner in preparation.too_long:
                inner_hint, inner_raw, help_line = follow(hint, raw, inner)
                self._blame(
                    inner_hint, inner_raw, (*location, *inner), help_line or default, ["too_long"]
                )
            return None
        large = [*_find_too_large(hint, prepared)]
        are_inputs_valid = len(self.document.faults) == n_faults and not large
        value = None
        places: set[KeyPath] = set()
        try:
            value = validate_value(hint, prepared, preparation.models)
        except ValidationError as error:
            places = self._record(hint, raw, location, error, default)
        except CODE_FAULTS as error:  # of a check of the class
            if are_inputs_valid:
                self._blame_class(hint, raw, preparation, error)
        for inner, expected, number, help_line in large:
            if inner not in places:
                found = f"found {render_yaml(number)[:24]}, which is too large"
                remedy = help_line or default or "give a smaller number"
                message, place = f"must be {expected}, {found}", (*location, *inner)
                self.document.add_fault(place, message, remedy=remedy, kind=OutOfRange)
        return value if len(self.document.faults) == n_faults else None

    def refuse_unknown_keys(
        self, settings: Mapping[str, Setting], keys: Iterable[str], location: KeyPath
    ) -> None:
        """Record each key that is not a setting."""
        for name in [name for name in keys if name not in settings]:
            self._blame_key((*location, name), self.owner, settings)

    def _record(
        self, hint: Hint, raw: Any, location: KeyPath, error: ValidationError, default: str
    ) -> set[KeyPath]:
        """Record the errors of pydantic; return their places.

        Of a union, only the errors deepest inside the value are of the member that was meant.
        """
        unknown, missing, wrong = self._sort_errors(hint, raw, location, error)
        for inner in unknown:
            settings, owner = self._find_mapping(hint, raw, inner[:-1])
            names = {*settings, *(self.entry_keys if len(inner) == 1 else ())}
            self._blame_key((*location, *inner), owner, names)
        for inner in missing:
            settings, owner = self._find_mapping(hint, raw, inner[:-1])
            name = str(inner[-1])
            message, needed = f"{owner} needs {name}", describe_hint(settings[name].hint)
            place = (*location, *inner[:-1])
            self.document.add_fault(place, message, remedy=f"add {name}: {needed}")
        places = {*unknown, *missing, *wrong}
        for inner, kinds in wrong.items():
            if not any(len(p) > len(inner) and p[: len(inner)] == inner for p in places):
                inner_hint, inner_raw, help_line = follow(hint, raw, inner)
                help_line = help_line if inner else default
                self._blame(inner_hint, inner_raw, (*location, *inner), help_line, kinds)
        return places

    def _sort_errors(
        self, hint: Hint, raw: Any, location: KeyPath, error: ValidationError
    ) -> tuple[list[KeyPath], list[KeyPath], dict[KeyPath, list[str]]]:
        """Return the unknown and the missing keys, and the kinds of other errors by place.

        Those of a check of a class are recorded.
        """
        unknown: list[KeyPath] = []
        missing: list[KeyPath] = []
        wrong: dict[KeyPath, list[str]] = {}
        for each in error.errors(include_url=False, include_input=False):
            inner, kind = _restrict_to_value(raw, each["loc"][1:]), each["type"]
            cls = strip_annotations(follow(hint, raw, inner)[0])
            if kind == "unexpected_keyword_argument":
                unknown.append(inner)
            elif kind == "missing" and is_dataclass(cls):  # else an item of a tuple
                missing.append((*inner, each["loc"][-1]))
            elif kind == "value_error":
                message = str(each["ctx"]["error"])
                self.document.add_fault((*location, *inner), message, kind=OutOfRange)
            else:
                wrong.setdefault(inner, []).append(kind)
        return unknown, missing, wrong

    def _find_mapping(
        self, hint: Hint, raw: Any, inner: KeyPath
    ) -> tuple[Mapping[str, Setting], str]:
        """Return the settings of the mapping at a place, and its name for messages."""
        cls = strip_annotations(follow(hint, raw, inner)[0])
        names = [step for step in inner if isinstance(step, str)]
        return read_settings(cls), ".".join([self.owner, *names])

    def _blame_key(self, place: KeyPath, owner: str, names: Iterable[str]) -> None:
        message, remedy = f"not a setting of {owner}", suggest(str(place[-1]), names)
        self.document.add_fault(place, message, remedy=remedy, kind=UnknownKey, key=True)

    def _blame_class(
        self, hint: Hint, raw: Any, preparation: _Preparation, error: BaseException
    ) -> None:
        """Record what a check of a class raised, at the mapping of its settings."""
        inner, raised = preparation.locate(error)
        place = (*preparation.location, *inner)
        if isinstance(raised, UserError):
            settings, _ = self._find_mapping(hint, raw, inner)
            self.document.add_error((*place, *filter(settings.get, [raised.where])), raised)
        else:
            message = (
                f"{self.owner} cannot be built from its settings: {describe_exception(raised)}"
            )
            self.document.add_fault(place, message, remedy="fix its code", kind=BrokenContract)

    def _blame(
        self, hint: Hint, raw: Any, location: KeyPath, default: str, kinds: Sequence[str]
    ) -> None:
        is_choice = isinstance(raw, str) and "literal_error" in kinds
        is_range = is_choice or any(part in kind for kind in kinds for part in _RANGE_FAULTS)
        text = repr(raw) if is_choice else describe_value(raw)
        if isinstance(raw, list) and "too_long" in kinds:
            text = f"a list of {len(raw):,}"
        self.document.add_fault(
            location,
            f"must be {describe_hint(hint)}, found {text}",
            remedy=suggest_remedy(hint, raw, location) or default or f"give {describe_hint(hint)}",
            kind=OutOfRange if is_range else WrongType,
        )


@dataclass
class _Preparation:
    """Resolves the files and models in a value, before pydantic validates it.

    Args:
        location: The place of the value in the document; other places are relative to it.
        models: The models that are settings, by the texts that stand for them.
        mappings: The mappings of dataclasses with their places, the inner ones first.
        too_long: The places of lists that are longer than their types allow.
    """

    builder: Builder
    location: KeyPath
    models: dict[str, SelectedModel | None] = field(default_factory=dict)
    mappings: list[tuple[KeyPath, type, Any]] = field(default_factory=list)
    too_long: list[KeyPath] = field(default_factory=list)

    def prepare(self, hint: Hint, raw: Any, inner: KeyPath) -> Any:
        """Return a value with absolute paths, and texts in place of models."""
        member = select_member(hint, raw)
        cls: type = strip_annotations(member)
        item_type = get_item_type(member)
        if is_selected_model(member) and self.builder.resolve_entry is not None:
            self.models[str(inner)] = self.select_model(raw, inner, self.builder.resolve_entry)
            return str(inner)
        if is_input_file(member) and isinstance(raw, str):
            return self.resolve_file(raw, inner, list_choices(hint))
        if is_model_name(member) and isinstance(raw, str) and is_valid(member, raw):
            return self.resolve_model(raw, inner)
        if is_dataclass(cls) and isinstance(raw, dict):
            settings = read_settings(cls)
            prepared = {
                key: self.prepare(settings[key].hint, value, (*inner, key))
                if key in settings
                else value
                for key, value in raw.items()
            }
            self.mappings.append((inner, cls, prepared))
            return prepared
        if isinstance(raw, list) and len(raw) > get_longest(member):
            self.too_long.append(inner)
        elif isinstance(raw, list) and item_type is not None:
            return [self.prepare(item_type, item, (*inner, at)) for at, item in enumerate(raw)]
        return raw

    def locate(self, error: BaseException) -> tuple[KeyPath, BaseException]:
        """Return the innermost mapping whose class raises an error, and that error."""
        for inner, cls, prepared in self.mappings:
            try:
                with suppress(ValidationError):
                    validate_value(cls, prepared, self.models)
            except CODE_FAULTS as raised:
                return inner, raised
        return (), error

    def select_model(
        self, raw: Any, inner: KeyPath, resolve_entry: ResolveEntry
    ) -> SelectedModel | None:
        """Return the model of an entry inside another one: no label, search or re-ranker."""
        document, location = self.builder.document, (*self.location, *inner)
        for key in ("label", "tune", "rerank") if isinstance(raw, dict) else ():
            if key in raw:
                message = f"a model inside {self.builder.owner} has no {key}"
                remedy = f"remove {key}, or list the model under models too"
                document.add_fault((*location, key), message, remedy=remedy, kind=UnknownKey)
                raw = {name: value for name, value in raw.items() if name != key}
        spec = resolve_entry("models", raw, location)
        if spec is None:
            return None
        name: str = spec.name
        if is_plugin_file(name):
            path = (document.mark(location).folder / name).absolute()
            self.builder.path_texts[path], name = name, path.as_posix()
        return SelectedModel(name, spec.plugin)

    def resolve_file(self, raw: str, inner: KeyPath, alternatives: Sequence[Any] = ()) -> str:
        """Return the path of an existing file; the setting also accepts the alternatives."""
        document, location = self.builder.document, (*self.location, *inner)
        path = (document.mark(location).folder / raw).absolute()
        if is_file(path):
            self.builder.path_texts[path] = raw
            return str(path)
        names = [name for name in alternatives if isinstance(name, str)]
        message = (
            f"{raw!r} is neither {', '.join(names)} nor a file" if names else f"no file {raw!r}"
        )
        nearest = find_nearest(raw, names, limit=1)
        remedy = f"did you mean {nearest[0]}?" if nearest else suggest_file(path)
        document.add_fault(location, message, remedy=remedy, kind=MissingFile)
        return raw

    def resolve_model(self, raw: str, inner: KeyPath) -> str:
        """Return the path of a model folder; any other model name is returned unchanged."""
        folder = self.builder.document.mark((*self.location, *inner)).folder
        path = Path(os.path.normpath((folder / Path(raw).expanduser()).absolute()))
        if not raw.startswith((".", "~")) and not (path / "config.json").is_file():
            return raw
        self.builder.path_texts[path] = raw
        return str(path)


def _restrict_to_value(raw: Any, location: tuple[int | str, ...]) -> KeyPath:
    """Return the keys and indexes in a location of pydantic, which also names union members.

    An unexpected key is in the value too; a missing one is not.
    """
    inner: KeyPath = ()
    for key in location:
        is_key = isinstance(raw, dict) and key in raw
        if is_key or (isinstance(raw, list) and isinstance(key, int) and key < len(raw)):
            raw, inner = raw[key], (*inner, key)
    return inner


def _find_too_large(hint: Hint, raw: Any) -> Iterator[tuple[KeyPath, str, Any, str]]:
    """Yield the infinite numbers of settings, and those beyond 64 bits.

    Each has its place, the type that is expected there, itself and the help line of its default.
    Entries of other plug-ins, which can be anything here, report their own.
    """
    for inner, number in _list_large_numbers(raw, ()):
        expected, _, help_line = follow(hint, raw, inner)
        if strip_annotations(expected) is not Any:
            yield inner, describe_hint(expected), number, help_line


def _list_large_numbers(raw: Any, inner: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(raw, (list, dict)):
        for key, value in raw.items() if isinstance(raw, dict) else enumerate(raw):
            yield from _list_large_numbers(value, (*inner, key))
    elif isinstance(raw, (int, float)) and abs(raw) > _LARGEST:
        yield inner, raw
