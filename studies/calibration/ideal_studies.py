"""Lists against the ideal lists of a world whose odds are known."""

from __future__ import annotations

from list_studies import (
    FEW,
    FEW_UNBIASED,
    MODEL,
    RECOMMENDED,
    SAMPLES,
    UNBIASED,
    average_samples,
    make_pair_sampler,
    make_study,
)
from tally import World

from recbias.metrics.diversity import Homogenization, RelativeUtility

STUDIES = (
    make_study(Homogenization(), "homogenization"),
    make_study(RelativeUtility(), "relative_utility"),
)

WORLDS = (
    World(
        "lists of 400 users against ideal lists",
        f"the mean of {SAMPLES} other samples",
        STUDIES,
        RECOMMENDED.sample,
        average_samples,
        make_pair_sampler(UNBIASED),
        plants=MODEL,
    ),
    World(
        "lists of 20 users against ideal lists",
        f"the mean of {SAMPLES} other samples",
        STUDIES,
        FEW.sample,
        lambda study, seed: average_samples(study, seed, FEW),
        make_pair_sampler(FEW_UNBIASED),
        plants=MODEL,
    ),
)
