from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.masking import text_words
from recbias.language.masking.text_words import TextWords, blocks, plain


def taken(*texts: str) -> TextWords:
    return TextWords.of(np.array(texts, dtype=object))


def test_words_and_where_they_stand() -> None:
    found = taken("So, Wendy’s?", "🍜 …", "ok\nGo")
    assert found.words.tolist() == ["So", "Wendy’s", "ok", "Go"]
    assert found.text.tolist() == [0, 0, 2, 2]
    assert found.is_first.tolist() == [True, False, True, False]
    assert found.begins_sentence.tolist() == [True, False, True, True]
    assert found.is_capital.tolist() == [True, True, False, True]
    starts, ends = found.spans()
    assert starts.tolist() == [0, 4, 0, 3]
    assert ends.tolist() == [2, 11, 2, 5]


def test_rules_are_asked_once_a_spelling() -> None:
    asked: list[str] = []

    def rule(word: str) -> int:
        asked.append(word)
        return len(word)

    assert taken("aa b aa", "b").of_words(rule).tolist() == [2, 1, 2, 1]
    assert asked == ["aa", "b"]
    assert taken("", "!").of_words(rule).tolist() == []


def test_some_texts_are_rebuilt_with_other_pieces() -> None:
    found = taken("a, b", "c", "d e")
    made = found.rebuilt(np.array([0, 2]), found.places[[1, 3]], np.array(["x", ""], dtype=object))
    assert made.tolist() == ["a, x", " e"]


@given(st.lists(st.text(max_size=20), max_size=5))
def test_what_is_taken_apart_can_be_put_together(texts: list[str]) -> None:
    found = taken(*texts)
    rows = np.arange(len(texts))
    assert found.rebuilt(rows, rows[:0], "").tolist() == found.texts
    starts, ends = found.spans()
    spelled = [
        found.texts[text][start:end]
        for text, start, end in zip(found.text, starts, ends, strict=True)
    ]
    assert spelled == found.words.tolist()


def test_blocks_go_through_all_texts_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_words, "CHARACTERS_AT_ONCE", 5)
    texts = np.array(["abc", "d", "", "a text longer than a block", "e"], dtype=object)
    found = [(rows.tolist(), block.texts) for rows, block in blocks(texts)]
    assert [rows for rows, _ in found] == [[0, 1, 2], [3], [4]]
    assert [text for _, block in found for text in block] == texts.tolist()
    assert list(blocks(texts[:0])) == []


@pytest.mark.parametrize(
    ("word", "expected"),
    [("İstanbul", "istanbul"), ("Straße", "strasse"), ("ÉCLAT’S", "eclat"), ("שלום", "שלום")],
)
def test_words_are_compared_plain(word: str, expected: str) -> None:
    assert plain(word) == expected
