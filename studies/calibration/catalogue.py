"""For every metric of the catalogue: where its difference is planted, and where none is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from tally import World

from recbias.registry import METRICS

DESCRIPTIVE: Mapping[str, str] = {
    "top_words": "Lists words; it has neither interval nor test.",
    "attribute_share": "Counts the catalogue or the lists; it has neither interval nor test.",
    "catalogue_counts": "Counts the catalogue; it has neither interval nor test.",
    "effective_sample_size": "Counts the log; it has neither interval nor test.",
    **dict.fromkeys(
        ("propensity_nDCG", "propensity_recall", "propensity_MAP"),
        "Planted in tests/metrics/test_propensity.py.",
    ),
    **dict.fromkeys(
        ("position_bias", "examination_sensitivity", "propensity_sensitivity"),
        "Planted in tests/metrics/test_assumptions.py.",
    ),
    "direction_similarity": "Compares directions of one sample; it has neither interval nor test.",
}
"""Metrics in which nothing is planted here, each with the reason."""

NOTHING = "nothing"
"""How ``plants`` of a world begins in which the value without an effect is measured."""


def list_planted(metric: str, worlds: Iterable[World]) -> list[World]:
    """The worlds in which a difference of the metric is planted and its value is known."""
    return [
        world
        for world in _list_worlds(metric, worlds)
        if world.truth is not None and not world.plants.startswith(NOTHING)
    ]


def list_without_effect(metric: str, worlds: Iterable[World]) -> list[World]:
    """The worlds in which two models without an effect are compared, or its value is known."""
    return [
        world
        for world in _list_worlds(metric, worlds)
        if world.null is not None or world.plants.startswith(NOTHING)
    ]


def _list_worlds(metric: str, worlds: Iterable[World]) -> list[World]:
    pattern = re.compile(rf"(.* for )?{re.escape(metric)}([ ,:].*)?")
    return [
        world for world in worlds if any(pattern.fullmatch(study.name) for study in world.studies)
    ]


def find_gaps(worlds: Sequence[World]) -> list[str]:
    """What is missing: metrics without a planted value, or without a world where there is none."""
    gaps = [f"{world.name}: what it plants is not said" for world in worlds if not world.plants]
    for metric in METRICS:
        if metric in DESCRIPTIVE:
            if list_planted(metric, worlds):
                gaps.append(f"{metric}: is planted and called descriptive")
            continue
        if not list_planted(metric, worlds):
            gaps.append(f"{metric}: no world plants a value")
        if not list_without_effect(metric, worlds):
            gaps.append(f"{metric}: no world is without an effect")
    return gaps


def write_catalogue_section(worlds: Sequence[World]) -> str:
    """The section of the page."""
    rows = [ABOUT, "| World | Planted | True value |", "|---|---|---|"]
    rows += [
        f"| {_capitalize(world.name)} | {world.plants} | {world.truth_source} |"
        for world in worlds
    ]
    rows += [BY_METRIC, "| Metric | Planted in | Without an effect in |", "|---|---|---|"]
    for metric in METRICS:
        planted, without = (
            "; ".join(world.name for world in select(metric, worlds))
            for select in (list_planted, list_without_effect)
        )
        reason = DESCRIPTIVE.get(metric)
        rows.append(f"| {metric} | {reason or planted} | {'' if reason else without} |")
    return "\n".join([*rows, ""])


def _capitalize(name: str) -> str:
    return name[0].upper() + name[1:]


ABOUT = """
## What is planted

Every metric of the catalogue is measured where a difference of known size is planted, and where
there is none. A world without a true value has tests only.
"""
BY_METRIC = """
By metric:
"""
