from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias.api import read_experiment
from recbias.config.entries import Resolver
from recbias.config.specs import Grouping, PluginSpec, Range
from recbias.formats.yaml import Document
from support.models import fake_plugins
from support.models.fake_plugins import REGISTRIES
from support.specs import make_small_spec


def create_resolver(base: Path = Path()) -> Resolver:
    return Resolver(Document({}, base=base), REGISTRIES, k=10)


def resolve(kind: str, raw: Any) -> PluginSpec:
    spec = create_resolver().resolve(kind, raw, ("x",))
    assert spec is not None
    return spec


@pytest.mark.parametrize(
    ("kind", "raw", "label"),
    [
        ("models", "item_knn", "ItemKNN"),
        ("models", {"name": "ItemKNN", "label": "baseline"}, "baseline"),
        ("metrics", "ndcg@5", "nDCG"),
        ("metrics", "APLT(head=0.2)", "APLT"),
        ("metrics", "APLT(head=0.3)@5", "APLT(head=0.3)"),
        ("metrics", {"name": "APLT@5", "head": 0.3}, "APLT(head=0.3)"),
        ("metrics", {"name": "APLT(head=0.3)", "label": "tail"}, "tail"),
        ("metrics", {"name": "HIT_BAD", "label": "gender"}, "HIT_BAD(label=gender)"),
        ("metrics", "HIT_BAD(label=gender)@3", "HIT_BAD(label=gender)"),
        ("detectors", {"name": "ngim", "detector": "names", "from": "cast"}, "ngim"),
        ("detectors", {"name": "names", "from": "cast"}, "names"),
        ("tests", {"name": "paired_t", "alpha": 0.01}, "paired_t"),
    ],
)
def test_label_is_set_or_follows_from_the_name(kind: str, raw: Any, label: str) -> None:
    assert resolve(kind, raw).label == label


@pytest.mark.parametrize(
    ("raw", "k"),
    [
        ("nDCG", 10),
        ("nDCG@3", 3),
        ({"name": "nDCG", "k": 4}, 4),
        ({"name": "nDCG", "k": None}, 10),
        ({"name": "nDCG@3"}, 3),
    ],
)
def test_metric_without_a_cutoff_has_that_of_the_spec(raw: Any, k: int) -> None:
    metric = resolve("metrics", raw)
    assert metric.plugin == fake_plugins.NDCG(k=k)
    assert metric.parameters == {"k": k}


def test_search_has_metric_trials_and_space() -> None:
    tune = {"metric": "nDCG@5", "trials": 3, "space": {"alpha": {"log": [0.1, 1]}}}
    model = resolve("models", {"name": "SLIM", "l1_ratio": 0.5, "tune": tune})
    assert model.tune.metric.plugin == fake_plugins.NDCG(k=5)
    assert model.tune.metric.where == ("x", "tune", "metric")
    assert model.tune.trials == 3
    assert model.tune.space == (Range("alpha", 0.1, 1, log=True, integer=False),)
    assert model.plugin == fake_plugins.SLIM(l1_ratio=0.5)


def test_plugin_from_a_file_has_its_name_and_the_digest_of_the_file(tmp_path: Path) -> None:
    text = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass M:\n    k: int = 2\n"
    (tmp_path / "m.py").write_text(text)
    spec = create_resolver(tmp_path).resolve("metrics", {"name": "m.py:M", "k": 3}, ("x",))
    assert (spec.name, spec.label, spec.plugin.k, len(spec.source)) == ("m.py:M", "M", 3, 64)


def test_metric_by_label_expands_to_groups_and_gaps() -> None:
    metrics = create_resolver().resolve_list(
        "metrics", [{"name": "nDCG@5", "by": "gender & age < 25"}], ("m",)
    )
    assert [metric.label for metric in metrics] == [
        "nDCG(by=gender & age < 25)",
        "nDCG(by=gender & age < 25, gap=difference)",
        "nDCG(by=gender & age < 25, gap=ratio)",
        "nDCG(by=gender & age < 25, gap=std)",
    ]
    assert [metric.direction for metric in metrics[1:]] == ["lower", "higher", "lower"]
    assert {metric.parameters["k"] for metric in metrics} == {5}


def test_gap_selects_one_way_to_report_groups() -> None:
    entry = {"name": "nDCG", "by": "gender", "gap": "ratio", "label": "parity"}
    (metric,) = create_resolver().resolve_list("metrics", [entry], ("m",))
    assert (metric.label, metric.grouping) == ("parity", Grouping("gender", "ratio"))
    assert metric.split_settings == {"by": "gender", "gap": "ratio"}


@pytest.mark.parametrize(
    ("entry", "is_baseline"),
    [
        ("MostPop", True),
        ("random", True),
        ("ItemKNN", False),
        ({"name": "MostPop", "baseline": False}, False),
        ({"name": "ItemKNN", "baseline": True}, True),
    ],
)
def test_random_and_most_popular_are_baselines_unless_the_spec_says_otherwise(
    entry: Any, is_baseline: bool
) -> None:
    experiment = read_experiment(make_small_spec(models=[entry]))
    assert experiment.models[0].is_baseline == is_baseline
    again = read_experiment(experiment.as_spec())
    assert again.models[0].is_baseline == is_baseline
