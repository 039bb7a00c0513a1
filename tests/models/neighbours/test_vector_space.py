from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.data.datasets.movielens import MovieLens1M
from recbias.models.neighbours.vector_space import VSM
from recbias.models.unpersonalised import Random
from recbias.testing import check_recommender
from support.attribute_worlds import demo, described, random_described
from support.recommending import everybody, mean_ndcg, permuted

PLAIN = VSM(user_profile="binary", item_profile="binary")
MODELS = [
    VSM(),
    PLAIN,
    VSM(similarity="correlation"),
    VSM(terms="words"),
    VSM(variant="elliot"),
    VSM(user_profile="binary", variant="elliot", similarity="correlation"),
]

# u0: i0 i1;  u1: i2
PAIRS = [(0, 0), (0, 1), (1, 2), (2, 3), (2, 0)]
GENRES = {"genres": ["A", "A|B", "B", "A|B|C"]}


def recommended(model: VSM | Random, data: TrainingData, k: int) -> Any:
    return model.fit(data, np.random.default_rng(1)).recommend(everybody(data), k, data)


def test_scores_by_hand() -> None:
    # u0 = (1, 1/2, 0), |u0| = √5/2: i2 = (0, 1, 0): (1/2)/(√5/2); i3: (3/2)/(√3 √5/2)
    # u1 = (0, 1, 0): i0: 0; i1: 1/√2; i3: 1/√3
    lists = recommended(PLAIN, described(PAIRS, GENRES), 3)
    assert lists.items[:2].tolist() == [[3, 2, -1], [1, 3, 0]]
    np.testing.assert_allclose(
        lists.scores[0, :2], [3 / math.sqrt(15), 1 / math.sqrt(5)], rtol=1e-6
    )
    np.testing.assert_allclose(lists.scores[1], [1 / math.sqrt(2), 1 / math.sqrt(3), 0], rtol=1e-6)


def test_elliot_knows_only_whether_any_item_has_the_term() -> None:
    # u0 = (1, 1, 0): i2: 1/√2; i3: 2/√6
    model = VSM(user_profile="binary", item_profile="binary", variant="elliot")
    lists = recommended(model, described(PAIRS, GENRES), 2)
    assert lists.items[0].tolist() == [3, 2]
    np.testing.assert_allclose(lists.scores[0], [2 / math.sqrt(6), 1 / math.sqrt(2)], rtol=1e-6)


def test_elliot_keeps_the_weight_of_the_last_item() -> None:
    # N = 4: idf A = ln(4/3), B = ln(4/3), C = ln 4; i0 = (1, 0, 0), i1 = (r, r, 0), r = 1/√2
    # i2 = (0, 1, 0), i3 = (e, e, f) with e, f = ln(4/3), ln 4 over their length
    # u0 has i1, then i0: A of i0, B of i1: (1, r, 0)
    pairs = [(0, 1), (0, 0), (1, 2), (2, 3)]
    lists = recommended(VSM(variant="elliot"), described(pairs, GENRES), 2)
    length = math.sqrt(2 * math.log(4 / 3) ** 2 + math.log(4) ** 2)
    e, r = math.log(4 / 3) / length, 1 / math.sqrt(2)
    assert lists.items[0].tolist() == [2, 3]
    norm = math.sqrt(1 + r * r)
    np.testing.assert_allclose(lists.scores[0], [r / norm, (e + e * r) / norm], rtol=1e-5)


def test_correlation_by_hand() -> None:
    # u1 = (0, 1, 0), mean 1/3; i0 = (1, 0, 0): Σ = 0 - 3/9 = -1/3, both lengths √(2/3): -1/2
    # i1 = (1, 1, 0), mean 2/3: Σ = 1 - 3·2/9 = 1/3, lengths √(2/3) both: 1/2
    # i3 = (1, 1, 1) is the same in all: no correlation
    model = VSM(user_profile="binary", item_profile="binary", similarity="correlation")
    lists = recommended(model, described(PAIRS, GENRES), 4)
    assert lists.items[1].tolist() == [1, 0, -1, -1]
    np.testing.assert_allclose(lists.scores[1, :2], [1 / 2, -1 / 2], rtol=1e-6)


TEXTS = ["a ship of the sea", "the sea the sea", "nobody asks the ship", "day by day", "at sea"]


def all_scores(model: VSM, data: TrainingData) -> Any:
    """Scores of all items for all users, NaN where there is none or the user has the item."""
    lists = recommended(model, data, data.train.n_items)
    scores = np.full((data.train.n_users, data.train.n_items + 1), np.nan)
    np.put_along_axis(scores, lists.items, lists.scores, axis=1)  # -1 is the last
    return scores[:, :-1]


