"""The JSON Schema of an experiment file, with which editors complete and validate it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeAlias

from pydantic.errors import PydanticInvalidForJsonSchema

from recbias.config.checks import CheckSpec
from recbias.config.entries import load_packaged_spaces
from recbias.config.settings import (
    Setting,
    as_plain,
    build_adapter,
    get_item_type,
    is_input_file,
    is_selected_model,
    list_members,
    read_settings,
    strip_annotations,
)
from recbias.config.specs import SECTIONS, ExperimentFile, GroupingKeys, IntervalSpec, TuneSpec
from recbias.core.docstrings import read_arguments, read_summary
from recbias.core.errors import UserError
from recbias.core.registry import Registry

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The version of JSON Schema."""

_Schema: TypeAlias = dict[str, Any]
"""A JSON Schema as plain Python."""

_FILE_NAME = r"\.py:[A-Za-z_][A-Za-z0-9_]*$"
_TEXT = {"type": "string"}
_AUDITED: _Schema = {
    "description": "Human labels of a sample of the items: a file, or settings of human_labels.",
    "type": ["string", "object"],
}


def build_json_schema(registries: Mapping[str, Registry]) -> _Schema:
    """Build the JSON Schema (draft 2020-12) of an experiment file.

    Plug-ins whose package is not installed are excluded. Names have their registered spelling,
    although a spec may write them without regard to case, ``-`` and ``_``. No top-level key is
    required, because the file that this one extends may have it.
    """
    definitions = {
        kind: _EntrySchemas(kind, registry).build() for kind, registry in registries.items()
    }
    schema = build_mapping_schema(ExperimentFile)
    schema.pop("required", None)
    schema["properties"] |= _build_sections()
    return {"$schema": DIALECT, "title": "recbias experiment", **schema, "$defs": definitions}


def build_mapping_schema(cls: type) -> _Schema:
    """Build the schema of the mapping that fills a dataclass."""
    docs, settings = read_arguments(cls), read_settings(cls)
    schema: _Schema = {
        "type": "object",
        "properties": {
            name: _build_setting_schema(setting, docs.get(setting.field.name, ""))
            for name, setting in settings.items()
        },
        "additionalProperties": False,
    }
    required = [name for name, setting in settings.items() if setting.needed]
    return schema | ({"required": required} if required else {})


def build_type_schema(hint: Any) -> _Schema:
    """Build the schema of the type of a setting.

    >>> build_type_schema(int | None)
    {'anyOf': [{'type': 'integer'}, {'type': 'null'}]}
    """
    members = list_members(hint)
    if len(members) > 1:
        return {"anyOf": [build_type_schema(member) for member in members]}
    if is_input_file(hint):
        return dict(_TEXT)
    if is_dataclass(strip_annotations(hint)):
        cls: type = strip_annotations(hint)
        return _refer_to("models") if is_selected_model(cls) else build_mapping_schema(cls)
    if is_dataclass(strip_annotations(get_item_type(hint))):
        return {"type": "array", "items": build_type_schema(get_item_type(hint))}
    try:
        schema: _Schema = build_adapter(hint).json_schema()["prefixItems"][0]
    except PydanticInvalidForJsonSchema:
        return {}
    return schema


def _build_setting_schema(setting: Setting, doc: str) -> _Schema:
    description = {"description": doc} if doc else {}
    default = {} if setting.needed else {"default": as_plain(setting.default)}
    return description | build_type_schema(setting.hint) | default


def _build_sections() -> _Schema:
    docs = read_arguments(ExperimentFile)
    dataset = _refer_to("datasets")
    sections: _Schema = {
        "extends": {"description": "The file or packaged spec that this one extends.", **_TEXT},
        "dataset": {"anyOf": [dataset, {"type": "array", "items": dataset, "minItems": 1}]},
    }
    values = {"type": "array", "minItems": 1}
    grid = {"type": "object", "additionalProperties": values, "minProperties": 1}
    sections["checks"] = {"type": "array", "items": build_mapping_schema(CheckSpec), "default": []}
    sections["sweep"] = {"anyOf": [grid, {"type": "null"}]}
    for kind, (key, *_) in SECTIONS.items():
        if kind in {"splits", "queries"}:
            sections[key] = {"anyOf": [_refer_to(kind), {"type": "null"}]}
        elif kind not in {"datasets", "filters", "rerankers"}:
            sections[key] = {"type": "array", "items": _refer_to(kind)}
    return {key: {"description": docs.get(key, "")} | section for key, section in sections.items()}


