"""Groups of items that are known as probabilities: ``attribute: weight of p_major``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from list_studies import make_pair_sampler, make_study
from population import N_ITEMS, K, Population
from tally import Measurements, Study, World

from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray
from recbias.core.evidence import Evidence
from recbias.metrics.exposure import (
    AWRF,
    ExpectedExposureDisparity,
    ExposureGap,
    ExposureParity,
    ProviderGap,
)

MANY = 40_000
WEIGHT_OF = "weight of p_major"
PLANTED = Population("drawn by the odds", settings=(("provider", 1.0),))
NOTHING = Population("drawn by the odds", settings=(("provider", 0.0),))


def make_study_without_interval(metric: Any, name: str) -> Study:
    """A metric that warns that it has no interval."""

    def measure(evidence: Evidence) -> Measurements:
        with collect_warnings():
            return metric.measure(evidence)  # type: ignore[no-any-return]

    return Study(f"{name} of {WEIGHT_OF}", measure)


GAP = make_study(ExposureGap(attribute=WEIGHT_OF), f"exposure_gap of {WEIGHT_OF}")
STUDIES = (
    GAP,
    make_study_without_interval(AWRF(attribute=WEIGHT_OF), "AWRF"),
    make_study_without_interval(ExposureParity(attribute=WEIGHT_OF), "EXP"),
    make_study_without_interval(ExpectedExposureDisparity(attribute=WEIGHT_OF), "EE-D"),
    make_study_without_interval(ProviderGap(attribute=WEIGHT_OF), "provider_gap"),
)


@cache
def sample_many() -> Evidence:
    return replace(replace(PLANTED, n_users=MANY).sample(10**6), n_bootstrap=2)


def measure_hidden_groups(_study: Study, seed: int) -> Mapping[str, float]:
    """The gap of groups that are drawn by the probabilities of the items, among many users."""
    items: Any = sample_many().items
    p = items.numbers("p_major")
    is_major = np.random.default_rng([seed, 4]).random(N_ITEMS) < p
    gap = float(share_exposure()[is_major].sum() - is_major.mean())
    return {f"{WEIGHT_OF}=p_major": gap, f"{WEIGHT_OF}=not p_major": -gap}


@cache
def share_exposure() -> FloatArray:
    """The share of the exposure that each item has: a rank r has 1 / log2(r + 1)."""
    lists = sample_many().ranked.items
    gains = np.broadcast_to(1.0 / np.log2(np.arange(2, K + 2)), lists.shape)
    totals = np.bincount(lists.ravel(), weights=gains.ravel(), minlength=N_ITEMS)
    return totals / totals.sum()


WORLDS = (
    World(
        "item groups known as probabilities",
        "the value of groups drawn by the probabilities",
        STUDIES,
        PLANTED.sample,
        measure_hidden_groups,
        make_pair_sampler(NOTHING),
        shares_truth=False,
        plants="`provider: 1`; the groups are drawn by p of each item",
    ),
)
