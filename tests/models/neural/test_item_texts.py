from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.models.deepfm import (
    Documents,
    encode_documents,
    warn_about_missing_texts,
)
from support.worlds.attribute_worlds import make_item_data
from support.worlds.small_worlds import make_interactions

UNLIMITED: dict[str, Any] = {"vocabulary": 1000, "max_length": 1000}


def make_texts(*texts: Any, n_strangers: int = 0, **columns: list[Any]) -> TrainingData:
    """Return data in which user 0 has all items but the last ``n_strangers``."""
    pairs = [(0, item) for item in range(len(texts) - n_strangers)]
    return make_item_data(pairs, {"text": list(texts), **columns}, n_users=1)


def encode(data: TrainingData, *text: str, **options: Any) -> Documents:
    return encode_documents(data, text or ("text",), **UNLIMITED | options)


def test_codes_are_in_text_order_and_numbered_by_frequency() -> None:
    # "sea" is in three items, "the" in two (three times), the other words in one, in order
    documents = encode(make_texts("the sea, the SEA", "a sea", "ship of the sea!"))
    #       sea the a ship of -> 1 2 3 4 5
    assert documents.codes.tolist() == [[2, 1, 2, 1], [3, 1, 0, 0], [4, 5, 2, 1]]
    assert documents.n_words == 5
    assert documents.has_text.all()


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
def test_words_of_any_script_are_split(text: str, n_words: int) -> None:
    documents = encode(make_texts(text))
    assert documents.n_words == n_words
    assert np.count_nonzero(documents.codes) == n_words


def test_items_without_text_are_counted_in_a_warning() -> None:
    data = make_texts("a", None, "", float("nan"), "b", n_strangers=1)
    documents = encode(data)
    assert documents.has_text.tolist() == [True, False, False, False, False]
    with collect_warnings() as messages:
        warn_about_missing_texts("ConvMF", documents, data)
        warn_about_missing_texts("ConvMF", encode(make_texts("a")), make_texts("a"))
    assert messages == ["ConvMF: 3 of 4 items have no text"]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=6), st.integers(1, 5))
def test_words_equal_those_of_str_split(texts: list[str], max_length: int) -> None:
    plain = [
        "".join(sign if sign.isascii() and sign.isalpha() else " " for sign in text)
        for text in texts
    ]
    documents = encode(make_texts(*plain), max_length=max_length)
    words_by_code: dict[int, str] = {}
    for codes, text in zip(documents.codes, plain, strict=True):
        words = text.lower().split()[:max_length]
        assert np.count_nonzero(codes) == len(words)
        for code, word in zip(codes, words, strict=False):
            assert words_by_code.setdefault(int(code), word) == word
    assert len(words_by_code) == len(set(words_by_code.values())) == documents.n_words


def test_missing_texts_are_refused() -> None:
    data = TrainingData(make_interactions([(0, 0)]))
    with pytest.raises(MissingEvidence, match="the dataset has no items table") as caught:
        encode(data)
    assert caught.value.where == "text"
    with pytest.raises(MissingEvidence, match="no reviews"):
        encode(make_texts("a"), "reviews")
    with pytest.raises(UnknownColumn, match="no column 'txt'") as unknown:
        encode(make_texts("a"), "txt")
    assert (unknown.value.where, unknown.value.remedy) == ("text", "did you mean text?")
