from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recbias.formats.delimited.file_blocks import Block, read_blocks
from recbias.formats.delimited.quotes import is_in_quotes

from recbias.core.errors import MalformedLine, MissingFile
from recbias.core.stage_context import stage_context
from recbias.formats.delimited import file_blocks
from recbias.formats.text_files import open_binary


@given(
    data=st.binary(max_size=200).map(lambda data: data.replace(b"\r", b"\n")),
    size=st.integers(min_value=1, max_value=50),
    quoted=st.sampled_from(["", ","]),
)
def test_blocks_consist_of_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, size: int, quoted: str
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "file"
    path.write_bytes(data)
    blocks = list(read_blocks(path, size=size, quoted=quoted))
    assert b"".join(block.data for block in blocks) == data
    for block in blocks[:-1]:
        assert block.data.endswith(b"\n")
        assert not (quoted and is_in_quotes(block.data, quoted))
        assert block.find_first_line() == 1 + data[: block.start].count(b"\n")


def test_no_block_ends_inside_quotes(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(b'a\n"b\nc\nd"\ne\n')
    assert [block.data for block in read_blocks(path, size=4, quoted=",")] == [
        b'a\n"b\nc\nd"\n',
        b"e\n",
    ]


@given(data=st.binary(max_size=80), quoted=st.sampled_from(["", ","]), size=st.integers(1, 20))
def test_pieces_of_a_block_consist_of_whole_lines(data: bytes, quoted: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_blocks, "PIECE_SIZE", size)
        pieces = list(Block(Path("x"), 100, len(data), data).pieces(quoted=quoted))
    assert b"".join(block.data for block in pieces) == data
    assert [piece.start for piece in pieces] == [
        100 + sum(piece.size for piece in pieces[:end]) for end in range(len(pieces))
    ]
    assert all(piece.is_ended for piece in pieces[:-1])


def test_blocks_are_read_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\nbc\ndef\ng")
    first, second, third = read_blocks(path, size=4)
    assert (first.content, first.data, first.is_ended) == (None, b"a\nbc\n", True)
    assert (second.slice(1, 9), second.is_ended) == (b"ef\n", True)
    assert bytes(second.source().read()) == second.data == b"def\n"
    assert (third.data, third.is_ended) == (b"g", False)


def test_progress_counts_compressed_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file.csv.gz"
    path.write_bytes(gzip.compress(b"h\n" + b"x\n" * 1000))
    progress: list[tuple[str, int, int]] = []
    with stage_context(on_progress=lambda *report: progress.append(report)):
        blocks = list(read_blocks(path, skip=2, size=500))
    assert b"".join(block.data for block in blocks) == b"x\n" * 1000
    assert blocks[1].find_first_line() == 2 + 250  # a header, then 250 lines of 2 bytes in 500
    assert progress[-1] == ("read file.csv.gz", path.stat().st_size, path.stat().st_size)


@pytest.mark.parametrize("cut", [12, -1, -9])
def test_truncated_gzip_is_rejected(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"some lines\n" * 50)[:cut])
    with pytest.raises(MalformedLine, match="compressed data is damaged") as caught:
        list(read_blocks(path))
    assert caught.value.where == str(path)


def test_plain_text_named_gz_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(b"plain text\n")
    with pytest.raises(MalformedLine, match="damaged"):
        list(read_blocks(path))


def test_unreadable_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="no such file"), open_binary(tmp_path / "none"):
        pass
    with pytest.raises(MissingFile, match="cannot be read"), open_binary(tmp_path):
        pass
