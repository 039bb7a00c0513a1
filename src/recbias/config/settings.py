"""The settings of a plug-in: the fields of its dataclass, their types and values, also as text.

Build plug-ins from the settings of a spec: pydantic validates, each fault gets its place.
"""

from __future__ import annotations

import json
import math
import os
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import annotated_types
from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError

from recbias.core.docstrings import read_arguments
from recbias.core.errors import (
    CODE_FAULTS,
    BrokenContract,
    Contradiction,
    MissingFile,
    OutOfRange,
    UnknownKey,
    UserError,
    WrongType,
    describe_exception,
)
from recbias.core.plugins import InputFile, ModelName, OnlyOn, OnlyWith, SelectedModel
from recbias.core.registry import is_file as is_plugin_file
from recbias.core.registry import locate_code
from recbias.core.text import find_nearest, suggest
from recbias.formats.hub import fetch_hub_file, is_hub_address, name_hub_file
from recbias.formats.yaml import Document, KeyPath, Mark, is_file, read_text, suggest_file

Hint: TypeAlias = Any
"""The type of a field in the notation of ``typing``."""


@dataclass(frozen=True)
class Setting:
    """One setting of a plug-in, by its key in a spec."""

    name: str
    field: Field[Any]
    hint: Hint

    @property
    def needed(self) -> bool:
        """Whether it has no default."""
        return self.field.default is MISSING and self.field.default_factory is MISSING

    @property
    def default(self) -> Any:
        """The default, None if there is none."""
        if self.field.default_factory is not MISSING:
            return self.field.default_factory()
        return None if self.field.default is MISSING else self.field.default

    @property
    def only_with(self) -> tuple[OnlyWith, ...]:
        """The other settings on which its effect depends."""
        marks = _get_annotations(self.hint)
        return tuple(mark for mark in marks if isinstance(mark, OnlyWith))

    @property
    def only_on(self) -> tuple[str, ...]:
        """The evidence on which its effect depends."""
        marks = _get_annotations(self.hint)
        return tuple(mark.evidence for mark in marks if isinstance(mark, OnlyOn))


@lru_cache(maxsize=1024)
def read_settings(cls: type) -> Mapping[str, Setting]:
    """Return the settings of a plug-in's class by their key in a spec.

    Raises:
        BrokenContract: The class is not a dataclass, or a type cannot be resolved.
    """
    if not is_dataclass(cls) or not isinstance(cls, type):
        name = getattr(cls, "__name__", str(cls))
        place = f"{place}: " if (place := locate_code(cls)) else ""
        message = f"{place}{name} is not a dataclass, so it has no settings"
        raise BrokenContract(
            message, remedy="write @dataclass(frozen=True, kw_only=True) above it"
        )
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        place = f"{place}: " if (place := locate_code(cls)) else ""
        message = f"{place}the types of {cls.__name__} cannot be read: {error}"
        raise BrokenContract(message) from error
    names = {_as_yaml_name(field.name): field for field in fields(cls) if field.init}
    settings = {name: Setting(name, field, hints[field.name]) for name, field in names.items()}
    return MappingProxyType(settings)


