"""Identifiers that are read in blocks have the codes of identifiers that are read at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recbias.formats.delimited.streamed_ids import StreamedIds

from recbias.formats.delimited import (
    Layout,
    file_blocks,
    read_encoded_table,
    read_table,
    streamed_ids,
)
from recbias.formats.encode_ids import encode

LAYOUT = Layout(columns={"user": "id", "rating": "float32"}, quoted=True)
TEXTS = st.one_of(
    st.integers(0, 30).map(str), st.sampled_from(["007", "+7", "-1", "1.0", " 7", "a\0", "a", "ü"])
)


@given(st.lists(st.lists(TEXTS)))
def test_codes_of_blocks_lead_back_to_the_texts(blocks: list[list[str]]) -> None:
    ids = StreamedIds()
    codes = [ids.encode(pa.chunked_array([block], pa.string())) for block in blocks]
    column = ids.decode(pa.chunked_array([pa.array(block) for block in codes], pa.int32()))
    assert column.to_pylist() == [text for block in blocks for text in block]
    assert len(set(ids.texts)) == len(ids.texts)


@given(st.lists(TEXTS, min_size=1))
def test_the_vocabulary_is_that_of_plain_texts(texts: list[str]) -> None:
    plain, (codes,) = encode(pa.chunked_array([texts], pa.string()))
    ids = StreamedIds()
    streamed = ids.decode(pa.chunked_array([pa.array(ids.encode(pa.chunked_array([texts])))]))
    vocabulary, (streamed_codes,) = encode(streamed)
    assert vocabulary.ids.tolist() == plain.ids.tolist()
    assert streamed_codes.tolist() == codes.tolist()


def test_a_number_that_is_too_large_for_a_table_is_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_ids, "LEAST_SIZE", 8)
    ids = StreamedIds()
    assert ids.encode(pa.chunked_array([["3", "5"]])).tolist() == [0, 1]
    assert ids.encode(pa.chunked_array([["5", "1000000000000", "3"]])).tolist() == [1, 2, 0]
    assert ids.texts == ["3", "5", "1000000000000"]


def test_identifiers_without_a_row_are_not_in_the_vocabulary() -> None:
    column = pa.array(["a", "b", "c"]).dictionary_encode().filter(pa.array([True, False, True]))
    vocabulary, (codes, _) = encode(column, pa.array(["d"]))
    assert vocabulary.ids.tolist() == ["a", "c", "d"]
    assert codes.tolist() == [0, 1]


def test_a_file_of_many_blocks_is_read_as_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_blocks, "READ_SIZE", 500)
    rng = np.random.default_rng(1)
    users = rng.integers(0, 90, 1000).astype(str).tolist()
    users[700] = "x,y"
    lines = [f'"{user}",{rating}' for user, rating in zip(users, rng.random(1000), strict=True)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["user,rating", *lines, ""]), encoding="utf-8")
    streamed, plain = read_encoded_table(path, LAYOUT), read_table(path, LAYOUT)
    assert streamed.table["user"].to_pylist() == plain.table["user"].to_pylist() == users
    assert streamed.numbers("rating").tolist() == plain.numbers("rating").tolist()
