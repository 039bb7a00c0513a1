from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MalformedLine, MissingFile
from recbias.core.stage_context import stage_context
from recbias.formats.delimited import file_blocks
from recbias.formats.delimited.file_blocks import Block, blocks
from recbias.formats.text_files import opened


@given(
    data=st.binary(max_size=200).map(lambda each: each.replace(b"\r", b"\n")),
    size=st.integers(min_value=1, max_value=50),
    quoted=st.booleans(),
)
def test_blocks_are_the_file_in_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, size: int, quoted: bool
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "file"
    path.write_bytes(data)
    found = list(blocks(path, size=size, quoted=quoted))
    assert b"".join(each.data for each in found) == data
    for each in found[:-1]:
        assert each.data.endswith(b"\n")
        assert not quoted or each.data.count(b'"') % 2 == 0
        assert each.first_line() == 1 + data[: each.start].count(b"\n")


def test_a_line_end_within_quotes_ends_no_block(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(b'a\n"b\nc\nd"\ne\n')
    assert [each.data for each in blocks(path, size=4, quoted=True)] == [b'a\n"b\nc\nd"\n', b"e\n"]


@given(data=st.binary(max_size=80), quoted=st.booleans(), size=st.integers(1, 20))
def test_the_pieces_of_a_block_are_whole_lines_too(data: bytes, quoted: bool, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_blocks, "PIECE", size)
        pieces = list(Block(Path("x"), 100, len(data), data).pieces(quoted=quoted))
    assert b"".join(each.data for each in pieces) == data
    assert [each.start for each in pieces] == [
        100 + sum(each.size for each in pieces[:place]) for place in range(len(pieces))
    ]
    assert all(each.is_ended for each in pieces[:-1])


def test_a_block_is_read_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\nbc\ndef\ng")
    first, second, third = blocks(path, size=4)
    assert (first.read, first.data, first.is_ended) == (None, b"a\nbc\n", True)
    assert (second.part(1, 9), second.is_ended) == (b"ef\n", True)
    assert bytes(second.source().read()) == second.data == b"def\n"
    assert (third.data, third.is_ended) == (b"g", False)


def test_gzip_is_read_through_and_progress_is_of_the_packed_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file.csv.gz"
    path.write_bytes(gzip.compress(b"h\n" + b"x\n" * 1000))
    told: list[tuple[str, int, int]] = []
    with stage_context(on_progress=lambda *each: told.append(each)):
        found = list(blocks(path, skip=2, size=500))
    assert b"".join(each.data for each in found) == b"x\n" * 1000
    assert found[1].first_line() == 2 + 250  # a header, then 250 lines of 2 bytes in 500
    assert told[-1] == ("read file.csv.gz", path.stat().st_size, path.stat().st_size)


@pytest.mark.parametrize("cut", [12, -1, -9])
def test_gzip_that_was_cut_short_is_named(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"some lines\n" * 50)[:cut])
    with pytest.raises(MalformedLine, match="compressed data is damaged") as caught:
        list(blocks(path))
    assert caught.value.where == str(path)


def test_gzip_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(b"plain text\n")
    with pytest.raises(MalformedLine, match="damaged"):
        list(blocks(path))


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="no such file"), opened(tmp_path / "none"):
        pass
    with pytest.raises(MissingFile, match="cannot be read"), opened(tmp_path):
        pass
