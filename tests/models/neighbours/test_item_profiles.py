from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from recbias.core.context import collect_warnings
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.models.knn import (
    Variant,
    average_item_vectors,
    compute_item_vectors,
    count_terms,
    has_terms,
    select_last_weights,
    warn_about_missing_terms,
)
from support.worlds.attribute_worlds import make_item_data, make_random_item_data

# i3 has no training row
PAIRS = [(0, 0), (0, 1), (1, 1), (1, 2)]
COLUMNS = {
    "genres": ["A|B", "B", None, "A"],
    "cast": ["B", None, None, "C"],
    "text": ["One day, one DAY a ship", "The ship", None, "Nobody asks"],
}


def test_equal_values_of_two_columns_are_two_terms() -> None:
    data = make_item_data(PAIRS, COLUMNS)
    # terms: genre A, genre B, cast B, cast C; i3 has no training row
    vectors = count_terms(data, ("genres", "cast"))
    assert vectors.toarray().tolist() == [[1, 1, 1, 0], [0, 1, 0, 0], [0] * 4, [0] * 4]
    assert has_terms(vectors).tolist() == [True, True, False, False]


def test_words_are_counted_in_lower_case() -> None:
    # asks, day, nobody, one, ship, the; "a" has one letter
    vectors = count_terms(make_item_data(PAIRS, COLUMNS), ("text",), "words")
    assert vectors.toarray().tolist() == [[0, 2, 0, 2, 1, 0], [0, 0, 0, 0, 1, 1], [0] * 6, [0] * 6]


def test_equal_words_of_two_columns_are_one_term() -> None:
    data = make_item_data([(0, 0), (0, 1)], {"text": ["red sea", None], "more": ["sea", "sea"]})
    assert count_terms(data, ("text", "more"), "words").toarray().tolist() == [[1, 2], [0, 1]]


@pytest.mark.parametrize("cells", [[None, None], ["a", "!"], ["", " "]])
def test_text_without_words_has_no_terms(cells: list[str | None]) -> None:
    vectors = count_terms(make_item_data([(0, 0), (0, 1)], {"text": cells}), ("text",), "words")
    assert vectors.shape == (2, 0)


def test_unknown_column_error_suggests_the_nearest_name() -> None:
    with pytest.raises(UnknownColumn) as caught:
        count_terms(make_item_data(PAIRS, COLUMNS), ("genre",))
    assert str(caught.value) == "attributes: the items have no column 'genre'"
    assert caught.value.remedy == "did you mean genres?"


def test_items_table_is_required() -> None:
    with pytest.raises(MissingEvidence, match="the data has no items table"):
        count_terms(replace(make_item_data(PAIRS, COLUMNS), items=None), ("genres",))


