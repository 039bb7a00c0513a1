"""Every registered metric meets the contract of its kind."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from recbias.registry import REGISTRIES
from recbias.testing import check_metric

METRICS = REGISTRIES["metrics"]

LABEL = {"label": "colour", "attribute": "price"}
SETS = {
    "groups": {"of": "users", "attribute": "colour", "a": "white", "b": "black"},
    "targets": {"of": "items", "attribute": "flag", "e": "1", "p": "0"},
}

QUALITY = Path(__file__).parents[2] / "configs" / "papers" / "chbias" / "quality"

SETTINGS: dict[str, dict[str, Any]] = {
    **{key: {"label": "flag"} for key in ("HIT_BAD", "MRR_BAD", "REC-ST")},
    **{
        key: {"attribute": "genres"}
        for key in (
            *("AWRF", "AWRF-min-max", "EXP", "EXPU", "EXPRU"),
            *("exposure_gap", "provider_gap", "provider_gini", "shown_share"),
        )
    },
    **{key: {"attribute": "genres"} for key in ("calibration_kl", "calibration_js")},
    "labelled_items": {"label": "flag", "attribute": "genres"},
    "attribute_share": {"attribute": "genres"},
    "cohen_kappa": {"a": "flag", "b": "price"},
    "label_accuracy": {"a": "flag", "b": "price"},
    "krippendorff_alpha": {"labels": ["flag", "price"]},
    **dict.fromkeys(("price_percentage", "mean_attribute", "variance_split"), LABEL),
    "association": {"label": "colour", "attribute": "genres"},
    **{
        f"category_{name}": {"attribute": "genres"}
        for name in ("precision", "R-precision", "MAP", "MRR", "nDCG")
    },
    **{
        key: {"label": "colour", "neutral": "name in ['name 0', 'name 1']"}
        for key in ("list_overlap", "overlap_spread", "identity_effect")
    },
    **{
        key: {"vectors": QUALITY / "vectors.txt"}
        for key in ("embedding_average", "greedy_matching")
    },
    **{
        key: {"ratings": QUALITY / "bias-ratings.jsonl"}
        for key in ("human_rate", "human_score", "human_agreement")
    },
    "top_words": {"label": "colour", "attribute": "genres"},
    **{
        f"{name}_sensitivity": {
            "groups": {"of": "users", "attribute": "colour", "a": "white", "b": "black"}
        }
        for name in ("examination", "propensity")
    },
    **dict.fromkeys(
        (
            *("EAA", "GEAA", "DEAA", "R-RIPA", "latent_projection", "attribute_classification"),
            *("direction_checks", "direction_similarity"),
        ),
        SETS,
    ),
}
"""Required settings of metrics, for the random evidence of recbias.testing."""


def make_metric(name: str, **settings: Any) -> Any:
    cls = METRICS.load(name)
    names = {field.name.rstrip("_") for field in fields(cls)}
    required = {key: value for key, value in SETTINGS.get(name, {}).items() if key in names}
    return TypeAdapter(cls).validate_python({**required, **settings})


@pytest.mark.parametrize("name", METRICS.names())
def test_a_metric_meets_the_contract(name: str) -> None:
    check_metric(make_metric(name))


@pytest.mark.parametrize("name", METRICS.names())
def test_a_metric_meets_the_contract_at_another_cutoff(name: str) -> None:
    if any(field.name == "k" for field in fields(METRICS.load(name))):
        check_metric(make_metric(name, k=3))


@pytest.mark.parametrize("name", METRICS.names())
def test_every_setting_is_documented(name: str) -> None:
    cls = METRICS.load(name)
    for field in fields(cls):
        assert f"{field.name}:" in (cls.__doc__ or ""), f"{name}: {field.name}"
