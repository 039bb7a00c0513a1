from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset.vocabulary import Vocabulary, natural_order
from recbias.core.errors import UnknownIdentifier

texts = st.lists(st.text(max_size=6), max_size=20)


@given(texts)
def test_codes_and_identifiers_are_each_others_inverse(values: list[str]) -> None:
    words, codes = Vocabulary.encode(np.array(values, dtype=object))
    assert words.ids[codes].tolist() == values
    assert words.find(words.ids).tolist() == list(range(len(words)))
    assert len(set(words.ids.tolist())) == len(words) == len(set(values))
    assert codes.dtype == np.int32


@given(texts, st.randoms())
def test_codes_do_not_depend_on_the_order_of_rows(values: list[str], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert Vocabulary.of(values).ids.tolist() == Vocabulary.of(shuffled).ids.tolist()
    assert Vocabulary.of(values).digest == Vocabulary.of(shuffled).digest


@given(st.lists(st.integers(0, 10**12), max_size=20))
def test_whole_numbers_sort_by_value_as_text_and_as_numbers(values: list[int]) -> None:
    expected = [str(each) for each in sorted(set(values))]
    assert Vocabulary.of([str(each) for each in values]).ids.tolist() == expected
    words, codes = Vocabulary.encode(np.array(values, dtype=np.int64))
    assert words.ids.tolist() == expected
    assert words.ids[codes].tolist() == [str(each) for each in values]


@pytest.mark.parametrize(
    ("ids", "ordered"),
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
def test_natural_order(ids: list[str], ordered: list[str]) -> None:
    array = np.array(ids, dtype=object)
    assert array[natural_order(array)].tolist() == ordered
    assert Vocabulary.of(ids).ids.tolist() == ordered


def test_a_row_without_an_identifier_is_refused() -> None:
    with pytest.raises(UnknownIdentifier, match="2 row"):
        Vocabulary.encode(np.array(["a", None, np.nan], dtype=object))


def test_an_unknown_identifier_is_minus_one_or_an_error() -> None:
    words = Vocabulary.of(["user1", "user2"])
    assert words.find(np.array(["user2", "x", None], dtype=object)).tolist() == [1, -1, -1]
    assert words.codes(np.array(["user2"], dtype=object)).tolist() == [1]
    with pytest.raises(
        UnknownIdentifier, match=r"1 unknown user\(s\), the first is 'user3'"
    ) as caught:
        words.codes(np.array(["user2", "user3"], dtype=object), what="user")
    assert "did you mean" in caught.value.remedy


def test_identifiers_are_frozen() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Vocabulary.of(["a"]).ids[0] = "b"


def test_digests_tell_vocabularies_apart() -> None:
    assert Vocabulary.of(["a", "b"]).digest != Vocabulary.of(["ab"]).digest
    assert Vocabulary.of(["a", "b"]).digest != Vocabulary.of(["a", "b"]).take([1, 0]).digest  # type: ignore[arg-type]


def test_taking_keeps_the_order_asked_for() -> None:
    assert Vocabulary.of(["a", "b", "c"]).take(np.array([2, 0])).ids.tolist() == ["c", "a"]


def test_texts_that_differ_behind_a_nul_are_two() -> None:
    words, codes = Vocabulary.encode(np.array(["", "\0", "a\0b", "a", ""], dtype=object))
    assert len(words) == 4
    assert words.ids[codes].tolist() == ["", "\0", "a\0b", "a", ""]
