from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias.config.plugin_spec import Grouping, PluginSpec, Range
from recbias.config.resolve import Chooser
from recbias.formats.yaml.source_map import Document
from support import fake_plugins
from support.fake_plugins import REGISTRIES


def chooser(base: Path = Path()) -> Chooser:
    return Chooser(Document({}, base=base), REGISTRIES, k=10)


def choose(kind: str, raw: Any) -> PluginSpec:
    made = chooser().choose(kind, raw, ("x",))
    assert made is not None
    return made


def fault_of(kind: str, raw: Any) -> list[list[str]]:
    chooses = chooser()
    assert chooses.choose(kind, raw, ("x",)) is None
    return [error.lines() for _, error in chooses.document.faults]


@pytest.mark.parametrize(
    ("kind", "raw", "label"),
    [
        ("models", "item_knn", "ItemKNN"),
        ("models", {"name": "ItemKNN", "label": "mine"}, "mine"),
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
def test_the_label_is_given_or_follows_from_the_name(kind: str, raw: Any, label: str) -> None:
    assert choose(kind, raw).label == label


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
def test_a_metric_without_a_cutoff_takes_that_of_the_spec(raw: Any, k: int) -> None:
    chosen = choose("metrics", raw)
    assert chosen.plugin == fake_plugins.NDCG(k=k)
    assert chosen.parameters == {"k": k}


def test_only_metrics_take_the_cutoff_of_the_spec() -> None:
    assert choose("filters", {"name": "k_core", "k": 3}).plugin.k == 3
    assert choose("metrics", "Gini").parameters == {}


def test_an_entry_is_not_changed_by_being_read() -> None:
    raw = {"name": "ItemKNN", "label": "x", "shrink": 1}
    choose("models", raw)
    assert raw == {"name": "ItemKNN", "label": "x", "shrink": 1}


def test_a_search_is_read() -> None:
    tune = {"metric": "nDCG@5", "trials": 3, "space": {"alpha": {"log": [0.1, 1]}}}
    chosen = choose("models", {"name": "SLIM", "l1_ratio": 0.5, "tune": tune})
    assert chosen.tune is not None
    assert chosen.tune.metric.plugin == fake_plugins.NDCG(k=5)
    assert chosen.tune.metric.where == ("x", "tune", "metric")
    assert chosen.tune.trials == 3
    assert chosen.tune.space == (Range("alpha", 0.1, 1, log=True, whole=False),)
    assert chosen.plugin == fake_plugins.SLIM(l1_ratio=0.5)


@pytest.mark.parametrize(
    ("tune", "lines"),
    [
        (3, ["error: x.tune: must be a mapping, found 3"]),
        ({}, ["error: x.tune: tune needs metric", "error: x.tune: tune needs space"]),
        (
            {"metric": "nDCC", "space": {}, "trails": 3},
            [
                "error: x.tune.trails: not a setting of tune",
                "error: x.tune.space: must be a mapping that is not empty, found an empty mapping",
                "error: x.tune.metric: no metric is called 'nDCC'",
            ],
        ),
        (
            {"metric": "nDCG", "space": {"shrink": {"float": [0, 1]}}},
            ["error: x.tune.space.shrink: is searched and also set, at x.shrink"],
        ),
    ],
)
def test_a_search_that_cannot_be_made(tune: Any, lines: list[str]) -> None:
    found = fault_of("models", {"name": "ItemKNN", "shrink": 1, "tune": tune})
    assert [each[0] for each in found] == lines


def test_only_models_are_searched() -> None:
    assert fault_of("filters", {"name": "k_core", "tune": {}})[0][0] == (
        "error: x.tune: not a setting of k_core"
    )


def test_datasets_have_filters() -> None:
    chooses = chooser()
    raw = {"name": "ml-1m", "label": "films", "filters": ["k_core", "k_core"]}
    made = chooses.dataset(raw, ("dataset",))
    assert made is not None
    assert made.label == "films"
    assert [each.where for each in made.filters] == [
        ("dataset", "filters", 0),
        ("dataset", "filters", 1),
    ]
    assert raw["filters"] == ["k_core", "k_core"]


def test_filters_must_be_a_list() -> None:
    chooses = chooser()
    chooses.dataset({"name": "ml-1m", "filters": "k_core"}, ("dataset",))
    ((_, error),) = chooses.document.faults
    assert error.lines() == [
        "error: dataset.filters: must be a list, found the text 'k_core'",
        "help: write each after a dash",
    ]


def test_a_name_of_another_kind_is_known_there() -> None:
    assert chooser().hint("names", "models") == "names is a detector: it goes under labels"
    assert chooser().hint("zzz", "models") == ""


def test_the_name_of_a_file_plugin_is_kept_and_its_digest_noted(tmp_path: Path) -> None:
    text = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass M:\n    k: int = 2\n"
    (tmp_path / "m.py").write_text(text)
    made = chooser(tmp_path).choose("metrics", {"name": "m.py:M", "k": 3}, ("x",))
    assert made is not None
    assert (made.name, made.label, made.plugin.k, len(made.source)) == ("m.py:M", "M", 3, 64)


def test_a_metric_that_is_split_by_a_label_gives_groups_and_gaps() -> None:
    made = chooser().several("metrics", [{"name": "nDCG@5", "by": "gender & age < 25"}], ("m",))
    assert [each.label for each in made] == [
        "nDCG(by=gender & age < 25)",
        "nDCG(by=gender & age < 25, gap=difference)",
        "nDCG(by=gender & age < 25, gap=ratio)",
        "nDCG(by=gender & age < 25, gap=std)",
    ]
    assert [each.direction for each in made[1:]] == ["lower", "higher", "lower"]
    assert {each.parameters["k"] for each in made} == {5}


def test_one_gap_can_be_asked_for() -> None:
    entry = {"name": "nDCG", "by": "gender", "gap": "ratio", "label": "parity"}
    (made,) = chooser().several("metrics", [entry], ("m",))
    assert (made.label, made.grouping) == ("parity", Grouping("gender", "ratio"))
    assert made.split_settings == {"by": "gender", "gap": "ratio"}


@pytest.mark.parametrize(
    ("entry", "error", "remedy"),
    [
        ({"by": 3}, "must be text, found 3", "gender"),
        ({"by": "a & "}, "blank", "joined by &"),
        ({"by": "a", "gap": "diference"}, "must be one of groups", "difference"),
        ({"gap": "ratio"}, "not a setting of nDCG", ""),
    ],
)
def test_a_split_that_cannot_be_made(entry: dict[str, Any], error: str, remedy: str) -> None:
    (lines,) = fault_of("metrics", {"name": "nDCG", **entry})
    assert error in lines[0]
    assert remedy in lines[1]


def test_a_packaged_space_is_written_out_but_for_what_the_entry_sets() -> None:
    tune = {"metric": "nDCG", "space": "thesis"}
    chosen = choose("models", {"name": "SLIM", "alpha": 0.5, "tune": tune})
    assert chosen.tune is not None
    assert [each.parameter for each in chosen.tune.space] == ["neighbors", "l1_ratio"]
    assert chosen.tune.written["space"]["neighbors"] == {"int": [5, 1000]}


def test_a_packaged_space_that_is_not_there_is_a_fault_of_its_place() -> None:
    tune = {"metric": "nDCG", "space": "tesis"}
    (lines,) = fault_of("models", {"name": "SLIM", "tune": tune})
    assert lines[0] == "error: x.tune.space: no search space is called 'tesis'"
