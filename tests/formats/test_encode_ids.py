from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Vocabulary
from recbias.formats.delimited import encode, find_repeat, scatter

whole_numbers = st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 20), max_size=30)


@given(first=whole_numbers, second=whole_numbers)
def test_numbers_are_encoded_as_by_the_vocabulary(first: list[int], second: list[int]) -> None:
    ids, (first_codes, second_codes) = encode(
        pa.array(first, pa.int32()), pa.array(second, pa.int32())
    )
    expected, codes = Vocabulary.encode(np.array(first + second, dtype=np.int64))
    assert ids.ids.tolist() == expected.ids.tolist()
    assert [*first_codes, *second_codes] == codes.tolist()


@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3),
        max_size=30,
    )
)
def test_texts_are_encoded_as_by_the_vocabulary(words: list[str]) -> None:
    half = len(words) // 2
    column = pa.chunked_array([words[:half], words[half:]], type=pa.string())
    ids, (codes,) = encode(column)
    expected, by_row = Vocabulary.encode(np.array(words, dtype=object))
    assert ids.ids.tolist() == expected.ids.tolist()
    assert codes.tolist() == by_row.tolist()
    assert codes.dtype == np.int32


@pytest.mark.parametrize(
    ("codes", "positions"), [([], (-1, -1)), ([3, 1], (-1, -1)), ([1, 3, 3, 1], (1, 2))]
)
def test_the_first_repeat_is_located(codes: list[int], positions: tuple[int, int]) -> None:
    assert find_repeat(np.array(codes, dtype=np.int32)) == positions


def test_missing_values_are_none_for_text_and_nan_for_numbers() -> None:
    codes = np.array([1], dtype=np.int32)
    assert scatter(codes, np.array(["x"], dtype=object), 2).tolist() == [None, "x"]
    np.testing.assert_array_equal(scatter(codes, np.array([7]), 2), [np.nan, 7.0])
