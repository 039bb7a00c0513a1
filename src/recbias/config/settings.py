"""The settings of a plug-in: the fields of its dataclass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path, PurePath
from typing import Any, TypeAlias, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

from recbias.config.type_text import yaml_name
from recbias.core.errors import BrokenContract

Hint: TypeAlias = Any
"""The type of a field, as ``typing`` writes it."""


@dataclass(frozen=True)
class Setting:
    """One parameter of a plug-in.

    Args:
        name: As it is written in a spec.
        field: The field of the dataclass.
        hint: Its type, with annotations.
    """

    name: str
    field: Field[Any]
    hint: Hint

    @property
    def needed(self) -> bool:
        """Whether it has no default."""
        return self.field.default is MISSING and self.field.default_factory is MISSING

    @property
    def default(self) -> Any:
        """The default, None where there is none."""
        if self.field.default_factory is not MISSING:
            return self.field.default_factory()
        return None if self.field.default is MISSING else self.field.default


def settings(cls: type) -> dict[str, Setting]:
    """Return the parameters of a plug-in's class, by their name in a spec.

    Raises:
        BrokenContract: It is not a dataclass, or a type cannot be resolved.
    """
    if not is_dataclass(cls) or not isinstance(cls, type):
        name = getattr(cls, "__name__", str(cls))
        found = f"{name} is not a dataclass, so it has no settings that could be read"
        raise BrokenContract(found, remedy="write @dataclass(frozen=True, kw_only=True) above it")
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        raise BrokenContract(f"the types of {cls.__name__} cannot be read: {error}") from error
    made = [
        Setting(yaml_name(each.name), each, hints[each.name]) for each in fields(cls) if each.init
    ]
    return {each.name: each for each in made}


def plain(value: Any, written: Mapping[Path, str] | None = None) -> Any:
    """Return the value of a setting as JSON has it.

    Args:
        value: A value, or a dataclass for the mapping of its settings.
        written: How the user wrote a path, or text that is one; others are given as they are.
    """
    if is_dataclass(value) and not isinstance(value, type):
        pairs = [(each.name, getattr(value, each.name)) for each in fields(value) if each.init]
        return {yaml_name(name): plain(each, written) for name, each in pairs}
    if isinstance(value, Mapping):
        return {str(key): plain(each, written) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(each, written) for each in value)
    if isinstance(value, (list, tuple)):
        return [plain(each, written) for each in value]
    if isinstance(value, (str, PurePath)):
        text = value if isinstance(value, str) else value.as_posix()
        return written.get(Path(value), text) if written else text
    return value.item() if hasattr(value, "item") else value


def adapter(hint: Hint) -> TypeAdapter[Any]:
    """Return pydantic's checker of a type.

    Raises:
        BrokenContract: pydantic knows no such type.
    """
    try:
        return TypeAdapter(hint)
    except PydanticSchemaGenerationError as error:
        raise BrokenContract(f"{hint} cannot be the type of a setting") from error


def checked(hint: Hint, raw: Any) -> Any:
    """Return a value of a type from what YAML gave, strictly: ``"5"`` is no number.

    A whole number is taken for a number, a list for a tuple, text for a path.

    Raises:
        ValidationError: pydantic's account of what is wrong.
    """
    return adapter(hint).validate_json(json.dumps(raw), strict=True)


def accepts(hint: Hint, raw: Any) -> bool:
    """Return whether a type takes a value.

    >>> accepts(float, 1), accepts(int, "1"), accepts(int, 1.0)
    (True, False, False)
    """
    try:
        checked(hint, raw)
    except ValidationError:
        return False
    return True
