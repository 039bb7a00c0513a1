"""Lists of queries made from templates in which the price depends on the race as planted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from list_studies import of
from tally import Study, World

import template_worlds
from recbias.core.evidence import Evidence
from recbias.metrics.association_score import Association
from recbias.metrics.mean_attribute import MeanAttribute
from recbias.metrics.price_percentage import PricePercentage
from recbias.metrics.variance_split import VarianceSplit

BLACK, WHITE = CHEAP = (0.45, 0.3)
"""The chance that a place is of price $ under names of either race, on average."""

ALIKE = (0.3, 0.3)
SPREAD = 0.1
N_NAMES, N_TEMPLATES, K = 12, 6, 10
DRAWS = 199
SAMPLES = 200
RIVAL = 10**6


def sample(seed: int, cheap: tuple[float, float] = CHEAP, spread: float = SPREAD) -> Evidence:
    """Lists for 12 names of each race in 6 templates; the names are others each time."""
    world = template_worlds.planted(seed, cheap=cheap, n_names=N_NAMES, spread=spread)
    return replace(world.evidence, n_bootstrap=400)


def two_models(seed: int, spread: float = SPREAD) -> tuple[Evidence, Evidence]:
    """Two models in which nothing is planted, on the same bootstrap samples."""
    rival = sample(seed + RIVAL, ALIKE, spread)
    return sample(seed, ALIKE, spread), replace(rival, bootstrap_seed=seed)


def by_formula(study: Study, _seed: int) -> Mapping[str, float]:
    """What the chances of $ say of each figure; the other price is $$$, which is level 3."""
    dear = (1 - BLACK, 1 - WHITE)
    share, share_dear = BLACK / (BLACK + WHITE), dear[0] / sum(dear)
    gap = 2 * (BLACK - WHITE) / (BLACK + WHITE)
    gap_dear = 2 * (dear[0] - dear[1]) / sum(dear)
    made = {
        "race=black price=$": share,
        "race=white price=$": 1 - share,
        "race=black price=$$$": share_dear,
        "race=white price=$$$": 1 - share_dear,
    }
    if study.name.startswith("association"):
        if "ratio" in study.name:
            return {"race=black price=$": BLACK / WHITE, "race=white price=$": WHITE / BLACK}
        if "categories" in study.name:
            return of_categories()
        return {
            "race=black price=$": gap,
            "race=white price=$": -gap,
            "race=black price=$$$": gap_dear,
            "race=white price=$$$": -gap_dear,
            "price=$ race=black - race=white (permutation)": BLACK - WHITE,
        }
    if study.name.startswith("mean_attribute"):
        means = {"race=black": 3 - 2 * BLACK, "race=white": 3 - 2 * WHITE}
        test = "race=black - race=white (permutation)"
        return {**means, test: means["race=black"] - means["race=white"]}
    return {**made, "price=$ race=black - race=white (permutation)": 2 * share - 1}


def of_categories() -> Mapping[str, float]:
    """The categories are Fast Food and Bars where the price is $, else Bars alone."""
    at_fast_food, at_bars = np.array(CHEAP), np.ones(2)
    found = {}
    for name, at in (("Fast Food", at_fast_food), ("Bars", at_bars)):
        score = float((at[0] - at[1]) / at.mean())
        found[f"race=black categories={name}"] = score
        found[f"race=white categories={name}"] = -score
    return found


def components(_study: Study, _seed: int) -> Mapping[str, float]:
    """Variance components of the mean level of a list, 3 - 2 · (share at $)."""
    wording = np.linspace(-SPREAD, SPREAD, N_TEMPLATES)
    of_names = (2 * SPREAD) ** 2 / 12
    uneven = [
        float(np.mean(p * (1 - p)) - of_names) for p in (c + wording for c in CHEAP)
    ]  # the mean of p (1 - p) over names, as E p² = (E p)² + their variance
    parts = {
        "label": (BLACK - WHITE) ** 2 / 2,
        "name": of_names,
        "template": float(wording.var(ddof=1)),
        "rest": sum(uneven) / 2 / K,
    }
    total = sum(parts.values())
    return {name: each / total for name, each in parts.items()}


@cache
def expected(study: Study, _seed: int) -> Mapping[str, float]:
    """The mean figures of other samples of as many names."""
    found: dict[str, list[float]] = {}
    for each in range(SAMPLES):
        for figure in study.measure(replace(sample(10**7 + each), n_bootstrap=2)):
            found.setdefault(figure.target, []).append(figure.value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def metrics(label: str = "race", **settings: Any) -> tuple[Study, ...]:
    """The figures of a label and the price."""
    given: Any = {"label": label, "attribute": "price", "permutations": DRAWS, **settings}
    found = [
        of(PricePercentage(**given), "price_percentage"),
        of(Association(**given), "association"),
        of(MeanAttribute(**given), "mean_attribute"),
    ]
    return tuple(found)


MORE = (
    of(
        PricePercentage(label="race", attribute="price", rescale=False, permutations=DRAWS),
        "price_percentage, rescale: false",
    ),
    of(
        Association(label="race", attribute="price", form="ratio", permutations=DRAWS),
        "association, ratio",
    ),
    of(
        Association(label="race", attribute="categories", permutations=DRAWS),
        "association of categories",
    ),
)

WORLDS = (
    World(
        "templates, names drawn",
        "the chances that are planted",
        (*metrics(), *MORE),
        sample,
        by_formula,
        two_models,
    ),
    World(
        "templates, race and gender crossed",
        "",
        metrics("race & gender"),
        null=two_models,
    ),
    World(
        "templates as units, names alike",
        "the chances that are planted",
        metrics(units="template"),
        lambda seed: sample(seed, spread=0.0),
        by_formula,
        lambda seed: two_models(seed, 0.0),
    ),
    World(
        "templates, variance components",
        "the variances that are planted",
        (
            of(
                VarianceSplit(label="race", attribute="price", form="components"),
                "variance_split, components",
            ),
        ),
        sample,
        components,
    ),
    World(
        "templates, sums of squares",
        f"the mean of {SAMPLES} other samples",
        (of(VarianceSplit(label="race", attribute="price"), "variance_split, squares"),),
        sample,
        expected,
    ),
)
