"""Faults of arrays of numpy: headers that lie, other types and shapes, archives of arrays."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from support.faults.files.contents import to_archive, to_array


def _write_header(text: str, version: bytes = b"\x01\x00") -> bytes:
    header = text.encode("latin-1")
    size = len(header).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + header + bytes(64)


def _describe(dtype: str, shape: str) -> bytes:
    return _write_header(f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}\n")


def _write_objects() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return stream.getvalue()


def _zip(method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return stream.getvalue()


ARRAYS: Mapping[str, bytes] = {
    "a header of 10^12 rows": _describe("<f8", "(1000000000000, 2)"),
    "a header of 10^30 rows": _describe("<f8", f"({10**30}, 2)"),
    "a header of 10^9 rows": _describe("<f8", "(1000000000,)"),
    "a header of empty rows": _describe("<f8", "(1000000000, 0)"),
    "a negative shape": _describe("<f8", "(-1, 2)"),
    "a shape of text": _describe("<f8", "('a', 2)"),
    "deep brackets in the header": _write_header("(" * 5000),
    "code in the header": _write_header("__import__('os').system('touch ran')"),
    "a header that is no mapping": _write_header("[1, 2]"),
    "an unknown type": _describe("<q99", "(1, 2)"),
    "an unknown version": b"\x93NUMPY\x09\x00" + bytes(100),
    "a long header": _write_header(" " * 1_000_000, b"\x02\x00"),
    "objects": _write_objects(),
    "records": to_array(np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])),
    "complex numbers": to_array(np.ones((4, 2), dtype=complex)),
    "texts": to_array(np.array([["a", "b"]])),
    "dates": to_array(np.array([["2026-01-01"]], dtype="datetime64[D]")),
    "truth values": to_array(np.ones((4, 2), dtype=bool)),
    "one number": to_array(np.float64(1)),
    "three axes": to_array(np.ones((4, 2, 2))),
    "one axis": to_array(np.ones(4)),
    "no rows": to_array(np.ones((0, 2))),
    "no columns": to_array(np.ones((4, 0))),
    "no numbers": to_array(np.full((4, 2), np.nan)),
    "infinities": to_array(np.full((4, 2), np.inf)),
    "largest numbers": to_array(np.full((4, 2), 1.7e308)),
    "half precision": to_array(np.ones((4, 2), dtype=np.float16)),
    "large integers": to_array(np.full((4, 2), 2**63, dtype=np.uint64)),
    "column by column": to_array(np.asfortranarray(np.ones((4, 2)))),
    "another order of bytes": to_array(np.ones((4, 2), dtype=">f8")),
}
"""Arrays by the name of their fault."""


def _make_archives() -> Mapping[str, bytes]:
    words: Any = np.array(["she", "he"])
    vectors = to_array(np.ones((2, 3), dtype=np.float32))
    archives = {
        f"vectors: {name}": _zip(words=to_array(words), vectors=array)
        for name, array in ARRAYS.items()
    }
    archives |= {
        f"words: {name}": _zip(words=array, vectors=vectors) for name, array in ARRAYS.items()
    }
    return {
        **archives,
        "no arrays": _zip(),
        "no words": to_archive(vectors=np.ones((2, 3))),
        "a bomb": _zip(words=bytes(80 * 2**20), vectors=vectors),
        "bzip2": _zip(zipfile.ZIP_BZIP2, words=bytes(2**20), vectors=vectors),
        "lzma": _zip(zipfile.ZIP_LZMA, words=bytes(2**20), vectors=vectors),
    }


ARCHIVES = _make_archives()
"""Archives by the name of their fault."""
