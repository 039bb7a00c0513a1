"""The settings of the dataset demo that plant a difference, each alone, and at 0.

Lists are drawn by the odds of the picks, so the probability of the first item is known by formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from list_studies import (
    SAMPLES,
    WEIGHT,
    average_samples,
    compute_truths,
    get_values,
    make_gap_study,
    make_group_study,
    make_pair_sampler,
    make_study,
)
from population import N_ITEMS, Population
from tally import Measurements, Study, World

from recbias.core.dataset import AnyArray
from recbias.core.evidence import Evidence
from recbias.metrics import labels
from recbias.metrics.accuracy import MRR, NDCG, Precision
from recbias.metrics.calibration import CalibrationKL
from recbias.metrics.diversity import InterUserDistance, IntraListDistance
from recbias.metrics.exposure import (
    AWRF,
    ExpectedExposureDisparity,
    ExposureGap,
    ExposureParity,
    ProviderGap,
    ProviderGini,
)
from recbias.metrics.popularity import APLT, ARP, Entropy, Gini, PopRSP

OFF = {"popularity": 0.0, "taste": 0.0, "preference": 0.0, "prominence": 0.0, "provider": 0.0}
MANY = 40_000
"""Users of the sample that stands for everybody."""

STUDIO = "studio_group"
FIRST = ", first item"
MAJOR = f"{STUDIO}=major"


@dataclass(frozen=True)
class Dial:
    """A setting of the dataset that plants a difference.

    Args:
        name: The setting.
        size: What it is set to, and what it is compared with.
        studies: The measures that it moves.
        off: Its value where it plants nothing.
        others: The other settings.
        of_sample: Measures that also depend on the number of lists.
    """

    name: str
    size: float
    studies: Sequence[Study]
    off: float = 0.0
    others: tuple[tuple[str, float], ...] = ()
    of_sample: Sequence[Study] = ()

    def build(self, value: float, n_users: int = 400) -> Population:
        settings = {**OFF, **dict(self.others), self.name: value}
        return Population("drawn by the odds", n_users=n_users, settings=(*settings.items(),))


def make_first_study(metric: Any, name: str) -> Study:
    """A metric of the first items of the lists."""

    def measure(evidence: Evidence) -> Measurements:
        first = replace(evidence, lists=evidence.ranked.truncate(1))
        measurements: Measurements = metric.measure(first)
        return measurements

    return Study(f"{name}{FIRST}", measure)


def measure_many(dial: Dial, value: float) -> Callable[[Study, int], Mapping[str, float]]:
    """The figures of very many other users."""
    return lambda study, _seed: get_values(study.measure(_sample_many(dial.build(value, MANY))))


@lru_cache(maxsize=2)
def _sample_many(population: Population) -> Evidence:
    return replace(population.sample(10**6), n_bootstrap=2)


def compute_first_items(dial: Dial, value: float) -> Callable[[Study, int], Mapping[str, float]]:
    """By formula: the odds of the first item are known, and its group is one of two."""

    def compute(_study: Study, _seed: int) -> Mapping[str, float]:
        items: Any = dial.build(value).sample(1).items
        if dial.name == "popularity":
            odds = items.numbers("popularity_rank") ** -value
            return {"": float((items.numbers(WEIGHT) * odds).sum() / odds.sum())}
        is_stereotyped = items.numbers("stereotype") > 0
        is_marked = _mark_major(items) if dial.name == "provider" else is_stereotyped
        odds = np.exp(value * is_marked)
        share = float(odds[is_marked].sum() / odds.sum())
        if dial.name == "provider":
            gap = share - is_marked.mean()
            return {MAJOR: gap, f"{STUDIO}=minor": -gap}
        return {"": share}

    return compute


def _mark_major(items: Any) -> AnyArray:
    return np.asarray(items.frame[STUDIO] == "major")


def compute_nothing(study: Study, seed: int) -> Mapping[str, float]:
    """By formula: what lists drawn at random from all items have."""
    if "exposure_gap" in study.name:
        return {MAJOR: 0.0, f"{STUDIO}=minor": 0.0}
    if " by " in study.name:
        ndcg = "nDCG" in study.name
        a, b = ("cohort=A", "cohort=B") if ndcg else ("gender=F", "gender=M")
        return {f"{a} - {b} (welch_t)": 0.0}
    if study.name.endswith(FIRST):
        return {"": round(0.3 * N_ITEMS) / N_ITEMS}  # the share of the items with a stereotype
    return compute_truths(study, seed)


ROMANCE = labels.RecST(label="romance")
ALL_ON = (("popularity", 0.8), ("taste", 3.5), ("preference", 1.0), ("prominence", 0.7))

DIALS = (
    Dial(
        "popularity",
        0.8,
        (
            make_first_study(ARP(popularity=WEIGHT), "ARP"),
            make_study(ARP(popularity=WEIGHT), "ARP"),
            make_study(APLT(popularity=WEIGHT), "APLT"),
            make_study(PopRSP(popularity=WEIGHT), "PopRSP"),
        ),
        of_sample=(make_study(Gini()), make_study(Entropy())),
    ),
    Dial(
        "taste",
        3.5,
        (
            make_study(NDCG(), "nDCG"),
            make_study(Precision(), "Precision"),
            make_study(MRR(), "MRR"),
            make_study(CalibrationKL(attribute="genres"), "calibration_kl"),
            make_study(IntraListDistance(attribute="genres"), "intra_list_distance"),
            make_study(InterUserDistance(), "inter_user_distance"),
        ),
    ),
    Dial(
        "preference",
        1.0,
        (
            make_group_study(ROMANCE, "gender", "REC-ST of Romance"),
            make_gap_study(ROMANCE, "gender", "difference", "REC-ST of Romance"),
        ),
    ),
    Dial(
        "prominence",
        0.7,
        (
            make_first_study(labels.RecST(label="stereotype"), "REC-ST"),
            make_study(labels.RecST(label="stereotype"), "REC-ST"),
            make_first_study(labels.HitBad(label="stereotype"), "HIT_BAD"),
            make_study(labels.MrrBad(label="stereotype"), "MRR_BAD"),
        ),
    ),
    Dial(
        "provider",
        1.0,
        (
            make_first_study(ExposureGap(attribute=STUDIO), "exposure_gap"),
            make_study(ExposureGap(attribute=STUDIO), "exposure_gap"),
            make_study(ExposureParity(attribute=STUDIO), "EXP"),
            make_study(AWRF(attribute=STUDIO), "AWRF"),
            make_study(ExpectedExposureDisparity(attribute=STUDIO), "EE-D of studio_group"),
            make_study(ProviderGap(attribute=STUDIO), "provider_gap"),
        ),
        of_sample=(make_study(ProviderGini(attribute="studio"), "provider_gini"),),
    ),
    Dial(
        "noise",
        0.5,
        (
            make_study(NDCG(), "nDCG"),
            make_study(Precision(), "Precision"),
            make_study(labels.RecST(label="stereotype"), "REC-ST"),
        ),
        off=1.0,
        others=ALL_ON,
    ),
    Dial(
        "cohort_noise",
        0.8,
        (
            make_group_study(NDCG(), "cohort", "nDCG"),
            make_gap_study(NDCG(), "cohort", "difference", "nDCG"),
        ),
        others=ALL_ON,
    ),
)

KNOWN = ("nDCG", "Precision", "MRR", "REC-ST", "HIT_BAD", "MRR_BAD", "exposure_gap")
"""Measures whose value is known by formula where nothing is planted."""


def is_known(study: Study) -> bool:
    name = study.name.split(FIRST)[0]
    return ": " not in name and name.split(" by ")[0].split(" of ")[0] in KNOWN


def make_worlds(dial: Dial) -> list[World]:
    """The world of a setting; its first items, by formula; and that without its effect."""
    nothing = dial.build(dial.off)
    by_formula = [study for study in dial.studies if study.name.endswith(FIRST)]
    others = [study for study in dial.studies if study not in by_formula]
    known = [study for study in dial.studies if is_known(study)]
    planted = f"`{dial.name}: {dial.size:g}`, compared with {dial.off:g}"
    worlds = [
        World(
            f"demo, {dial.name} {dial.size:g}",
            f"the value of {MANY:,} other users",
            others,
            dial.build(dial.size).sample,
            measure_many(dial, dial.size),
            make_pair_sampler(nothing),
            plants=planted,
        )
    ]
    if dial.of_sample:
        worlds.append(
            World(
                f"demo, {dial.name} {dial.size:g}, values of a sample",
                f"the mean of {SAMPLES} other samples",
                dial.of_sample,
                dial.build(dial.size).sample,
                lambda study, seed: average_samples(study, seed, dial.build(dial.size)),
                make_pair_sampler(nothing),
                plants=planted,
            )
        )
    if by_formula:
        worlds.append(
            World(
                f"demo, {dial.name} {dial.size:g}, first items",
                "the formula of the dataset",
                by_formula,
                dial.build(dial.size).sample,
                compute_first_items(dial, dial.size),
                make_pair_sampler(nothing),
                plants=planted,
            )
        )
    if known:
        worlds.append(
            World(
                f"demo, {dial.name} {dial.off:g}",
                "combinatorial formula",
                known,
                nothing.sample,
                compute_nothing,
                plants="nothing",
            )
        )
    return worlds


WORLDS = tuple(world for dial in DIALS for world in make_worlds(dial))


def write_dial_section() -> str:
    """The section of the page: what each setting moves, and how far."""
    rows = [ABOUT.format(many=MANY, items=N_ITEMS), HEAD]
    for dial in DIALS:
        for study in (*dial.studies, *dial.of_sample):
            off, on = (_measure(dial, study, value) for value in (dial.off, dial.size))
            for figure in on if ": " not in study.name else [""]:  # its test is above it
                sizes = f"{dial.name}", f"{dial.off:g} → {dial.size:g}"
                moved = _describe_move(off[figure], on[figure])
                rows.append(f"| {' | '.join((*sizes, study.name, figure, *moved))} |")
    rows += [f"| {' | '.join(cells)} |" for cells in COUNTED]
    return "\n".join([*rows, ""])


def _describe_move(off: float, on: float) -> tuple[str, str, str]:
    """Both values, and the direction if the difference is more than sampling error."""
    moves = abs(on - off) > 0.005 * max(abs(on), abs(off))
    return f"{off:.4g}", f"{on:.4g}", ("↑" if on > off else "↓") if moves else "="


def _measure(dial: Dial, study: Study, value: float) -> Mapping[str, float]:
    if study in dial.of_sample:
        return average_samples(study, 0, dial.build(value))
    return measure_many(dial, value)(study, 0)


ABOUT = """
## What each setting of demo moves

The settings of the dataset [demo](../plugins/datasets/demo.md) that plant a difference, each
alone, while the others are 0 (for `noise` and `cohort_noise`: their defaults). The lists are drawn
by the odds by which the users pick, so the difference is that of a recommender that knows the
odds; the lists of a trained model show the part that it learns. Values of {many:,} users and
{items} items; those of Gini, Entropy and provider_gini, which depend on the number of lists, are
the mean of 200
samples of 400 users. Coverage, and false alarms where nothing is planted, are in the tables of
the worlds named *demo* above.
"""
HEAD = (
    "| Setting | From → to | Metric | Estimate | Value | Value with the setting | Moves |\n"
    "|---|---|---|---|---:|---:|---|"
)
COUNTED = (
    ("stereotyped", "s", "labelled_items, share", "", "", "s, exactly", "↑"),
    ("misleading", "0 → s", "label_accuracy", "", "1", "1 - s, exactly", "↓"),
)
"""Settings of which the number of items is exact in every world."""
