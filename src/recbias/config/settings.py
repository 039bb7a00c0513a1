"""The settings of a plug-in: the fields of its dataclass, their types and values, also as text.

Build plug-ins from the settings of a spec: pydantic validates, each fault gets its place.
"""

from __future__ import annotations

import json
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema

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
from recbias.formats.text_files import fetch_hub_file, is_hub_address, name_hub_file
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
    def only_with(self) -> list[OnlyWith]:
        """The other settings on which its effect depends."""
        return [mark for mark in _get_marks(self.hint) if isinstance(mark, OnlyWith)]

    @property
    def only_on(self) -> list[str]:
        """The evidence on which its effect depends."""
        return [mark.evidence for mark in _get_marks(self.hint) if isinstance(mark, OnlyOn)]


@lru_cache(maxsize=1024)
def read_settings(cls: Any) -> Mapping[str, Setting]:
    """Return the settings of a plug-in's class by their key in a spec.

    Raises:
        BrokenContract: The class is not a dataclass, or a type cannot be resolved.
    """
    fault, remedy, hints = "", "", dict[str, Any]()
    if not is_dataclass(cls):
        fault = "is not a dataclass, so it has no settings"
        remedy = "write @dataclass(frozen=True, kw_only=True) above it"
    else:
        try:
            hints = get_type_hints(cls, include_extras=True)
        except (AttributeError, NameError, SyntaxError, TypeError) as error:
            fault = f"has types that cannot be read: {error}"
    if fault:
        place = ": ".join(filter(None, [locate_code(cls), getattr(cls, "__name__", str(cls))]))
        raise BrokenContract(f"{place} {fault}", remedy=remedy)
    declared = {_as_yaml_name(field.name): field for field in fields(cls) if field.init}
    return MappingProxyType(
        {name: Setting(name, field, hints[field.name]) for name, field in declared.items()}
    )


