"""Faults of any file: absent, a pipe, damaged bytes, other encodings, damaged compression."""

from __future__ import annotations

import gzip
import io
import os
import random
import struct
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from support.faults.files.contents import pack

BOM = b"\xef\xbb\xbf"
BOMB_BYTES = 80 * 2**20


def remove(path: Path) -> None:
    path.unlink()


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def make_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def make_dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nothing")


def forbid_reading(path: Path) -> None:
    path.chmod(0)


OF_PATHS: Mapping[str, Callable[[Path], None]] = {
    "missing": remove,
    "a folder": make_folder,
    "a pipe": make_pipe,
    "an endless device": make_device,
    "a loop of links": make_loop,
    "a dangling link": make_dangling,
    "unreadable": forbid_reading,
}
"""Faults of the path of a file."""

Change = Callable[[bytes, random.Random], bytes]


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def cut_end(data: bytes, _: random.Random) -> bytes:
    return data[:-1]


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 20])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def insert(*choices: bytes) -> Change:
    """Return a change that inserts bytes at a random place."""

    def change(data: bytes, rng: random.Random) -> bytes:
        at = rng.randrange(len(data) + 1)
        return data[:at] + rng.choice(choices) + data[at:]

    return change


def delete_bytes(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice([1, 2, 10]) :]


def repeat_content(data: bytes, _: random.Random) -> bytes:
    return data + data


def randomize(data: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(len(data))


def replace_by(content: bytes) -> Change:
    return lambda _data, _rng: content


_PICKLE = b"cos\nsystem\n(S'touch pickle-was-loaded'\ntR."
"""A pickle that creates a file when it is loaded."""


def _pack_nothing() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.txt", "a")
    return stream.getvalue()


OF_BYTES: Mapping[str, Change] = {
    "empty": replace_by(b""),
    "cut": cut,
    "without its last byte": cut_end,
    "flipped bits": flip_bits,
    "an inserted byte": insert(
        b"\x00", b"\xff", b'"', b"\n", b"\r", b",", b"\t", b"\\", b"{", b"'"
    ),
    "deleted bytes": delete_bytes,
    "twice its content": repeat_content,
    "random bytes": randomize,
    "a web page": replace_by(b"<!DOCTYPE html>\n<html><body>404 not found</body></html>\n"),
    "a pickle": replace_by(_PICKLE),
    "a zip archive": replace_by(_pack_nothing()),
    "packed by gzip, unlike its name": lambda data, _: pack(data),
    "NUL bytes only": replace_by(bytes(1000)),
}
"""Faults of the bytes of any file, packed or not."""

OF_TEXTS: Mapping[str, Change] = {
    "a BOM": lambda data, _: BOM + data,
    "two BOMs": lambda data, _: BOM + BOM + data,
    "UTF-16": lambda data, _: data.decode().encode("utf-16"),
    "UTF-16 without BOM": lambda data, _: data.decode().encode("utf-16-be"),
    "UTF-32": lambda data, _: data.decode().encode("utf-32"),
    "Latin-1": lambda data, _: data.decode().replace("a", "\xe4").encode("latin-1", "replace"),
    "a byte that is not UTF-8": insert(b"\xff", b"\x80", b"\xc3"),
    "overlong UTF-8": insert(b"\xc0\xaf", b"\xe0\x80\xaf"),
    "an encoded surrogate": insert(b"\xed\xa0\x80", b"\xed\xa0\xbd\xed\xb8\x80"),
    "a NUL": insert(b"\x00"),
    "a control sequence": insert(
        b"\x1b]0;title\x07", b"\x1b[2J", b"\xc2\x9b2J", "\u202e".encode()
    ),
    "CR only": lambda data, _: data.replace(b"\n", b"\r"),
    "CR LF": lambda data, _: data.replace(b"\n", b"\r\n"),
    "CR CR LF": lambda data, _: data.replace(b"\n", b"\r\r\n"),
    "mixed line ends": lambda data, _: data.replace(b"\n", b"\r\n", 1),
    "other line ends": lambda data, _: data.replace(b"\n", "\u2028".encode()),
    "blank lines only": replace_by(b"\n\n\n"),
    "spaces only": replace_by(b"   \t "),
    "blank lines between": lambda data, _: data.replace(b"\n", b"\n\n"),
    "a quote": insert(b'"', b'""', b'"""'),
    "a lone BOM": replace_by(BOM),
    "one endless line": replace_by(b"x" * (11 * 10**6)),
    "many brackets": replace_by(b"[" * 200_000),
    "many braces": replace_by(b'{"a":' * 100_000),
}
"""Faults of text, made before it is packed."""


def damage_checksum(data: bytes, _: random.Random) -> bytes:
    return data[:-8] + struct.pack("<I", 7) + data[-4:]


def damage_body(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(10, len(data) - 8)
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def cut_pack(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(1, len(data))]


@cache
def _pack_zeros() -> bytes:
    return gzip.compress(bytes(BOMB_BYTES), 1)


OF_PACKS: Mapping[str, Change] = {
    "a cut pack": cut_pack,
    "a damaged pack": damage_body,
    "a wrong checksum": damage_checksum,
    "garbage behind a pack": lambda data, _: data + b"garbage",
    "NULs behind a pack": lambda data, _: data + bytes(100),
    "two packs": lambda data, _: data + data,
    "half of a second pack": lambda data, _: data + data[: len(data) // 2],
    "the head of a pack": lambda data, _: data[:10],
    "an unknown method": lambda data, _: data[:2] + b"\x07" + data[3:],
    "not packed, unlike its name": lambda data, _: gzip.decompress(data),
    "packed twice": lambda data, _: pack(data),
    "a bomb": lambda _data, _rng: _pack_zeros(),
    "a bomb of lines": lambda data, _: gzip.compress(
        (content := gzip.decompress(data)) * (BOMB_BYTES // len(content) + 1), 9
    ),
}
"""Faults of a gzip file."""
