from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.masking import ItemNames, NameTree, TextWords, list_spellings


def divide(*texts: str) -> TextWords:
    return TextWords.from_texts(np.array(texts, dtype=object))


def find_lengths(
    names: list[str | None], texts: list[str], items: list[int], distinctive: set[str]
) -> object:
    item_names = ItemNames.from_names(names)
    is_distinctive = np.array([word in distinctive for word in item_names.vocabulary], dtype=bool)
    tree = NameTree.build(item_names, is_distinctive, per_item=True)
    block = divide(*texts)
    return tree.find_longest(block, item_names.encode(block), np.array(items)).tolist()


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
def test_list_spellings(name: str, expected: list[tuple[str, ...]]) -> None:
    assert list_spellings(name) == expected


def test_words_are_counted_in_texts_of_items_without_the_word_in_the_name() -> None:
    names = ItemNames.from_names(["Zing Bar", "Zing", None])
    assert list(names.vocabulary) == ["zing", "bar"]
    block = divide("zing zing bar", "bar bar", "zing bar bar")
    # text 0 is of item 0, named by both words; text 1 of item 1, not named bar; text 2: neither
    n_foreign = names.count_foreign_texts(block, np.array([0, 1, 2]))
    assert n_foreign.tolist() == [1, 2]
    # reviews 1, 1 and 8: zing in 1 of the 8 of item 2, bar in 2 of the 9 of items 1 and 2
    reviews = np.array([1, 1, 8])
    assert names.find_distinctive(n_foreign, reviews, 0.13).tolist() == [True, False]
    assert names.find_distinctive(n_foreign, reviews, 0.23).tolist() == [True, True]
    assert names.find_distinctive(n_foreign, reviews, 0.12).tolist() == [False, False]


def test_short_words_and_numbers_are_not_distinctive() -> None:
    names = ItemNames.from_names(["Bo 1808 Ono"])
    distinctive = names.find_distinctive(np.zeros(3), np.array([1]), 0.5)
    assert distinctive.tolist() == [False, False, True]


def test_names_of_common_words_need_capitals() -> None:
    names: list[str | None] = ["The Good Bar"]
    texts = ["the good bar The Good Bar The good Bar the Good Bar"]
    assert find_lengths(names, texts, [0], set()) == [0, 0, 0, 3, 0, 0, 3, 0, 0, 0, 0, 0]


WORDS = st.sampled_from(["ab", "cd", "ef"])
PHRASES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


@given(st.lists(PHRASES, min_size=1, max_size=4), st.lists(WORDS, max_size=8))
def test_find_longest_equals_an_exhaustive_search(names: list[str], words: list[str]) -> None:
    item_names = ItemNames.from_names(names)
    distinctive = np.ones(len(item_names.vocabulary), dtype=bool)
    tree = NameTree.build(item_names, distinctive, per_item=False)
    block = divide(" ".join(words))
    phrases = {tuple(name.split()) for name in names}
    phrases |= {(word,) for name in names for word in name.split()}
    expected = [
        max(
            (n for n in (1, 2, 3) if tuple(words[at:][:n]) in phrases and at + n <= len(words)),
            default=0,
        )
        for at in range(len(words))
    ]
    lengths = tree.find_longest(block, item_names.encode(block), np.zeros(1, dtype=int))
    assert lengths.tolist() == expected
