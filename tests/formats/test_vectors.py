from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import MalformedLine, MissingFile, UserError
from recbias.formats import vectors
from recbias.formats.vectors import read_numbers, read_word_vectors

save_file = pytest.importorskip("safetensors.numpy").save_file

GLOVE = "the 1 0.5\nsoup -2 1e-1\n汤 0 3\nof the sea 4 4\n"
WORDS = np.array(["the", "soup", "汤"])
NUMBERS = np.array([[1, 0.5], [-2, 0.1], [0, 3]])


def write(path: Path, text: str = GLOVE) -> Path:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def save_tensors(path: Path, vectors: Any, words: str) -> None:
    save_file({"vectors": np.ascontiguousarray(vectors)}, path, metadata={"words": words})


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


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("compress", [False, True])
def test_archives_are_read(tmp_path: Path, kind: Any, compress: bool) -> None:
    save = np.savez_compressed if compress else np.savez
    save(tmp_path / "v.npz", words=WORDS, vectors=NUMBERS.astype(kind))
    assert read(tmp_path / "v.npz", "soup", "汤", "absent") == {
        "soup": pytest.approx([-2, 0.1], abs=1e-3),
        "汤": [0.0, 3.0],
    }


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_tensors_are_read_in_blocks(
    tmp_path: Path, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_BLOCK_BYTES", 20)
    save_tensors(tmp_path / "v.safetensors", NUMBERS.astype(kind), "the\nsoup\n汤")
    assert read(tmp_path / "v.safetensors", "soup", "汤", "absent") == {
        "soup": pytest.approx([-2, 0.1], abs=1e-3),
        "汤": [0.0, 3.0],
    }


@pytest.mark.parametrize(
    ("vectors", "words", "message"),
    [
        (NUMBERS, "", r"F64\[3, 2\], not numbers \[0, d\]"),
        (NUMBERS, "the\nsoup", r"not numbers \[2, d\]"),
        (NUMBERS.astype(int), "the\nsoup\n汤", "I64"),
        (NUMBERS * 1e300, "the\nsoup\n汤", "too large"),
    ],
)
def test_other_tensors_are_refused(tmp_path: Path, vectors: Any, words: str, message: str) -> None:
    path = tmp_path / "v.safetensors"
    save_tensors(path, vectors, words)
    with pytest.raises(MalformedLine, match=message) as caught:
        read_word_vectors(path, ["the"])
    assert (caught.value.where, bool(caught.value.remedy)) == (str(path), True)


@pytest.mark.parametrize("cut", [1, 60, 10_000])
def test_a_truncated_tensor_file_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "v.safetensors"
    save_tensors(path, NUMBERS, "the\nsoup\n汤")
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(MalformedLine, match="cannot be read"):
        read_word_vectors(path, ["the"])


def test_a_tensor_of_another_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.safetensors"
    save_file({"weights": NUMBERS}, path, metadata={"words": "the\nsoup\n汤"})
    with pytest.raises(MalformedLine, match="'vectors' cannot be read"):
        read_word_vectors(path, ["the"])
    with pytest.raises(MissingFile):
        read_word_vectors(tmp_path / "absent.safetensors", ["the"])


def test_of_a_repeated_word_the_first_vector_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "glove.txt", GLOVE + "the 9 9\n")
    with collect_warnings() as notes:
        assert read(path, "the") == {"the": [1.0, 0.5]}
    assert notes == ["glove.txt: 1 entries repeat a word; the first one counts"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"vectors": NUMBERS}, "cannot be read: 'words"),
        ({"words": WORDS}, "cannot be read: 'vectors"),
        ({"words": WORDS.astype(object), "vectors": NUMBERS}, "cannot be read: Object arrays"),
        ({"words": WORDS[:2], "vectors": NUMBERS}, r"\[3, 2\], not numbers \[2, d\]"),
        ({"words": WORDS, "vectors": NUMBERS * 1e300}, "too large"),
    ],
)
def test_other_archives_are_refused(tmp_path: Path, arrays: Any, message: str) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, **arrays)
    with pytest.raises(MalformedLine, match=message) as caught:
        read_word_vectors(path, ["the"])
    assert (caught.value.where, bool(caught.value.remedy)) == (str(path), True)


@pytest.mark.parametrize("cut", [3, 60, 200])
def test_a_truncated_archive_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, words=WORDS, vectors=NUMBERS)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(UserError, match="cannot be read"):
        read_word_vectors(path, ["the"])


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