def as_plain(value: Any, path_texts: Mapping[Path, str] | None = None) -> Any:
    """Return a value as plain JSON data, dataclasses as mappings, paths as in ``path_texts``."""
    if isinstance(value, SelectedModel):  # as in its entry
        return {"name": as_plain(value.name, path_texts), **as_plain(value.model, path_texts)}
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.init]
        return {_as_yaml_name(name): as_plain(getattr(value, name), path_texts) for name in names}
    if isinstance(value, Mapping):
        return {str(key): as_plain(item, path_texts) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [as_plain(item, path_texts) for item in value]
        return items if isinstance(value, (list, tuple)) else sorted(items)
    if isinstance(value, (str, PurePath)):
        text = value if isinstance(value, str) else value.as_posix()
        return path_texts.get(Path(value), text) if path_texts else text
    return value.tolist() if hasattr(value, "tolist") else value


# ---- validation by pydantic ----


@lru_cache(maxsize=1024)
def _build_adapter(hint: Hint) -> TypeAdapter[tuple[Any]]:
    """Return pydantic's validator of a tuple that holds one value of a type.

    A dataclass can only be configured inside another type.

    Raises:
        BrokenContract: pydantic does not support the type.
    """
    config = ConfigDict(
        strict=True, extra="forbid", alias_generator=_as_yaml_name, allow_inf_nan=False
    )
    try:
        return TypeAdapter(tuple[hint], config=config)
    except PydanticSchemaGenerationError as error:
        raise BrokenContract(f"{hint} cannot be the type of a setting") from error


def validate_value(hint: Hint, raw: Any) -> Any:
    """Convert a value from YAML to a type, strictly: ``"5"`` is not a number.

    An integer is accepted as a float, a list as a tuple, text as a path, and a mapping as a
    dataclass.

    Raises:
        ValidationError: The value does not have the type; its locations begin with 0.
    """
    (value,) = _build_adapter(hint).validate_json(json.dumps([raw]))
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


def build_type_schema(hint: Hint) -> dict[str, Any]:
    """Build the JSON Schema of the type of a setting; that of a model refers to all models.

    >>> build_type_schema(int | None)
    {'anyOf': [{'type': 'integer'}, {'type': 'null'}]}
    """
    members, plain = list_members(hint), strip_annotations(hint)
    item_type, schema = get_item_type(hint), dict[str, Any]()
    if len(members) > 1:
        schema = {"anyOf": [build_type_schema(member) for member in members]}
    elif is_dataclass(plain):
        is_model = plain is SelectedModel
        schema = {"$ref": "#/$defs/models"} if is_model else build_mapping_schema(plain)
    elif is_dataclass(strip_annotations(item_type)):
        schema = {"type": "array", "items": build_type_schema(item_type)}
    elif is_input_file(hint):
        schema = {"type": "string"}
    else:
        with suppress(PydanticInvalidForJsonSchema):
            schema = _build_adapter(hint).json_schema()["prefixItems"][0]
    return schema


def build_mapping_schema(cls: Any) -> dict[str, Any]:
    """Build the JSON Schema of the mapping that fills a dataclass."""
    docs, settings, properties = read_arguments(cls), read_settings(cls), {}
    for name, setting in settings.items():
        doc = docs.get(setting.field.name)
        described = {"description": doc} if doc else {}
        default = {} if setting.needed else {"default": as_plain(setting.default)}
        properties[name] = described | build_type_schema(setting.hint) | default
    required = [name for name, setting in settings.items() if setting.needed]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": required} if required else {})


# ---- types ----


def _get_marks(hint: Hint) -> tuple[Any, ...]:
    """Return the annotations of a type."""
    return getattr(hint, "__metadata__", ())


def strip_annotations(hint: Hint) -> Any:
    """Return a type without its annotations.

    >>> from annotated_types import Gt
    >>> strip_annotations(Annotated[int, Gt(0)])
    <class 'int'>
    """
    return get_args(hint)[0] if _get_marks(hint) else hint


def list_members(hint: Hint) -> tuple[Any, ...]:
    """Return the members of a union; any other type is its own only member.

    >>> list_members(int | None)
    (<class 'int'>, <class 'NoneType'>)
    """
    plain = strip_annotations(hint)
    return get_args(plain) if get_origin(plain) in {Union, types.UnionType} else (hint,)


def is_input_file(hint: Hint) -> bool:
    """Return whether a type is ``InputFile``: the path of an existing file."""
    return _get_marks(InputFile)[0] in _get_marks(hint)


def _is_model_name(hint: Hint) -> bool:
    return _get_marks(ModelName)[0] in _get_marks(hint)


def accepts_model_name(hint: Hint) -> bool:
    """Return whether a type, or a member of a union, is ``ModelName``."""
    return any(map(_is_model_name, list_members(hint)))


def list_choices(hint: Hint) -> list[Any]:
    """Return the values of the ``Literal`` in a type.

    >>> list_choices(Literal["cosine", "dice"] | None)
    ['cosine', 'dice']
    """
    plain = map(strip_annotations, list_members(hint))
    values = [get_args(each) for each in plain if get_origin(each) is Literal]
    return [value for each in values for value in each]


def _list_names(hint: Hint) -> list[str]:
    return [value for value in list_choices(hint) if isinstance(value, str)]


def _get_form(hint: Hint) -> type | None:
    """Return whether a value of a type is written as a mapping or as a list; None if neither."""
    plain = strip_annotations(hint)
    origin = get_origin(plain) or plain
    if is_dataclass(plain) or origin in (dict, Mapping):
        return dict
    return list if origin in (tuple, list, frozenset, set) else None


def get_item_type(hint: Hint) -> Any:
    """Return the type of the items of a list or the values of a mapping, None without one type."""
    arguments = get_args(strip_annotations(hint))
    if _get_form(hint) is dict:
        return arguments[1] if arguments else None
    is_uniform = len(arguments) == 1 or arguments[1:] == (...,)
    return arguments[0] if _get_form(hint) is list and is_uniform else None


def _as_yaml_name(field_name: str) -> str:
    """Return the key of a field in a spec: ``from_`` is written ``from``.

    >>> _as_yaml_name("from_"), _as_yaml_name("top_n")
    ('from', 'top_n')
    """
    return field_name.removesuffix("_")


def _select_member(hint: Hint, raw: Any) -> Any:
    """Return the member of a union that alone fits the form of a value, else the union."""
    members = list_members(hint)
    if isinstance(raw, (dict, list)):
        fitting = [each for each in members if _get_form(each) is type(raw)]
    else:
        is_named = isinstance(raw, str) and raw not in _list_names(hint)
        named = [each for each in members if is_input_file(each) or _is_model_name(each)]
        fitting = named[:1] if is_named else []
    return fitting[0] if len(fitting) == 1 else hint


# ---- types and values as text ----

_NOUNS = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "null": "nothing (null)",
    "object": "a mapping",
}
"""The types of JSON Schema in words."""

