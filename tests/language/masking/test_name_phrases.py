from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.masking.name_phrases import ItemNames, NameTree, spellings
from recbias.language.masking.text_words import TextWords


def taken(*texts: str) -> TextWords:
    return TextWords.of(np.array(texts, dtype=object))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Café-Olé", [("cafe", "ole")]),
        ("7 & I (Mall) ", [("7", "i", "mall"), ("7", "i")]),
        ("O'Neal's", [("oneal",), ("oneals",)]),
        (".*[+", []),
        ("Q", []),
        ("", []),
    ],
)
def test_spellings(name: str, expected: list[tuple[str, ...]]) -> None:
    assert spellings(name) == expected


def test_words_are_counted_in_texts_of_items_not_named_so() -> None:
    names = ItemNames.of(["Zing Bar", "Zing", None])
    assert list(names.vocabulary) == ["zing", "bar"]
    block = taken("zing zing bar", "bar bar", "zing bar bar")
    # text 0 is of item 0: both words are its own; text 1 is of item 1: bar is not; text 2: neither
    found = names.held_by_strangers(block, np.array([0, 1, 2]))
    assert found.tolist() == [1, 2]
    # reviews 1, 1 and 8: zing in 1 of the 8 of item 2, bar in 2 of the 9 of items 1 and 2
    reviews = np.array([1, 1, 8])
    assert names.rare(found, reviews, 0.13).tolist() == [True, False]
    assert names.rare(found, reviews, 0.23).tolist() == [True, True]
    assert names.rare(found, reviews, 0.12).tolist() == [False, False]


def test_short_words_and_numbers_are_no_rare_words() -> None:
    names = ItemNames.of(["Bo 1808 Ono"])
    assert names.rare(np.zeros(3), np.array([1]), 0.5).tolist() == [False, False, True]


def lengths(names: list[str | None], texts: list[str], items: list[int], rare: set[str]) -> object:
    found = ItemNames.of(names)
    wanted = np.array([each in rare for each in found.vocabulary], dtype=bool)
    tree = NameTree.of(found, wanted, own=True)
    block = taken(*texts)
    return tree.find(block, found.codes(block), np.array(items)).tolist()


def test_the_longest_phrase_is_found_within_a_text() -> None:
    assert lengths(["Zing", "Zing Bar"], ["a zing bar"], [1], {"zing"}) == [0, 2, 0]
    assert lengths(["Zing", "Zing Bar"], ["a zing bar"], [0], {"zing"}) == [0, 1, 0]
    assert lengths(["Zing Bar"], ["zing", "bar"], [0, 0], set()) == [0, 0]


def test_names_of_common_words_need_capitals() -> None:
    names: list[str | None] = ["The Good Bar"]
    texts = ["the good bar The Good Bar The good Bar the Good Bar"]
    assert lengths(names, texts, [0], set()) == [0, 0, 0, 3, 0, 0, 3, 0, 0, 0, 0, 0]


def test_without_names_nothing_is_found() -> None:
    assert lengths([None, "Q"], ["a Q b"], [1], set()) == [0, 0, 0]


WORDS = st.sampled_from(["ab", "cd", "ef"])
PHRASES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


@given(st.lists(PHRASES, min_size=1, max_size=4), st.lists(WORDS, max_size=8))
def test_it_finds_what_a_search_by_hand_finds(names: list[str], words: list[str]) -> None:
    found = ItemNames.of(names)
    tree = NameTree.of(found, np.ones(len(found.vocabulary), dtype=bool), own=False)
    block = taken(" ".join(words))
    known = {tuple(name.split()) for name in names}
    known |= {(word,) for name in names for word in name.split()}
    expected = [
        max(
            (n for n in (1, 2, 3) if tuple(words[at:][:n]) in known and at + n <= len(words)),
            default=0,
        )
        for at in range(len(words))
    ]
    assert tree.find(block, found.codes(block), np.zeros(1, dtype=int)).tolist() == expected