def as_plain(value: Any, path_texts: Mapping[Path, str] | None = None) -> Any:
    """Return a value as plain JSON data, dataclasses as mappings, paths as in ``path_texts``."""
    if is_dataclass(value) and not isinstance(value, type):
        return _list_fields(value, path_texts)
    if isinstance(value, Mapping):
        return {str(key): as_plain(item, path_texts) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(as_plain(item, path_texts) for item in value)
    if isinstance(value, (list, tuple)):
        return [as_plain(item, path_texts) for item in value]
    if isinstance(value, (str, PurePath)):
        text = value if isinstance(value, str) else value.as_posix()
        return path_texts.get(Path(value), text) if path_texts else text
    return value.item() if hasattr(value, "item") else value


def _list_fields(value: Any, path_texts: Mapping[Path, str] | None) -> dict[str, Any]:
    """Return the fields of a dataclass, of a model inside another one as in its entry."""
    if isinstance(value, SelectedModel):
        return {"name": as_plain(value.name, path_texts), **as_plain(value.model, path_texts)}
    names = [field.name for field in fields(value) if field.init]
    return {_as_yaml_name(name): as_plain(getattr(value, name), path_texts) for name in names}


# ---- validation by pydantic ----


def build_adapter(hint: Hint) -> TypeAdapter[tuple[Any]]:
    """Return pydantic's validator of a tuple that holds one value of a type.

    A dataclass can only be configured inside another type.

    Raises:
        BrokenContract: pydantic does not support the type.
    """
    try:
        return _build_adapter(hint)
    except TypeError:  # an annotation that cannot be a key
        return _build_adapter.__wrapped__(hint)
    except PydanticSchemaGenerationError as error:
        raise BrokenContract(f"{hint} cannot be the type of a setting") from error


@lru_cache(maxsize=1024)
def _build_adapter(hint: Hint) -> TypeAdapter[tuple[Any]]:
    config = ConfigDict(strict=True, extra="forbid", alias_generator=_as_yaml_name)
    return TypeAdapter(tuple[hint], config=config)


def validate_value(hint: Hint, raw: Any) -> Any:
    """Convert a value from YAML to a type, strictly: ``"5"`` is not a number.

    An integer is accepted as a float, a list as a tuple, text as a path, and a mapping as a
    dataclass.

    Raises:
        ValidationError: The value does not have the type; its locations begin with 0.
    """
    (value,) = build_adapter(hint).validate_json(json.dumps([raw]))
    return value


def is_valid(hint: Hint, raw: Any) -> bool:
    """Return whether a type accepts a value.

    >>> is_valid(float, 1), is_valid(int, "1"), is_valid(int, 1.0)
    (True, False, False)
    """
    try:
        validate_value(hint, raw)
    except ValidationError:
        return False
    return True


# ---- types ----


def is_input_file(hint: Any) -> bool:
    """Return whether a type is ``InputFile``: the path of an existing file."""
    return strip_annotations(hint) is Path and _is_alias(hint, InputFile)


def _is_model_name(hint: Any) -> bool:
    """Return whether a type is ``ModelName``: the name of a pretrained model."""
    return strip_annotations(hint) is str and _is_alias(hint, ModelName)


def _is_alias(hint: Any, alias: Any) -> bool:
    return set(_get_annotations(alias)) <= set(_get_annotations(hint))


def is_selected_model(hint: Any) -> bool:
    """Return whether a type is ``SelectedModel``: an entry such as those of ``models``."""
    return strip_annotations(hint) is SelectedModel


def accepts_model_name(hint: Any) -> bool:
    """Return whether a type, or a member of a union, is ``ModelName``."""
    return any(_is_model_name(member) for member in list_members(hint))


def strip_annotations(hint: Any) -> Any:
    """Return a type without its annotations.

    >>> from annotated_types import Gt
    >>> strip_annotations(Annotated[int, Gt(0)])
    <class 'int'>
    """
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _get_annotations(hint: Any) -> tuple[Any, ...]:
    """Return the annotations of a type.

    >>> from annotated_types import Gt
    >>> _get_annotations(Annotated[int, Gt(0)])
    (Gt(gt=0),)
    """
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def list_members(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union; any other type is its own only member.

    >>> list_members(int | None)
    (<class 'int'>, <class 'NoneType'>)
    """
    plain_type = strip_annotations(hint)
    if get_origin(plain_type) in {Union, types.UnionType}:
        return get_args(plain_type)
    return (hint,)


def list_choices(hint: Any) -> tuple[Any, ...]:
    """Return the values of the ``Literal`` in a type.

    >>> list_choices(Literal["cosine", "dice"] | None)
    ('cosine', 'dice')
    """
    plain_types = map(strip_annotations, list_members(hint))
    literals = [plain_type for plain_type in plain_types if get_origin(plain_type) is Literal]
    return tuple(value for literal in literals for value in get_args(literal))


def get_item_type(hint: Any) -> Any:
    """Return the type of the items of a list, None for anything but a list of one type."""
    plain_type = strip_annotations(hint)
    origin, arguments = get_origin(plain_type), get_args(plain_type)
    is_open_tuple = origin is tuple and arguments[1:] == (...,)
    is_uniform = is_open_tuple or (origin in (tuple, list, frozenset, set) and len(arguments) == 1)
    return arguments[0] if is_uniform else None


def is_list(hint: Any) -> bool:
    """Return whether a value of a type is written as a list."""
    plain_type = strip_annotations(hint)
    return (get_origin(plain_type) or plain_type) in (tuple, list, frozenset, set)


def _is_mapping(hint: Any) -> bool:
    """Return whether a value of a type is written as a mapping."""
    plain_type = strip_annotations(hint)
    return is_dataclass(plain_type) or (get_origin(plain_type) or plain_type) in {dict, Mapping}


def _as_yaml_name(field_name: str) -> str:
    """Return the key of a field in a spec: ``from_`` is written ``from``.

    >>> _as_yaml_name("from_"), _as_yaml_name("top_n")
    ('from', 'top_n')
    """
    return field_name.removesuffix("_")


def _select_member(hint: Any, raw: Any) -> Any:
    """Return the member of a union that alone fits the form of a value, else the union."""
    members = list_members(hint)
    if isinstance(raw, dict):
        fitting = [*filter(_is_mapping, members)]
    elif isinstance(raw, list):
        fitting = [*filter(is_list, members)]
    else:
        is_named = isinstance(raw, str) and raw not in list_choices(hint)
        named = (each for each in members if is_input_file(each) or _is_model_name(each))
        fitting = [*named][:1] if is_named else []
    return fitting[0] if len(fitting) == 1 else hint


def _get_inner_type(hint: Any) -> Any:
    """Return the type of the items of a list or of the values of a mapping, None without one."""
    plain_type = strip_annotations(hint)
    if get_origin(plain_type) in {dict, Mapping} and get_args(plain_type)[0] is str:
        return get_args(plain_type)[1]
    return get_item_type(hint)


# ---- types and values as text ----

_NOUNS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    Any: "anything",
    type(None): "nothing (null)",
}
_PLURAL_NOUNS = {int: "whole numbers", float: "numbers", str: "texts"}
_YAML_1_1_BOOLEANS = {"yes", "no", "on", "off"}
_BOUNDS = {
    "gt": "above {}",
    "ge": "at least {}",
    "lt": "below {}",
    "le": "at most {}",
    "min_length": "with a length of at least {}",
    "max_length": "with a length of at most {}",
    "multiple_of": "a multiple of {}",
}


def describe_hint(hint: Any) -> str:
    """Describe a type and its range.

    >>> from typing import Annotated
    >>> describe_hint(Annotated[int, annotated_types.Gt(0)])
    'a whole number above 0'
    >>> describe_hint(Literal["cosine", "dice"] | None)
    'one of cosine, dice or nothing (null)'
    """
    members = list_members(hint)
    if len(members) > 1:
        return " or ".join(map(describe_hint, members))
    noun, limits = describe_type(hint), describe_range(hint)
    if not limits:
        return noun
    return f"{noun} of {limits}" if limits.startswith("at ") else f"{noun} {limits}"


def describe_type(hint: Any) -> str:
    """Describe a type without its range.

    >>> describe_type(tuple[int, ...])
    'a list of whole numbers'
    """
    members = list_members(hint)
    if len(members) > 1:
        return " or ".join(map(describe_type, members))
    if is_input_file(hint):
        return "a file"
    plain_type = strip_annotations(hint)
    if get_origin(plain_type) is Literal:
        values = [render_yaml(value) for value in get_args(plain_type)]
        return values[0] if len(values) == 1 else f"one of {', '.join(values)}"
    if is_selected_model(plain_type):
        return "a model"
    if is_dataclass(plain_type):
        names = [_as_yaml_name(field.name) for field in fields(plain_type) if field.init]
        return f"a mapping with {', '.join(names)}"
    return _describe_plain_type(plain_type)


def describe_range(hint: Any) -> str:
    """Describe the range of a type; blank where it has none.

    >>> from typing import Annotated
    >>> describe_range(Annotated[float, annotated_types.Interval(ge=0, le=1)])
    'from 0 to 1'
    """
    limits = [_collect_limits(_get_annotations(member)) for member in list_members(hint)]
    return " or ".join(_describe_limits(bounds) for bounds in limits if bounds)


def describe_value(value: Any) -> str:
    """Describe a value of a spec for a message.

    >>> describe_value("40"), describe_value(True), describe_value([1]), describe_value(None)
    ("the text '40'", 'true', 'a list', 'nothing')
    """
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = f"the text {value!r}" if len(value) <= 60 else f"the text {value[:60]!r}..."
        return ".nan, which is not a number" if value.casefold() == ".nan" else text
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    return repr(value)


def render_yaml(value: Any) -> str:
    """Render a plain value as YAML on one line.

    >>> render_yaml(True), render_yaml(["a", 1]), render_yaml(None)
    ('true', '[a, 1]', 'null')
    """
    if isinstance(value, Mapping):
        pairs = [f"{key}: {render_yaml(item)}" for key, item in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(render_yaml, value))}]"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Parameter:
    """One setting of a plug-in as text.

    Args:
        default: Its default in YAML; blank if there is none.
        range: Its range; blank if it has none.
    """

    name: str
    type: str
    default: str
    range: str
    doc: str
    needed: bool


def list_parameters(cls: type) -> list[Parameter]:
    """Return the settings of a plug-in's class, in order."""
    docs = read_arguments(cls)
    return [
        Parameter(
            name=setting.name,
            type=describe_type(setting.hint),
            default="" if setting.needed else render_yaml(as_plain(setting.default)),
            range=describe_range(setting.hint),
            doc=" ".join([docs.get(setting.field.name, ""), *_describe_marks(setting)]),
            needed=setting.needed,
        )
        for setting in read_settings(cls).values()
    ]


def _describe_marks(setting: Setting) -> Iterator[str]:
    """Yield a sentence for each other setting without which a setting has no effect."""
    for mark in setting.only_with:
        values = [f"``{mark.setting}: {render_yaml(value)}``" for value in mark.values]
        yield f"Only with {' or '.join(values) or f'``{mark.setting}``'}."


def _describe_plain_type(plain_type: Any) -> str:
    if _is_mapping(plain_type):
        return "a mapping"
    if not is_list(plain_type):
        name: str = getattr(plain_type, "__name__", str(plain_type))
        return _NOUNS.get(plain_type, name)
    item_type, arguments = get_item_type(plain_type), get_args(plain_type)
    if item_type is None and arguments:
        return f"a list of {len(arguments)}: {', '.join(map(describe_hint, arguments))}"
    if item_type in {None, Any}:
        return "a list"
    plural = "" if _get_annotations(item_type) else _PLURAL_NOUNS.get(item_type)
    return f"a list of {plural}" if plural else f"a list (each {describe_hint(item_type)})"


def _collect_limits(annotations: Iterable[Any]) -> dict[str, Any]:
    """Return the bounds that annotations set: ``{"gt": 0}``."""
    limits: dict[str, Any] = {}
    for annotation in annotations:
        if isinstance(annotation, annotated_types.GroupedMetadata):
            limits |= _collect_limits(annotation)
        elif hasattr(annotation, "metadata"):
            limits |= _collect_limits(annotation.metadata)
        for name in _BOUNDS:
            bound = getattr(annotation, name, None)
            if bound is not None:
                # ``typing`` caches equal types, so that a bound of 0 may read as 0.0.
                is_integer = isinstance(bound, float) and bound.is_integer()
                limits[name] = int(bound) if is_integer else bound
    return limits


def _describe_limits(limits: Mapping[str, Any]) -> str:
    if {"ge", "le"} <= limits.keys():
        return f"from {limits['ge']} to {limits['le']}"
    forms = _BOUNDS | (
        {"min_length": "that is not empty"} if limits.get("min_length") == 1 else {}
    )
    return " and ".join(forms[name].format(limits[name]) for name in forms if name in limits)


# ---- what to write instead of a rejected value ----

_SWEPT = ("models", "seed")
"""The sections whose settings a sweep may vary within one run."""

_MAX_VALUES = 12
"""The largest number of values that are repeated in the help line."""


def _suggest_remedy(hint: Any, raw: Any, location: KeyPath) -> str:
    """Return how a rejected value, or several values in one, should be written; else blank.

    >>> _suggest_remedy(int, "10,20", ("models", 1, "neighbors"))
    'one value at a time; several values: sweep: {models.1.neighbors: [10, 20]}'
    >>> _suggest_remedy(int, "40", ("models", 1, "neighbors"))
    'write it without quotes: 40'
    """
    values = _split_values(raw)
    is_swept = location[0] in _SWEPT and all(isinstance(step, str) for step in location[2:])
    if (
        is_swept
        and 1 < len(values) <= _MAX_VALUES
        and all(is_valid(hint, item) for item in values)
    ):
        path, written = ".".join(map(str, location)), ", ".join(map(render_yaml, values))
        return f"one value at a time; several values: sweep: {{{path}: [{written}]}}"
    return _suggest_spelling(hint, raw)


def _split_values(raw: Any) -> list[Any]:
    """Return the values of a list, or of a text such as ``10,20``; none of a text without YAML."""
    if not isinstance(raw, str):
        return raw if isinstance(raw, list) else []
    try:
        values = read_text(f"[{raw}]", Mark()).data
    except UserError:
        return []
    return values if isinstance(values, list) else []


def _suggest_spelling(hint: Any, raw: Any) -> str:
    """Return how a rejected value should be written; blank if it has no other spelling.

    >>> _suggest_spelling(int, "40"), _suggest_spelling(str, 40), _suggest_spelling(list[int], 1)
    ('write it without quotes: 40', "put it in quotes: '40'", 'write it as a list: [1]')
    """
    if isinstance(raw, str):
        return _suggest_for_text(hint, raw)
    if isinstance(raw, (bool, int, float)) and is_valid(hint, str(raw)):
        return f"put it in quotes: '{render_yaml(raw)}'"
    if not isinstance(raw, list) and is_valid(hint, [raw]):
        return f"write it as a list: [{render_yaml(raw)}]"
    return ""


def suggest_default(setting: Setting) -> str:
    """Return the help line that names the default of a setting; blank without a plain default."""
    default = setting.default
    if setting.needed or default is None or is_dataclass(default):
        return ""
    return f"the default is {render_yaml(as_plain(default))}"


def _suggest_for_text(hint: Any, raw: str) -> str:
    names = [choice for choice in list_choices(hint) if isinstance(choice, str)]
    nearest = find_nearest(raw, names, limit=1)
    if nearest:
        return f"did you mean {nearest[0]}?"
    if raw.casefold() in _YAML_1_1_BOOLEANS and bool in list_members(hint):
        return "write true or false"
    try:
        value = json.loads(raw)
    except ValueError:
        value = raw
    if value != raw and is_valid(hint, value):
        return f"write it without quotes: {render_yaml(value)}"
    return f"write it as a list: [{raw}]" if is_valid(hint, [raw]) else ""


_RANGE_FAULTS = ("than", "too_short", "too_long", "multiple", "pattern", "predicate")
"""Parts of the names of pydantic's errors for a value of the right type outside its range."""

_LARGEST = 2**63 - 1
"""The largest number that fits the arrays in which settings are stored."""

_SPACE = ("tune", "space")
"""The keys of an entry that lead to the settings that a search varies."""

_ResolveEntry: TypeAlias = Callable[[str, Any, KeyPath], Any]
"""Resolves the entry of a plug-in: kind, entry and location; None if it has a fault."""


@dataclass
class Builder:
    """Fills dataclasses with the values of a document; faults are recorded in the document.

    Args:
        owner: The plug-in whose settings they are, for messages: ``ItemKNN``.
        path_texts: The text that the user wrote for each resolved path; filled by the builder.
        resolve_entry: Resolves the model that is a setting of another model.
        entry_keys: The keys that may stand beside the settings, for suggestions: ``label``.
        searched: The settings that a search varies.
    """

    document: Document
    owner: str
    path_texts: dict[Path, str] = field(default_factory=dict)
    resolve_entry: _ResolveEntry | None = None
    entry_keys: tuple[str, ...] = ()
    searched: frozenset[str] = frozenset()

    def build(self, cls: type, raw: Mapping[str, Any], location: KeyPath) -> Any:
        """Build a dataclass from its settings; return None if there is a fault."""
        read_settings(cls)
        return self.validate(cls, raw, location)

    def validate(self, hint: Hint, raw: Any, location: KeyPath, default: str = "") -> Any:
        """Return a value as its type has it, None if there is a fault.

        ``default`` is the help line of a fault of the value as a whole.
        """
        n_faults = len(self.document.faults)
        value = self._read(hint, raw, location, self.owner, default)
        return value if len(self.document.faults) == n_faults else None

    def validate_fields(
        self, cls: type, raw: Mapping[str, Any], location: KeyPath
    ) -> dict[str, Any]:
        """Return the valid settings of a mapping by key; the faults of the others are recorded."""
        n_faults, values = len(self.document.faults), self.read_fields(cls, raw, location)
        if len(self.document.faults) == n_faults:
            self._construct(cls, values, location, self.owner)
        return values

    def refuse_unknown_keys(
        self, settings: Mapping[str, Setting], keys: Iterable[str], location: KeyPath
    ) -> None:
        """Record each key that is not a setting."""
        for name in [name for name in keys if name not in settings]:
            self._blame_key((*location, name), self.owner, settings)

    def _read(self, hint: Hint, raw: Any, place: KeyPath, owner: str, default: str = "") -> Any:
        """Return a value, or what is left of it after its faults are recorded."""
        member = _select_member(hint, raw)
        if is_selected_model(member) and self.resolve_entry is not None:
            return self._select_model(raw, place, self.resolve_entry)
        if is_input_file(member) and isinstance(raw, str):
            return self._resolve_file(raw, place, list_choices(hint))
        if _is_model_name(member) and isinstance(raw, str) and is_valid(member, raw):
            return self._resolve_model(raw, place)
        if isinstance(raw, (list, dict)):
            return self._read_inside(member, raw, place, owner, default)
        return self._read_plain(member, raw, place, default)

    def _read_inside(self, hint: Hint, raw: Any, place: KeyPath, owner: str, default: str) -> Any:
        """Return a list or a mapping, each of whose faults has its place."""
        cls: Any = strip_annotations(hint)
        item_type = _get_inner_type(hint)
        if is_dataclass(strip_annotations(hint)) and isinstance(raw, dict):
            n_faults, values = len(self.document.faults), self.read_fields(cls, raw, place, owner)
            if len(self.document.faults) > n_faults:
                return None
            return self._construct(cls, values, place, owner, raw)
        if item_type is None or is_list(hint) is isinstance(raw, dict):
            return self._read_plain(hint, raw, place, default)
        limits = _collect_limits(_get_annotations(hint))
        is_short = len(raw) < limits.get("min_length", 0)
        if is_short or len(raw) > limits.get("max_length", math.inf):
            self._blame(hint, raw, place, default, ["too_short" if is_short else "too_long"])
            return None
        if isinstance(raw, dict):
            return {
                key: self._read(item_type, item, (*place, key), f"{owner}.{key}")
                for key, item in raw.items()
            }
        items = [self._read(item_type, each, (*place, at), owner) for at, each in enumerate(raw)]
        return (get_origin(cls) or cls)(items)

    def _read_plain(self, hint: Hint, raw: Any, place: KeyPath, default: str) -> Any:
        """Return a value without settings of its own inside, as pydantic reads it."""
        try:
            value = validate_value(hint, raw)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
            if errors[0]["type"] == "value_error":
                message = str(errors[0]["ctx"]["error"])
                self.document.add_fault(place, message, kind=OutOfRange)
            else:
                self._blame(hint, raw, place, default, [each["type"] for each in errors])
            return None
        is_number = isinstance(raw, (int, float)) and strip_annotations(hint) is not Any
        if is_number and abs(raw) > _LARGEST:
            found = f"found {render_yaml(raw)[:24]}, which is too large"
            message, remedy = f"must be {describe_hint(hint)}, {found}", "give a smaller number"
            self.document.add_fault(place, message, remedy=default or remedy, kind=OutOfRange)
        return value

    def read_fields(
        self, cls: type, raw: Mapping[str, Any], location: KeyPath, owner: str = ""
    ) -> dict[str, Any]:
        """Return the valid settings of a mapping by key; record its faults."""
        settings, owner = read_settings(cls), owner or self.owner
        names = {*settings, *(self.entry_keys if owner == self.owner else ())}
        for key in [key for key in raw if key not in settings]:
            self._blame_key((*location, key), owner, names)
        for name, setting in settings.items():
            if setting.needed and name not in raw:
                remedy = f"add {name}: {describe_hint(setting.hint)}"
                self.document.add_fault(location, f"{owner} needs {name}", remedy=remedy)
        values: dict[str, Any] = {}
        for key in [key for key in raw if key in settings]:
            n_faults, place = len(self.document.faults), (*location, key)
            help_line = suggest_default(settings[key])
            value = self._read(settings[key].hint, raw[key], place, f"{owner}.{key}", help_line)
            if len(self.document.faults) == n_faults:
                values[key] = value
        return values

    def _construct(
        self,
        cls: Any,
        values: Mapping[str, Any],
        place: KeyPath,
        owner: str,
        raw: Mapping[str, Any] = MappingProxyType({}),
    ) -> Any:
        """Return an object with the settings; None if its class refuses them."""
        settings = read_settings(cls)
        try:
            built = cls(**{settings[key].field.name: value for key, value in values.items()})
        except UserError as error:
            self.document.add_error((*place, *filter(settings.get, [error.where])), error)
        except CODE_FAULTS as error:
            message = f"{owner} cannot be built from its settings: {describe_exception(error)}"
            self.document.add_fault(place, message, remedy="fix its code", kind=BrokenContract)
        else:
            self._refuse_idle(settings, raw, place, self.searched if owner == self.owner else ())
            return built
        return None

    def _refuse_idle(
        self,
        settings: Mapping[str, Setting],
        given: Mapping[str, Any],
        place: KeyPath,
        searched: Collection[str],
    ) -> None:
        """Record each setting that has no effect, because of the value of another one."""
        for key, setting in settings.items():
            if not setting.only_with:
                continue
            is_set = given.get(key, default := as_plain(setting.default)) != default
            for mark in setting.only_with if is_set or key in searched else ():
                other = mark.setting
                value = given.get(other, as_plain(settings[other].default))
                if other in searched or mark.is_met(value):
                    continue
                needed = f"{other}: {render_yaml(mark.values[0])}" if mark.values else other
                self.document.add_fault(
                    (*place, *(_SPACE if key in searched else ()), key),
                    f"has no effect with {other}: {render_yaml(value)}",
                    remedy=f"set {needed}, or leave {key} out",
                    kind=Contradiction,
                )

    def _select_model(
        self, raw: Any, place: KeyPath, resolve_entry: _ResolveEntry
    ) -> SelectedModel | None:
        """Return the model of an entry inside another one: no label, search or re-ranker."""
        for key in ("label", "tune", "rerank", "baseline") if isinstance(raw, dict) else ():
            if key in raw:
                message = f"a model inside {self.owner} has no {key}"
                remedy = f"remove {key}, or list the model under models too"
                self.document.add_fault((*place, key), message, remedy=remedy, kind=UnknownKey)
                raw = {name: value for name, value in raw.items() if name != key}
        spec = resolve_entry("models", raw, place)
        if spec is None:
            return None
        name: str = spec.name
        if is_plugin_file(name):
            path = (self.document.mark(place).folder / name).absolute()
            self.path_texts[path], name = name, path.as_posix()
        return SelectedModel(name, spec.plugin)

    def _resolve_file(self, raw: str, place: KeyPath, alternatives: Sequence[Any]) -> Path | None:
        """Return the path of an existing file; the setting also accepts the alternatives."""
        if is_hub_address(raw):
            try:
                path = fetch_hub_file(raw)
            except UserError as error:
                self.document.add_error(place, error)
                return None
            self.path_texts[path] = name_hub_file(path)
            return path
        path = (self.document.mark(place).folder / raw).absolute()
        if is_file(path):
            self.path_texts[path] = raw
            return path
        names = [name for name in alternatives if isinstance(name, str)]
        message = (
            f"{raw!r} is neither {', '.join(names)} nor a file" if names else f"no file {raw!r}"
        )
        nearest = find_nearest(raw, names, limit=1)
        remedy = f"did you mean {nearest[0]}?" if nearest else suggest_file(path)
        self.document.add_fault(place, message, remedy=remedy, kind=MissingFile)
        return None

    def _resolve_model(self, raw: str, place: KeyPath) -> str:
        """Return the path of a model folder; any other model name is returned unchanged."""
        folder = self.document.mark(place).folder
        path = Path(os.path.normpath((folder / Path(raw).expanduser()).absolute()))
        if not raw.startswith((".", "~")) and not (path / "config.json").is_file():
            return raw
        self.path_texts[path] = raw
        return str(path)

    def _blame_key(self, place: KeyPath, owner: str, names: Iterable[str]) -> None:
        message, remedy = f"not a setting of {owner}", suggest(str(place[-1]), names)
        self.document.add_fault(place, message, remedy=remedy, kind=UnknownKey, key=True)

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
            remedy=_suggest_remedy(hint, raw, location)
            or default
            or f"give {describe_hint(hint)}",
            kind=OutOfRange if is_range else WrongType,
        )
