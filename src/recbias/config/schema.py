"""The JSON Schema of an experiment file, with which editors complete and validate it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from recbias.config.checks import CheckSpec
from recbias.config.entries import load_packaged_spaces
from recbias.config.settings import build_mapping_schema, read_settings
from recbias.config.specs import SECTIONS, ExperimentFile, Grouping, IntervalSpec, TuneSpec
from recbias.core.docstrings import read_arguments, read_summary
from recbias.core.errors import UserError
from recbias.core.registry import Registry

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The version of JSON Schema."""

_Schema: TypeAlias = dict[str, Any]
"""A JSON Schema as plain Python."""

_FILE_NAME = {"type": "string", "pattern": r"\.py:[A-Za-z_][A-Za-z0-9_]*$"}
_TEXT = {"type": "string"}
_AUDITED: _Schema = {
    "description": "Human labels of a sample of the items: a file, or settings of human_labels.",
    "type": ["string", "object"],
}
_BASELINE: _Schema = {
    "description": "Whether others are compared with it; no headline is about a baseline.",
    "type": "boolean",
}


def build_json_schema(registries: Mapping[str, Registry]) -> _Schema:
    """Build the JSON Schema (draft 2020-12) of an experiment file.

    Plug-ins whose package is not installed are excluded. Names have their registered spelling,
    although a spec may write them without regard to case, ``-`` and ``_``. No top-level key is
    required, because the file that this one extends may have it.
    """
    definitions = {kind: _build_entries(kind, registry) for kind, registry in registries.items()}
    schema = build_mapping_schema(ExperimentFile)
    schema.pop("required", None)
    docs = read_arguments(ExperimentFile)
    extended = {"description": "The file or packaged spec that this one extends.", **_TEXT}
    sections = {
        key: {"description": docs[key]} | section for key, section in _build_sections().items()
    }
    schema["properties"] |= {"extends": extended, **sections}
    return {"$schema": DIALECT, "title": "recbias experiment", **schema, "$defs": definitions}


def _build_sections() -> _Schema:
    """Build the schemas of the keys that lead to plug-ins, and of checks and sweeps."""
    values = {"type": "array", "minItems": 1}
    grid = {"type": "object", "additionalProperties": values, "minProperties": 1}
    sections: _Schema = {
        "dataset": _allow_list("datasets"),
        "checks": {"type": "array", "items": build_mapping_schema(CheckSpec), "default": []},
        "sweep": {"anyOf": [grid, {"type": "null"}]},
    }
    for kind in ("splits", "queries"):
        sections[SECTIONS[kind][0]] = {"anyOf": [_refer_to(kind), {"type": "null"}]}
    for kind in ("models", "detectors", "metrics", "tests"):
        sections[SECTIONS[kind][0]] = {"type": "array", "items": _refer_to(kind)}
    return sections


def _refer_to(kind: str) -> _Schema:
    return {"$ref": f"#/$defs/{kind}"}


def _allow_list(kind: str) -> _Schema:
    """Return the schema of one entry or several."""
    several = {"type": "array", "items": _refer_to(kind), "minItems": 1}
    return {"anyOf": [_refer_to(kind), several]}


def _build_entries(kind: str, registry: Registry) -> _Schema:
    """Build the schema of the entries of a kind: a name, or a mapping with one."""
    names, mappings = [], []
    for name in registry.names():
        try:
            cls = registry.load(name)
            settings = read_settings(cls)
        except UserError:
            continue
        named: _Schema = {"const": name}
        if kind == "metrics":
            named = {**_TEXT, "pattern": rf"^{re.escape(name)}(\(.*\))?(@[0-9]+)?$"}
        if not any(setting.needed for setting in settings.values()):
            names.append(named)
        mappings.append(_build_entry(kind, cls, named))
    key = "detector" if kind == "detectors" else "name"
    in_file = {"type": "object", "properties": {key: _FILE_NAME}, "required": [key]}
    return {"oneOf": [*names, *mappings, _FILE_NAME, in_file]}


def _build_entry(kind: str, cls: type, named: _Schema) -> _Schema:
    """Build the schema of the mapping that selects a plug-in, whose name has a schema."""
    schema, name_key = build_mapping_schema(cls), "detector" if kind == "detectors" else "name"
    settings, dial = schema["properties"], getattr(cls, "dial", "")
    if kind == "rerankers" and dial:
        several = {"type": "array", "items": settings[dial]}
        settings[dial] = {"anyOf": [settings[dial], several]}
    keys = {name_key: named, "label": _TEXT, **_build_entry_keys(kind, [*settings])}
    schema["properties"] = keys | settings
    required = [] if kind == "metrics" else schema.get("required", [])
    return {"description": read_summary(cls), **schema, "required": [name_key, *required]}


def _build_entry_keys(kind: str, settings: list[str]) -> _Schema:
    """Build the schemas of the keys of an entry that are not settings of its plug-in."""
    if kind == "detectors":
        return {"name": _TEXT, "audited": _AUDITED}
    if kind == "datasets":
        return {"filters": {"type": "array", "items": _refer_to("filters")}}
    if kind == "metrics" and "by" not in settings:
        grouping: _Schema = build_mapping_schema(Grouping)["properties"]
        return grouping
    if kind not in {"models", "rerankers"}:
        return {}
    dimension = build_mapping_schema(IntervalSpec) | {"maxProperties": 1}
    properties = dict.fromkeys(settings, dimension)
    space = {"type": "object", "additionalProperties": False, "properties": properties}
    tune = build_mapping_schema(TuneSpec)
    tune["properties"]["metric"] = _refer_to("metrics")
    tune["properties"]["space"] = {"anyOf": [space, {"enum": list(load_packaged_spaces())}]}
    of_models = {"rerank": _allow_list("rerankers"), "baseline": _BASELINE}
    return {"tune": tune, **(of_models if kind == "models" else {})}
