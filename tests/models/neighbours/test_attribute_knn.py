from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import cosine_similarity

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.data.datasets.movielens import MovieLens1M
from recbias.models.neighbours.attribute_knn import (
    AttributeItemKNN,
    AttributeUserKNN,
    Similarity,
    most_similar,
)
from recbias.models.neighbours.item_profiles import item_vectors, mean_vectors, term_counts
from recbias.models.unpersonalised import Random
from recbias.testing import check_recommender
from recbias.testing.small_world import checkerboard
from support.attribute_worlds import demo, described, random_described
from support.recommending import everybody, mean_ndcg, permuted

MODELS = [
    AttributeItemKNN(neighbors=12),
    AttributeItemKNN(similarity="dot", profile="tfidf", weights="rating"),
    AttributeItemKNN(similarity="jaccard"),
    AttributeUserKNN(neighbors=12),
    AttributeUserKNN(similarity="braycurtis", weights="rating"),
    AttributeUserKNN(profile="tfidf", neighbors=40, variant="elliot"),
]

# u0: i0 i1;  u1: i1 i2;  u2: i2 i3
PAIRS = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3)]
GENRES = {"genres": ["A", "A|B", "B", "A|B|C"]}


def recommended(model: Any, data: TrainingData, k: int) -> Any:
    return model.fit(data, np.random.default_rng(1)).recommend(everybody(data), k, data)


def test_item_scores_by_hand() -> None:
    # |i0| = 1, |i1| = √2, |i2| = 1, |i3| = √3
    # s(0,1) = 1/√2, s(0,2) = 0, s(0,3) = 1/√3, s(1,2) = 1/√2, s(1,3) = 2/√6, s(2,3) = 1/√3
    lists = recommended(AttributeItemKNN(), described(PAIRS, GENRES), 2)
    a, b, c = 1 / math.sqrt(2), 1 / math.sqrt(3), 2 / math.sqrt(6)
    assert lists.items.tolist() == [[3, 2], [3, 0], [1, 0]]
    np.testing.assert_allclose(lists.scores[0], [b + c, a], rtol=1e-6)
    np.testing.assert_allclose(lists.scores[1], [c + b, a], rtol=1e-6)
    np.testing.assert_allclose(lists.scores[2], [a + c, b], rtol=1e-6)


def test_dot_counts_what_items_share() -> None:
    # i0·i1 = 1, i0·i3 = 1, i1·i2 = 1, i1·i3 = 2, i2·i3 = 1
    lists = recommended(AttributeItemKNN(similarity="dot"), described(PAIRS, GENRES), 2)
    assert lists.items.tolist() == [[3, 2], [3, 0], [1, 0]]
    assert lists.scores.tolist() == [[3, 1], [3, 1], [3, 1]]


def test_user_scores_by_hand() -> None:
    # shares of A, B, C: u0 = (1, 1/2, 0), u1 = (1/2, 1, 0), u2 = (1/2, 1, 1/2)
    # |u0|² = 5/4, |u1|² = 5/4, |u2|² = 3/2; u0·u1 = 1, u0·u2 = 1, u1·u2 = 5/4
    lists = recommended(AttributeUserKNN(), described(PAIRS, GENRES), 2)
    one, two, three = 1 / (5 / 4), 1 / math.sqrt(15 / 8), (5 / 4) / math.sqrt(15 / 8)
    assert lists.items.tolist() == [[2, 3], [3, 0], [1, 0]]
    np.testing.assert_allclose(lists.scores[0], [one + two, two], rtol=1e-6)
    np.testing.assert_allclose(lists.scores[1], [three, one], rtol=1e-6)
    np.testing.assert_allclose(lists.scores[2], [two + three, two], rtol=1e-6)


def test_bray_curtis_of_users_by_hand() -> None:
    # Σ|u0 - u1| = 1 of 3; Σ|u0 - u2| = 3/2 of 7/2; Σ|u1 - u2| = 1/2 of 7/2
    data = described(PAIRS, GENRES)
    lists = recommended(AttributeUserKNN(similarity="braycurtis"), data, 2)
    one, two, three = 1 / (1 + 1 / 3), 1 / (1 + 3 / 7), 1 / (1 + 1 / 7)
    np.testing.assert_allclose(lists.scores[0], [one + two, two], rtol=1e-6)
    np.testing.assert_allclose(lists.scores[1], [three, one], rtol=1e-6)


