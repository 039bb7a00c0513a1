from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cosine

from recbias.core.dataset import AnyArray, FloatArray
from recbias.language.likelihood import (
    compute_perplexities,
    linearise_means,
    mark_within_deviations,
)
from recbias.metrics.text import (
    count_ngrams,
    count_vectors,
    embedding_average,
    greedy_matching,
    tokenize,
    unigram_f1,
)

TEXTS = st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=6)


def count_grams(text: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(text[at : at + n]) for at in range(len(text) - n + 1))


@pytest.mark.parametrize(
    ("text", "words", "characters"),
    [
        ("A cat.", ["A", "cat."], ["A", "c", "a", "t", "."]),
        ("你好 吗", ["你好", "吗"], ["你", "好", "吗"]),
        (" \n", [], []),
    ],
)
def test_tokenize_words_and_characters(text: str, words: list[str], characters: list[str]) -> None:
    assert tokenize(text, "words") == words
    assert tokenize(text, "characters") == characters


@given(TEXTS, st.integers(1, 4))
def test_ngram_counts_agree_with_a_counter(texts: list[list[str]], n: int) -> None:
    counts = count_ngrams(texts, n).toarray()
    expected = [count_grams(text, n) for text in texts]
    distinct = set().union(*expected)
    assert counts.shape == (len(texts), len(distinct))
    assert [sorted(row[row > 0]) for row in counts] == [
        sorted(counter.values()) for counter in expected
    ]
    assert sorted(counts.sum(axis=0)) == sorted(sum(expected, Counter()).values())


def test_f1_matches_hand_computation() -> None:
    # a b b against b c b: shared b b: 2 x 2 / (3 + 3); a against a a: 2 x 1 / 3; nothing to share
    texts = [["a", "b", "b"], ["a"], ["x"], []]
    references = [["b", "c", "b"], ["a", "a"], ["y"], ["y"]]
    assert unigram_f1(texts, references).tolist() == pytest.approx([2 / 3, 2 / 3, 0, 0])


@given(TEXTS, st.data())
def test_f1_agrees_with_multisets(texts: list[list[str]], data: st.DataObject) -> None:
    references = [
        data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=5)) for _ in texts
    ]
    expected = [
        2 * (Counter(x) & Counter(y)).total() / (len(x) + len(y))
        for x, y in zip(texts, references, strict=True)
    ]
    assert unigram_f1(texts, references) == pytest.approx(expected)
    if all(texts):
        assert unigram_f1(references, texts) == pytest.approx(expected)  # it does not matter which


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


def test_perplexity_matches_hand_computation() -> None:
    # sentence 0: probabilities 1/2 and 1/8: mean of ln is -2 ln 2, so 4; sentence 1: 1/3, so 3
    logs = np.log([1 / 2, 1 / 3, 1 / 8])
    values = compute_perplexities(logs, np.array([0, 1, 0]), 2)
    assert values.tolist() == pytest.approx([4.0, 3.0])


def test_tokens_without_score_are_excluded() -> None:
    logs = np.array([math.nan, math.log(1 / 4), math.nan])
    assert compute_perplexities(logs, np.array([0, 0, 1]), 3).tolist() == pytest.approx(
        [4.0, math.nan, math.nan], nan_ok=True
    )


def test_deviation_is_the_population_standard_deviation() -> None:
    # nineteen 0 and one 20: mean 1, variance (19 + 361)/20 = 19, sd 4.3589; 20 lies 4.3589 sd off
    values = np.array([0.0] * 19 + [20.0])
    assert mark_within_deviations(values, 4.35).tolist() == [True] * 19 + [False]
    assert mark_within_deviations(values, 4.36).all()  # by n - 1 it would lie 4.2485 sd off


def test_linearised_values_are_those_worked_by_hand() -> None:
    # -4, 0 (eight times), 1, 3: mean 0, variance (16 + 1 + 9) / 11 = 2.3636, sd 1.5374. Within 2
    # sd (3.0748) all but -4: T = 4/10 = 0.4. Limits 1 sd out keep all (mean 0), the upper 1 sd in
    # drops 3 also (1/9), the lower one in keeps the same ten. Changes: below 0 - 0.4 = -0.4,
    # above 0.4 - 1/9, and u = x / sd.
    values = np.array([-4.0, *[0.0] * 8, 1.0, 3.0])
    sd = np.sqrt(26 / 11)
    u = values / sd
    near = np.where(values == -4, 0.0, values - 0.4) * 11 / 10
    below = (-0.4 / 2) * (-u + 2 * (u**2 - 1) / 2)
    above = ((0.4 - 1 / 9) / 2) * (u + 2 * (u**2 - 1) / 2)
    linear = linearise_means(values[None], values[None], [values], 2)
    assert linear[0] == pytest.approx(0.4 + near + below + above)
    assert linear.mean() == pytest.approx(0.4)
