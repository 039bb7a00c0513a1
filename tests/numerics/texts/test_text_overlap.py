from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.metrics.text import count_ngrams, tokenize, unigram_f1

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


def test_ngrams_do_not_cross_texts() -> None:
    assert count_ngrams([["a"], ["b"], ["a", "b"]], 2).toarray().tolist() == [[0], [0], [1]]


@pytest.mark.parametrize("texts", [[], [[]], [["a"], []]])
def test_short_texts_have_no_ngrams(texts: list[list[str]]) -> None:
    assert count_ngrams(texts, 2).shape == (len(texts), 0)


def test_f1_matches_hand_computation() -> None:
    # a b b against b c b: shared b b: 2 x 2 / (3 + 3); a against a a: 2 x 1 / 3; nothing to share
    texts = [["a", "b", "b"], ["a"], ["x"], []]
    references = [["b", "c", "b"], ["a", "a"], ["y"], ["y"]]
    assert unigram_f1(texts, references).tolist() == pytest.approx([2 / 3, 2 / 3, 0, 0])


def test_f1_without_a_reference_is_undefined() -> None:
    assert np.isnan(unigram_f1([["a"], []], [[], []])).all()


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
