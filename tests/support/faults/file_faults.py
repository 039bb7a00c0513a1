"""Faults of one file: bytes changed, another thing in its place, values of its JSON changed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.faults.spec_faults import OF_TREES

SECONDS = 60.0
"""Time after which a command counts as hung."""


@contextmanager
def refuse_hang() -> Iterator[None]:
    """Fail if the block does not end, as a command that reads a pipe would not."""

    def fail(*_: Any) -> None:
        raise AssertionError(f"no end after {SECONDS} s")

    previous = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def flip_bit(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes() or b"\0")
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def truncate(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size or 1)])


def zero_block(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    start = rng.randrange(len(content) or 1)
    end = min(len(content), start + rng.choice([1, 16, 512]))
    path.write_bytes(content[:start] + bytes(end - start) + content[end:])


def insert(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    at = rng.choice([0, len(content), rng.randrange(len(content) or 1)])
    path.write_bytes(content[:at] + rng.choice([b"\0", b"\n", b"\xff", b"{", b"9"]) + content[at:])


def write_foreign(path: Path, rng: random.Random) -> None:
    contents = (b"", b"null", b"[]", b"7", b"{}", b"[" * 10**5, b"\xff\xfe", rng.randbytes(300))
    path.write_bytes(rng.choice(contents))


def copy_other(path: Path, rng: random.Random) -> None:
    """Write the content of another file of the same tree, first of one with the same name."""
    files = [file for file in sorted(path.parents[2].rglob("*")) if file.is_file()]
    same = [file for file in files if file.name == path.name and file != path]
    path.write_bytes(rng.choice(same or files).read_bytes())


def remove(path: Path, _: random.Random) -> None:
    path.unlink()


def put_folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()
    if rng.random() < 0.5:
        (path / "x").write_bytes(b"x")


def put_link(path: Path, rng: random.Random) -> None:
    target = rng.choice(["absent", path.name, "/dev/zero", "/etc/hostname", "."])
    path.unlink()
    path.symlink_to(target)


def put_pipe(path: Path, _: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


OF_FILES: Sequence[Callable[[Path, random.Random], None]] = (
    *(flip_bit, flip_bit, truncate, zero_block, insert, write_foreign, copy_other),
    *(remove, put_folder, put_link, put_pipe),
)


def break_file(path: Path, rng: random.Random) -> str:
    """Damage a file, and return how."""
    fault = rng.choice(OF_FILES)
    fault(path, rng)
    return f"{fault.__name__} {path.name}"


def break_json(path: Path, rng: random.Random, dump: Callable[[Any], str] = json.dumps) -> str:
    """Change one or two values or keys of a JSON file, and return how."""
    tree = json.loads(path.read_text(encoding="utf-8"))
    names = []
    for _ in range(rng.choice([1, 1, 2])):
        fault = rng.choice(OF_TREES)
        fault(tree, rng)
        names.append(fault.__name__)
    path.write_text(dump(tree), encoding="utf-8", errors="surrogatepass")
    return f"{' and '.join(names)} in {path.name}"


def swap(a: Path, b: Path) -> None:
    """Exchange two files or folders."""
    free = a.with_name(f"{a.name}.swapped")
    a.rename(free)
    b.rename(a)
    free.rename(b)


def replace_by_copy(target: Path, source: Path) -> None:
    """Put a copy of a folder in the place of another."""
    shutil.rmtree(target)
    shutil.copytree(source, target)
