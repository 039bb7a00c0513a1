from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from recbias.formats.limited import file_limits
from recbias.formats.limited.unpacked_files import unpack

from recbias.core.errors import MalformedLine

CONTENT = b"a,b\n1,2\n" * 20_000


def read(path: Path) -> bytes:
    with path.open("rb") as packed, unpack(packed, path) as stream:
        first = stream.readline()
        assert stream.tell() == len(first)
        return first + stream.read()


def test_the_content_is_that_of_gzip(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(CONTENT) + gzip.compress(b"3,4\n"))
    assert read(path) == CONTENT + b"3,4\n"


def test_content_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_limits, "FREE_BYTES", 1000)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(CONTENT))
    with pytest.raises(MalformedLine, match=r"unpacks to more than .* 200 times") as caught:
        read(path)
    assert caught.value.where == str(path)
    assert "unpack it" in caught.value.remedy


@pytest.mark.parametrize("damaged", [b"a,b\n", gzip.compress(CONTENT)[:-9], b"\x1f\x8b\x08"])
def test_damaged_content_is_refused(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(damaged)
    with pytest.raises(MalformedLine, match="the compressed data is damaged"):
        read(path)
