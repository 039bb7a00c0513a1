"""Lists for the users of the dataset demo: accuracy, coverage, popularity, stereotypes, groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
from population import N_ITEMS, N_TEST, NOTHING, K, Population
from scipy.special import comb
from tally import Measurements, Study, World, collect_figures

from recbias.core.evidence import Evidence
from recbias.core.grouping import group_by
from recbias.metrics import accuracy, labels, popularity
from recbias.metrics.popularity import (
    ACLT,
    APLT,
    ARP,
    GiniDifference,
    HerfindahlDifference,
    LogPopularityDifference,
    PopREO,
    PopRSP,
    PopularityLift,
    PopularityRankCorrelation,
)
from recbias.statistics.groups import compute_gap, summarize_groups

WEIGHT = "weight"
"""The column of the items that holds how popular they are to everybody."""

Gap = Literal["difference", "ratio", "std"]
KINDS: tuple[Gap, ...] = ("difference", "ratio", "std")


def get_name(metric: Any) -> str:
    kind = type(metric).__name__
    return NAMES.get(kind, kind)


def make_study(metric: Any, name: str = "") -> Study:
    return Study(name or get_name(metric), metric.measure)


def make_group_study(metric: Any, by: str, name: str) -> Study:
    """The figure of each group, with the tests between them."""

    def measure(evidence: Evidence) -> Measurements:
        return summarize_groups(metric.measure(evidence)[0], group_by(evidence.queries.labels, by))

    return Study(f"{name} by {by}", measure)


def make_gap_study(metric: Any, by: str, kind: Gap, name: str) -> Study:
    """How far the groups differ, as one number."""

    def measure(evidence: Evidence) -> Measurements:
        figure = metric.measure(evidence)[0]
        groups = group_by(evidence.queries.labels, by)
        n = evidence.n_bootstrap
        return [compute_gap(figure, groups, kind, rng=evidence.rng(), n_samples=n)]

    return Study(f"{name}: {kind} by {by}", measure)


NAMES = {
    "HitRate": "HR",
    "MeanPrecision": "mean_precision",
    "RPrecision": "R-Precision",
    "NDCG": "nDCG",
    "LogPopularityDifference": "log_popularity_difference",
    "PopularityLift": "popularity_lift",
    "GiniDifference": "gini_difference",
    "HerfindahlDifference": "herfindahl_difference",
    "PopularityRankCorrelation": "popularity_rank_correlation",
    "HitBad": "HIT_BAD",
    "MrrBad": "MRR_BAD",
    "RecST": "REC-ST",
}

ACCURACY = (
    accuracy.NDCG(),
    accuracy.HitRate(),
    accuracy.MRR(),
    accuracy.MAP(),
    accuracy.MeanPrecision(),
    accuracy.Precision(),
    accuracy.Recall(),
    accuracy.RPrecision(),
    accuracy.F1(),
)
OF_USERS = (
    ARP(popularity=WEIGHT),
    APLT(popularity=WEIGHT),
    ACLT(popularity=WEIGHT),
    LogPopularityDifference(popularity=WEIGHT),
    PopularityLift(popularity=WEIGHT),
    GiniDifference(popularity=WEIGHT),
    HerfindahlDifference(popularity=WEIGHT),
    PopularityRankCorrelation(popularity=WEIGHT),
)
STEREOTYPES = (
    labels.HitBad(label="stereotype"),
    labels.MrrBad(label="stereotype"),
    labels.RecST(label="stereotype"),
)
COUNTED = tuple(
    make_study(metric, f"{name}, popularity counted")
    for name, metric in (
        ("log_popularity_difference", LogPopularityDifference()),
        ("popularity_lift", PopularityLift()),
        ("gini_difference", GiniDifference()),
        ("herfindahl_difference", HerfindahlDifference()),
        ("popularity_rank_correlation", PopularityRankCorrelation()),
    )
)
SET_LEVEL = (popularity.ItemCoverage(), popularity.Gini(), popularity.Entropy())
PARITY = (PopREO(popularity=WEIGHT), PopRSP(popularity=WEIGHT))

NDCG, ROMANCE = accuracy.NDCG(), labels.RecST(label="romance")
GROUPS = (
    make_group_study(NDCG, "gender", "nDCG"),
    make_group_study(ROMANCE, "gender", "REC-ST of Romance"),
    make_group_study(NDCG, "gender & age < 25", "nDCG"),
    *(make_gap_study(NDCG, "gender", kind, "nDCG") for kind in KINDS),
    make_gap_study(ROMANCE, "gender", "difference", "REC-ST of Romance"),
)
FAVOURITES = (make_group_study(NDCG, "favourite", "nDCG"),)
"""Users of different favourites differ whatever is planted: as many films are not of each."""

SEVERAL = tuple(
    make_gap_study(metric, by, "difference", name)
    for metric, name in ((NDCG, "nDCG"), (ROMANCE, "REC-ST of Romance"))
    for by in ("gender & age < 25", "occupation")
)
"""Four and nine groups that do not differ: a gap of theirs has a test and no interval."""

OF_SAMPLE = tuple(make_study(metric) for metric in SET_LEVEL)

RECOMMENDED = Population()
UNBIASED = Population(taste=NOTHING)
FEW, FEW_UNBIASED = Population(n_users=20), Population(taste=NOTHING, n_users=20)
RANDOM = Population(lists="drawn from all items")
SPLIT = Population(lists="split off the picks")

MODEL = (
    "`preference: 1`; log-odds of the favourite genre in the model are 1 (women) and 3 (men), and "
    "its popularity exponent is 1.2"
)
SAMPLES = 200
"""Other samples whose mean stands for the expected figure of a sample."""


def measure_everybody(
    study: Study, _seed: int, population: Population = RECOMMENDED
) -> Mapping[str, float]:
    return get_values(study.measure(population.sample_everybody()))


@cache
def average_samples(
    study: Study, _seed: int, population: Population = RECOMMENDED
) -> Mapping[str, float]:
    """The mean figure of other samples of as many users."""
    n = SAMPLES
    samples = [
        study.measure(replace(population.sample(10**7 + index), n_bootstrap=2))
        for index in range(n)
    ]
    return {"": float(np.mean([measurements[0].value for measurements in samples]))}


def make_pair_sampler(population: Population) -> Callable[[int], tuple[Evidence, Evidence]]:
    return lambda seed: (population.sample(seed), population.sample(seed, rival=True))


def get_values(measurements: Measurements) -> Mapping[str, float]:
    return {name: figure[0] for name, figure in collect_figures(measurements).items()}


def compute_truths(study: Study, _seed: int) -> Mapping[str, float]:
    """What lists drawn at random from all items have, by combinatorics."""
    ranks = np.arange(1, K + 1)
    discounts = 1.0 / np.log2(ranks + 1)
    share = N_TEST / N_ITEMS
    stereotyped = round(0.3 * N_ITEMS)
    precision_at_hit = (1.0 + (ranks - 1) * (N_TEST - 1) / (N_ITEMS - 1)) / ranks
    truths = {
        "nDCG": share * discounts.sum() / discounts[:N_TEST].sum(),
        "HR": 1 - compute_chance_of_none(N_TEST, K),
        "MRR": float(sum(compute_chance_of_first(N_TEST, r) / r for r in ranks)),
        "MAP": share * float(precision_at_hit.sum()) / N_TEST,
        "mean_precision": share,
        "Precision": share,
        "Recall": K / N_ITEMS,
        "R-Precision": share,
        "F1": 2 * K * share / (K + N_TEST),
        "HIT_BAD": 1 - compute_chance_of_none(stereotyped, K),
        "MRR_BAD": float(sum(compute_chance_of_first(stereotyped, r) / r for r in ranks)),
        "REC-ST": stereotyped / N_ITEMS,
    }
    return {"": float(truths[study.name])}


def compute_chance_of_none(marked: int, k: int) -> float:
    """The chance that none of k items drawn from all is one of those marked."""
    return float(comb(N_ITEMS - marked, k) / comb(N_ITEMS, k))


def compute_chance_of_first(marked: int, rank: int) -> float:
    """The chance that the first marked item stands at a rank."""
    return compute_chance_of_none(marked, rank - 1) - compute_chance_of_none(marked, rank)


def make_studies(metrics: Sequence[Any]) -> tuple[Study, ...]:
    return tuple(make_study(metric) for metric in metrics)


USERS = make_studies((*ACCURACY, *OF_USERS, *STEREOTYPES, *PARITY))

WORLDS = (
    World(
        "recommended lists",
        f"the value of {100_000:,} other users",
        (*USERS, *COUNTED, *GROUPS),
        RECOMMENDED.sample,
        measure_everybody,
        make_pair_sampler(UNBIASED),
        plants=MODEL,
    ),
    World(
        "recommended lists of several groups",
        "",
        SEVERAL,
        null=make_pair_sampler(UNBIASED),
        plants="nothing: the groups do not differ",
    ),
    World(
        "recommended lists by favourite genre",
        f"the value of {100_000:,} other users",
        FAVOURITES,
        RECOMMENDED.sample,
        measure_everybody,
        plants=MODEL,
    ),
    World(
        "recommended lists, values of a sample",
        f"the mean of {SAMPLES} other samples",
        OF_SAMPLE,
        RECOMMENDED.sample,
        average_samples,
        make_pair_sampler(UNBIASED),
        plants=MODEL,
    ),
    World(
        "20 recommended lists, values of a sample",
        f"the mean of {SAMPLES} other samples",
        OF_SAMPLE,
        FEW.sample,
        lambda study, seed: average_samples(study, seed, FEW),
        make_pair_sampler(FEW_UNBIASED),
        plants=MODEL,
    ),
    World(
        "lists sampled from all items",
        "combinatorial formula",
        make_studies((*ACCURACY, *STEREOTYPES)),
        RANDOM.sample,
        compute_truths,
        plants="nothing: every list is equally probable",
    ),
    World(
        "lists split off the history at random",
        "0, as list and history have the same distribution",
        (
            make_study(LogPopularityDifference(popularity=WEIGHT)),
            make_study(PopularityRankCorrelation(popularity=WEIGHT)),
            COUNTED[0],
        ),
        SPLIT.sample,
        lambda _study, _seed: {"": 0.0},
        plants="nothing: list and history have one distribution",
    ),
    World(
        "recommended lists, no effect",
        "0, or 1 for a ratio",
        tuple(study for study in GROUPS if ":" in study.name),
        UNBIASED.sample,
        lambda study, _seed: {"": 1.0 if "ratio" in study.name else 0.0},
        plants="nothing: the model treats women and men alike",
    ),
)
