from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cosine

from recbias.core.dataset import AnyArray, FloatArray
from recbias.metrics.text import count_vectors, embedding_average, greedy_matching

VECTORS = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0], [0.0, 0.0], [-2.0, 0.0]])
TEXT = st.lists(st.integers(-1, 7), max_size=6)
PAIRS = st.lists(st.tuples(TEXT, TEXT), max_size=5)
RANDOM = np.random.default_rng(3).normal(size=(8, 4))


def compare(x: list[list[int]], y: list[list[int]], vectors: AnyArray) -> tuple[FloatArray, ...]:
    counts, references = (count_vectors(texts, len(vectors)) for texts in (x, y))
    return (
        embedding_average(counts, references, vectors),
        greedy_matching(counts, references, vectors),
    )


def match_directly(x: list[int], y: list[int]) -> float:
    """Return greedy matching by a loop over tokens."""
    x, y = ([token for token in text if token >= 0] for text in (x, y))
    if not x or not y:
        return math.nan
    sides = [
        sum(max(1 - cosine(RANDOM[a], RANDOM[b]) for b in other) for a in text) / len(text)
        for text, other in ((x, y), (y, x))
    ]
    return float(sum(sides) / 2)


@pytest.mark.parametrize(
    ("x", "y", "average", "greedy"),
    [
        ([0], [0], 1.0, 1.0),
        ([0], [1], 0.0, 0.0),
        ([0], [4], -1.0, -1.0),
        # mean (1/2, 1/2) against (1, 0); tokens 1 and 0, then 1: (1/2 + 1) / 2
        ([0, 1], [0], math.sqrt(0.5), 0.75),
    ],
)
def test_values_equal_those_worked_by_hand(
    x: list[int], y: list[int], average: float, greedy: float
) -> None:
    assert [values[0] for values in compare([x], [y], VECTORS)] == pytest.approx([average, greedy])


def test_vectors_count_by_their_length_in_the_average_only() -> None:
    # (1, 0) + (3, 4) = (4, 4) against (3, 4): 28 / (sqrt(32) 5); 3/5 and 1, then 1
    average, greedy = compare([[0, 2, -1]], [[2]], VECTORS)
    assert average[0] == pytest.approx(28 / (math.sqrt(32) * 5))
    assert greedy[0] == pytest.approx((0.8 + 1.0) / 2)


@pytest.mark.parametrize("text", [[], [-1], [3]])
def test_a_text_without_direction_is_undefined(text: list[int]) -> None:
    for values in (*compare([text], [[0]], VECTORS), *compare([[0]], [text], VECTORS)):
        assert np.isnan(values).tolist() == [True]


def test_a_vector_of_zero_is_not_matched() -> None:
    average, greedy = compare([[0, 3]], [[0]], VECTORS)
    assert (average[0], greedy[0]) == (1.0, 1.0)
    opposed, _ = compare([[0, 0, 4]], [[0]], VECTORS)  # (1, 0) twice and (-2, 0) add up to 0
    assert math.isnan(opposed[0])


def test_extreme_vectors_have_a_cosine() -> None:
    vectors = np.array([[1e-38, 0.0], [3e38, 3e38]], dtype=np.float32)
    average, greedy = compare([[0]], [[1]], vectors)
    assert average[0] == greedy[0] == pytest.approx(math.sqrt(0.5))


@given(PAIRS)
def test_values_equal_those_of_a_loop(pairs: list[tuple[list[int], list[int]]]) -> None:
    x, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    average, greedy = compare(x, y, RANDOM)
    assert greedy == pytest.approx([match_directly(*pair) for pair in pairs], nan_ok=True)
    means = [
        [RANDOM[[token for token in text if token >= 0]].mean(axis=0) for text in pair]
        if all(max(text, default=-1) >= 0 for text in pair)
        else None
        for pair in pairs
    ]
    expected = [math.nan if pair is None else 1 - cosine(*pair) for pair in means]
    assert average == pytest.approx(expected, nan_ok=True)


@given(PAIRS, st.randoms())
def test_order_and_sides_have_no_effect(
    pairs: list[tuple[list[int], list[int]]], random: Random
) -> None:
    x, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    shuffled = [random.sample(text, len(text)) for text in x]
    for values, others, swapped in zip(
        compare(x, y, RANDOM), compare(shuffled, y, RANDOM), compare(y, x, RANDOM), strict=True
    ):
        assert np.array_equal(values, others, equal_nan=True)
        assert values == pytest.approx(swapped, nan_ok=True)
        defined = values[~np.isnan(values)]
        assert (np.abs(defined) <= 1).all()