def test_elliot_asks_the_users_who_have_one_as_neighbour() -> None:
    # nearest: N(0) = {1} (0.8 > 0.73), N(1) = {2} (0.91), N(2) = {1}
    # u0 is nobody's neighbour: all 0; u1 is that of u0 and u2; u2 that of u1
    data = described(PAIRS, GENRES)
    own = recommended(AttributeUserKNN(neighbors=1), data, 2)
    assert own.items.tolist() == [[2, 3], [3, 0], [1, 0]]
    assert own.scores[0, 0] > 0
    reverse = recommended(AttributeUserKNN(neighbors=1, variant="elliot"), data, 2)
    assert reverse.items.tolist() == [[2, 3], [3, 0], [1, 0]]
    assert reverse.scores[0].tolist() == [0, 0]
    np.testing.assert_allclose(
        reverse.scores[1], [(5 / 4) / math.sqrt(15 / 8), 1 / (5 / 4)], rtol=1e-6
    )


def test_elliot_takes_tf_idf_of_the_last_item() -> None:
    # N = 4, idf A = ln(4/3), B = ln(4/2), C = ln(4/1); unit vectors
    #   i0 = (1, 0, 0), i1 = (a, b, 0), i2 = (0, 0, 1), i3 = (1, 0, 0)
    # with (a, b) = (ln 4/3, ln 2) / length; u0 has i0 then i1: (a, b, 0), the last with A being
    # i1; u1 has i1 then i0: (1, b, 0); u2 has i2, i3: (1, 0, 1)
    pairs = [(0, 0), (0, 1), (1, 1), (1, 0), (2, 2), (2, 3)]
    data = described(pairs, {"genres": ["A", "A|B", "C|B", "A"]})
    length = math.hypot(math.log(4 / 3), math.log(2))
    a, b = math.log(4 / 3) / length, math.log(2) / length
    far = math.hypot(math.log(2), math.log(4))
    c, d = math.log(2) / far, math.log(4) / far  # i2 = (0, c, d)
    u0, u1, u2 = np.array([[a, b, 0], [1, b, 0], [1, c, d]])
    model = AttributeUserKNN(profile="tfidf", variant="elliot")
    found = model.fit(data, np.random.default_rng(1)).neighbours.toarray()
    expected = cosine_similarity([u0, u1, u2]) - np.eye(3)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_scikit_learn_agrees_on_cosine(rng: np.random.Generator) -> None:
    data = random_described(rng)
    vectors = item_vectors(term_counts(data, ("genres",)), "tfidf")
    of_users = mean_vectors(data.train, vectors, np.arange(60, dtype=np.int32))
    for model, rows in ((AttributeItemKNN, vectors), (AttributeUserKNN, of_users)):
        found = model(profile="tfidf").fit(data, rng).neighbours.toarray()
        expected = cosine_similarity(rows.toarray())
        np.fill_diagonal(expected, 0)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@settings(max_examples=30)
@given(seed=st.integers(0, 300), kind=st.sampled_from(get_args(Similarity)))
def test_neighbours_are_positive_no_more_than_asked_and_never_of_nothing(
    seed: int, kind: Similarity
) -> None:
    data = random_described(np.random.default_rng(seed))
    vectors = item_vectors(term_counts(data, ("genres",)), "binary")
    found = most_similar(vectors, 4, kind=kind)
    assert np.diff(found.indptr).max() <= 4
    assert (found.data > 0).all()
    assert not found.diagonal().any()
    bare = np.flatnonzero(np.diff(vectors.indptr) == 0)
    assert not found[bare].nnz
    assert not found[:, bare].nnz


@pytest.mark.parametrize("model", [AttributeItemKNN(), AttributeUserKNN()], ids=str)
def test_who_has_items_without_attributes_has_scores_of_0(model: Any) -> None:
    # u0 has i0 only, of which nothing is known
    data = described([(0, 0), (1, 1), (1, 2), (2, 2)], {"genres": [None, "A", "A"]})
    with collect_warnings() as notes:
        lists = recommended(model, data, 3)
    assert lists.items[0].tolist() == [1, 2, -1]
    assert lists.scores[0, :2].tolist() == [0, 0]
    assert lists.items[2].tolist() == [1, 0, -1]  # what nothing is known of comes last
    assert lists.scores[2, 0] > 0
    assert lists.scores[2, 1] == 0
    assert len(notes) == 1
    assert notes[0].startswith(f"{type(model).__name__}: 1 of 3 items have no attribute; ")
    assert notes[0].endswith("1 of 3 users have only such items: their scores are all 0")