_LIMITS = {
    "exclusiveMinimum": "above {}",
    "minimum": "at least {}",
    "exclusiveMaximum": "below {}",
    "maximum": "at most {}",
    **dict.fromkeys(("minLength", "minItems", "minProperties"), "with a length of at least {}"),
    **dict.fromkeys(("maxLength", "maxItems", "maxProperties"), "with a length of at most {}"),
    "multipleOf": "a multiple of {}",
}
"""The limits of JSON Schema in words."""


def describe_hint(hint: Hint) -> str:
    """Describe a type and its range.

    >>> from annotated_types import Gt
    >>> describe_hint(Annotated[int, Gt(0)])
    'a whole number above 0'
    >>> describe_hint(Literal["cosine", "dice"] | None)
    'one of cosine, dice or nothing (null)'
    """
    return " or ".join(_describe_whole(member) for member in list_members(hint))


def describe_type(hint: Hint) -> str:
    """Describe a type without its range.

    >>> describe_type(tuple[int, ...])
    'a list of whole numbers'
    """
    return " or ".join(_describe(member)[0] for member in list_members(hint))


def describe_range(hint: Hint) -> str:
    """Describe the range of a type; blank where it has none.

    >>> from annotated_types import Interval
    >>> describe_range(Annotated[float, Interval(ge=0, le=1)])
    'from 0 to 1'
    """
    return " or ".join(filter(None, [_describe(member)[1] for member in list_members(hint)]))


def _describe_whole(hint: Hint) -> str:
    noun, limits = _describe(hint)
    return f"{noun} of {limits}" if limits.startswith("at ") else f"{noun} {limits}".strip()


def _describe(hint: Hint) -> tuple[str, str]:
    """Return the words for a type that is no union, and those for its range."""
    if is_input_file(hint) or strip_annotations(hint) is SelectedModel:
        return "a file" if is_input_file(hint) else "a model", ""
    plain: Any = strip_annotations(hint)
    if is_dataclass(plain):
        return f"a mapping with {', '.join(read_settings(strip_annotations(hint)))}", ""
    if get_origin(plain) is Literal:
        choices = [*map(render_yaml, get_args(plain))]
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}", ""
    schema = build_type_schema(hint)
    if schema.get("format") == "path":
        return "a path", ""
    if parts := get_args(plain) if "prefixItems" in schema else ():
        return f"a list of {len(parts)}: {', '.join(map(describe_hint, parts))}", ""
    bounds = {name: schema[name] for name in _LIMITS if name in schema}
    bounds = {name: int(each) if each == int(each) else each for name, each in bounds.items()}
    words = [_LIMITS[name].format(bound) for name, bound in bounds.items()]
    if {"minimum", "maximum"} <= bounds.keys():
        words = [f"from {bounds['minimum']} to {bounds['maximum']}"]
    words = [each.replace("with a length of at least 1", "that is not empty") for each in words]
    return _describe_noun(schema.get("type"), get_item_type(hint)), " and ".join(words)


