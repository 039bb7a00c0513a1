"""The header of a GGUF file: the settings of its model, and the number of its weights."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

MAGIC = b"GGUF"

FORMATS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
"""The format of each type of number, by its code."""

TEXT, ARRAY = 8, 9
"""The codes of a text and of an array."""

LONGEST, MOST_DIMENSIONS = 2**20, 8
"""The longest text, and the most dimensions of a tensor, that a header has: others are damage."""


class GgufHeader(NamedTuple):
    """What the header of a GGUF file says.

    Args:
        settings: The numbers and texts by name, without the architecture: ``embedding_length``; of
            an array, the number of its values.
        n_weights: The number of weights.
    """

    settings: Mapping[str, int | float | str]
    n_weights: int


def read_header(path: Path) -> GgufHeader:
    """Return the header of a file, which is read once for each version of the file.

    Raises:
        ValueError: It is no such file, or it is cut or damaged.
        OSError: It cannot be read.
    """
    status = path.stat()
    return _read_version(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=16)
def _read_version(path: Path, size: int, time: int) -> GgufHeader:
    del time
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise ValueError(f"{path} is no GGUF file")
        _read_number(file, "I")  # the version
        n_tensors, n_settings = _read_number(file, "Q"), _read_number(file, "Q")
        if max(n_tensors, n_settings) > size:
            raise ValueError(f"the header of {path} is damaged")
        settings = dict(_read_setting(file) for _ in range(int(n_settings)))
        n_weights = sum(_count_tensor(file) for _ in range(int(n_tensors)))
    architecture = settings.get("general.architecture", "")
    names = {name.removeprefix(f"{architecture}."): value for name, value in settings.items()}
    return GgufHeader(names, n_weights)


def _read_setting(file: BinaryIO) -> tuple[str, int | float | str]:
    return _read_text(file), _read_value(file, int(_read_number(file, "I")))


def _read_value(file: BinaryIO, kind: int) -> int | float | str:
    """Return a number or a text; of an array, the number of its values."""
    if kind == TEXT:
        return _read_text(file)
    if kind != ARRAY:
        return _read_number(file, _get_format(kind))
    kind, n = int(_read_number(file, "I")), int(_read_number(file, "Q"))
    if kind in {TEXT, ARRAY}:
        for _ in range(n):
            _read_value(file, kind)
    else:
        file.seek(n * struct.calcsize(_get_format(kind)), 1)
    return n


def _count_tensor(file: BinaryIO) -> int:
    """Return the number of weights of the next tensor."""
    _read_text(file)  # its name
    n_dimensions = int(_read_number(file, "I"))
    _refuse_above(MOST_DIMENSIONS, n_dimensions)
    shape = [int(_read_number(file, "Q")) for _ in range(n_dimensions)]
    _read_number(file, "I"), _read_number(file, "Q")  # its type and place
    return math.prod(shape)


def _read_text(file: BinaryIO) -> str:
    length = int(_read_number(file, "Q"))
    _refuse_above(LONGEST, length)
    return file.read(length).decode("utf-8", "replace")


def _read_number(file: BinaryIO, name: str) -> int | float:
    size = struct.calcsize(name)
    values = file.read(size)
    if len(values) < size:
        raise ValueError(f"{file.name} is cut")
    number: int | float = struct.unpack(f"<{name}", values)[0]
    return number


def _get_format(kind: int) -> str:
    if kind not in FORMATS:
        raise ValueError(f"a GGUF file has no type {kind}")
    return FORMATS[kind]


def _refuse_above(most: int, n: int) -> None:
    if n > most:
        raise ValueError("the header of a GGUF file is damaged")
