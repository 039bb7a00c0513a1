from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Attributes
from recbias.core.evidence import Evidence
from recbias.metrics.labels import CatalogueCounts
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary
from support.worlds.small_worlds import make_interactions

METRIC = CatalogueCounts(attribute="categories")


def make_catalogue(counts: list[float], categories: list[str | None], **fields: Any) -> Evidence:
    ids = make_vocabulary("i", len(counts))
    items = Attributes(ids, pd.DataFrame({"categories": categories}))
    train = make_interactions([(0, 0)], n_users=1, n_items=len(counts))
    defaults: dict[str, Any] = {"items": items, "train": train, "item_counts": np.array(counts)}
    return Evidence(make_user_queries(0), ids, metric="the metric", **(defaults | fields))


def measure(metric: CatalogueCounts, facts: Evidence) -> dict[str, float]:
    return {estimate.target: estimate.value for estimate in metric.measure(facts)}


def test_by_hand() -> None:
    facts = make_catalogue([3, 5, 0, 1], ["Bars|Pubs", "Bars", "French|Thai|Halal", None])
    assert measure(METRIC, facts) == {
        "items": 3,  # item 2 has no interaction
        "interactions": 9,
        "most interactions of an item": 5,
        "values of categories": 2,
        "most values of an item": 2,
    }
    assert list(measure(CatalogueCounts(), facts)) == [
        *("items", "interactions", "most interactions of an item")
    ]
    assert [estimate.n for estimate in METRIC.measure(facts)] == [3] * 5


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_they_agree_with_pandas(numbers: list[int]) -> None:
    cells = ["|".join("abcdefghi"[:number]) or None for number in numbers]
    values = measure(METRIC, make_catalogue([float(number) for number in numbers], cells))
    series = pd.Series(numbers)
    assert values["items"] == (series > 0).sum()
    assert values["interactions"] == series.sum()
    largest = max(numbers)
    assert values["most interactions of an item"] == largest
    assert values["values of categories"] == values["most values of an item"] == largest
