from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.data.datasets.movielens import MovieLens1M
from recbias.data.describe import describe
from support.worlds import rows


def test_counts_and_popularity() -> None:
    # five items with 3, 1, 0, 0, 0 rows by two of three users; one row is a repeat
    pairs = [(0, 0), (1, 0), (0, 0), (0, 1)]
    interactions = rows(pairs, n_users=3, n_items=5, values=[5, 3, 5, 1], times=[0, 9, 86_400, 5])
    found = describe(Dataset(interactions, counts={"bad_lines": 2}))
    assert found["counts"] == {
        "users": 3,
        "items": 5,
        "interactions": 4,
        "duplicates": 1,
        "users_without_interactions": 1,
        "items_without_interactions": 3,
        "sparsity": pytest.approx(1 - 3 / 15),
        "bad_lines": 2,
    }
    assert found["ratings"] == {1.0: 1, 3.0: 1, 5.0: 2}
    assert found["times"] == {"first": "1970-01-01", "last": "1970-01-02"}
    # interactions of the users: 3, 1, 0
    assert found["per_user"]["median"] == 1
    assert found["per_user"]["mean"] == pytest.approx(4 / 3)
    assert found["per_item"]["max"] == 3
    # the head is one item of five, with 3 of the 4 rows
    assert found["popularity"]["head_share"] == 0.75
    # ascending 0 0 0 1 3, weights 2i - 6 = -4 -2 0 2 4: (2 + 12) / (5 * 4)
    assert found["popularity"]["gini"] == pytest.approx(0.7)
    # popularities 3 and 1 at ranks 1 and 2: Zipf's slope is ln 3 / ln 2
    assert found["popularity"]["zipf_exponent"] == pytest.approx(math.log(3) / math.log(2))
    law = found["popularity"]["power_law"]
    assert (law["from_popularity"], law["items"]) == (1, 2)
    assert law["pareto_coefficient"] == law["exponent"] - 1
    assert 0 < law["ks_distance"] < 1
    assert (found["users"], found["items"], found["reviews"]) == (None, None, None)


def test_columns_and_reviews() -> None:
    interactions = rows([(0, 0), (0, 1), (0, 2)])
    frame = pd.DataFrame(
        {"genres": ["A|B", "B", None], "level": [1.0, np.nan, 1.0], "year": [1.0, 2.0, 3.0]}
    )
    items = Attributes(interactions.item_ids, frame)
    texts = np.array(["", "abcd"], dtype=object)
    both = np.array([0, 0], dtype=np.int32)
    found = describe(Dataset(interactions, items=items, reviews=Reviews(both, both, texts)))
    assert found["items"]["genres"] == {
        "missing": 1,
        "distinct": 2,
        "values": {"B": 2, "A": 1},
    }
    assert found["items"]["level"] == {"missing": 1, "distinct": 1, "values": {"1": 2}}
    assert found["reviews"]["reviews"] == 2
    assert found["reviews"]["empty"] == 1
    assert found["reviews"]["characters"]["mean"] == 2.0


def test_many_ratings_and_numbers_are_not_listed() -> None:
    interactions = rows([(0, each) for each in range(30)], values=[each / 7 for each in range(30)])
    frame = pd.DataFrame({"year": [float(each) for each in range(30)]})
    found = describe(Dataset(interactions, items=Attributes(interactions.item_ids, frame)))
    assert found["ratings"] is None
    assert found["items"]["year"]["numbers"]["median"] == 14.5


def test_a_dataset_of_nothing_has_undefined_figures() -> None:
    found = describe(Dataset(rows([])))
    assert math.isnan(found["counts"]["sparsity"])
    assert math.isnan(found["popularity"]["gini"])
    assert math.isnan(found["popularity"]["head_share"])
    assert math.isnan(found["popularity"]["power_law"]["exponent"])
    assert math.isnan(found["popularity"]["zipf_exponent"])
    assert math.isnan(found["per_user"]["mean"])
    assert found["times"] is None


@given(pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=40))
def test_figures_are_in_their_ranges_and_plain(pairs: list[tuple[int, int]]) -> None:
    found = describe(Dataset(rows(pairs, n_users=5, n_items=7)))
    assert 0 <= found["popularity"]["gini"] < 1
    assert 0 < found["popularity"]["head_share"] <= 1
    assert 0 <= found["counts"]["sparsity"] <= 1
    assert found["counts"]["duplicates"] == len(pairs) - len(set(pairs))
    again: dict[str, Any] = json.loads(json.dumps(found))
    assert again["counts"] == found["counts"]


@pytest.mark.real_data
def test_the_real_ml_1m(real_data: Path, rng: np.random.Generator) -> None:
    found = describe(MovieLens1M().load(real_data, rng))
    assert found["users"]["age"]["values"]["1"] == 222
    assert found["users"]["gender"]["values"] == {"M": 4_331, "F": 1_709}
    assert found["counts"]["items_without_interactions"] == 177
    law = found["popularity"]["power_law"]
    # counts of MovieLens-1M bend: only the 245 most popular films follow a (steep) power law
    assert (law["items"], round(law["exponent"], 2)) == (245, 3.75)
    assert round(found["popularity"]["zipf_exponent"], 2) == 1.45
    assert found["per_user"]["min"] == 20
    assert found["items"]["genres"]["distinct"] == 18
