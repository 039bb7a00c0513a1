"""Faults in specs: a valid spec with one or two values, keys or characters changed."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import yaml

Place: TypeAlias = tuple[Any, Any]
"""A mapping or list, and the key or position of one of its values."""

SCALARS: tuple[Any, ...] = (
    None,
    True,
    "",
    " ",
    0,
    -1,
    1,
    3,
    0.5,
    -0.0,
    1e-320,
    1e308,
    float("nan"),
    float("inf"),
    10**16,
    10**30,
    2**63,
    "1",
    "nDCG",
    "gender",
    "no such name",
    "age <",
    "age > & gender",
    "gender &",
    "(" * 50,
    "not " * 2000 + "gender",
    "x" * 5000,
    "\x1b]0;title\x07",
    "a\nerror: forged:1:1: line",
    "\u202eabc",
    "\ud83d\ude00",
    "../../etc/passwd",
    "/dev/zero",
    "~",
    "${HOME}",
    "2026-11-24",
    [],
    {},
    [[]],
    [None],
    {"name": None},
    {"name": "nDCG"},
    {"name": []},
    {1: 2},
    {"": ""},
    ["Random", "Random"],
    list(range(300)),
    {"low": 1, "high": 0},
)
BYTES = (
    b"\xff",
    b"\x00",
    b"\t",
    b"\r",
    b"&a ",
    b"*a ",
    b"!!python/object:os.system ",
    b"<<: ",
    b"'",
    b'"',
    b"{",
    b"[",
    b"- ",
    b": ",
    b"# ",
    b"\xef\xbb\xbf",
    b"%",
    b"---\n",
    b"[" * 5000,
    b"\x1b[2J",
)
NAMES = (
    "",
    "nmae",
    "name",
    "k",
    "label",
    "by",
    "gap",
    "seed",
    "tune",
    "rerank",
    "sweep",
    "feedback",
    "\x1b[31m",
    "a.b",
    "<<",
    "1",
    "x" * 300,
)


def list_places(tree: Any) -> Iterator[Place]:
    """Yield every place of a tree."""
    children: Any = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in children:
        yield tree, key
        if isinstance(value, dict | list):
            yield from list_places(value)


def choose_place(tree: Any, rng: random.Random) -> Place | None:
    places = list(list_places(tree))
    return rng.choice(places) if places else None


def replace_value(tree: Any, rng: random.Random) -> None:
    if location := choose_place(tree, rng):
        container, key = location
        container[key] = copy.deepcopy(rng.choice(SCALARS))


def remove_value(tree: Any, rng: random.Random) -> None:
    if location := choose_place(tree, rng):
        container, key = location
        del container[key]


def swap_values(tree: Any, rng: random.Random) -> None:
    """Put a copy of one value in the place of another."""
    source, target = choose_place(tree, rng), choose_place(tree, rng)
    if source and target:
        value = copy.deepcopy(source[0][source[1]])
        target[0][target[1]] = value


def rename_key(tree: Any, rng: random.Random) -> None:
    mappings = [location for location in list_places(tree) if isinstance(location[0], dict)]
    if mappings:
        container, key = rng.choice(mappings)
        name = rng.choice([*NAMES, misspell(str(key), rng)])
        container[name] = container.pop(key)


def add_key(tree: Any, rng: random.Random) -> None:
    mappings = [tree] + [
        container[key] for container, key in list_places(tree) if isinstance(container[key], dict)
    ]
    rng.choice(mappings)[rng.choice(NAMES)] = copy.deepcopy(rng.choice(SCALARS))


def repeat_value(tree: Any, rng: random.Random) -> None:
    lists = [container for container, _ in list_places(tree) if isinstance(container, list)]
    if lists:
        chosen = rng.choice(lists)
        chosen.append(copy.deepcopy(rng.choice(chosen)) if chosen else None)


def wrap_value(tree: Any, rng: random.Random) -> None:
    """Put a value into a list or a mapping, or take it out of one."""
    if location := choose_place(tree, rng):
        container, key = location
        value = container[key]
        wrapped: tuple[Any, ...] = ([value], {"name": value}, [[value]])
        if isinstance(value, list) and value:
            wrapped = (*wrapped, value[0])
        container[key] = rng.choice(wrapped)


def misspell(text: str, rng: random.Random) -> str:
    """Change one character of a text."""
    if not text:
        return "x"
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(["", "x", text[at] * 2, text[at].swapcase()]) + text[at + 1 :]


def misspell_value(tree: Any, rng: random.Random) -> None:
    texts = [
        location for location in list_places(tree) if isinstance(location[0][location[1]], str)
    ]
    if texts:
        container, key = rng.choice(texts)
        container[key] = misspell(container[key], rng)


def scale_number(tree: Any, rng: random.Random) -> None:
    numbers = [
        location
        for location in list_places(tree)
        if type(location[0][location[1]]) in (int, float)
    ]
    if numbers:
        container, key = rng.choice(numbers)
        container[key] = container[key] * rng.choice([-1, 0, 0.1, 1.5, 10, 10**6, 10**15])


OF_TREES: Sequence[Callable[[Any, random.Random], None]] = (
    replace_value,
    remove_value,
    swap_values,
    rename_key,
    add_key,
    repeat_value,
    wrap_value,
    misspell_value,
    scale_number,
)


def cut_text(text: str, rng: random.Random) -> bytes:
    return text[: rng.randrange(len(text))].encode()


def insert_bytes(text: str, rng: random.Random) -> bytes:
    content = text.encode()
    at = rng.randrange(len(content))
    inserted = rng.choice(BYTES)
    return content[:at] + inserted + content[at:]


def repeat_line(text: str, rng: random.Random) -> bytes:
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    return "".join([*lines[: at + 1], *lines[at:]]).encode()


def indent_line(text: str, rng: random.Random) -> bytes:
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    lines[at] = rng.choice([" ", "   ", "\t"]) + lines[at]
    return "".join(lines).encode()


OF_TEXTS: Sequence[Callable[[str, random.Random], bytes]] = (
    cut_text,
    insert_bytes,
    repeat_line,
    indent_line,
)


def break_spec(text: str, rng: random.Random) -> tuple[str, bytes]:
    """Return the names of the faults, and the spec with them; it may still be a valid one."""
    if rng.random() < 0.2:
        change = rng.choice(OF_TEXTS)
        return change.__name__, change(text, rng)
    tree = yaml.safe_load(text)
    names = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        fault = rng.choice(OF_TREES)
        fault(tree, rng)
        names.append(fault.__name__)
    return " and ".join(names), yaml.safe_dump(tree, sort_keys=False).encode()
