"""Some worlds of the page replaced by newer ones, without a run of all others."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TypeAlias

Parts: TypeAlias = Mapping[tuple[str, str], str]
"""The text under each pair of a heading and a heading of a world, which may be blank."""

HEADING = re.compile(r"(?m)^(?=##{1,2} )")
SHARE = re.compile(r"(\*\*)?\d+\.\d%(\*\*)?( [▲▼])?( of \d+)?")
COUNTS = re.compile(r"(?P<outside>\d+) of (?P<rows>\d+), where\nabout \d+ are expected")
COUNTED = ("## Intervals", "## Tests inside one model", "## Comparisons of two models")
"""The headings above the tables whose rows the introduction counts."""

TABLES = (*COUNTED, "## What tests detect")
"""The headings above the tables of worlds."""


def replace_worlds(
    page: str, newer: str, studies: Collection[str] = (), worlds: Collection[str] = ()
) -> str:
    """The page with the worlds and sections of a newer one, and its rows outside counted again.

    Text between a heading of tables and its first world stays that of the page. Where the newer
    one has another number of samples, its rows say so.

    Args:
        page: The page.
        newer: A page of some worlds.
        studies: What was measured in them, if not everything: other rows stay as they are.
        worlds: The names of all worlds, if those that there are no longer are to be removed.

    Raises:
        ValueError: The newer page has a world, or a kind of test, that the page lacks.
    """
    parts, others = dict(_split_page(page)), _split_page(newer)
    n_samples = _count_samples(newer)
    remark = "" if n_samples == _count_samples(page) else f"Over {int(n_samples):,} samples."
    for (heading, world), text in others.items():
        if not world and heading in {"", *TABLES}:
            continue
        if (heading, world) not in parts:
            message = f"the page has no {world or heading!r}: run all worlds"
            raise ValueError(message)
        is_table = heading in TABLES
        newest = _add_remark(text, remark) if is_table and remark else text
        is_part = bool(studies) and is_table
        old = parts[heading, world]
        parts[heading, world] = _replace_rows(old, newest, studies) if is_part else newest
    headings = {f"### {name[0].upper()}{name[1:]}" for name in worlds} | {""}
    for heading, world in [*parts]:
        if worlds and heading in TABLES and world not in headings:
            del parts[heading, world]
    cells = [
        cell.strip()
        for (heading, _), text in parts.items()
        if heading in COUNTED
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


def _replace_rows(old: str, newer: str, studies: Collection[str]) -> str:
    """The table with the rows of some studies replaced."""
    (head, names, rows), (_, newer_names, newer_rows) = _split_table(old), _split_table(newer)
    lacking = [name for name in newer_names if name not in names]
    if lacking:
        message = f"the table has no column {lacking[0]!r}: run all studies"
        raise ValueError(message)
    cells = [dict(zip(newer_names, row, strict=True)) for row in newer_rows]
    kept: list[list[str]] = []
    for name in dict.fromkeys([*(row[0] for row in rows), *(row[0] for row in newer_rows)]):
        if name in studies:
            own = [row for row in cells if row["Metric"] == name]
            kept += [[row.get(column, "") for column in names] for row in own]
        else:
            kept += [row for row in rows if row[0] == name]
    return "\n".join([head, *(f"| {' | '.join(row)} |" for row in kept)])


def _add_remark(text: str, remark: str) -> str:
    """The table with a further remark in each row."""
    head, _, rows = _split_table(text)
    written = [[*row[:-1], " ".join(filter(None, (row[-1], remark)))] for row in rows]
    return "\n".join([head, *(f"| {' | '.join(row)} |" for row in written)])


def _split_table(text: str) -> tuple[str, list[str], list[list[str]]]:
    """What is above the rows of the table, the names of its columns, and the cells of its rows."""
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith("| Metric "))
    rows = [line[2:-2].split(" | ") for line in lines[at:] if line]
    return "\n".join(lines[: at + 2]), rows[0], rows[2:]


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
