"""The price of re-ranking: accuracy lost for a unit of bias that is of the whole set of lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from list_studies import SAMPLES, WEIGHT
from population import Population
from tally import Measurements, Study, World

from recbias.core.evidence import Evidence, RankedLists
from recbias.core.measures import Measurement
from recbias.metrics.accuracy import NDCG
from recbias.metrics.diversity import InterUserDistance
from recbias.metrics.popularity import ARP, Gini, ItemCoverage, PopREO
from recbias.runner.significance import VersionDifference, measure_price
from recbias.runner.stages import derive_bootstrap_seed
from recbias.statistics.compare import SystemEstimates

CUT = 5
"""Items of a list, of ten candidates."""

POPULATION = Population()


def measure_prices(evidence: Evidence, bias: Any) -> Measurements:
    """The bias that a re-ranked version removes, and its price, as a run estimates them."""
    seed = derive_bootstrap_seed(evidence.queries.ids)
    versions = [
        replace(evidence, lists=lists, bootstrap_seed=seed) for lists in list_versions(evidence)
    ]
    sign = -1.0 if bias.direction == "higher" else 1.0
    lost = VersionDifference(_stack(NDCG(), versions), (0, 1))
    removed = VersionDifference(_stack(bias, versions), (0, 1), (sign, sign))
    row = measure_price(lost, removed, shares_samples=True)
    return [
        Measurement(
            value=row[name],
            n=0,
            undefined=0,
            ci_low=row.get(f"{name}_low", np.nan),
            ci_high=row.get(f"{name}_high", np.nan),
            target=name,
        )
        for name in ("bias_removed", "price")
    ]


def list_versions(evidence: Evidence) -> tuple[RankedLists, RankedLists]:
    """The first items of each list, and the least popular ones of the whole list."""
    ranked, items = evidence.ranked, evidence.items
    if items is None:
        raise ValueError("the items have no weights")
    popularity = items.numbers(WEIGHT)[ranked.items]
    chosen = np.sort(np.argsort(popularity, axis=1, kind="stable")[:, :CUT], axis=1)
    first = np.broadcast_to(np.arange(CUT), chosen.shape)
    return _take(ranked, first), _take(ranked, chosen)


def _take(ranked: RankedLists, at: Any) -> RankedLists:
    return RankedLists(
        np.take_along_axis(ranked.items, at, axis=1),
        np.take_along_axis(ranked.scores, at, axis=1),
    )


def _stack(metric: Any, versions: list[Evidence]) -> SystemEstimates:
    rows = [metric.measure(evidence)[0] for evidence in versions]
    units = [row.units for row in rows]
    has_units = all(of is not None for of in units)
    return SystemEstimates(
        ("plain", "version"),
        np.stack([of.values for of in units if of is not None]) if has_units else None,
        np.array([row.value for row in rows]),
        None if has_units else np.stack([row.replicates for row in rows]),
        {},
        rows[0].n,
        ids=versions[0].queries.ids.ids,
    )


def make_study(metric: Any, name: str) -> Study:
    return Study(name, lambda evidence: measure_prices(evidence, metric))


@cache
def average_samples(study: Study, _seed: int) -> Mapping[str, float]:
    """The mean bias removed of other samples, and the price of the means."""
    lost, removed = [], []
    for index in range(SAMPLES):
        evidence = replace(POPULATION.sample(10**7 + index), n_bootstrap=2)
        bias, price = (row.value for row in study.measure(evidence))
        removed.append(bias)
        lost.append(bias * price)
    return {
        "bias_removed": float(np.mean(removed)),
        "price": float(np.mean(lost) / np.mean(removed)),
    }


WORLDS = (
    World(
        "prices of re-ranked lists, values of a sample",
        f"the mean of {SAMPLES} other samples",
        (
            make_study(ARP(popularity=WEIGHT), "nDCG for ARP"),
            make_study(Gini(), "nDCG for Gini"),
            make_study(ItemCoverage(), "nDCG for ItemCoverage"),
            make_study(PopREO(popularity=WEIGHT), "nDCG for PopREO"),
            make_study(InterUserDistance(), "nDCG for inter_user_distance"),
        ),
        POPULATION.sample,
        average_samples,
        plants="the less popular half of each list is kept",
    ),
)
