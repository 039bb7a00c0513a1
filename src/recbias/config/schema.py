"""The JSON Schema of an experiment file, from which editors complete and check it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeAlias

from pydantic.errors import PydanticInvalidForJsonSchema

from recbias.config.docstrings import arguments, summary
from recbias.config.plugin_spec import GAPS
from recbias.config.search_space import KINDS
from recbias.config.settings import Setting, adapter, plain, settings
from recbias.config.spaces import packaged_spaces
from recbias.config.specs import ExperimentFile, TuneSpec
from recbias.config.type_text import bare, is_input_file, item_type, members
from recbias.core.errors import UserError
from recbias.core.registry import Registry

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The version of JSON Schema."""

Schema: TypeAlias = dict[str, Any]
"""A JSON Schema as plain Python."""

_FILE_NAME = r"\.py:[A-Za-z_][A-Za-z0-9_]*$"
_TEXT = {"type": "string"}
_SECTION_KINDS = {
    "split": "splits",
    "queries": "queries",
    "models": "models",
    "labels": "detectors",
    "metrics": "metrics",
    "tests": "tests",
}


def json_schema(registries: Mapping[str, Registry]) -> Schema:
    """Return the JSON Schema (draft 2020-12) of an experiment file.

    A plug-in whose package is not installed is left out. Names are in their published spelling,
    though a spec may write them without regard to case, ``-`` and ``_``; nothing is required at
    the top, because what is missing may stand in the file that this one extends.

    Args:
        registries: The plug-ins by kind, as ``load_experiment`` takes them.
    """
    definitions = {kind: _Kind(kind, each).schema() for kind, each in registries.items()}
    top = mapping_schema(ExperimentFile)
    top.pop("required", None)
    top["properties"] |= _sections()
    return {"$schema": DIALECT, "title": "recbias experiment", **top, "$defs": definitions}


def mapping_schema(cls: type) -> Schema:
    """Return the schema of a mapping that fills a dataclass."""
    docs, known = arguments(cls), settings(cls)
    properties = {
        name: _setting_schema(each, docs.get(each.field.name, "")) for name, each in known.items()
    }
    required = [name for name, each in known.items() if each.needed]
    made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | ({"required": required} if required else {})


def type_schema(hint: Any) -> Schema:
    """Return the schema of the type of a setting.

    >>> type_schema(int | None)
    {'anyOf': [{'type': 'integer'}, {'type': 'null'}]}
    """
    union = members(hint)
    if len(union) > 1:
        return {"anyOf": [type_schema(each) for each in union]}
    if is_input_file(hint):
        return dict(_TEXT)
    if is_dataclass(bare(hint)):
        return mapping_schema(bare(hint))
    if is_dataclass(bare(item_type(hint))):
        return {"type": "array", "items": type_schema(item_type(hint))}
    try:
        return adapter(hint).json_schema()
    except PydanticInvalidForJsonSchema:
        return {}


def _setting_schema(setting: Setting, doc: str) -> Schema:
    described = {"description": doc} if doc else {}
    default = {} if setting.needed else {"default": plain(setting.default)}
    return described | type_schema(setting.hint) | default


def _sections() -> Schema:
    """Return the schemas of the keys that hold plug-ins."""
    docs = arguments(ExperimentFile)
    one = _reference("datasets")
    found: Schema = {
        "extends": {"description": "A file that is merged under this one.", **_TEXT},
        "dataset": {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]},
    }
    for key, kind in _SECTION_KINDS.items():
        reference = _reference(kind)
        found[key] = {"type": "array", "items": reference}
        if kind in {"splits", "queries"}:
            found[key] = {"anyOf": [reference, {"type": "null"}]}
    return {key: {"description": docs.get(key, "")} | each for key, each in found.items()}


def _reference(kind: str) -> Schema:
    return {"$ref": f"#/$defs/{kind}"}


@dataclass(frozen=True)
class _Kind:
    """Writes the schema of the entries of one kind of plug-in."""

    kind: str
    registry: Registry

    @property
    def name_key(self) -> str:
        return "detector" if self.kind == "detectors" else "name"

    def schema(self) -> Schema:
        classes = {name: cls for name in self.registry.names() if (cls := self.load(name))}
        alone = [name for name, cls in classes.items() if not self.needs_settings(cls)]
        file_name = {**_TEXT, "pattern": _FILE_NAME}
        file_entry = {
            "type": "object",
            "properties": {self.name_key: file_name},
            "required": [self.name_key],
        }
        names = [self.name(each) for each in alone]
        mappings = [self.mapping(name, cls) for name, cls in classes.items()]
        return {"oneOf": [*names, *mappings, file_name, file_entry]}

    def load(self, name: str) -> type | None:
        try:
            cls = self.registry.load(name)
            settings(cls)
        except UserError:
            return None
        return cls

    def needs_settings(self, cls: type) -> bool:
        return any(each.needed for each in settings(cls).values())

    def name(self, name: str) -> Schema:
        if self.kind != "metrics":
            return {"const": name}
        return {**_TEXT, "pattern": rf"^{re.escape(name)}(\(.*\))?(@[0-9]+)?$"}

    def mapping(self, name: str, cls: type) -> Schema:
        made = mapping_schema(cls)
        own: Schema = {self.name_key: self.name(name)}
        if self.kind == "detectors":
            own["name"] = _TEXT
        made["properties"] = own | {"label": _TEXT} | self.extras(cls) | made["properties"]
        needed = [] if self.kind == "metrics" else made.get("required", [])
        return {"description": summary(cls), **made, "required": [self.name_key, *needed]}

    def extras(self, cls: type) -> Schema:
        if self.kind == "datasets":
            return {"filters": {"type": "array", "items": _reference("filters")}}
        if self.kind == "metrics":
            own = settings(cls)
            split = {"by": _TEXT, "gap": {"enum": list(GAPS)}}
            return {} if "by" in own else split
        if self.kind != "models":
            return {}
        drawn = {"type": "object", "propertyNames": {"enum": list(KINDS)}, "maxProperties": 1}
        space: Schema = {"type": "object", "additionalProperties": False}
        space["properties"] = dict.fromkeys(settings(cls), drawn)
        tune = mapping_schema(TuneSpec)
        tune["properties"] |= {
            "metric": _reference("metrics"),
            "space": {"anyOf": [space, {"enum": list(packaged_spaces())}]},
        }
        return {"tune": tune}
