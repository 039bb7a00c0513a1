"""Types, values and settings as text: for ``recbias show`` and for messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import annotated_types

from recbias.config.declarations.docstrings import read_arguments
from recbias.config.declarations.hints import (
    as_yaml_name,
    get_annotations,
    get_item_type,
    is_input_file,
    is_list,
    is_mapping,
    is_selected_model,
    list_choices,
    list_members,
    strip_annotations,
)
from recbias.config.settings import Setting, as_plain, is_valid, read_settings
from recbias.core.suggestions import find_nearest

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
        names = [as_yaml_name(field.name) for field in fields(plain_type) if field.init]
        return f"a mapping with {', '.join(names)}"
    return _describe_plain_type(plain_type)


def describe_range(hint: Any) -> str:
    """Describe the range of a type; blank where it has none.

    >>> from typing import Annotated
    >>> describe_range(Annotated[float, annotated_types.Interval(ge=0, le=1)])
    'from 0 to 1'
    """
    limits = [_collect_limits(get_annotations(member)) for member in list_members(hint)]
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
            doc=docs.get(setting.field.name, ""),
            needed=setting.needed,
        )
        for setting in read_settings(cls).values()
    ]


def _describe_plain_type(plain_type: Any) -> str:
    if is_mapping(plain_type):
        return "a mapping"
    if not is_list(plain_type):
        name: str = getattr(plain_type, "__name__", str(plain_type))
        return _NOUNS.get(plain_type, name)
    item_type, arguments = get_item_type(plain_type), get_args(plain_type)
    if item_type is None and arguments:
        return f"a list of {len(arguments)}: {', '.join(map(describe_hint, arguments))}"
    if item_type in {None, Any}:
        return "a list"
    plural = "" if get_annotations(item_type) else _PLURAL_NOUNS.get(item_type)
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


def suggest_spelling(hint: Any, raw: Any) -> str:
    """Return how a rejected value should be written; blank if it has no other spelling.

    >>> suggest_spelling(int, "40"), suggest_spelling(str, 40), suggest_spelling(list[int], 1)
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
