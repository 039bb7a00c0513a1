"""Types of settings in words: for messages, ``recbias show`` and the schema."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types

_PLAIN = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    type(None): "nothing (null)",
}
_PLURAL = {int: "whole numbers", float: "numbers", str: "texts"}
_SEQUENCES = (tuple, list, frozenset, set)


def is_input_file(hint: Any) -> bool:
    """Return whether a type is that of a file that must be there."""
    return bare(hint) is Path and _is_marked(hint, "InputFile")


def is_model_name(hint: Any) -> bool:
    """Return whether a type is that of the name of a pretrained model."""
    return bare(hint) is str and _is_marked(hint, "ModelName")


def names_model(hint: Any) -> bool:
    """Return whether a type, or a member of a union, is that of a pretrained model's name."""
    return any(is_model_name(each) for each in members(hint))


def _is_marked(hint: Any, alias: str) -> bool:
    """Return whether a type has the annotations of one of the types that ``protocols`` names."""
    if not metadata(hint):
        return False
    from recbias.core import protocols

    return set(metadata(getattr(protocols, alias))) <= set(metadata(hint))


def bare(hint: Any) -> Any:
    """Return a type without its annotations.

    >>> bare(Annotated[int, annotated_types.Gt(0)])
    <class 'int'>
    """
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def metadata(hint: Any) -> tuple[Any, ...]:
    """Return the annotations of a type.

    >>> metadata(Annotated[int, annotated_types.Gt(0)])
    (Gt(gt=0),)
    """
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union; a type that is none is its only member.

    >>> members(int | None)
    (<class 'int'>, <class 'NoneType'>)
    """
    inner = bare(hint)
    if get_origin(inner) in {Union, types.UnionType}:
        return get_args(inner)
    return (hint,)


def choices(hint: Any) -> tuple[Any, ...]:
    """Return the values of the ``Literal`` in a type.

    >>> choices(Literal["cosine", "dice"] | None)
    ('cosine', 'dice')
    """
    return tuple(
        value
        for each in members(hint)
        if get_origin(bare(each)) is Literal
        for value in get_args(bare(each))
    )


def item_type(hint: Any) -> Any:
    """Return the type of the entries of a list, None for what is no list of one type."""
    inner = bare(hint)
    arguments = get_args(inner)
    if get_origin(inner) is tuple and arguments[1:] == (...,):
        return arguments[0]
    if get_origin(inner) in _SEQUENCES and len(arguments) == 1:
        return arguments[0]
    return None


def is_list(hint: Any) -> bool:
    """Return whether a type is written as a list."""
    return (get_origin(bare(hint)) or bare(hint)) in _SEQUENCES


def is_mapping(hint: Any) -> bool:
    """Return whether a type is written as a mapping."""
    inner = bare(hint)
    return is_dataclass(inner) or (get_origin(inner) or inner) in {dict, Mapping}


def yaml_name(field_name: str) -> str:
    """Return how a field is written in a spec; ``from_`` is written ``from``.

    >>> yaml_name("from_"), yaml_name("top_n")
    ('from', 'top_n')
    """
    return field_name.removesuffix("_")


def in_words(hint: Any) -> str:
    """Return a type and its range in words.

    >>> in_words(Annotated[int, annotated_types.Gt(0)])
    'a whole number above 0'
    >>> in_words(Literal["cosine", "dice"] | None)
    'one of cosine, dice or nothing (null)'
    """
    union = members(hint)
    if len(union) > 1:
        return " or ".join(in_words(each) for each in union)
    noun, limits = type_in_words(hint), range_in_words(hint)
    if not limits:
        return noun
    return f"{noun} of {limits}" if limits.startswith("at ") else f"{noun} {limits}"


def type_in_words(hint: Any) -> str:
    """Return a type in words, without its range.

    >>> type_in_words(tuple[int, ...])
    'a list of whole numbers'
    """
    union = members(hint)
    if len(union) > 1:
        return " or ".join(type_in_words(each) for each in union)
    if is_input_file(hint):
        return "a file"
    inner = bare(hint)
    if get_origin(inner) is Literal:
        values = [in_yaml(each) for each in get_args(inner)]
        return values[0] if len(values) == 1 else f"one of {', '.join(values)}"
    if is_dataclass(inner):
        return f"a mapping with {', '.join(yaml_name(each.name) for each in fields(inner))}"
    return _container(inner) or _PLAIN.get(inner) or _otherwise(inner)


def range_in_words(hint: Any) -> str:
    """Return the range of a type in words, blank where it has none.

    >>> range_in_words(Annotated[float, annotated_types.Interval(ge=0, le=1)])
    'from 0 to 1'
    """
    found: list[str] = []
    for each in members(hint):
        limits = _limits(metadata(each))
        found += [_joined(limits)] if limits else []
    return " or ".join(found)


def shown(value: Any) -> str:
    """Return a value of a spec as a message shows it.

    >>> shown("40"), shown(True), shown([1]), shown(None)
    ("the text '40'", 'true', 'a list', 'nothing')
    """
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) <= 60 else f"the text {value[:60]!r}..."
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    return repr(value)


def in_yaml(value: Any) -> str:
    """Return a plain value as one writes it in YAML, on one line.

    >>> in_yaml(True), in_yaml(["a", 1]), in_yaml(None)
    ('true', '[a, 1]', 'null')
    """
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {in_yaml(each)}' for key, each in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(in_yaml(each) for each in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _container(inner: Any) -> str:
    if is_mapping(inner):
        return "a mapping"
    if not is_list(inner):
        return ""
    item, arguments = item_type(inner), get_args(inner)
    if item is None and arguments:
        return f"a list of {len(arguments)}: {', '.join(in_words(each) for each in arguments)}"
    if item in {None, Any}:
        return "a list"
    plural = "" if metadata(item) else _PLURAL.get(item)
    return f"a list of {plural}" if plural else f"a list (each {in_words(item)})"


def _otherwise(inner: Any) -> str:
    return "anything" if inner is Any else getattr(inner, "__name__", str(inner))


def _limits(metadata: Iterable[Any]) -> dict[str, Any]:
    """Return the bounds that annotations set: ``{"gt": 0}``."""
    found: dict[str, Any] = {}
    for each in metadata:
        if isinstance(each, annotated_types.GroupedMetadata):
            found |= _limits(each)
        elif hasattr(each, "metadata"):
            found |= _limits(each.metadata)
        for name in ("gt", "ge", "lt", "le", "min_length", "max_length", "multiple_of"):
            if getattr(each, name, None) is not None:
                found[name] = _whole(getattr(each, name))
    return found


def _whole(limit: Any) -> Any:
    """Return 0 for 0.0: which of two equal bounds a type has hangs on what was imported first."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


def _joined(limits: Mapping[str, Any]) -> str:
    if {"ge", "le"} <= limits.keys():
        return f"from {limits['ge']} to {limits['le']}"
    words = {
        "gt": "above {}",
        "ge": "at least {}",
        "lt": "below {}",
        "le": "at most {}",
        "min_length": "with a length of at least {}",
        "max_length": "with a length of at most {}",
        "multiple_of": "a multiple of {}",
    }
    if limits.get("min_length") == 1:
        words["min_length"] = "that is not empty"
    return " and ".join(
        text.format(limits[name]) for name, text in words.items() if name in limits
    )
