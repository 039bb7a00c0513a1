from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.numerics.text_overlap import ngram_counts, tokens_of, unigram_f1

TEXTS = st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=6)


def grams(text: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(text[at : at + n]) for at in range(len(text) - n + 1))


@pytest.mark.parametrize(
    ("text", "words", "characters"),
    [
        ("A cat.", ["A", "cat."], ["A", "c", "a", "t", "."]),
        ("你好 吗", ["你好", "吗"], ["你", "好", "吗"]),
        (" \n", [], []),
    ],
)
def test_tokens(text: str, words: list[str], characters: list[str]) -> None:
    assert tokens_of(text, "words") == words
    assert tokens_of(text, "characters") == characters


@given(TEXTS, st.integers(1, 4))
def test_ngrams_are_those_counted_one_by_one(texts: list[list[str]], n: int) -> None:
    counts = ngram_counts(texts, n).toarray()
    expected = [grams(each, n) for each in texts]
    distinct = set().union(*expected)
    assert counts.shape == (len(texts), len(distinct))
    assert [sorted(row[row > 0]) for row in counts] == [sorted(each.values()) for each in expected]
    assert sorted(counts.sum(axis=0)) == sorted(sum(expected, Counter()).values())


def test_no_ngram_runs_from_one_text_into_the_next() -> None:
    assert ngram_counts([["a"], ["b"], ["a", "b"]], 2).toarray().tolist() == [[0], [0], [1]]


@pytest.mark.parametrize("texts", [[], [[]], [["a"], []]])
def test_texts_too_short_have_none(texts: list[list[str]]) -> None:
    assert ngram_counts(texts, 2).shape == (len(texts), 0)


def test_f1_by_hand() -> None:
    # a b b against b c b: shared b b: 2 x 2 / (3 + 3); a against a a: 2 x 1 / 3; nothing to share
    texts = [["a", "b", "b"], ["a"], ["x"], []]
    references = [["b", "c", "b"], ["a", "a"], ["y"], ["y"]]
    assert unigram_f1(texts, references).tolist() == pytest.approx([2 / 3, 2 / 3, 0, 0])


def test_f1_without_a_reference_is_undefined() -> None:
    assert np.isnan(unigram_f1([["a"], []], [[], []])).all()


@given(TEXTS, st.data())
def test_f1_is_that_of_two_bags(texts: list[list[str]], data: st.DataObject) -> None:
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
