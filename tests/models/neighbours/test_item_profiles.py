from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from recbias.models.knn import Variant, compute_item_vectors, count_terms, has_terms
from support.worlds.attribute_worlds import make_item_data, make_random_item_data

# three items: t0 in two of them (twice in one), t1 in one, t2 in all that have a term
COUNTS = csr_array(np.array([[2, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=np.float32))


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
