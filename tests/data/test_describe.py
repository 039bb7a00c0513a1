from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Dataset, Reviews
from recbias.data.describe import describe
from recbias.data.movielens import MovieLens1M
from support.worlds.small_worlds import make_interactions


def test_counts_and_popularity_of_a_small_dataset() -> None:
    # five items with 3, 1, 0, 0, 0 rows by two of three users; one row is a repeat
    pairs = [(0, 0), (1, 0), (0, 0), (0, 1)]
    interactions = make_interactions(
        pairs, n_users=3, n_items=5, values=[5, 3, 5, 1], times=[0, 9, 86_400, 5]
    )
    statistics = describe(Dataset(interactions, counts={"bad_lines": 2}))
    assert statistics["counts"] == {
        "users": 3,
        "items": 5,
        "interactions": 4,
        "duplicates": 1,
        "users_without_interactions": 1,
        "items_without_interactions": 3,
        "sparsity": pytest.approx(1 - 3 / 15),
        "bad_lines": 2,
    }
    assert statistics["ratings"] == {1.0: 1, 3.0: 1, 5.0: 2}
    assert statistics["times"] == {"first": "1970-01-01", "last": "1970-01-02"}
    # interactions of the users: 3, 1, 0
    assert statistics["per_user"]["median"] == 1
    assert statistics["per_user"]["mean"] == pytest.approx(4 / 3)
    assert statistics["per_item"]["max"] == 3
    # the head is one item of five, with 3 of the 4 rows
    assert statistics["popularity"]["head_share"] == 0.75
    # ascending 0 0 0 1 3, weights 2i - 6 = -4 -2 0 2 4: (2 + 12) / (5 * 4)
    assert statistics["popularity"]["gini"] == pytest.approx(0.7)
    # popularities 3 and 1 at ranks 1 and 2: Zipf's slope is ln 3 / ln 2
    assert statistics["popularity"]["zipf_exponent"] == pytest.approx(math.log(3) / math.log(2))
    law = statistics["popularity"]["power_law"]
    assert (law["from_popularity"], law["items"]) == (1, 2)
    assert law["pareto_coefficient"] == law["exponent"] - 1
    assert 0 < law["ks_distance"] < 1
    assert (statistics["users"], statistics["items"], statistics["reviews"]) == (None, None, None)


def test_columns_and_reviews_are_summarized() -> None:
    interactions = make_interactions([(0, 0), (0, 1), (0, 2)])
    frame = pd.DataFrame(
        {"genres": ["A|B", "B", None], "level": [1.0, np.nan, 1.0], "year": [1.0, 2.0, 3.0]}
    )
    items = Attributes(interactions.item_ids, frame)
    texts = np.array(["", "abcd"], dtype=object)
    codes = np.array([0, 0], dtype=np.int32)
    statistics = describe(Dataset(interactions, items=items, reviews=Reviews(codes, codes, texts)))
    assert statistics["items"]["genres"] == {
        "missing": 1,
        "distinct": 2,
        "values": {"B": 2, "A": 1},
    }
    assert statistics["items"]["level"] == {"missing": 1, "distinct": 1, "values": {"1": 2}}
    assert statistics["reviews"]["reviews"] == 2
    assert statistics["reviews"]["empty"] == 1
    assert statistics["reviews"]["characters"]["mean"] == 2.0


def test_many_distinct_ratings_and_numbers_are_not_counted_one_by_one() -> None:
    interactions = make_interactions(
        [(0, item) for item in range(30)], values=[n / 7 for n in range(30)]
    )
    frame = pd.DataFrame({"year": np.arange(30.0)})
    statistics = describe(Dataset(interactions, items=Attributes(interactions.item_ids, frame)))
    assert statistics["ratings"] is None
    assert statistics["items"]["year"]["numbers"]["median"] == 14.5


@pytest.mark.real_data
def test_statistics_of_the_published_ml_1m(real_data: Path, rng: np.random.Generator) -> None:
    with collect_warnings():
        statistics = describe(MovieLens1M().load(real_data, rng))
    assert statistics["users"]["age"]["values"]["1"] == 222
    assert statistics["users"]["gender"]["values"] == {"M": 4_331, "F": 1_709}
    assert statistics["counts"]["items_without_interactions"] == 177
    law = statistics["popularity"]["power_law"]
    # counts of MovieLens-1M bend: only the 245 most popular films follow a (steep) power law
    assert (law["items"], round(law["exponent"], 2)) == (245, 3.75)
    assert round(statistics["popularity"]["zipf_exponent"], 2) == 1.45
    assert statistics["per_user"]["min"] == 20
    assert statistics["items"]["genres"]["distinct"] == 18