def test_items_that_nobody_has_are_no_neighbours() -> None:
    # i1 is the twin of i0 but in nobody's training rows
    data = described([(0, 0), (1, 2)], {"genres": ["A|B", "A|B", "A"]})
    found = AttributeItemKNN(neighbors=1).fit(data, np.random.default_rng(1)).neighbours
    np.testing.assert_allclose(
        found.toarray(), [[0, 0, 0.5**0.5], [0, 0, 0], [0.5**0.5, 0, 0]], rtol=1e-6
    )


def test_an_unknown_column_is_helped(rng: np.random.Generator) -> None:
    for model in (AttributeItemKNN, AttributeUserKNN):
        with pytest.raises(UnknownColumn, match="no column 'genre'") as caught:
            model(attributes=("genre",)).fit(described(PAIRS, GENRES), rng)
        assert caught.value.remedy == "did you mean genres?"


def coloured(data: TrainingData) -> TrainingData:
    """The checkerboard, whose items say their colour."""
    frame = pd.DataFrame({"genres": [["W", "B"][each % 2] for each in range(data.train.n_items)]})
    return replace(data, items=Attributes(data.train.item_ids, frame, "item"))


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_it_keeps_the_contract_and_learns_the_colours(model: Any) -> None:
    data = coloured(checkerboard())
    check_recommender(model, data=data)
    lists = recommended(model, data, 4)
    own = lists.items[:40] % 2 == np.arange(40)[:, None] % 2
    assert own.all()


@pytest.mark.parametrize(
    "model",
    [AttributeItemKNN(), AttributeUserKNN(neighbors=60, similarity="euclidean")],
    ids=str,
)
def test_codes_are_names_only(model: Any, rng: np.random.Generator) -> None:
    data = random_described(rng)
    moved, users, items = permuted(data, rng)
    assert data.items is not None
    moved = replace(moved, items=data.items.aligned(moved.train.item_ids))
    first, second = recommended(model, data, 45), recommended(model, moved, 45)
    scores = np.full((2, 60, 46), np.nan)
    for place, lists in enumerate((first, second)):
        np.put_along_axis(scores[place], lists.items, lists.scores, axis=1)  # -1 is the last
    np.testing.assert_allclose(scores[0, :, :45], scores[1][users][:, items], rtol=1e-4, atol=1e-5)


def test_no_training_rows_at_all(rng: np.random.Generator) -> None:
    data = described([], {"genres": ["A", "B"]}, n_users=2)
    for model in MODELS:
        assert recommended(model, data, 2).items.tolist() == [[-1, -1], [-1, -1]]


def test_the_demo_world_has_tastes_that_are_learned() -> None:
    split, data = demo()
    chance = mean_ndcg(recommended(Random(), data, 10), split)
    for model in (AttributeItemKNN(), AttributeUserKNN()):
        assert mean_ndcg(recommended(model, data, 10), split) > 1.5 * chance


@pytest.mark.parametrize("n", [0, 1])
def test_there_may_be_few_rows(n: int) -> None:
    rows = csr_array(np.ones((n, 2), dtype=np.float32))
    for kind in get_args(Similarity):
        assert most_similar(rows, 3, kind=kind).nnz == 0


SIDE = ("genres", "cast", "director")


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("model", "least", "most"),
    [
        # Table A.4 has 0.1427 and 0.2946 with thousands of attributes of a knowledge graph, which
        # are not published with the data: measured here by genres, cast and director
        (AttributeItemKNN(attributes=SIDE, profile="tfidf"), 0.11, 0.14),
        (AttributeItemKNN(), 0.03, 0.06),
        (AttributeUserKNN(neighbors=529, similarity="braycurtis", variant="elliot"), 0.24, 0.27),
    ],
    ids=str,
)
def test_ndcg_on_movielens(
    model: Any, least: float, most: float, movielens: Split, real_data: Path
) -> None:
    side = MovieLens1M(side=("cast", "director")).load(real_data, np.random.default_rng(0)).items
    assert side is not None
    data = movielens.training_data(items=side.aligned(movielens.train.item_ids))
    assert least < mean_ndcg(recommended(model, data, 10), movielens) < most
