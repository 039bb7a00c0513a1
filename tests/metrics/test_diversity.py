from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Interactions
from recbias.core.errors import BrokenContract, MissingEvidence, UnknownColumn
from recbias.core.evidence import Embeddings, Evidence
from recbias.metrics.diversity import (
    InterUserDistance,
    IntraListDistance,
    SelfInformation,
    Serendipity,
    Unexpectedness,
)
from support.worlds.evidence_worlds import (
    make_evidence,
    make_lists,
    make_user_queries,
    make_vocabulary,
)
from support.worlds.evidence_worlds import measure_queries as measure


def make_train(histories: list[list[int]], n_items: int) -> Interactions:
    users = np.repeat(np.arange(len(histories)), [len(items) for items in histories])
    items = np.array([item for history in histories for item in history], dtype=np.int32)
    ones = np.ones(items.size, dtype=np.float32)
    ids = make_vocabulary("u", len(histories)), make_vocabulary("i", n_items)
    return Interactions(users.astype(np.int32), items, ones, None, *ids)


def make_genre_world(lists: list[list[int]], genres: list[str | None]) -> Evidence:
    n = len(genres)
    items = Attributes(make_vocabulary("i", n), pd.DataFrame({"genre": genres}))
    return make_evidence(make_lists(lists, outside=["new"]), n_items=n, items=items)


def test_intra_list_distance_by_hand() -> None:
    # A and A|B: cos 1/sqrt(2); A and C: 0; A|B and C: 0
    evidence = make_genre_world([[0, 1, 2], [0, 1], [2, 2 + 1]], ["A", "A|B", "C", "C"])
    expected = [1 - 2 * (1 / math.sqrt(2)) / 6, 1 - 1 / math.sqrt(2), 0.0]
    metric = IntraListDistance(attribute="genre")
    assert measure(metric, evidence) == pytest.approx(expected, abs=1e-9)
    cut = IntraListDistance(attribute="genre", k=2)
    assert measure(cut, evidence)[0] == pytest.approx(expected[1], abs=1e-9)


def make_vector_world(lists: list[list[int]], vectors: Any, **fields: Any) -> Evidence:
    embeddings = Embeddings(None, np.asarray(vectors, dtype=np.float32))
    return make_evidence(make_lists(lists), n_items=len(vectors), embeddings=embeddings, **fields)


@given(seed=st.integers(0, 2**32 - 1))
def test_distances_between_vectors_equal_those_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(9, 3)).astype(np.float32)
    lists = [rng.permutation(9)[: rng.integers(2, 7)].tolist() for _ in range(6)]
    values = measure(IntraListDistance(), make_vector_world(lists, vectors))
    exact = vectors.astype(np.float64)
    assert values == pytest.approx([pdist(exact[row], "cosine").mean() for row in lists], abs=1e-9)
    shuffled = [rng.permutation(row).tolist() for row in lists]
    scaled = make_vector_world(shuffled, vectors * 4)
    assert measure(IntraListDistance(), scaled) == pytest.approx(values, abs=1e-9)
    assert all(0 <= value <= 2 for value in values)


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
def test_a_missing_vector_is_no_vector_of_zeros() -> None:
    vectors = [[1.0, 0.0], [math.nan, math.nan], [0.0, 2.0]]
    evidence = make_vector_world([[0, 1, 2], [0, 1]], vectors)
    values = measure(IntraListDistance(), evidence)
    assert values[0] == pytest.approx(1.0)
    assert math.isnan(values[1])


def test_vectors_of_another_model_are_used() -> None:
    other = Embeddings(None, np.array([[1, 0], [1, 0]], dtype=np.float32))
    evidence = make_vector_world([[0, 1]], [[1, 0], [0, 1]], choosing_embeddings=other)
    assert measure(IntraListDistance(), evidence) == [1.0]
    assert measure(IntraListDistance(embeddings_of="ours"), evidence) == [0.0]
    assert IntraListDistance(embeddings_of="ours").needs_now() == {"lists"}
    assert IntraListDistance(attribute="genre").needs_now() == {"lists", "items"}
    with pytest.raises(MissingEvidence, match="needs choosing_embeddings"):
        measure(IntraListDistance(embeddings_of="ours"), make_vector_world([[0]], [[1.0]]))


def test_an_unknown_attribute_and_absent_vectors_are_errors() -> None:
    evidence = make_genre_world([[0, 1]], ["A", "B"])
    with pytest.raises(UnknownColumn, match="no column 'gender'"):
        IntraListDistance(attribute="gender").check(evidence)
    users_only = Embeddings(np.ones((1, 2), dtype=np.float32), None)
    with pytest.raises(BrokenContract, match="no embeddings of items"):
        measure(IntraListDistance(), make_evidence(make_lists([[0]]), embeddings=users_only))


