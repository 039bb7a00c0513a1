"""The settings of a plug-in: the fields of its dataclass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

from recbias.config.declarations.hints import Hint, as_yaml_name
from recbias.core.errors import BrokenContract
from recbias.core.models.selected_models import SelectedModel
from recbias.core.registry import locate_code


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
    names = {as_yaml_name(field.name): field for field in fields(cls) if field.init}
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
    return {as_yaml_name(name): as_plain(getattr(value, name), path_texts) for name in names}


def build_adapter(hint: Hint) -> TypeAdapter[Any]:
    """Return pydantic's validator of a type.

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
def _build_adapter(hint: Hint) -> TypeAdapter[Any]:
    return TypeAdapter(hint)


def validate_value(hint: Hint, raw: Any) -> Any:
    """Convert a value from YAML to a type, strictly: ``"5"`` is not a number.

    An integer is accepted as a float, a list as a tuple and text as a path.

    Raises:
        ValidationError: The value does not have the type.
    """
    return build_adapter(hint).validate_json(json.dumps(raw), strict=True)


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