def _refer_to(kind: str) -> _Schema:
    return {"$ref": f"#/$defs/{kind}"}


@dataclass(frozen=True)
class _EntrySchemas:
    kind: str
    registry: Registry

    @property
    def name_key(self) -> str:
        return "detector" if self.kind == "detectors" else "name"

    def build(self) -> _Schema:
        classes = {name: cls for name in self.registry.names() if (cls := self.load(name))}
        names = [
            self.build_name(name)
            for name, cls in classes.items()
            if not any(setting.needed for setting in read_settings(cls).values())
        ]
        file_name, key = {**_TEXT, "pattern": _FILE_NAME}, self.name_key
        file_entry = {"type": "object", "properties": {key: file_name}, "required": [key]}
        mappings = [self.build_mapping(name, cls) for name, cls in classes.items()]
        return {"oneOf": [*names, *mappings, file_name, file_entry]}

    def load(self, name: str) -> type | None:
        try:
            cls = self.registry.load(name)
            read_settings(cls)
        except UserError:
            return None
        return cls

    def build_name(self, name: str) -> _Schema:
        if self.kind != "metrics":
            return {"const": name}
        return {**_TEXT, "pattern": rf"^{re.escape(name)}(\(.*\))?(@[0-9]+)?$"}

    def build_mapping(self, name: str, cls: type) -> _Schema:
        schema = build_mapping_schema(cls)
        properties: _Schema = {self.name_key: self.build_name(name)}
        if self.kind == "detectors":
            properties |= {"name": _TEXT, "audited": _AUDITED}
        properties |= {"label": _TEXT} | self.build_entry_keys(cls)
        schema["properties"] = properties | schema["properties"]
        if self.kind == "rerankers" and (dial := getattr(cls, "dial", "")):
            value = schema["properties"][dial]
            schema["properties"][dial] = {"anyOf": [value, {"type": "array", "items": value}]}
        required = [] if self.kind == "metrics" else schema.get("required", [])
        return {"description": read_summary(cls), **schema, "required": [self.name_key, *required]}

    def build_entry_keys(self, cls: type) -> _Schema:
        """Build the schemas of the keys of an entry that are not settings of its plug-in."""
        settings = read_settings(cls)
        if self.kind == "datasets":
            return {"filters": {"type": "array", "items": _refer_to("filters")}}
        if self.kind == "metrics":
            grouping: _Schema = build_mapping_schema(GroupingKeys)["properties"]
            return {} if "by" in settings else grouping
        if self.kind not in {"models", "rerankers"}:
            return {}
        dimension = build_mapping_schema(IntervalSpec) | {"maxProperties": 1}
        space: _Schema = {"type": "object", "additionalProperties": False}
        space["properties"] = dict.fromkeys(settings, dimension)
        tune = build_mapping_schema(TuneSpec)
        tune["properties"] |= {
            "metric": _refer_to("metrics"),
            "space": {"anyOf": [space, {"enum": list(load_packaged_spaces())}]},
        }
        if self.kind == "rerankers":
            return {"tune": tune}
        reranker = _refer_to("rerankers")
        several = {"type": "array", "items": reranker, "minItems": 1}
        baseline: _Schema = {
            "description": "Whether others are compared with it; no headline is about a baseline.",
            "type": "boolean",
        }
        rerank = {"anyOf": [reranker, several]}
        return {"tune": tune, "rerank": rerank} | (
            {} if "baseline" in settings else {"baseline": baseline}
        )
