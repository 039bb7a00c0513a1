from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Vocabulary, sort_naturally
from recbias.core.errors import UnknownIdentifier

TEXTS = st.lists(st.text(max_size=6), max_size=20)


@given(TEXTS)
def test_decoding_inverts_encoding(values: list[str]) -> None:
    vocabulary, codes = Vocabulary.encode(np.array(values, dtype=object))
    assert vocabulary.ids[codes].tolist() == values
    assert vocabulary.find(vocabulary.ids).tolist() == list(range(len(vocabulary)))
    assert len(set(vocabulary.ids.tolist())) == len(vocabulary) == len(set(values))
    assert codes.dtype == np.int32


@given(TEXTS, st.randoms())
def test_codes_do_not_depend_on_the_order_of_rows(values: list[str], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert Vocabulary.of(values).ids.tolist() == Vocabulary.of(shuffled).ids.tolist()
    assert Vocabulary.of(values).digest == Vocabulary.of(shuffled).digest


@given(st.lists(st.integers(0, 10**12), max_size=20))
def test_whole_numbers_sort_by_value_as_text_and_as_numbers(values: list[int]) -> None:
    expected = [str(value) for value in sorted(set(values))]
    assert Vocabulary.of([str(value) for value in values]).ids.tolist() == expected
    vocabulary, codes = Vocabulary.encode(np.array(values, dtype=np.int64))
    assert vocabulary.ids.tolist() == expected
    assert vocabulary.ids[codes].tolist() == [str(value) for value in values]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["10", "9", "2"], ["2", "9", "10"]),
        (["10", "9", "b"], ["10", "9", "b"]),
        # 07 and 7 are two identifiers of one number, so they sort as text
        (["7", "07", "10"], ["07", "10", "7"]),
        (["1", "２"], ["1", "２"]),
        (["9" * 18, "1"], ["1", "9" * 18]),
        (["9" * 40, "1"], ["1", "9" * 40]),
        (['a,"b\nc', "🎬", ""], ["", 'a,"b\nc', "🎬"]),
        ([], []),
    ],
)
def test_identifiers_sort_in_natural_order(ids: list[str], expected: list[str]) -> None:
    array = np.array(ids, dtype=object)
    assert array[sort_naturally(array)].tolist() == expected
    assert Vocabulary.of(ids).ids.tolist() == expected


def test_a_row_without_an_identifier_is_an_error() -> None:
    with pytest.raises(UnknownIdentifier, match="2 row"):
        Vocabulary.encode(np.array(["a", None, np.nan], dtype=object))


def test_texts_that_differ_after_a_nul_are_distinct() -> None:
    vocabulary, codes = Vocabulary.encode(np.array(["", "\0", "a\0b", "a", ""], dtype=object))
    assert len(vocabulary) == 4
    assert vocabulary.ids[codes].tolist() == ["", "\0", "a\0b", "a", ""]
