from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.errors import MalformedLine
from recbias.formats.vectors import count_bytes, read_numbers


def read(path: Path, n_axes: int = 2) -> Any:
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
    values = read(tmp_path / "a.npy")
    assert values.dtype == array.dtype
    np.testing.assert_array_equal(values, array)
    assert values.flags.writeable


@pytest.mark.parametrize(
    ("n", "fault"), [(10**12, "16,000,000,000,000 bytes"), (2, "and it has 48")]
)
def test_a_header_that_promises_other_data_is_refused(tmp_path: Path, n: int, fault: str) -> None:
    stream = io.BytesIO()
    np.save(stream, np.ones((3, 2)))
    data = stream.getvalue()
    header = data.replace(b"(3, 2), }" + b" " * len(str(n)), f"({n}, 2), }} ".encode(), 1)
    (tmp_path / "a.npy").write_bytes(header)
    with pytest.raises(MalformedLine, match=fault) as caught:
        read(tmp_path / "a.npy")
    assert caught.value.where == str(tmp_path / "a.npy")


@pytest.mark.parametrize("array", [np.ones(3), np.ones((2, 2), complex), np.array([["a"]])])
def test_arrays_of_another_shape_or_type_are_refused(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(MalformedLine, match=r"an array .*, not numbers \(n, d\)"):
        read(tmp_path / "a.npy")


@pytest.mark.parametrize(
    "header", [b"", b"\x93NUMPY\x01\x00\x04\x00((((", b"\x93NUMPY\x09\x00", b"PK\x03\x04"]
)
def test_damaged_headers_are_refused(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(header)
    with pytest.raises(MalformedLine, match=r"not a \.npy file of numbers"):
        read(tmp_path / "a.npy")


def test_bytes_do_not_overflow() -> None:
    assert count_bytes((10**30,), np.dtype(np.int8)) == 10**30
