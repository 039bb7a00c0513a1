from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import MalformedLine
from recbias.formats.vectors import read_numbers, read_word_vectors

GLOVE = "the 1 0.5\nsoup -2 1e-1\n汤 0 3\nof the sea 4 4\n"


def write(path: Path, text: str = GLOVE) -> Path:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read(path: Path, *words: str) -> dict[str, list[float]]:
    found = read_word_vectors(path, words)
    assert found.vectors.dtype == np.float32
    return {word: found.vectors[row].round(4).tolist() for word, row in found.rows.items()}


@pytest.mark.parametrize("name", ["glove.txt", "glove.txt.gz", "a.VEC"])
@pytest.mark.parametrize("header", ["", "4 2\n", "\ufeff"])
def test_text_files_of_each_layout_are_read(tmp_path: Path, name: str, header: str) -> None:
    path = write(tmp_path / name, header + GLOVE)
    assert read(path, "汤", "the", "absent") == {"the": [1.0, 0.5], "汤": [0.0, 3.0]}
    assert read(path, "of") == {}  # the first word of an entry of three
    assert read(path) == {}


def test_of_a_repeated_word_the_first_vector_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "glove.txt", GLOVE + "the 9 9\n")
    with collect_warnings() as notes:
        assert read(path, "the") == {"the": [1.0, 0.5]}
    assert notes == ["glove.txt: 1 entries repeat a word; the first one counts"]


def read_array(path: Path, n_axes: int = 2) -> Any:
    return read_numbers(path, n_axes, "numbers (n, d)", "write it again")


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(3, 2),
        np.asfortranarray(np.arange(6.0).reshape(3, 2)),
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.ones((0, 2), dtype=np.float16),
        np.ones((2, 0)),
    ],
)
def test_arrays_are_read_as_numpy_reads_them(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "a.npy", array)
    values = read_array(tmp_path / "a.npy")
    assert values.dtype == array.dtype
    np.testing.assert_array_equal(values, array)
    assert values.flags.writeable


@pytest.mark.parametrize("array", [np.ones(3), np.ones((2, 2), complex), np.array([["a"]])])
def test_arrays_of_another_shape_or_type_are_refused(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(MalformedLine, match=r"an array .*, not numbers \(n, d\)"):
        read_array(tmp_path / "a.npy")


@pytest.mark.parametrize(
    "header", [b"", b"\x93NUMPY\x01\x00\x04\x00((((", b"\x93NUMPY\x09\x00", b"PK\x03\x04"]
)
def test_damaged_headers_are_refused(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(header)
    with pytest.raises(MalformedLine, match=r"not a \.npy file of numbers"):
        read_array(tmp_path / "a.npy")
