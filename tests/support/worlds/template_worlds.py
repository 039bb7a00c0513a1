"""Lists for template queries with a known bias of each label.

``cross_names`` makes the queries; ``plant_bias`` samples the items of their lists independently:
the probability of a price depends on the label, the name and the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import AnyArray, Attributes, Queries, Vocabulary
from recbias.core.evidence import Evidence
from support.worlds.evidence_worlds import make_lists, make_vocabulary

PRICES = ("$", "$$", "$$$", "$$$$")


def make_prompt_queries(table: pd.DataFrame) -> Queries:
    """Return prompts with the labels of a table; a missing cell is None."""
    ids = Vocabulary(np.array([f"q{row}" for row in range(len(table))], dtype=object))
    frame = table.reset_index(drop=True)
    users = np.full(len(frame), -1, dtype=np.int32)
    return Queries(ids, Attributes(ids, frame, "query"), users, None, "prompt")


def cross_names(names: Mapping[str, Mapping[str, str]], n_templates: int) -> Queries:
    """Return every name with its labels, ``{"Ann": {"race": "white"}}``, in every template."""
    rows = [
        {"template": f"t{template:02d}", "kind": "names", "name": name, **labels}
        for name, labels in names.items()
        for template in range(n_templates)
    ]
    return make_prompt_queries(pd.DataFrame(rows, dtype=object))


def make_names(
    n: int, *, genders: Sequence[str] = ("female", "male")
) -> dict[str, dict[str, str]]:
    """Return ``n`` names of each race with alternating genders."""
    return {
        f"{race[0]}{number:02d}": {"race": race, "gender": genders[number % len(genders)]}
        for race in ("black", "white")
        for number in range(n)
    }


def make_priced_items(
    prices: Sequence[str | float | None], **columns: Sequence[Any]
) -> Attributes:
    """Return items with a price and other columns."""
    table = pd.DataFrame({"price": list(prices), **columns})
    return Attributes(make_vocabulary("i", len(prices)), table, "item")


def make_prompt_evidence(
    queries: Queries, lists: Sequence[Sequence[int]], items: Attributes, **fields: Any
) -> Evidence:
    """Return evidence with lists of the items."""
    defaults = {
        "lists": make_lists(lists),
        "items": items,
        "n_bootstrap": 200,
        "metric": "the metric",
    }
    return Evidence(queries=queries, item_ids=items.ids, **{**defaults, **fields})


@dataclass(frozen=True)
class PlantedBias:
    """Evidence of two races and two prices, with the true parameters.

    Args:
        evidence: The lists.
        share_of_black: P(black | $) in the population of names.
        mean_of_black: The mean price level for black names.
    """

    evidence: Evidence
    share_of_black: float
    mean_of_black: float


def plant_bias(
    seed: int, *, cheap: Sequence[float] = (0.3, 0.3), n_names: int = 12, spread: float = 0.1
) -> PlantedBias:
    """Return lists of 10 items of price $ or $$$; P($) depends on race, name and template.

    Args:
        seed: The seed of names and lists.
        cheap: The probability of $ for black and white names; equal for no bias.
        n_names: The number of names of each race.
        spread: Half the range of the uniform probabilities of names of one race.
    """
    rng = np.random.default_rng([seed, 1])  # not the generator of the metrics
    n_templates, k = 6, 10
    names = rng.uniform(-spread, spread, size=(2, n_names))
    wording = np.linspace(-0.1, 0.1, n_templates)
    probability = np.asarray(cheap)[:, None, None] + names[:, :, None] + wording
    is_cheap = rng.random((2, n_names, n_templates, k)) < probability[..., None]
    items = np.where(is_cheap, 0, 1).reshape(-1, k).tolist()
    evidence = make_prompt_evidence(
        cross_names(make_names(n_names), n_templates),
        items,
        make_priced_items(["$", "$$$"], categories=["Fast Food|Bars", "Bars"]),
        bootstrap_seed=seed,
    )
    share = cheap[0] / (cheap[0] + cheap[1])
    return PlantedBias(evidence, share, 3.0 - 2.0 * cheap[0])


def make_random_prompts(
    rng: np.random.Generator, *, n_names: int = 4, n_templates: int = 3, k: int = 5
) -> tuple[Queries, AnyArray, Attributes]:
    """Return random queries, item codes ``int[q, k]`` and items, for property tests."""
    queries = cross_names(make_names(n_names), n_templates)
    items = make_priced_items(
        [*PRICES, "$", None],
        categories=["Bars|Wine", "Bars", "Wine", "Cafes", None, "Cafes|Bars"],
        title=["Joe's Grill", "Grill House", "The Wine Bar", "Cafe Joe", None, "Bar 7"],
    )
    return queries, rng.integers(0, 6, size=(len(queries), k)), items


def cross_couples(n_templates: int, *, firsts: int = 8, seconds: int = 3) -> Queries:
    """Return pairs of persons in each template, with whether their genders are the same."""
    people = {
        "first": [
            (f"{gender}{number:02d}", gender) for gender in "fm" for number in range(firsts)
        ],
        "second": [(f"{gender}{number}", gender) for gender in "fm" for number in range(seconds)],
    }
    rows = [
        {
            "template": f"t{template:02d}",
            "kind": "couples",
            "first": first,
            "second": second,
            "first_gender": gender,
            "second_gender": second_gender,
            "orientation": "same" if gender == second_gender else "different",
        }
        for template in range(n_templates)
        for first, gender in people["first"]
        for second, second_gender in people["second"]
    ]
    return make_prompt_queries(pd.DataFrame(rows, dtype=object))


def plant_couple_bias(seed: int, *, effect: float = 0.0) -> Evidence:
    """Return lists of 20 items of price $ or $$$; $ has a probability that depends on the pair.

    Args:
        seed: The seed of words and lists.
        effect: The difference in probability between pairs of the same and of different gender.
    """
    rng = np.random.default_rng([seed, 2])
    n_templates, n_first, n_second = 6, 16, 6
    first, second = rng.normal(0, 0.06, (n_first, 1)), rng.normal(0, 0.06, n_second)
    together = rng.normal(0, 0.03, (n_first, n_second))
    same = np.repeat([0, 1], 8)[:, None] == np.repeat([0, 1], 3)
    probability = 0.5 + first + second + together + effect * (same - 0.5)
    wording = np.linspace(-0.1, 0.1, n_templates)[:, None, None]
    draws = rng.random((n_templates, n_first, n_second, 20))
    is_cheap = draws < (probability + wording)[..., None]
    items = np.where(is_cheap, 0, 1).reshape(-1, 20).tolist()
    return make_prompt_evidence(
        cross_couples(n_templates), items, make_priced_items(["$", "$$$"]), bootstrap_seed=seed
    )
