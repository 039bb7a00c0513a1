from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.masking import TextWords


def divide(*texts: str) -> TextWords:
    return TextWords.from_texts(np.array(texts, dtype=object))


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