def test_scikit_learn_agrees_on_words() -> None:
    pairs = [(0, 0), (0, 2), (1, 1), (2, 3), (2, 4), (2, 0)]
    data = described(pairs, {"text": list(TEXTS)})
    vectors = TfidfVectorizer().fit_transform(TEXTS).toarray()
    history = data.train.binary.toarray()
    expected = cosine_similarity(history @ vectors, vectors)
    found = all_scores(VSM(attributes=("text",), terms="words"), data)
    np.testing.assert_allclose(found, np.where(history > 0, np.nan, expected), atol=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=str)
@settings(max_examples=15)
@given(seed=st.integers(0, 100))
def test_scores_are_cosines_and_only_of_what_is_described(model: VSM, seed: int) -> None:
    data = random_described(np.random.default_rng(seed))
    assert data.items is not None
    bare = data.items.frame["genres"].isna().to_numpy()
    scores = all_scores(model, data)
    assert np.isnan(scores[:, bare]).all()
    known = scores[~np.isnan(scores)]
    assert known.size > 100
    assert known.min() >= (-1.00001 if model.similarity == "correlation" else 0)
    assert known.max() <= 1.00001


def test_the_mean_of_cosines_ranks_as_the_cosine_of_the_mean(rng: np.random.Generator) -> None:
    """Unit vectors: |p| cos(p, v) is the mean of the cosines of the user's items with v."""
    data = random_described(rng)
    scores = all_scores(VSM(), data)
    fitted = VSM().fit(data, rng)
    vectors = fitted.vectors("tfidf").toarray()
    history = data.train.binary.toarray()
    cosines = history @ cosine_similarity(vectors)
    for user in range(60):
        ranked = np.flatnonzero(~np.isnan(scores[user]))
        lengths = cosines[user, ranked] / np.where(
            scores[user, ranked] > 0, scores[user, ranked], 1
        )
        positive = lengths[scores[user, ranked] > 1e-6]
        np.testing.assert_allclose(positive, positive[:1].repeat(positive.size), rtol=1e-4)


def test_what_nothing_is_known_of_is_in_no_list() -> None:
    # u0 has i0 only, of which nothing is known
    data = described([(0, 0), (1, 1), (1, 2), (2, 2)], {"genres": [None, "A", "A"]})
    with collect_warnings() as notes:
        lists = recommended(VSM(), data, 3)
    assert lists.items.tolist() == [[-1, -1, -1], [-1, -1, -1], [1, -1, -1]]
    assert len(notes) == 1
    assert notes[0].startswith("VSM: 1 of 3 items have no attribute; ")
    assert notes[0].endswith("1 of 3 users have only such items: their lists are empty")


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_where_no_item_is_described_all_lists_are_empty(model: VSM) -> None:
    lists = recommended(model, described(PAIRS, {"genres": [None] * 4}), 2)
    assert not lists.filled.any()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_no_training_rows_at_all(model: VSM) -> None:
    data = described([], {"genres": ["A", "B"]}, n_users=2)
    assert recommended(model, data, 2).items.tolist() == [[-1, -1], [-1, -1]]


def test_an_unknown_column_is_helped(rng: np.random.Generator) -> None:
    with pytest.raises(UnknownColumn, match="no column 'genre'") as caught:
        VSM(attributes=("genre",)).fit(described(PAIRS, GENRES), rng)
    assert caught.value.remedy == "did you mean genres?"


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_it_keeps_the_contract(model: VSM, rng: np.random.Generator) -> None:
    check_recommender(model, data=random_described(rng))


@pytest.mark.parametrize("model", [VSM(), PLAIN, VSM(similarity="correlation")], ids=str)
def test_codes_are_names_only(model: VSM, rng: np.random.Generator) -> None:
    data = random_described(rng)
    moved, users, items = permuted(data, rng)
    assert data.items is not None
    moved = replace(moved, items=data.items.aligned(moved.train.item_ids))
    first, second = all_scores(model, data), all_scores(model, moved)
    np.testing.assert_allclose(first, second[users][:, items], rtol=1e-4, atol=1e-5)


def test_the_demo_world_has_tastes_that_are_learned() -> None:
    split, data = demo()
    chance = mean_ndcg(recommended(Random(), data, 10), split)
    for model in (VSM(), VSM(attributes=("overview",), terms="words")):
        assert mean_ndcg(recommended(model, data, 10), split) > 1.5 * chance


SIDE = ("genres", "cast", "director")


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("model", "least", "most"),
    [
        # Table A.4 has 0.1210 with thousands of attributes of a knowledge graph, which are not
        # published with the data: measured here by genres, cast and director
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
def test_ndcg_on_movielens(
    model: VSM, least: float, most: float, movielens: Split, real_data: Path
) -> None:
    side = MovieLens1M(side=("cast", "director")).load(real_data, np.random.default_rng(0)).items
    assert side is not None
    data = movielens.training_data(items=side.aligned(movielens.train.item_ids))
    assert least < mean_ndcg(recommended(model, data, 10), movielens) < most
