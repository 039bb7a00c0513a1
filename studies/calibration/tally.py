"""How often intervals hold the truth, and tests find what is not there: over seeds, in numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.statistics.bootstrap import compare_replicates
from recbias.statistics.paired import PairedT, SignFlip, Wilcoxon

LEVEL = 0.05
BAND = 0.99
"""The share of well calibrated rows that lie inside the band."""

Measurements: TypeAlias = Sequence[Measurement]
Measure: TypeAlias = Callable[[Evidence], Measurements]
Figures: TypeAlias = Mapping[str, tuple[float, float, float]]
"""By name: the figure and the ends of its interval."""

TESTS: Mapping[str, Any] = {
    "paired_t": PairedT(),
    "wilcoxon": Wilcoxon(),
    "sign_flip": SignFlip(permutations=999),
}


@dataclass(frozen=True)
class Study:
    """One metric as it is measured in a world.

    Args:
        name: The metric with its parameters, as the table calls it.
        measure: Gives its figures.
        only: The figures that are held against the truth, by their names; empty for all.
    """

    name: str
    measure: Measure
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class World:
    """A world in which the truth is known.

    Args:
        name: What the table calls it.
        truth_source: How the truth is known.
        studies: What is measured in it.
        planted: The evidence of a seed.
        truth: The true figures of a study and a seed, by name.
        null: Two models of a seed in a world where nothing is planted.
        shares_truth: Whether the truth is the same for every seed.
        plants: What is planted in it, by which setting and of which size.
        detects: What the null hypothesis of a test says that is not so in ``null``, by the name of
            the test: its significant share is a power, not a share of false alarms.
    """

    name: str
    truth_source: str
    studies: Sequence[Study]
    planted: Callable[[int], Evidence] | None = None
    truth: Callable[[Study, int], Mapping[str, float]] | None = None
    null: Callable[[int], tuple[Evidence, Evidence]] | None = None
    shares_truth: bool = True
    plants: str = ""
    detects: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Line:
    """What was seen of one figure, or of one test."""

    truths: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    hits: list[float] = field(default_factory=list)
    """1 where the interval holds the truth, or the share of tests that are significant."""


Key: TypeAlias = tuple[str, str, str, str]
"""World, kind (``interval`` or ``test``), study, and figure or test."""
Truths: TypeAlias = Mapping[str, Mapping[str, float]]
"""The true figures of each study, where every seed has the same."""
Observation: TypeAlias = tuple[Key, float, float, float]
"""Key, truth, value, and whether it holds."""


def collect_figures(measurements: Measurements) -> Figures:
    """Every figure, and the difference of every test that has an interval, by name."""
    estimates = {}
    for measurement in measurements:
        name = " ".join(filter(None, (measurement.group, measurement.target)))
        estimates[name] = (measurement.value, measurement.ci_low, measurement.ci_high)
        for test in measurement.contrasts:
            is_same = np.allclose(
                (test.ci_low, test.ci_high), (measurement.ci_low, measurement.ci_high)
            )
            if not is_same and not math.isnan(test.ci_low):
                label = " ".join(filter(None, (measurement.target, f"{test.a} - {test.b}")))
                estimates[f"{label} ({test.test})"] = (test.difference, test.ci_low, test.ci_high)
    return estimates


def observe_seed(world: World, seed: int, truths: Truths) -> list[Observation]:
    """Everything that one seed shows of a world."""
    observations: list[Observation] = []
    if world.planted is not None and world.truth is not None:
        evidence = world.planted(seed)
        for study in world.studies:
            truth = truths.get(study.name) or world.truth(study, seed)
            observations += _observe_intervals(
                world, study, collect_figures(study.measure(evidence)), truth
            )
    if world.null is not None:
        pair = world.null(seed)
        for study in world.studies:
            observations += _observe_tests(
                world,
                study,
                [study.measure(evidence_of_model) for evidence_of_model in pair],
                seed,
            )
    return observations


def tally_observations(observations: Iterable[Observation]) -> Mapping[Key, Line]:
    """What was seen, line by line."""
    lines: dict[Key, Line] = defaultdict(Line)
    for key, truth, value, hit in observations:
        line = lines[key]
        line.truths.append(truth)
        line.values.append(value)
        line.hits.append(hit)
    return lines


def compute_band(n: int, share: float) -> tuple[float, float]:
    """The shares of n seeds within which a well calibrated row lies, as often as ``BAND`` says."""
    from scipy.stats import binom

    low, high = binom.interval(BAND, n, share)
    return float(low) / n, float(high) / n


def _observe_intervals(
    world: World, study: Study, figures: Figures, truth: Mapping[str, float]
) -> Iterable[Observation]:
    for name, (value, low, high) in figures.items():
        if name not in truth or (study.only and name not in study.only):
            continue
        true = truth[name]
        covers = math.nan if math.isnan(low) else float(low <= true <= high)
        yield (world.name, "interval", study.name, name), true, value, covers


def _observe_tests(
    world: World, study: Study, pair: Sequence[Measurements], seed: int
) -> Iterable[Observation]:
    """The tests inside the first model, each kind together, and the comparisons of both."""
    inside: dict[str, list[float]] = defaultdict(list)
    for measurement in pair[0]:
        for test in measurement.contrasts:
            if not math.isnan(test.p):
                chance = f" against {test.b}" if test.b.startswith("random ") else ""
                inside[f"{test.test} of {test.between}{chance}"].append(test.p)
    for name, p in inside.items():
        share = float(np.mean(np.array(p) <= LEVEL))
        yield (world.name, "test", study.name, name), len(p), math.nan, share
    for name, p_value in _compare_models(pair[0][0], pair[1][0], seed).items():
        if not math.isnan(p_value):
            share = float(p_value <= LEVEL)
            yield (world.name, "test", study.name, f"{name} of models"), 1.0, math.nan, share


def _compare_models(a: Measurement, b: Measurement, seed: int) -> Mapping[str, float]:
    """The p-values of two models, as a run compares them."""
    if a.replicates is not None and b.replicates is not None:
        points = np.array([a.value, b.value])
        samples = np.stack([a.replicates, b.replicates])
        comparison = compare_replicates(points, samples, LEVEL, df=min(a.df, b.df))
        return {"paired_bootstrap": float(comparison["p"][0])}
    if a.units is not None and b.units is not None:
        values = np.stack([a.units.values, b.units.values])
        rng = np.random.default_rng(seed)
        return {name: float(test.pairs(values, rng)["p"][0]) for name, test in TESTS.items()}
    return {}