# three items: t0 in two of them (twice in one), t1 in one, t2 in all that have a term
COUNTS = csr_array(np.array([[2, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=np.float32))


def test_binary_vectors_ignore_counts_and_copy() -> None:
    vectors = compute_item_vectors(COUNTS, "binary").toarray()
    assert vectors.tolist() == [[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert COUNTS.data.tolist() == [2, 1, 1, 1, 1, 1]  # unchanged


@pytest.mark.parametrize(
    ("variant", "idf"),
    [
        # N = 3 items have a term; t0 stands in 2 of them, t1 in 1, t2 in 3
        ("paper", [1 + math.log(4 / 3), 1 + math.log(4 / 2), 1 + math.log(4 / 4)]),
        ("elliot", [math.log(3 / 2), math.log(3 / 1), 0]),
    ],
)
def test_tf_idf_matches_a_hand_computation(variant: Variant, idf: list[float]) -> None:
    a, b, c = idf
    i0 = np.array([2 * a, b, c]) / math.sqrt(4 * a * a + b * b + c * c)
    i1 = np.array([a, 0, c]) / math.hypot(a, c)
    vectors = compute_item_vectors(COUNTS, "tfidf", variant=variant).toarray()
    np.testing.assert_allclose(vectors[:2], [i0, i1], rtol=1e-6)
    # i2 has only the term that all items have, which weighs 0 in the elliot variant
    assert vectors[2:].tolist() == [[0, 0, 1 if c else 0], [0, 0, 0]]


TEXTS = ["a ship of the sea", "the sea the sea", "nobody asks the ship", "day by day"]


def test_word_tf_idf_matches_scikit_learn() -> None:
    data = make_item_data([(0, item) for item in range(4)], {"text": list(TEXTS)})
    vectors = compute_item_vectors(count_terms(data, ("text",), "words"), "tfidf")
    expected = TfidfVectorizer().fit_transform(TEXTS).toarray()
    np.testing.assert_allclose(vectors.toarray(), expected, rtol=1e-6)


@given(seed=st.integers(0, 500))
def test_value_tf_idf_matches_scikit_learn_and_has_unit_length(seed: int) -> None:
    counts = count_terms(make_random_item_data(np.random.default_rng(seed)), ("genres",))
    has_term = has_terms(counts)
    vectors = compute_item_vectors(counts, "tfidf").toarray()
    expected = TfidfTransformer().fit_transform(counts[np.flatnonzero(has_term)]).toarray()
    np.testing.assert_allclose(vectors[has_term], expected, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), has_term, rtol=1e-6)


VECTORS = csr_array(np.array([[0.5, 0, 0.1], [0.2, 0.3, 0], [0, 0.6, 0.4]], dtype=np.float32))


def test_user_profile_is_the_mean_of_the_item_vectors() -> None:
    train = make_item_data([(0, 0), (0, 1), (1, 2)], {"x": ["a"] * 3}, n_users=3).train
    vectors = average_item_vectors(train, VECTORS, np.array([1, 0, 2], dtype=np.int32)).toarray()
    np.testing.assert_allclose(vectors[0], [0, 0.6, 0.4], rtol=1e-6)
    np.testing.assert_allclose(vectors[1], [0.35, 0.15, 0.05], rtol=1e-6)
    assert vectors[2].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # i1 is the last with t0, i2 the last with t1 and t2
        ([(0, 0), (0, 1), (0, 2)], [0.2, 0.6, 0.4]),
        # in reverse order i0 is the last with t0 and t2, i1 with t1
        ([(0, 2), (0, 1), (0, 0)], [0.5, 0.3, 0.1]),
    ],
)
def test_last_item_with_a_term_determines_its_weight(
    pairs: list[tuple[int, int]], expected: list[float]
) -> None:
    train = make_item_data([*pairs, (1, 1)], {"x": ["a"] * 3}, n_users=3).train
    users = np.array([2, 0, 1, 0], dtype=np.int32)
    vectors = select_last_weights(train, VECTORS, users).toarray()
    u1 = [0.2, 0.3, 0.0]
    np.testing.assert_allclose(vectors, [[0.0] * 3, expected, u1, expected], rtol=1e-6)


def test_warning_counts_items_and_users_without_attributes() -> None:
    # i0 and i3 have no genre; u0 has these only
    data = make_item_data([(0, 0), (0, 3), (1, 0), (1, 1)], {"genres": [None, "A", "B", None]})
    with collect_warnings() as warnings:
        warn_about_missing_terms(
            "VSM", data, count_terms(data, ("genres",)), outcome="empty lists"
        )
    assert warnings == [
        "VSM: 2 of 3 items have no attribute; 1 of 2 users have only such items: empty lists"
    ]


def test_no_warning_if_all_items_have_attributes() -> None:
    data = make_item_data([(0, 0), (0, 1)], {"genres": ["A", "A|B"]})
    with collect_warnings() as warnings:
        warn_about_missing_terms(
            "VSM", data, count_terms(data, ("genres",)), outcome="empty lists"
        )
    assert warnings == []
