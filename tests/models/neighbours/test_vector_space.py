from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from recbias.core.context import collect_warnings
from recbias.core.dataset import Split, TrainingData
from recbias.data.movielens import MovieLens1M
from recbias.models.baselines import Random
from recbias.models.knn import VSM
from support.models.recommending import compute_mean_ndcg, query_all_users
from support.worlds.attribute_worlds import make_item_data

PLAIN = VSM(user_profile="binary", item_profile="binary")

# u0: i0 i1;  u1: i2
PAIRS = [(0, 0), (0, 1), (1, 2), (2, 3), (2, 0)]
GENRES = {"genres": ["A", "A|B", "B", "A|B|C"]}


def recommend(model: VSM | Random, data: TrainingData, k: int) -> Any:
    return model.fit(data, np.random.default_rng(1)).recommend(query_all_users(data), k, data)


def test_cosines_match_a_hand_computation() -> None:
    # u0 = (1, 1/2, 0), |u0| = √5/2: i2 = (0, 1, 0): (1/2)/(√5/2); i3: (3/2)/(√3 √5/2)
    # u1 = (0, 1, 0): i0: 0; i1: 1/√2; i3: 1/√3
    lists = recommend(PLAIN, make_item_data(PAIRS, GENRES), 3)
    assert lists.items[:2].tolist() == [[3, 2, -1], [1, 3, 0]]
    np.testing.assert_allclose(
        lists.scores[0, :2], [3 / math.sqrt(15), 1 / math.sqrt(5)], rtol=1e-6
    )
    np.testing.assert_allclose(lists.scores[1], [1 / math.sqrt(2), 1 / math.sqrt(3), 0], rtol=1e-6)


def test_elliot_profile_is_binary_over_the_users_items() -> None:
    # u0 = (1, 1, 0): i2: 1/√2; i3: 2/√6
    model = VSM(user_profile="binary", item_profile="binary", variant="elliot")
    lists = recommend(model, make_item_data(PAIRS, GENRES), 2)
    assert lists.items[0].tolist() == [3, 2]
    np.testing.assert_allclose(lists.scores[0], [2 / math.sqrt(6), 1 / math.sqrt(2)], rtol=1e-6)


def test_elliot_profile_uses_the_weight_of_the_last_item() -> None:
    # N = 4: idf A = ln(4/3), B = ln(4/3), C = ln 4; i0 = (1, 0, 0), i1 = (r, r, 0), r = 1/√2
    # i2 = (0, 1, 0), i3 = (e, e, f) with e, f = ln(4/3), ln 4 over their length
    # u0 has i1, then i0: A of i0, B of i1: (1, r, 0)
    pairs = [(0, 1), (0, 0), (1, 2), (2, 3)]
    lists = recommend(VSM(variant="elliot"), make_item_data(pairs, GENRES), 2)
    length = math.sqrt(2 * math.log(4 / 3) ** 2 + math.log(4) ** 2)
    e, r = math.log(4 / 3) / length, 1 / math.sqrt(2)
    assert lists.items[0].tolist() == [2, 3]
    norm = math.sqrt(1 + r * r)
    np.testing.assert_allclose(lists.scores[0], [r / norm, (e + e * r) / norm], rtol=1e-5)


def test_correlations_match_a_hand_computation() -> None:
    # u1 = (0, 1, 0), mean 1/3; i0 = (1, 0, 0): Σ = 0 - 3/9 = -1/3, both lengths √(2/3): -1/2
    # i1 = (1, 1, 0), mean 2/3: Σ = 1 - 3·2/9 = 1/3, lengths √(2/3) both: 1/2
    # i3 = (1, 1, 1) is the same in all: no correlation
    model = VSM(user_profile="binary", item_profile="binary", similarity="correlation")
    lists = recommend(model, make_item_data(PAIRS, GENRES), 4)
    assert lists.items[1].tolist() == [1, 0, -1, -1]
    np.testing.assert_allclose(lists.scores[1, :2], [1 / 2, -1 / 2], rtol=1e-6)


TEXTS = ["a ship of the sea", "the sea the sea", "nobody asks the ship", "day by day", "at sea"]


def score_all_items(model: VSM, data: TrainingData) -> Any:
    """Return the scores of all items, NaN for no score and for training items."""
    with collect_warnings():
        lists = recommend(model, data, data.train.n_items)
    scores = np.full((data.train.n_users, data.train.n_items + 1), np.nan)
    np.put_along_axis(scores, lists.items, lists.scores, axis=1)  # column -1 is padding
    return scores[:, :-1]


def test_word_scores_match_scikit_learn() -> None:
    pairs = [(0, 0), (0, 2), (1, 1), (2, 3), (2, 4), (2, 0)]
    data = make_item_data(pairs, {"text": list(TEXTS)})
    vectors = TfidfVectorizer().fit_transform(TEXTS).toarray()
    history = data.train.binary.toarray()
    expected = cosine_similarity(history @ vectors, vectors)
    scores = score_all_items(VSM(attributes=("text",), terms="words"), data)
    np.testing.assert_allclose(scores, np.where(history > 0, np.nan, expected), atol=1e-6)


SIDE = ("genres", "cast", "director")


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("model", "least", "most"),
    [
        # Table A.4 has 0.1210 with thousands of attributes of a knowledge graph, which are not
        # published with the data: here with genres, cast and director
        (VSM(attributes=SIDE), 0.095, 0.12),
        (
            VSM(attributes=SIDE, user_profile="binary", item_profile="binary", variant="elliot"),
            0.075,
            0.1,
        ),
        (VSM(), 0.02, 0.04),
    ],
    ids=str,
)
def test_ndcg_on_movielens_is_in_range(
    model: VSM, least: float, most: float, movielens: Split, real_data: Path
) -> None:
    side = MovieLens1M(side=("cast", "director")).load(real_data, np.random.default_rng(0)).items
    assert side is not None
    data = movielens.training_data(items=side.align(movielens.train.item_ids))
    assert least < compute_mean_ndcg(recommend(model, data, 10), movielens) < most
