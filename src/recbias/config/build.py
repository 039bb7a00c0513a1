"""Build plug-ins from the settings of a spec: validate each value and locate each fault."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_origin

from pydantic import ValidationError

from recbias.config.declarations.hints import (
    Hint,
    descend,
    get_annotations,
    get_item_type,
    get_longest,
    is_input_file,
    is_model_name,
    is_selected_model,
    list_choices,
    list_members,
    restrict_to_value,
    select_member,
    strip_annotations,
)
from recbias.config.declarations.large_numbers import find_too_large
from recbias.config.declarations.remedies import suggest_remedy
from recbias.config.declarations.type_text import (
    describe_hint,
    describe_value,
    render_yaml,
    suggest_default,
)
from recbias.config.settings import Setting, is_valid, read_settings, validate_value
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
from recbias.core.machine.memory import raise_shortage
from recbias.core.models.selected_models import SelectedModel
from recbias.core.registry import is_file as is_plugin_file
from recbias.core.suggestions import find_nearest, suggest
from recbias.formats.yaml.source_map import Document, KeyPath
from recbias.formats.yaml.tree import is_file, suggest_file

_RANGE_FAULTS = (
    *("than", "too_short", "too_long", "multiple", "pattern", "predicate"),
    "value_error",
)
"""Parts of the names of pydantic's errors for a value of the right type outside its range."""

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
        n_faults = len(self.document.faults)
        settings, values = read_settings(cls), self.validate_all(cls, raw, location)
        if len(self.document.faults) > n_faults:
            return None
        try:
            return cls(**{settings[name].field.name: value for name, value in values.items()})
        except UserError as error:
            setting_location = (*location, error.where) if error.where in settings else location
            self.document.add_error(setting_location, error)
        except ValueError as error:
            self.document.add_fault(location, str(error), kind=OutOfRange)
        except CODE_FAULTS as error:
            raise_shortage(error)
            fault = describe_exception(error)
            message = f"{self.owner} cannot be built from its settings: {fault}"
            self.document.add_fault(location, message, remedy="fix its code", kind=BrokenContract)
        return None

    def validate_all(self, cls: type, raw: Mapping[str, Any], location: KeyPath) -> dict[str, Any]:
        """Return the valid settings of a mapping by their key in the spec.

        An item with a fault in a list of mappings is None.
        """
        settings = read_settings(cls)
        self.refuse_unknown_keys(settings, raw, location)
        for name, setting in settings.items():
            if setting.needed and name not in raw:
                remedy = f"add {name}: {describe_hint(setting.hint)}"
                self.document.add_fault(location, f"{self.owner} needs {name}", remedy=remedy)
        values: dict[str, Any] = {}
        for name in [name for name in settings if name in raw]:
            n_faults = len(self.document.faults)
            value = self.validate(settings[name], raw[name], (*location, name))
            is_list_of_mappings = isinstance(value, tuple) and any(map(is_dataclass, value))
            if len(self.document.faults) == n_faults or is_list_of_mappings:
                values[name] = value
        return values

    def validate(self, setting: Setting, raw: Any, location: KeyPath) -> Any:
        """Return the value of a setting, None if it has a fault."""
        return self._validate(setting.hint, raw, location, suggest_default(setting))

    def refuse_unknown_keys(
        self, settings: Mapping[str, Setting], raw: Mapping[str, Any], location: KeyPath
    ) -> None:
        """Record each key that is not a setting."""
        for name in [name for name in raw if name not in settings]:
            message = f"not a setting of {self.owner}"
            remedy = suggest(name, {*settings, *self.entry_keys})
            where = (*location, name)
            self.document.add_fault(where, message, remedy=remedy, kind=UnknownKey, key=True)

    def _validate(self, hint: Hint, raw: Any, location: KeyPath, default: str) -> Any:
        member = select_member(hint, raw)
        if is_selected_model(member) and self.resolve_entry is not None:
            return self._select_model(raw, location, self.resolve_entry)
        if is_input_file(member) and isinstance(raw, str):
            return self._resolve_file(raw, location, list_choices(hint))
        if is_model_name(member) and isinstance(raw, str) and is_valid(member, raw):
            return self._resolve_model(raw, location)
        if is_dataclass(strip_annotations(member)) and isinstance(raw, dict):
            names = [key for key in location if isinstance(key, str)]
            owner = f"{self.owner}.{names[-1]}"
            builder = Builder(self.document, owner, self.path_texts, self.resolve_entry)
            return builder.build(strip_annotations(member), raw, location)
        if isinstance(raw, list) and any(  # the items need more than pydantic
            is_input_file(item) or is_dataclass(strip_annotations(item))
            for item in list_members(get_item_type(member))
        ):
            return self._validate_items(member, raw, location, default)
        return self._validate_leaf(member, raw, location, default)

    def _select_model(
        self, raw: Any, location: KeyPath, resolve_entry: ResolveEntry
    ) -> SelectedModel | None:
        """Return the model of an entry inside another one: no label, search or re-ranker."""
        for key in ("label", "tune", "rerank") if isinstance(raw, dict) else ():
            if key in raw:
                message = f"a model inside {self.owner} has no {key}"
                remedy = f"remove {key}, or list the model under models too"
                self.document.add_fault((*location, key), message, remedy=remedy, kind=UnknownKey)
                raw = {name: value for name, value in raw.items() if name != key}
        spec = resolve_entry("models", raw, location)
        if spec is None:
            return None
        name: str = spec.name
        if is_plugin_file(name):
            path = (self.document.mark(location).folder / name).absolute()
            self.path_texts[path], name = name, path.as_posix()
        return SelectedModel(name, spec.plugin)

    def _resolve_file(
        self, raw: str, location: KeyPath, alternatives: Sequence[Any] = ()
    ) -> Path | None:
        """Return the path of an existing file; the setting also accepts the alternatives."""
        path = (self.document.mark(location).folder / raw).absolute()
        if is_file(path):
            self.path_texts[path] = raw
            return path
        names = [name for name in alternatives if isinstance(name, str)]
        message = (
            f"{raw!r} is neither {', '.join(names)} nor a file" if names else f"no file {raw!r}"
        )
        nearest = find_nearest(raw, names, limit=1)
        remedy = f"did you mean {nearest[0]}?" if nearest else suggest_file(path)
        self.document.add_fault(location, message, remedy=remedy, kind=MissingFile)
        return None

    def _resolve_model(self, raw: str, location: KeyPath) -> str:
        """Return the path of a model folder; any other model name is returned unchanged."""
        folder = self.document.mark(location).folder / Path(raw).expanduser()
        path = Path(os.path.normpath(folder.absolute()))
        if not raw.startswith((".", "~")) and not (path / "config.json").is_file():
            return raw
        self.path_texts[path] = raw
        return str(path)

    def _validate_items(self, hint: Hint, raw: list[Any], location: KeyPath, default: str) -> Any:
        limits = get_annotations(hint)
        if limits and not is_valid(Annotated[(list[Any], *limits)], raw):
            return self._blame(hint, raw, location, default=default, kinds=["too_short"])
        item_type, container = get_item_type(hint), get_origin(strip_annotations(hint))
        items = enumerate(raw)
        return container(
            [self._validate(item_type, item, (*location, at), "") for at, item in items]
        )

    def _validate_leaf(self, hint: Hint, raw: Any, location: KeyPath, default: str) -> Any:
        kinds: dict[KeyPath, list[str]] = {}
        if isinstance(raw, list) and len(raw) > get_longest(hint):  # before each value is read
            return self._blame(hint, raw, location, default=default, kinds=["too_long"])
        try:
            value = validate_value(hint, raw)
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False):
                kinds.setdefault(restrict_to_value(raw, fault["loc"]), []).append(fault["type"])
        for inner, names in kinds.items():
            inner_hint, inner_raw = descend(hint, raw, inner)
            remedy = "" if inner else default
            self._blame(inner_hint, inner_raw, (*location, *inner), default=remedy, kinds=names)
        if kinds:
            return None
        for inner, number in find_too_large(raw):
            expected, text = describe_hint(descend(hint, raw, inner)[0]), render_yaml(number)[:24]
            required = "" if expected == "anything" else f"must be {expected}, "
            message = f"{required}found {text}, which is too large"
            remedy = default or "give a smaller number"
            self.document.add_fault((*location, *inner), message, remedy=remedy, kind=OutOfRange)
            return None
        return value

    def _blame(
        self, hint: Hint, raw: Any, location: KeyPath, *, default: str, kinds: list[str]
    ) -> None:
        is_choice = isinstance(raw, str) and "literal_error" in kinds
        is_range = is_choice or any(part in kind for kind in kinds for part in _RANGE_FAULTS)
        text = repr(raw) if is_choice else describe_value(raw)
        if isinstance(raw, list) and len(raw) > get_longest(hint):
            text = f"a list of {len(raw):,}"
        self.document.add_fault(
            location,
            f"must be {describe_hint(hint)}, found {text}",
            remedy=suggest_remedy(hint, raw, location) or default or f"give {describe_hint(hint)}",
            kind=OutOfRange if is_range else WrongType,
        )