def _describe_noun(name: str | None, item_type: Hint) -> str:
    if name != "array":
        return _NOUNS.get(name or "", "anything")
    if item_type in {None, Any}:
        return "a list"
    noun = describe_hint(item_type)
    is_short = noun in {"a whole number", "a number", "text"}
    return f"a list of {noun.removeprefix('a ')}s" if is_short else f"a list (each {noun})"


def describe_value(value: Any) -> str:
    """Describe a value of a spec for a message.

    >>> describe_value("40"), describe_value(True), describe_value([1]), describe_value(None)
    ("the text '40'", 'true', 'a list', 'nothing')
    """
    if value is None or value == "":
        return "nothing"
    if isinstance(value, str):
        text = f"the text {value!r}" if len(value) <= 60 else f"the text {value[:60]!r}..."
        return ".nan, which is not a number" if value.casefold() == ".nan" else text
    if isinstance(value, (list, tuple, Mapping)):
        noun = "mapping" if isinstance(value, Mapping) else "list"
        return f"a {noun}" if value else f"an empty {noun}"
    return render_yaml(value)


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
    docs, parameters = read_arguments(cls), []
    for name, setting in read_settings(cls).items():
        default = "" if setting.needed else render_yaml(as_plain(setting.default))
        doc = [docs.get(setting.field.name, "")]
        for mark in setting.only_with:  # without them it has no effect
            values = [f"``{mark.setting}: {render_yaml(value)}``" for value in mark.values]
            doc.append(f"Only with {' or '.join(values) or f'``{mark.setting}``'}.")
        hint, text = setting.hint, " ".join(doc)
        words = (describe_type(hint), default, describe_range(hint))
        parameters.append(Parameter(name, *words, text, setting.needed))
    return parameters


# ---- what to write instead of a rejected value ----

_SWEPT = ("models", "seed")
"""The sections whose settings a sweep may vary within one run."""


def _suggest_spelling(hint: Hint, raw: Any, place: KeyPath) -> str:
    """Return how a rejected value should be written; blank if it has no other spelling.

    >>> _suggest_spelling(int, "40", ()), _suggest_spelling(str, 40, ())
    ('write it without quotes: 40', "put it in quotes: '40'")
    >>> _suggest_spelling(list[int], 1, ())
    'write it as a list: [1]'
    >>> _suggest_spelling(int, "10,20", ("models", 1, "neighbors"))
    'one value at a time; several values: sweep: {models.1.neighbors: [10, 20]}'
    """
    values, nearest, remedy = raw, list[str](), ""
    if isinstance(raw, str):
        nearest = find_nearest(raw, _list_names(hint), limit=1)
        with suppress(UserError):
            values = read_text(f"[{raw}]", Mark()).data
    is_several = isinstance(values, list) and all(is_valid(hint, value) for value in values)
    if is_several and len(values) == 1 and isinstance(raw, str):
        remedy = f"write it without quotes: {render_yaml(values[0])}"
    elif is_several and len(values) > 1 and place and place[0] in _SWEPT:
        written = f"sweep: {{{'.'.join(map(str, place))}: {render_yaml(values)}}}"
        remedy = f"one value at a time; several values: {written}"
    elif nearest:
        remedy = f"did you mean {nearest[0]}?"
    elif raw in ("yes", "no", "on", "off") and bool in list_members(hint):
        remedy = "write true or false"
    elif isinstance(raw, (bool, int, float)) and is_valid(hint, str(raw)):
        remedy = f"put it in quotes: '{render_yaml(raw)}'"
    elif not isinstance(raw, list) and is_valid(hint, [raw]):
        remedy = f"write it as a list: [{render_yaml(raw)}]"
    return remedy


