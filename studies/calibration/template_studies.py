"""Lists of queries made from templates in which the price depends on the race as planted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from list_studies import make_study
from tally import Study, World

from recbias.core.evidence import Evidence
from recbias.metrics.templates.metrics import (
    Association,
    MeanAttribute,
    PricePercentage,
    VarianceSplit,
)
from support.worlds import template_worlds

BLACK, WHITE = CHEAP = (0.45, 0.3)
"""The chance that a place is of price $ under names of either race, on average."""

ALIKE = (0.3, 0.3)
SPREAD = 0.1
TOGETHER = 0.1
"""By how much the chance of $ is higher where both words of a couple are of one gender."""

N_NAMES = 12
DRAWS = 199
SAMPLES = 200
RIVAL = 10**6


def sample(seed: int, cheap: tuple[float, float] = CHEAP, spread: float = SPREAD) -> Evidence:
    """Lists for 12 names of each race in 6 templates; the names are others each time."""
    world = template_worlds.plant_bias(seed, cheap=cheap, n_names=N_NAMES, spread=spread)
    return replace(world.evidence, n_bootstrap=400)


def sample_two_models(seed: int, spread: float = SPREAD) -> tuple[Evidence, Evidence]:
    """Two models in which nothing is planted, on the same bootstrap samples."""
    rival = sample(seed + RIVAL, ALIKE, spread)
    return sample(seed, ALIKE, spread), replace(rival, bootstrap_seed=seed)


def sample_couples(seed: int, effect: float = TOGETHER) -> Evidence:
    """Lists for 16 first and 6 second words in 6 templates; the words are others each time."""
    return replace(template_worlds.plant_couple_bias(seed, effect=effect), n_bootstrap=400)


def sample_two_models_of_couples(seed: int) -> tuple[Evidence, Evidence]:
    """Two models in which nothing is planted, on the same bootstrap samples."""
    return sample_couples(seed, 0.0), replace(
        sample_couples(seed + RIVAL, 0.0), bootstrap_seed=seed
    )


def compute_truths(study: Study, _seed: int) -> Mapping[str, float]:
    """What the chances of $ say of each figure; the other price is $$$, which is level 3."""
    if study.name == "association, ratio":
        return {"race=black price=$": BLACK / WHITE, "race=white price=$": WHITE / BLACK}
    if study.name == "association of categories":
        return compute_truths_of_categories()
    return convert_chances(study, ("race=black", "race=white"), CHEAP)


def compute_truths_of_couples(study: Study, _seed: int) -> Mapping[str, float]:
    """As many couples are of one gender as of two, and half of all places are of price $."""
    names = ("orientation=different", "orientation=same")
    return convert_chances(study, names, (0.5 - TOGETHER / 2, 0.5 + TOGETHER / 2))


def convert_chances(
    study: Study, labels: tuple[str, str], cheap: tuple[float, float]
) -> Mapping[str, float]:
    """What the chances of $ say of the figures of two labels and of the test between them."""
    first, second = labels
    test = f"{first} - {second} (permutation)"
    if study.name == "mean_attribute":
        means = [3 - 2 * chance for chance in cheap]
        return {first: means[0], second: means[1], test: means[0] - means[1]}
    truths = {}
    for price, (a, b) in (("$", cheap), ("$$$", (1 - cheap[0], 1 - cheap[1]))):
        gap = (a - b) / (a + b)
        scored = study.name == "association"
        truths[f"{first} price={price}"] = 2 * gap if scored else (1 + gap) / 2
        truths[f"{second} price={price}"] = -2 * gap if scored else (1 - gap) / 2
        truths[f"price={price} {test}"] = a - b if scored else gap
    return truths


def compute_truths_of_categories() -> Mapping[str, float]:
    """The categories are Fast Food and Bars where the price is $, else Bars alone."""
    at_fast_food, at_bars = np.array(CHEAP), np.ones(2)
    truths = {}
    for name, at in (("Fast Food", at_fast_food), ("Bars", at_bars)):
        score = float((at[0] - at[1]) / at.mean())
        truths[f"race=black categories={name}"] = score
        truths[f"race=white categories={name}"] = -score
    return truths


@cache
def average_samples(
    study: Study, _seed: int, cheap: tuple[float, float] = CHEAP
) -> Mapping[str, float]:
    """The mean figures of other samples of as many names."""
    values_of_target: dict[str, list[float]] = {}
    for index in range(SAMPLES):
        for figure in study.measure(replace(sample(10**7 + index, cheap), n_bootstrap=2)):
            values_of_target.setdefault(figure.target, []).append(figure.value)
    return {name: float(np.mean(values)) for name, values in values_of_target.items()}


def make_studies(label: str = "race", **settings: Any) -> tuple[Study, ...]:
    """The figures of a label and the price."""
    parameters: Any = {"label": label, "attribute": "price", "permutations": DRAWS, **settings}
    studies = [
        make_study(PricePercentage(**parameters), "price_percentage"),
        make_study(Association(**parameters), "association"),
        make_study(MeanAttribute(**parameters), "mean_attribute"),
    ]
    return tuple(studies)


MORE = (
    make_study(
        PricePercentage(label="race", attribute="price", rescale=False, permutations=DRAWS),
        "price_percentage, rescale: false",
    ),
    make_study(
        Association(label="race", attribute="price", form="ratio", permutations=DRAWS),
        "association, ratio",
    ),
    make_study(
        Association(label="race", attribute="categories", permutations=DRAWS),
        "association of categories",
    ),
)

SQUARES = make_study(VarianceSplit(label="race", attribute="price"), "variance_split, squares")

WORLDS = (
    World(
        "templates, sampled names",
        "planted probabilities",
        (*make_studies(), *MORE),
        sample,
        compute_truths,
        sample_two_models,
        plants="price $ has the probability 0.45 (black) or 0.3 (white)",
    ),
    World(
        "templates, race and gender crossed",
        "",
        make_studies("race & gender"),
        null=sample_two_models,
        plants="nothing: every group has the same prices",
    ),
    World(
        "templates as units, equal names",
        "planted probabilities",
        make_studies(units="template"),
        lambda seed: sample(seed, spread=0.0),
        compute_truths,
        lambda seed: sample_two_models(seed, 0.0),
        plants="price $ has the probability 0.45 (black) or 0.3 (white)",
    ),
    World(
        "templates of couples, sampled words",
        "planted probabilities",
        make_studies("orientation"),
        sample_couples,
        compute_truths_of_couples,
        sample_two_models_of_couples,
        plants="price $ is more probable by 0.1 where both words are of one gender",
    ),
    World(
        "templates, sums of squares",
        f"the mean of {SAMPLES} other samples",
        (SQUARES,),
        sample,
        average_samples,
        plants="price $ has the probability 0.45 (black) or 0.3 (white)",
    ),
    World(
        "templates, sums of squares, no effect",
        f"the mean of {SAMPLES} other samples",
        (SQUARES,),
        lambda seed: sample(seed, ALIKE),
        lambda study, seed: average_samples(study, seed, ALIKE),
        plants="nothing: every group has the same prices",
    ),
)
