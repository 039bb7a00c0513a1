"""What the setting ``popularity`` counts, or which column it reads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes
from recbias.metrics.popularity import ARP, LogPopularityDifference, PopularityLift
from support.worlds.evidence_worlds import make_vocabulary
from support.worlds.popularity_worlds import (
    make_item_counts,
    make_popularity_evidence,
    measure_queries,
)

METRICS = (ARP, LogPopularityDifference, PopularityLift)


@pytest.mark.parametrize("popularity", [None, "train"])
def test_popularity_train_counts_the_training_interactions(popularity: str | None) -> None:
    evidence = make_popularity_evidence([[0, 1]], item_counts=np.full(5, 9.0))
    assert measure_queries(ARP(popularity=popularity), evidence) == [3.0]


def test_popularity_all_counts_the_interactions_of_all_parts() -> None:
    # of 5 items: 4 2 1 1 0 in training, 0 0 1 3 1 held out
    counts = np.array([4.0, 2.0, 2.0, 4.0, 1.0])
    evidence = make_popularity_evidence([[0, 4], [3]], item_counts=counts)
    # u0: list (ln 4 + ln 1) / 2 = ln 2; history {0, 1, 2}: (2 + 1 + 1) ln 2 / 3
    # u1: list 2 ln 2; history {0, 1}: 1.5 ln 2
    values = measure_queries(LogPopularityDifference(popularity="all"), evidence)
    assert values == pytest.approx([-math.log(2) / 3, math.log(2) / 2])
    assert measure_queries(ARP(popularity="all"), evidence) == [2.5, 4.0]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["train", "all"])
def test_columns_called_like_a_count_are_named_with_their_table(metric: Any, name: str) -> None:
    frame = pd.DataFrame({name: [7.0, 5.0, 3.0, 2.0, 1.0]})
    items = Attributes(make_vocabulary("i", 5), frame)
    evidence = make_popularity_evidence([[0, 3]], items=items, item_counts=np.ones(5))
    assert metric(popularity=f"items.{name}").needs_now() >= {"items", "lists"}
    assert metric(popularity=name).needs_now() == {"train", "lists"}
    renamed = make_popularity_evidence([[0, 3]], items=make_item_counts([7, 5, 3, 2, 1]))
    assert measure_queries(metric(popularity=f"items.{name}"), evidence) == measure_queries(
        metric(popularity="n_ratings"), renamed
    )
