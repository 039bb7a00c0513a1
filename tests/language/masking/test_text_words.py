from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language import masking
from recbias.language.masking import TextWords, divide_into_blocks, normalize_word


def divide(*texts: str) -> TextWords:
    return TextWords.from_texts(np.array(texts, dtype=object))


def test_words_know_their_text_capital_and_position() -> None:
    block = divide("So, Wendy’s?", "🍜 …", "ok\nGo")
    assert block.words.tolist() == ["So", "Wendy’s", "ok", "Go"]
    assert block.text.tolist() == [0, 0, 2, 2]
    assert block.is_first.tolist() == [True, False, True, False]
    assert block.begins_sentence.tolist() == [True, False, True, True]
    assert block.is_capitalized.tolist() == [True, True, False, True]
    starts, ends = block.find_spans()
    assert starts.tolist() == [0, 4, 0, 3]
    assert ends.tolist() == [2, 11, 2, 5]


def test_map_words_calls_the_function_once_per_spelling() -> None:
    calls: list[str] = []

    def count_letters(word: str) -> int:
        calls.append(word)
        return len(word)

    assert divide("aa b aa", "b").map_words(count_letters).tolist() == [2, 1, 2, 1]
    assert calls == ["aa", "b"]
    assert divide("", "!").map_words(count_letters).tolist() == []


def test_replace_pieces_returns_the_selected_texts() -> None:
    block = divide("a, b", "c", "d e")
    new = np.array(["x", ""], dtype=object)
    texts = block.replace_pieces(np.array([0, 2]), block.positions[[1, 3]], new)
    assert texts.tolist() == ["a, x", " e"]


@given(st.lists(st.text(max_size=20), max_size=5))
def test_divided_texts_can_be_joined_again(texts: list[str]) -> None:
    block = divide(*texts)
    rows = np.arange(len(texts))
    assert block.replace_pieces(rows, rows[:0], "").tolist() == block.texts
    starts, ends = block.find_spans()
    spelled = [
        block.texts[text][start:end]
        for text, start, end in zip(block.text, starts, ends, strict=True)
    ]
    assert spelled == block.words.tolist()


def test_blocks_contain_all_texts_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "CHARACTERS_PER_BLOCK", 5)
    texts = np.array(["abc", "d", "", "a text longer than a block", "e"], dtype=object)
    blocks = [(rows.tolist(), block.texts) for rows, block in divide_into_blocks(texts)]
    assert [rows for rows, _ in blocks] == [[0, 1, 2], [3], [4]]
    assert [text for _, block_texts in blocks for text in block_texts] == texts.tolist()
    assert list(divide_into_blocks(texts[:0])) == []


@pytest.mark.parametrize(
    ("word", "expected"),
    [("İstanbul", "istanbul"), ("Straße", "strasse"), ("ÉCLAT’S", "eclat"), ("שלום", "שלום")],
)
def test_normalize_word(word: str, expected: str) -> None:
    assert normalize_word(word) == expected
