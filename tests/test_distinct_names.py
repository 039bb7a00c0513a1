from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

from recbias.config.entries import Resolver
from recbias.config.settings import (
    Setting,
    get_item_type,
    is_selected_model,
    is_valid,
    list_choices,
    list_members,
    read_settings,
    strip_annotations,
)
from recbias.config.specs import PluginSpec
from recbias.formats.yaml import Document
from recbias.registry import REGISTRIES

FILES = ("one.csv", "two.csv")
SAMPLES: tuple[Any, ...] = (
    *(False, True, 0, 1, 2, 3, 5, 10, 40, 200),
    *(0.1, 0.3, 0.7, 1.5, 2.5),
    *(*FILES, "genres", "year", "F", "M", "mitigate", "minimize"),
    *([1, 2], [2, 3], ["overview"], ["cast"], ["genres"], ["year", "title"], ["title", "year"]),
    *(["centroid", "svc"], ["centroid", "csvc"]),
    *({"x": 0.4, "y": 0.6}, {"x": 0.5, "y": 0.5}, {"x": "number"}, {"x": "text"}, {"x": "y"}),
    None,
)
MAPPINGS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "GroupPair": tuple({"of": "users", "attribute": "x", "a": a, "b": "M"} for a in "FX"),
    "TargetPair": tuple({"of": "items", "attribute": "x", "e": e, "p": "P"} for e in "EX"),
}
"""Values of settings whose parts must differ from each other."""

BESIDE: Mapping[str, dict[str, Any]] = {
    "SASRec.loss": {"negatives": 3},
    "GRU4Rec.loss": {"negatives": 3},
    **{f"{name}.popularity": {"negatives": 3} for name in ("SASRec", "GRU4Rec", "BERT4Rec")},
    "GRU4Rec.bpr_reg": {"negatives": 3},
    "LMLikelihood": {"model": "m"},
    "lists.seen": {"layout": "table"},
    "embedding_average": {"encoder": "m"},
    "greedy_matching": {"encoder": "m"},
    "human_rate.score": {"ratings": "one.csv"},
}
"""Settings that others need beside them, by plug-in or by setting."""

UNTRIED = {
    "goodbooks-10k.side": "has one choice",
    "steam.side": "has one choice",
    "BERT4Rec.loss": "one loss needs negatives, and the other has none",
    "WOK.prompt": "the content of a file",
    "LMRerank.prompt": "the content of a file",
    "ChatRecommender.prompt": "the content of a file",
    "LMLikelihood.prompt": "the content of a file",
    "LMLikelihood.llm": "a server that gives probabilities",
    **{
        f"{name}.{key}": "the content of a file"
        for name in ("embedding_average", "greedy_matching")
        for key in ("vectors", "tokens", "lowercase")
    },
}
"""Settings for which no sample is valid, and what they need."""


def list_values(hint: Any) -> Iterator[Any]:
    """Yield values that a type accepts, as a spec has them."""
    if is_selected_model(hint):
        yield from ({"name": "MostPop"}, {"name": "ItemKNN", "neighbors": 3})
        return
    yield from list_choices(hint)
    for member in list_members(hint):
        if is_dataclass(strip_annotations(member)):
            yield from list_mappings(strip_annotations(member))
        elif item := get_item_type(member):
            yield from ([choice] for choice in list_choices(item))
    yield from (sample for sample in SAMPLES if is_valid(hint, sample))


def list_mappings(cls: type) -> Iterator[dict[str, Any]]:
    """Yield values of a dataclass inside a setting: each choice of one of its settings."""
    if cls.__name__ in MAPPINGS:
        yield from MAPPINGS[cls.__name__]
        return
    needed = fill_needed(cls)
    yield needed
    for name, setting in read_settings(cls).items():
        for value in itertools.islice(list_values(setting.hint), 2):
            yield needed | {name: value}


def fill_needed(cls: type) -> dict[str, Any]:
    settings = read_settings(cls).values()
    return {each.name: next(list_values(each.hint)) for each in settings if each.needed}


def resolve(kind: str, entries: list[dict[str, Any]], base: Path) -> tuple[PluginSpec, ...]:
    """Return the entries of a section, none if one of them has a fault."""
    document = Document({}, base=base)
    resolver = Resolver(document, REGISTRIES, k=10)
    if kind == "datasets":
        located = [(entry, ("dataset", at)) for at, entry in enumerate(entries)]
        specs = tuple(dataset.source for dataset in resolver.resolve_datasets(located))
    elif kind == "rerankers":
        model = {"name": "MostPop", "rerank": entries}
        specs = resolver.resolve_list("models", [model], ("models",))[1:]
    else:
        specs = resolver.resolve_list(kind, entries, (kind,))
    return () if document.faults or len(specs) != len(entries) else specs


def switch_on(settings: Mapping[str, Setting], key: str) -> dict[str, Any]:
    """Return the values of other settings with which a setting has an effect."""
    found = {}
    for mark in settings[key].only_with:
        hint = settings[mark.setting].hint
        value = next(iter(mark.values or filter(None, list_values(hint))))
        found[mark.setting] = [value, "centroid"] if get_item_type(hint) else value
    return found


def resolve_pair(kind: str, name: str, key: str, base: Path) -> tuple[PluginSpec, ...]:
    """Return two entries of a plug-in that differ in one setting."""
    cls: Any = REGISTRIES[kind].load(name)
    settings = read_settings(cls)
    beside = fill_needed(cls) | BESIDE.get(name, {}) | BESIDE.get(f"{name}.{key}", {})
    beside = switch_on(settings, key) | beside
    fixed = {other: value for other, value in beside.items() if other != key}
    values = [*itertools.islice(list_values(settings[key].hint), 12)]
    entry = {"name": name} | fixed
    usable = [value for value in values if resolve(kind, [entry | {key: value}], base)]
    for pair in itertools.combinations(usable, 2):
        specs = resolve(kind, [entry | {key: value} for value in pair], base)
        if specs and specs[0].parameters != specs[1].parameters:
            return specs
    return ()


@pytest.mark.parametrize("kind", ["datasets", "models", "rerankers", "metrics"])
def test_entries_that_differ_in_one_setting_have_names_with_it(kind: str, tmp_path: Path) -> None:
    for file in FILES:
        (tmp_path / file).write_text("", encoding="utf-8")
    untried = []
    for name in REGISTRIES[kind].table:
        for key in read_settings(REGISTRIES[kind].load(name)):
            if specs := resolve_pair(kind, name, key, tmp_path):
                check_names(key, *specs)
            else:
                untried.append(f"{name}.{key}")
    assert set(untried) <= UNTRIED.keys()


def check_names(key: str, first: PluginSpec, second: PluginSpec) -> None:
    """Check that the names of two entries differ and state the setting."""
    names = [f"{spec.label}@{spec.cutoff}" for spec in (first, second)]
    assert names[0] != names[1]
    if key == "k" and first.kind == "metrics":
        return
    stated = re.compile(rf"[(, ]{re.escape(key)}[=.]")
    assert any(stated.search(name) for name in names), names
