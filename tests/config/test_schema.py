from __future__ import annotations

import json
import re
from typing import Any, Literal

import pytest

from recbias.config.schema import DIALECT, json_schema, mapping_schema, type_schema
from recbias.config.settings import settings
from recbias.config.specs import ExperimentFile
from recbias.core.protocols import InputFile
from support import fake_plugins
from support.fake_plugins import REGISTRIES

SCHEMA = json_schema(REGISTRIES)


def entries(kind: str) -> dict[str, Any]:
    """The mappings of a kind, by name."""
    key = "detector" if kind == "detectors" else "name"
    found = [each for each in SCHEMA["$defs"][kind]["oneOf"] if each.get("type") == "object"]
    return {each["properties"][key].get("const", "other"): each for each in found}


def test_the_schema_is_json_and_says_its_dialect() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA["$schema"] == DIALECT
    assert SCHEMA["additionalProperties"] is False
    assert list(SCHEMA["$defs"]) == list(REGISTRIES)


def test_every_key_of_a_spec_is_there_and_explained() -> None:
    assert set(SCHEMA["properties"]) == {*settings(ExperimentFile), "extends"}
    assert all(each["description"] for each in SCHEMA["properties"].values())


def test_every_reference_leads_somewhere() -> None:
    references = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(SCHEMA)))
    assert references == set(REGISTRIES)


def test_a_plugin_has_its_settings_with_ranges_defaults_and_words() -> None:
    knn = entries("models")["ItemKNN"]
    assert knn["description"] == "Recommend items like the user's."
    assert knn["required"] == ["name"]
    assert knn["additionalProperties"] is False
    assert list(knn["properties"]) == [
        "name",
        "label",
        "tune",
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
    own, packaged = knn["properties"]["tune"]["properties"]["space"]["anyOf"]
    assert set(own["properties"]) == {"neighbors", "similarity", "shrink", "binary"}
    assert packaged == {"enum": ["thesis"]}


def test_what_is_needed_is_required_and_a_bare_name_will_not_do() -> None:
    assert entries("models")["lists"]["required"] == ["name", "path"]
    alone = [each["const"] for each in SCHEMA["$defs"]["models"]["oneOf"] if "const" in each]
    assert alone == ["MostPop", "ItemKNN", "SLIM"]


def test_a_plugin_that_cannot_be_loaded_is_left_out() -> None:
    assert set(entries("models")) == {"MostPop", "ItemKNN", "SLIM", "lists", "WOK", "other"}


def test_datasets_have_filters_and_labels_a_detector() -> None:
    assert entries("datasets")["ml-1m"]["properties"]["filters"]["items"] == {
        "$ref": "#/$defs/filters"
    }
    names = entries("detectors")["names"]
    assert names["required"] == ["detector", "from"]
    assert names["properties"]["name"] == {"type": "string"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [("nDCG", 1), ("nDCG@5", 1), ("APLT(head=0.8)@10", 1), ("nDCC", 0), ("./x.py:M", 1)],
)
def test_metrics_are_written_in_notation(text: str, matches: int) -> None:
    patterns = [
        each["pattern"] for each in SCHEMA["$defs"]["metrics"]["oneOf"] if "pattern" in each
    ]
    assert sum(bool(re.search(each, text)) for each in patterns) == matches


def test_a_label_that_is_a_setting_of_a_metric_is_that_setting() -> None:
    mappings = [each for each in SCHEMA["$defs"]["metrics"]["oneOf"] if "properties" in each]
    (hit_bad,) = [each for each in mappings if "HIT" in str(each["properties"]["name"])]
    assert hit_bad["properties"]["label"] == {"type": "string"}
    assert hit_bad["required"] == ["name"]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (InputFile, {"type": "string"}),
        (InputFile | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Any, {}),
        (
            tuple[fake_plugins.Names, ...],
            {"type": "array", "items": mapping_schema(fake_plugins.Names)},
        ),
    ],
)
def test_types_have_schemas(hint: Any, schema: dict[str, Any]) -> None:
    assert type_schema(hint) == schema


def test_nested_settings_take_no_other_keys() -> None:
    llm = entries("models")["WOK"]["properties"]["llm"]
    assert llm["additionalProperties"] is False
    assert llm["required"] == ["model"]
