from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset.dataset import Reviews
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.models.neural.item_texts import Documents, _coded, item_documents, warn_of_silence
from support.attribute_worlds import make_item_data
from support.worlds import make_interactions

EVERYTHING: dict[str, Any] = {"vocabulary": 1000, "max_length": 1000}


def told(*texts: Any, silent: int = 0, **columns: list[Any]) -> TrainingData:
    """A world in which user 0 has every item but the last ``silent``."""
    pairs = [(0, item) for item in range(len(texts) - silent)]
    return make_item_data(pairs, {"text": list(texts), **columns}, n_users=1)


def read(data: TrainingData, *text: str, **more: Any) -> Documents:
    return item_documents(data, text or ("text",), **EVERYTHING | more)


def test_words_are_codes_in_order_the_commonest_first() -> None:
    # "sea" stands in three items, "the" in two (three times), the others in one, in order
    found = read(told("the sea, the SEA", "a sea", "ship of the sea!"))
    #       sea the a ship of -> 1 2 3 4 5
    assert found.codes.tolist() == [[2, 1, 2, 1], [3, 1, 0, 0], [4, 5, 2, 1]]
    assert found.n_words == 5
    assert found.told.all()


def test_columns_are_read_one_after_the_other() -> None:
    data = told("a", "b", genres=["x|y", None])
    assert read(data, "genres", "text").codes.tolist() == [[1, 2, 3], [4, 0, 0]]
    assert read(data, "text", "genres").codes.tolist() == [[1, 2, 3], [4, 0, 0]]
    assert read(data, "text", "genres", width=5).codes.shape == (2, 5)


def test_reviews_of_an_item_are_read_in_their_order() -> None:
    texts = np.array(["good film", "bad", "", "good end"], dtype=object)
    reviews = Reviews(np.zeros(4, np.int32), np.array([1, 0, 0, 1], np.int32), texts)
    data = replace(told("one", "two"), reviews=reviews)
    # good stands in one item only, as all do: in the order of the items' texts
    assert read(data, "reviews").codes.tolist() == [[1, 0, 0, 0], [2, 3, 2, 4]]
    assert read(data, "text", "reviews").codes[0].tolist() == [1, 2, 0, 0, 0]


def test_long_texts_are_cut_before_words_are_left_out() -> None:
    found = read(told("a b c d", "b", "b"), vocabulary=1, max_length=2)
    assert found.codes.tolist() == [[1], [1], [1]]
    assert read(told("a " * 10_000 + "b"), max_length=7).codes.tolist() == [[1] * 7]
    two = told("a b", "c", genres=["x y", "z"])
    assert read(two, "text", "genres", max_length=3).codes.tolist() == [[1, 2, 3], [4, 5, 0]]


def test_many_items_and_words_do_not_overflow() -> None:
    # 2,000,000 items by 2,000 words are more cells than 32 bits tell apart
    items = np.linspace(0, 2_000_000, 2000).astype(np.int32)
    words = pd.Series([f"w{each}" for each in range(2000)], index=items)
    codes, n_words = _coded(words, np.ones(2_000_001, dtype=bool), 8000)
    assert n_words == 2000
    assert codes.tolist() == list(range(1, 2001))


def test_words_that_only_strangers_have_are_not_known() -> None:
    found = read(told("a b", "a c", silent=1))
    assert found.codes.tolist() == [[1, 2], [1, 0]]
    assert found.n_words == 2


@pytest.mark.parametrize(
    ("text", "n_words"),
    [
        ("Amélie – «Le fabuleux»", 3),
        ("שלום עולם", 2),
        ("مرحبا، بالعالم", 2),
        ("🎬 🎬🍿", 2),
        ("नमस्ते दुनिया", 2),
        ("7人の侍", 1),
        ("\u202eab\u202c c", 2),
        ("Schindler's List (1993)", 4),
        ("_ -- ... “ ”", 0),
        ("   ", 0),
    ],
)
def test_words_of_any_script(text: str, n_words: int) -> None:
    found = read(told(text))
    assert found.n_words == n_words
    assert np.count_nonzero(found.codes) == n_words


def test_items_without_text_are_counted() -> None:
    data = told("a", None, "", float("nan"), "b", silent=1)
    found = read(data)
    assert found.told.tolist() == [True, False, False, False, False]
    with collect_warnings() as notes:
        warn_of_silence("ConvMF", found, data, outcome="have no text")
        warn_of_silence("ConvMF", read(told("a")), told("a"), outcome="have no text")
    assert notes == ["ConvMF: 3 of 4 items have no text"]


def test_nothing_to_read_at_all() -> None:
    found = read(told(None, None), width=3)
    assert found.codes.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert found.n_words == 0
    nobody = make_item_data([], {"text": ["a"]}, n_users=1)
    assert read(nobody).n_words == 0


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6), st.integers(1, 5))
def test_texts_are_what_python_splits(texts: list[str], longest: int) -> None:
    plain = [
        "".join(each if each.isascii() and each.isalpha() else " " for each in t) for t in texts
    ]
    found = read(told(*plain), max_length=longest)
    names: dict[int, str] = {}
    for line, text in zip(found.codes, plain, strict=True):
        words = text.lower().split()[:longest]
        assert np.count_nonzero(line) == len(words)
        for code, word in zip(line, words, strict=False):
            assert names.setdefault(int(code), word) == word
    assert len(names) == len(set(names.values())) == found.n_words


def test_what_is_missing_is_named() -> None:
    data = TrainingData(make_interactions([(0, 0)]))
    with pytest.raises(MissingEvidence, match="nothing is known of the items") as caught:
        read(data)
    assert caught.value.where == "text"
    with pytest.raises(MissingEvidence, match="no reviews"):
        read(told("a"), "reviews")
    with pytest.raises(UnknownColumn, match="no column 'txt'") as unknown:
        read(told("a"), "txt")
    assert (unknown.value.where, unknown.value.remedy) == ("text", "did you mean text?")