def suggest_default(setting: Setting) -> str:
    """Return the help line that names the default of a setting; blank without a plain default."""
    default = setting.default
    if default in (None, "", ()) or is_dataclass(default):
        return ""
    return f"the default is {render_yaml(as_plain(default))}"


_RANGE_FAULTS = ("than", "too_short", "too_long", "multiple", "pattern", "predicate", "finite")
"""Parts of the names of pydantic's errors for a value of the right type outside its range."""

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

    def build(self, cls: type, raw: Mapping[str, Any], place: KeyPath) -> Any:
        """Build a dataclass from its settings; return None if there is a fault."""
        read_settings(cls)
        return self.validate(cls, raw, place)

    def validate(self, hint: Hint, raw: Any, place: KeyPath, default: str = "") -> Any:
        """Return a value as its type has it, None if there is a fault.

        ``default`` is the help line of a fault of the value as a whole.
        """
        n_faults = len(self.document.faults)
        value = self._read(hint, raw, place, self.owner, default)
        return value if len(self.document.faults) == n_faults else None

    def read_fields(
        self, cls: type, raw: Mapping[str, Any], place: KeyPath, owner: str = ""
    ) -> dict[str, Any]:
        """Return the valid settings of a mapping by key; record its faults."""
        settings, owner, values = read_settings(cls), owner or self.owner, dict[str, Any]()
        others = self.entry_keys if owner == self.owner else ()
        self.refuse_unknown(raw, settings, place, owner, others)
        for name, setting in settings.items():
            if setting.needed and name not in raw:
                remedy = f"add {name}: {describe_hint(setting.hint)}"
                self.document.add_fault(place, f"{owner} needs {name}", remedy=remedy)
        for key in [key for key in raw if key in settings]:
            n_faults, inner = len(self.document.faults), (*place, key)
            default = suggest_default(settings[key])
            value = self._read(settings[key].hint, raw[key], inner, f"{owner}.{key}", default)
            if len(self.document.faults) == n_faults:
                values[key] = value
        return values

    def refuse_unknown(
        self,
        keys: Iterable[str],
        settings: Iterable[str],
        place: KeyPath,
        owner: str,
        others: Iterable[str] = (),
    ) -> None:
        """Record each key that is not a setting; ``others`` are suggested too."""
        names = {*settings, *others}
        for key in [key for key in keys if key not in settings]:
            message, remedy = f"not a setting of {owner}", suggest(key, names)
            self.document.add_fault(
                (*place, key), message, remedy=remedy, kind=UnknownKey, key=True
            )

    def _read(self, hint: Hint, raw: Any, place: KeyPath, owner: str, default: str = "") -> Any:
        """Return a value, or what is left of it after its faults are recorded."""
        member, value = _select_member(hint, raw), None
        plain, item_type = strip_annotations(member), get_item_type(member)
        if plain is SelectedModel and self.resolve_entry is not None:
            value = self._select_model(raw, place, self.resolve_entry)
        elif isinstance(raw, str) and is_input_file(member):
            value = self._resolve_file(raw, place, _list_names(hint))
        elif isinstance(raw, str) and _is_model_name(member):
            value = self._resolve_model(raw, place)
        elif is_dataclass(plain) and isinstance(raw, dict):
            value = self._build(plain, raw, place, owner)
        elif item_type is not None and _get_form(member) is type(raw):
            value = self._read_items(member, raw, place, owner, default)
        else:
            value = self._convert(member, member, raw, place, default)
        return value

    def _read_items(self, hint: Hint, raw: Any, place: KeyPath, owner: str, default: str) -> Any:
        """Return a list or a mapping, each of whose faults has its place."""
        any_items: Hint = dict[str, Any] if isinstance(raw, dict) else list[Any]
        sized = Annotated[any_items, "", *_get_marks(hint)]
        plain, item_type = strip_annotations(hint), get_item_type(hint)
        if self._convert(sized, hint, raw, place, default) is None:
            return None
        if isinstance(raw, dict):
            return {
                key: self._read(item_type, item, (*place, key), f"{owner}.{key}")
                for key, item in raw.items()
            }
        items = [self._read(item_type, each, (*place, at), owner) for at, each in enumerate(raw)]
        return (get_origin(plain) or plain)(items)

    def _convert(self, hint: Hint, shown: Hint, raw: Any, place: KeyPath, default: str) -> Any:
        """Return a value as pydantic reads it; its fault is that it is not of the type shown."""
        try:
            return validate_value(hint, raw)
        except ValidationError as error:
            kinds = [each["type"] for each in error.errors(include_url=False, include_input=False)]
        is_choice = isinstance(raw, str) and "literal_error" in kinds
        is_range = is_choice or any(part in kind for kind in kinds for part in _RANGE_FAULTS)
        found = repr(raw) if is_choice else describe_value(raw)
        if isinstance(raw, list) and "too_long" in kinds:
            found = f"a list of {len(raw):,}"
        wanted = describe_hint(shown)
        self.document.add_fault(
            place,
            f"must be {wanted}, found {found}",
            remedy=_suggest_spelling(shown, raw, place) or default or f"give {wanted}",
            kind=OutOfRange if is_range else WrongType,
        )
        return None

    def _build(self, cls: Any, raw: Mapping[str, Any], place: KeyPath, owner: str) -> Any:
        """Return an object with its settings; None after a fault, or if its class refuses them."""
        n_faults, settings = len(self.document.faults), read_settings(cls)
        values = self.read_fields(cls, raw, place, owner)
        if len(self.document.faults) > n_faults:
            return None
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
        values = {key: as_plain(setting.default) for key, setting in settings.items()}
        values |= given
        for key, setting in settings.items():
            is_set = key in searched or values[key] != as_plain(setting.default)
            for mark in setting.only_with if is_set else ():
                other, value = mark.setting, values[mark.setting]
                if other in searched or mark.is_met(value):
                    continue
                needed = f"{other}: {render_yaml(mark.values[0])}" if mark.values else other
                self.document.add_fault(
                    (*place, *(("tune", "space") if key in searched else ()), key),
                    f"has no effect with {other}: {render_yaml(value)}",
                    remedy=f"set {needed}, or leave {key} out",
                    kind=Contradiction,
                )

    def _select_model(self, raw: Any, place: KeyPath, resolve_entry: _ResolveEntry) -> Any:
        """Return the model of an entry inside another one: no label, search or re-ranker."""
        entry = dict(raw) if isinstance(raw, dict) else raw
        for key in ("label", "tune", "rerank", "baseline"):
            if isinstance(entry, dict) and entry.pop(key, raw) is not raw:
                message = f"a model inside {self.owner} has no {key}"
                remedy = f"remove {key}, or list the model under models too"
                self.document.add_fault((*place, key), message, remedy=remedy, kind=UnknownKey)
        spec = resolve_entry("models", entry, place)
        if spec is None:
            return None
        name: str = spec.name
        if is_plugin_file(name):
            path = (self.document.mark(place).folder / name).absolute()
            self.path_texts[path], name = name, path.as_posix()
        return SelectedModel(name, spec.plugin)

    def _resolve_file(self, raw: str, place: KeyPath, names: Sequence[str]) -> Path | None:
        """Return the path of an existing file; the setting also accepts the names."""
        if is_hub_address(raw):
            with self.document.recording(place):
                path = fetch_hub_file(raw)
                self.path_texts[path] = name_hub_file(path)
                return path
            return None
        path = (self.document.mark(place).folder / raw).absolute()
        if is_file(path):
            self.path_texts[path] = raw
            return path
        message = f"{raw!r} is neither {', '.join(names)} nor a file"
        nearest = find_nearest(raw, names, limit=1)
        remedy = f"did you mean {nearest[0]}?" if nearest else suggest_file(path)
        message = message if names else f"no file {raw!r}"
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
