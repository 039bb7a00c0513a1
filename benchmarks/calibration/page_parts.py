"""Some worlds of the page replaced by newer ones, without a run of all others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

Parts: TypeAlias = Mapping[tuple[str, str], str]
"""The text under each pair of a heading and a heading of a world, which may be blank."""

HEADING = re.compile(r"(?m)^(?=##{1,2} )")
SHARE = re.compile(r"(\*\*)?\d+\.\d%(\*\*)?( [▲▼])?( of \d+)?")
COUNTS = re.compile(r"(?P<outside>\d+) of (?P<rows>\d+), where\nabout \d+ are expected")
TABLES = ("## Intervals", "## Tests inside one model", "## Comparisons of two models")
"""The headings above the tables whose rows the introduction counts."""


def replace_worlds(page: str, newer: str) -> str:
    """The page with the worlds and sections of a newer one, and its rows outside counted again.

    Text between a heading of tables and its first world stays that of the page.

    Raises:
        ValueError: The newer page has another number of samples, or a world that the page lacks.
    """
    parts, others = dict(_split_page(page)), _split_page(newer)
    if _count_samples(page) != _count_samples(newer):
        message = f"the page has {_count_samples(page)} samples: run as many"
        raise ValueError(message)
    for (heading, world), text in others.items():
        if not world and heading in {"", *TABLES}:
            continue
        if (heading, world) not in parts:
            message = f"the page has no {world or heading!r}: run all worlds"
            raise ValueError(message)
        parts[heading, world] = text
    cells = [
        cell.strip()
        for (heading, _), text in parts.items()
        if heading in TABLES
        for line in text.splitlines()
        for cell in line.split("|")
    ]
    shares = [cell for cell in cells if SHARE.fullmatch(cell)]
    n_outside = sum(cell.startswith("**") for cell in shares)
    expected = f"about {round(len(shares) / 100)} are expected"
    parts["", ""] = COUNTS.sub(
        f"{n_outside} of {len(shares)}, where\n{expected}", parts["", ""], count=1
    )
    return "\n\n".join(parts.values()) + "\n"


def _split_page(page: str) -> Parts:
    parts, heading = {}, ""
    for part in HEADING.split(page):
        title = part.split("\n", 1)[0] if part.startswith("#") else ""
        is_world = title.startswith("### ")
        heading = heading if is_world else title * title.startswith("## ")
        parts[heading, title if is_world else ""] = part.rstrip("\n")
    return parts


def _count_samples(page: str) -> str:
    found = re.search(r"run\.py --seeds (\d+)", page)
    return found[1] if found else ""
