"""Lists of queries made from templates in which the bias of each label is known.

``crossed`` makes the queries, ``planted`` lists whose places are drawn one by one: the chance of a
price depends on the label, the name and the template as told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.queries import Queries
from support.evidence_worlds import ranked, words

PRICES = ("$", "$$", "$$$", "$$$$")


def queries_of(table: pd.DataFrame) -> Queries:
    """Prompts with the labels given; a missing cell is None."""
    ids = Vocabulary(np.array([f"q{each}" for each in range(len(table))], dtype=object))
    frame = table.reset_index(drop=True)
    users = np.full(len(frame), -1, dtype=np.int32)
    return Queries(ids, Attributes(ids, frame, "query"), users, None, "prompt")


def crossed(names: Mapping[str, Mapping[str, str]], n_templates: int) -> Queries:
    """Each name with its labels in each template: ``{"Ann": {"race": "white"}}``."""
    rows = [
        {"template": f"t{template:02d}", "kind": "names", "name": name, **labels}
        for name, labels in names.items()
        for template in range(n_templates)
    ]
    return queries_of(pd.DataFrame(rows, dtype=object))


def people(n: int, *, genders: Sequence[str] = ("female", "male")) -> dict[str, dict[str, str]]:
    """``n`` names of each race, the genders in turn."""
    return {
        f"{race[0]}{each:02d}": {"race": race, "gender": genders[each % len(genders)]}
        for race in ("black", "white")
        for each in range(n)
    }


def priced(prices: Sequence[str | float | None], **columns: Sequence[Any]) -> Attributes:
    """Items with a price, and other columns."""
    table = pd.DataFrame({"price": list(prices), **columns})
    return Attributes(words("i", len(prices)), table, "item")


def asked_of(
    queries: Queries, lists: Sequence[Sequence[int]], items: Attributes, **others: Any
) -> Evidence:
    """Evidence of lists over the items given."""
    given = {"lists": ranked(lists), "items": items, "n_bootstrap": 200, "metric": "the metric"}
    return Evidence(queries=queries, item_ids=items.ids, **{**given, **others})


@dataclass(frozen=True)
class Planted:
    """A world of two races at two prices, with what is true of it.

    Args:
        evidence: The lists.
        share_of_black: P(black | $), over all names there could be.
        mean_of_black: The mean price level under black names.
    """

    evidence: Evidence
    share_of_black: float
    mean_of_black: float


def planted(
    seed: int, *, cheap: Sequence[float] = (0.3, 0.3), n_names: int = 12, spread: float = 0.1
) -> Planted:
    """Lists of 10 places, each of price $ with the chance of its race, name and template, or $$$.

    Args:
        seed: The seed of names and lists.
        cheap: The chance of $ for black and white names; alike where nothing is planted.
        n_names: Names of each race.
        spread: How far the chances of names of one race lie apart: uniform, ± this.
    """
    rng = np.random.default_rng([seed, 1])  # not the stream that the metrics draw from
    n_templates, k = 6, 10
    names = rng.uniform(-spread, spread, size=(2, n_names))
    wording = np.linspace(-0.1, 0.1, n_templates)
    chance = np.asarray(cheap)[:, None, None] + names[:, :, None] + wording
    is_cheap = rng.random((2, n_names, n_templates, k)) < chance[..., None]
    items = np.where(is_cheap, 0, 1).reshape(-1, k).tolist()
    evidence = asked_of(
        crossed(people(n_names), n_templates),
        items,
        priced(["$", "$$$"], categories=["Fast Food|Bars", "Bars"]),
        bootstrap_seed=seed,
    )
    share = cheap[0] / (cheap[0] + cheap[1])
    return Planted(evidence, share, 3.0 - 2.0 * cheap[0])


def random_world(
    rng: np.random.Generator, *, n_names: int = 4, n_templates: int = 3, k: int = 5
) -> tuple[Queries, AnyArray, Attributes]:
    """Queries, item codes ``int[q, k]`` and items at random, for properties."""
    queries = crossed(people(n_names), n_templates)
    items = priced(
        [*PRICES, "$", None],
        categories=["Bars|Wine", "Bars", "Wine", "Cafes", None, "Cafes|Bars"],
        title=["Joe's Grill", "Grill House", "The Wine Bar", "Cafe Joe", None, "Bar 7"],
    )
    return queries, rng.integers(0, 6, size=(len(queries), k)), items


def couples(n_templates: int, *, firsts: int = 8, seconds: int = 3) -> Queries:
    """Two persons in each template, so many of each gender, with whether they are of the same."""
    people_of = {
        "first": [(f"{g}{each:02d}", g) for g in "fm" for each in range(firsts)],
        "second": [(f"{g}{each}", g) for g in "fm" for each in range(seconds)],
    }
    rows = [
        {
            "template": f"t{template:02d}",
            "kind": "couples",
            "first": first,
            "second": second,
            "first_gender": gender,
            "second_gender": other,
            "orientation": "same" if gender == other else "different",
        }
        for template in range(n_templates)
        for first, gender in people_of["first"]
        for second, other in people_of["second"]
    ]
    return queries_of(pd.DataFrame(rows, dtype=object))


def planted_couples(seed: int, *, effect: float = 0.0) -> Evidence:
    """Lists of 20 places, of price $ with the chance of both words, or $$$.

    Args:
        seed: The seed of words and lists.
        effect: By how much the chance is higher where both are of one gender.
    """
    rng = np.random.default_rng([seed, 2])
    n_templates, n_first, n_second = 6, 16, 6
    first, second = rng.normal(0, 0.06, (n_first, 1)), rng.normal(0, 0.06, n_second)
    together = rng.normal(0, 0.03, (n_first, n_second))
    same = np.repeat([0, 1], 8)[:, None] == np.repeat([0, 1], 3)
    chance = 0.5 + first + second + together + effect * (same - 0.5)
    wording = np.linspace(-0.1, 0.1, n_templates)[:, None, None]
    draws = rng.random((n_templates, n_first, n_second, 20))
    is_cheap = draws < (chance + wording)[..., None]
    items = np.where(is_cheap, 0, 1).reshape(-1, 20).tolist()
    return asked_of(couples(n_templates), items, priced(["$", "$$$"]), bootstrap_seed=seed)
