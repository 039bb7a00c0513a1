from __future__ import annotations

from typing import Any

from recbias.config.schema import build_json_schema
from recbias.config.settings import read_settings
from recbias.config.specs import ExperimentFile
from support.models.fake_plugins import REGISTRIES

SCHEMA = build_json_schema(REGISTRIES)


def list_entries(kind: str) -> dict[str, Any]:
    """Return the schemas of the mappings of a kind, by name."""
    key = "detector" if kind == "detectors" else "name"
    schemas = [schema for schema in SCHEMA["$defs"][kind]["oneOf"] if "properties" in schema]
    return {schema["properties"][key].get("const", "other"): schema for schema in schemas}


def test_every_key_of_a_spec_has_a_description() -> None:
    assert set(SCHEMA["properties"]) == {*read_settings(ExperimentFile), "extends"}
    assert all(schema["description"] for schema in SCHEMA["properties"].values())


def test_sweep_is_a_grid_or_none() -> None:
    grid, none = SCHEMA["properties"]["sweep"]["anyOf"]
    assert (grid["type"], grid["minProperties"]) == ("object", 1)
    assert grid["additionalProperties"] == {"type": "array", "minItems": 1}
    assert none == {"type": "null"}


def test_schema_of_a_plugin_has_ranges_defaults_and_descriptions() -> None:
    knn = list_entries("models")["ItemKNN"]
    assert knn["description"] == "Recommend items like the user's."
    assert knn["required"] == ["name"]
    assert knn["additionalProperties"] is False
    assert list(knn["properties"]) == [
        "name",
        "label",
        "tune",
        "rerank",
        "baseline",
        "neighbors",
        "similarity",
        "shrink",
        "binary",
    ]
    assert knn["properties"]["neighbors"] == {
        "description": "How many neighbours an item has.",
        "type": "integer",
        "exclusiveMinimum": 0,
        "default": 50,
    }
    space, packaged = knn["properties"]["tune"]["properties"]["space"]["anyOf"]
    assert set(space["properties"]) == {"neighbors", "similarity", "shrink", "binary"}
    assert packaged == {"enum": ["thesis"]}


def test_datasets_have_filters_and_labels_have_a_detector() -> None:
    assert list_entries("datasets")["ml-1m"]["properties"]["filters"]["items"] == {
        "$ref": "#/$defs/filters"
    }
    names = list_entries("detectors")["names"]
    assert names["required"] == ["detector", "from"]
    assert names["properties"]["name"] == {"type": "string"}
