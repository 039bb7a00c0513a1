from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.models.neighbours.item_profiles import (
    Variant,
    has_terms,
    item_vectors,
    last_vectors,
    mean_vectors,
    term_counts,
    warn_of_nothing,
)
from support.attribute_worlds import described, random_described

# everybody but i3 is in training
PAIRS = [(0, 0), (0, 1), (1, 1), (1, 2)]
COLUMNS = {
    "genres": ["A|B", "B", None, "A"],
    "cast": ["B", None, None, "C"],
    "text": ["One day, one DAY a ship", "The ship", None, "Nobody asks"],
}


def test_the_values_of_two_columns_are_two_terms() -> None:
    data = described(PAIRS, COLUMNS)
    # terms: genre A, genre B, cast B, cast C; i3 has no training row
    found = term_counts(data, ("genres", "cast"))
    assert found.toarray().tolist() == [[1, 1, 1, 0], [0, 1, 0, 0], [0] * 4, [0] * 4]
    assert has_terms(found).tolist() == [True, True, False, False]


def test_words_are_counted_in_lower_case() -> None:
    # asks, day, nobody, one, ship, the; "a" has one letter
    found = term_counts(described(PAIRS, COLUMNS), ("text",), "words")
    assert found.toarray().tolist() == [[0, 2, 0, 2, 1, 0], [0, 0, 0, 0, 1, 1], [0] * 6, [0] * 6]


def test_a_word_is_the_same_in_two_columns() -> None:
    data = described([(0, 0), (0, 1)], {"text": ["red sea", None], "more": ["sea", "sea"]})
    assert term_counts(data, ("text", "more"), "words").toarray().tolist() == [[1, 2], [0, 1]]


@pytest.mark.parametrize("cells", [[None, None], ["a", "!"], ["", " "]])
def test_there_may_be_no_word_at_all(cells: list[str | None]) -> None:
    found = term_counts(described([(0, 0), (0, 1)], {"text": cells}), ("text",), "words")
    assert found.shape == (2, 0)


def test_an_unknown_column_is_helped() -> None:
    with pytest.raises(UnknownColumn) as caught:
        term_counts(described(PAIRS, COLUMNS), ("genre",))
    assert str(caught.value) == "attributes: the items have no column 'genre'"
    assert caught.value.remedy == "did you mean genres?"


def test_items_must_be_known() -> None:
    with pytest.raises(MissingEvidence, match="nothing is known of the items"):
        term_counts(replace(described(PAIRS, COLUMNS), items=None), ("genres",))


# three items: t0 in two of them (twice in one), t1 in one, t2 in all that have a term
COUNTS = csr_array(np.array([[2, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=np.float32))


def test_binary_vectors_by_hand() -> None:
    found = item_vectors(COUNTS, "binary").toarray()
    assert found.tolist() == [[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert COUNTS.data.tolist() == [2, 1, 1, 1, 1, 1]  # not written on


@pytest.mark.parametrize(
    ("variant", "idf"),
    [
        # N = 3 items have a term; t0 stands in 2 of them, t1 in 1, t2 in 3
        ("paper", [1 + math.log(4 / 3), 1 + math.log(4 / 2), 1 + math.log(4 / 4)]),
        ("elliot", [math.log(3 / 2), math.log(3 / 1), 0]),
    ],
)
def test_tf_idf_by_hand(variant: Variant, idf: list[float]) -> None:
    a, b, c = idf
    first = np.array([2 * a, b, c]) / math.sqrt(4 * a * a + b * b + c * c)
    second = np.array([a, 0, c]) / math.hypot(a, c)
    found = item_vectors(COUNTS, "tfidf", variant=variant).toarray()
    np.testing.assert_allclose(found[:2], [first, second], rtol=1e-6)
    # an item of nothing but the term of all is of nothing where that term weighs 0
    assert found[2:].tolist() == [[0, 0, 1 if c else 0], [0, 0, 0]]


TEXTS = ["a ship of the sea", "the sea the sea", "nobody asks the ship", "day by day"]


def test_scikit_learn_agrees_on_words() -> None:
    data = described([(0, each) for each in range(4)], {"text": list(TEXTS)})
    found = item_vectors(term_counts(data, ("text",), "words"), "tfidf")
    expected = TfidfVectorizer().fit_transform(TEXTS).toarray()
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-6)


@given(seed=st.integers(0, 500))
def test_scikit_learn_agrees_on_values_and_lengths_are_1(seed: int) -> None:
    counts = term_counts(random_described(np.random.default_rng(seed)), ("genres",))
    known = has_terms(counts)
    found = item_vectors(counts, "tfidf").toarray()
    expected = TfidfTransformer().fit_transform(counts[np.flatnonzero(known)]).toarray()
    np.testing.assert_allclose(found[known], expected, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), known, rtol=1e-6)


VECTORS = csr_array(np.array([[0.5, 0, 0.1], [0.2, 0.3, 0], [0, 0.6, 0.4]], dtype=np.float32))


def test_a_user_is_the_mean_of_the_items() -> None:
    train = described([(0, 0), (0, 1), (1, 2)], {"x": ["a"] * 3}, n_users=3).train
    found = mean_vectors(train, VECTORS, np.array([1, 0, 2], dtype=np.int32)).toarray()
    np.testing.assert_allclose(found[0], [0, 0.6, 0.4], rtol=1e-6)
    np.testing.assert_allclose(found[1], [0.35, 0.15, 0.05], rtol=1e-6)
    assert found[2].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # i1 is the last with t0, i2 the last with t1 and t2
        ([(0, 0), (0, 1), (0, 2)], [0.2, 0.6, 0.4]),
        # the other way round i0 is the last with t0 and t2, i1 with t1
        ([(0, 2), (0, 1), (0, 0)], [0.5, 0.3, 0.1]),
    ],
)
def test_the_last_item_with_a_term_gives_its_weight(
    pairs: list[tuple[int, int]], expected: list[float]
) -> None:
    train = described([*pairs, (1, 1)], {"x": ["a"] * 3}, n_users=3).train
    users = np.array([2, 0, 1, 0], dtype=np.int32)
    found = last_vectors(train, VECTORS, users).toarray()
    of_u1 = [0.2, 0.3, 0.0]
    np.testing.assert_allclose(found, [[0.0] * 3, expected, of_u1, expected], rtol=1e-6)


def test_items_and_users_of_nothing_are_counted() -> None:
    # i0 and i3 have no genre; u0 has these only
    data = described([(0, 0), (0, 3), (1, 0), (1, 1)], {"genres": [None, "A", "B", None]})
    with collect_warnings() as notes:
        warn_of_nothing("VSM", data, term_counts(data, ("genres",)), outcome="empty lists")
    assert notes == [
        "VSM: 2 of 3 items have no attribute; 1 of 2 users have only such items: empty lists"
    ]


def test_where_all_are_described_nothing_is_said() -> None:
    data = described([(0, 0), (0, 1)], {"genres": ["A", "A|B"]})
    with collect_warnings() as notes:
        warn_of_nothing("VSM", data, term_counts(data, ("genres",)), outcome="empty lists")
    assert notes == []
