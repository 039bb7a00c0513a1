"""Type hints of settings: their members, annotations and items."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from annotated_types import MaxLen

from recbias.formats.yaml.source_map import KeyPath

Hint: TypeAlias = Any
"""The type of a field in the notation of ``typing``."""

_SEQUENCES = (tuple, list, frozenset, set)


def is_input_file(hint: Any) -> bool:
    """Return whether a type is ``InputFile``: the path of an existing file."""
    return strip_annotations(hint) is Path and _has_annotations_of(hint, "InputFile")


def is_model_name(hint: Any) -> bool:
    """Return whether a type is ``ModelName``: the name of a pretrained model."""
    return strip_annotations(hint) is str and _has_annotations_of(hint, "ModelName")


def is_selected_model(hint: Any) -> bool:
    """Return whether a type is ``SelectedModel``: an entry such as those of ``models``."""
    plain_type = strip_annotations(hint)
    if not is_dataclass(plain_type):
        return False
    from recbias.core.models.selected_models import SelectedModel

    return plain_type is SelectedModel


def accepts_model_name(hint: Any) -> bool:
    """Return whether a type, or a member of a union, is ``ModelName``."""
    return any(is_model_name(member) for member in list_members(hint))


def _has_annotations_of(hint: Any, alias: str) -> bool:
    if not get_annotations(hint):
        return False
    from recbias.core import protocols

    return set(get_annotations(getattr(protocols, alias))) <= set(get_annotations(hint))


def is_open(hint: Any) -> bool:
    """Return whether a type, or a member of a union, accepts any value.

    >>> is_open(object), is_open(int | Any), is_open(dict[str, Any])
    (True, True, False)
    """
    return any(strip_annotations(member) in {Any, object} for member in list_members(hint))


def strip_annotations(hint: Any) -> Any:
    """Return a type without its annotations.

    >>> from annotated_types import Gt
    >>> strip_annotations(Annotated[int, Gt(0)])
    <class 'int'>
    """
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def get_annotations(hint: Any) -> tuple[Any, ...]:
    """Return the annotations of a type.

    >>> from annotated_types import Gt
    >>> get_annotations(Annotated[int, Gt(0)])
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
    is_uniform = is_open_tuple or (origin in _SEQUENCES and len(arguments) == 1)
    return arguments[0] if is_uniform else None


def get_longest(hint: Any) -> float:
    """Return the largest length of a list, infinity if it has none.

    >>> from annotated_types import MaxLen
    >>> get_longest(Annotated[tuple[int, ...], MaxLen(3)])
    3
    """
    limits = [limit.max_length for limit in get_annotations(hint) if isinstance(limit, MaxLen)]
    return min(limits, default=math.inf)


def is_list(hint: Any) -> bool:
    """Return whether a value of a type is written as a list."""
    plain_type = strip_annotations(hint)
    return (get_origin(plain_type) or plain_type) in _SEQUENCES


def is_mapping(hint: Any) -> bool:
    """Return whether a value of a type is written as a mapping."""
    plain_type = strip_annotations(hint)
    return is_dataclass(plain_type) or (get_origin(plain_type) or plain_type) in {dict, Mapping}


def as_yaml_name(field_name: str) -> str:
    """Return the key of a field in a spec: ``from_`` is written ``from``.

    >>> as_yaml_name("from_"), as_yaml_name("top_n")
    ('from', 'top_n')
    """
    return field_name.removesuffix("_")


def select_member(hint: Any, raw: Any) -> Any:
    """Return the member of a union that fits the form of a value, else the union."""
    for member in list_members(hint):
        if isinstance(raw, dict) and is_mapping(member):
            return member
        if isinstance(raw, list) and is_list(member):
            return member
        is_named = is_input_file(member) or is_model_name(member)
        if isinstance(raw, str) and is_named and raw not in list_choices(hint):
            return member
    return hint


def descend(hint: Any, raw: Any, inner: KeyPath) -> tuple[Hint, Any]:
    """Return the type and the value at a location inside a value."""
    for key in inner:
        arguments = get_args(strip_annotations(hint))
        if isinstance(raw, dict):
            hint = arguments[-1] if arguments else Any
        else:
            hint = get_item_type(hint) or (arguments[int(key)] if arguments else Any)
        raw = raw[key]
        hint = select_member(hint, raw)
    return hint, raw


def restrict_to_value(raw: Any, location: tuple[int | str, ...]) -> KeyPath:
    """Return the keys and indexes in a location of pydantic, which also names union members."""
    inner: KeyPath = ()
    for key in location:
        if isinstance(raw, dict) and key in raw:
            raw, inner = raw[str(key)], (*inner, key)
        elif isinstance(raw, list) and isinstance(key, int) and key < len(raw):
            raw, inner = raw[key], (*inner, key)
    return inner
