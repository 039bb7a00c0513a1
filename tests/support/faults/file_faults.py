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


VALUES: tuple[Any, ...] = (
    None,
    True,
    "",
    -1,
    0.5,
    1e308,
    float("nan"),
    2**63,
    "a\nerror: forged:1:1: x",
    [],
    {},
)


def break_json(path: Path, rng: random.Random) -> str:
    """Replace or remove one value of a JSON file, and return how."""
    tree = json.loads(path.read_text(encoding="utf-8"))
    container, key = rng.choice(list(_list_places(tree)))
    found = container.pop(key)
    if is_replaced := rng.random() < 0.7:
        (container.insert if isinstance(container, list) else container.__setitem__)(
            key, rng.choice(VALUES)
        )
    path.write_text(json.dumps(tree), encoding="utf-8")
    return f"{key} = {found!r:.50} {'replaced' if is_replaced else 'removed'} in {path.name}"


def _list_places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container of a tree with each of its keys or positions."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _list_places(value)


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