def test_self_information_by_hand() -> None:
    # four users, of whom 4, 2 and 1 have items 0, 1 and 2: 0, 1 and 2 bits
    train = make_train([[0, 1], [0, 1], [0, 2], [0]], 4)
    queries = make_user_queries(4)
    lists = make_lists([[0, 1], [1, 2], [3], []])
    evidence = make_evidence(lists, n_items=4, train=train, queries=queries)
    raw = SelfInformation(corrected=False)
    with collect_warnings() as warnings:
        (measurement,) = raw.measure(evidence)
        assert measure(SelfInformation(k=1, corrected=False), evidence)[:2] == [0.0, 1.0]
    assert measurement.units.values[:2] == pytest.approx([0.5, 1.5], abs=1e-12)
    assert (measurement.n, measurement.undefined) == (2, 2)
    message = "1 positions of the lists hold an item of unknown popularity and are excluded"
    assert warnings == [f"the metric: {message}"] * 2
    # minus 1 / (2 n) + 1 / 8 nats, plus 1 / n for items of the own history: u0 has both items, of
    # n = 4 and 2 users, u1 item 1 of its list
    own = [
        (1 / 8 + 1 / 8 - 1 / 4 + 1 / 4 + 1 / 8 - 1 / 2) / 2,
        (1 / 4 + 1 / 2 + 1 / 4 - 1 / 2) / 2,
    ]
    expected = [0.5 - own[0] / math.log(2), 1.5 - own[1] / math.log(2)]
    with collect_warnings():
        (measurement,) = SelfInformation().measure(evidence)
    assert measurement.units.values[:2] == pytest.approx(expected, abs=1e-12)


def make_popular_world(
    lists: list[list[int]], histories: list[list[int]], relevant: Any = None, n_items: int = 6
) -> Evidence:
    return make_evidence(
        make_lists(lists, outside=["new"]),
        relevant,
        n_items=n_items,
        train=make_train(histories, n_items),
    )


def test_unexpectedness_and_serendipity_by_hand() -> None:
    # popularity 3, 2, 2, 1, 1, 0: MostPop gives user 0 (of items 0 and 3) 1 and 2,
    # user 1 (0, 1, 2) 3 and 4, user 2 (0, 1, 2, 4) only 3
    histories = [[0, 3], [0, 1, 2], [0, 1, 2, 4]]
    lists = [[1, 4], [3, 4], [3, 6]]
    evidence = make_popular_world(lists, histories, [[1, 4], [5], []])
    assert measure(Unexpectedness(), evidence) == [0.5, 0.0, 0.5]
    assert measure(Serendipity(), evidence) == pytest.approx([0.5, 0.0, math.nan], nan_ok=True)
    assert measure(Unexpectedness(k=1), evidence) == [0.0, 0.0, 0.0]
    (measurement,) = Serendipity().measure(evidence)
    assert (measurement.n, measurement.undefined) == (2, 1)


def test_the_interval_of_unexpectedness_accounts_for_the_counts_of_the_popularity() -> None:
    # items 0 and 1 have 5 and 4 training users: in a sample where 1 has more, MostPop gives it to
    # the 9 users of item 2, whose lists of item 1 then are expected, all together
    histories = [[0]] * 5 + [[1]] * 4 + [[2]] * 9
    lists = [[2]] * 9 + [[1]] * 9
    (row,) = Unexpectedness().measure(make_popular_world(lists, histories))
    assert row.value == 0.5
    t_half_width = 2.1098 * row.std / math.sqrt(18)
    assert row.ci_high - row.value > 2 * t_half_width
    assert row.value - row.ci_low == pytest.approx(row.ci_high - row.value)


def measure_distance(lists: list[list[int]], **settings: Any) -> Any:
    evidence = make_evidence(make_lists(lists, outside=["new"]), n_items=5, n_bootstrap=20)
    (measurement,) = InterUserDistance(**settings).measure(evidence)
    return measurement


def test_inter_user_distance_by_hand() -> None:
    # shared items: 1 (0 and 1), 2 (0 and 2), 1 (1 and 2); of two each
    measurement = measure_distance([[0, 1], [1, 2], [1, 0]])
    assert measurement.value == pytest.approx(1 - (1 + 2 + 1) / 6, abs=1e-12)
    assert measure_distance([[0, 1], [1, 2], [1, 0]], k=1).value == pytest.approx(2 / 3)
    assert measure_distance([[0, 5], [5, 1]]).value == pytest.approx(0.5)  # also outside items


@given(seed=st.integers(0, 2**32 - 1))
def test_inter_user_distance_is_the_mean_over_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(6)[: rng.integers(1, 5)].tolist() for _ in range(8)]
    pairs = itertools.combinations(lists, 2)
    expected = np.mean([1 - len(set(a) & set(b)) / max(map(len, lists)) for a, b in pairs])
    assert measure_distance(lists).value == pytest.approx(expected, abs=1e-9)


def test_the_spread_of_the_bootstrap_is_that_of_new_users() -> None:
    chances = 1 / np.arange(1, 41) ** 0.8

    def measure_users(seed: int, n_bootstrap: int) -> Any:
        scores = np.random.default_rng(seed).gumbel(size=(150, 40)) + np.log(chances)
        lists = make_lists(np.argsort(-scores, axis=1)[:, :5].tolist())
        evidence = make_evidence(lists, n_items=40, n_bootstrap=n_bootstrap)
        return InterUserDistance().measure(evidence)[0]

    truth = np.std([measure_users(seed, 1).value for seed in range(150)], ddof=1)
    spread = np.mean([np.std(measure_users(seed, 200).replicates, ddof=1) for seed in range(5)])
    assert 0.8 < spread / truth < 1.25
