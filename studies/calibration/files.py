"""The page of the calibration, and its tables as CSV files.

Tables of the subsections (``###``) of one section are one file, whose first column is the
subsection.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

EVIDENCE = Path(__file__).parents[2] / "docs" / "evidence"


def split_page(text: str, prefix: str) -> tuple[str, dict[str, list[dict[str, str]]]]:
    """Return the page without tables, and the rows of each file by its name."""
    tables: dict[str, list[dict[str, str]]] = {}
    page: list[str] = []
    section, subsection, begun = "", "", 0
    lines = iter([*text.splitlines(), ""])
    for line in lines:
        if line.startswith("## "):
            section, subsection, begun = line[3:], "", len(tables)
        if line.startswith("### "):
            subsection = line[4:]
        elif line.startswith("|"):
            head, _, *cells = [_read_cells(line), *map(_read_cells, _take_table(lines))]
            number = len(tables) - begun
            name = f"{prefix}-{_make_slug(section)}{f'-{number + 1}' if number else ''}.csv"
            if subsection and number:
                name = [*tables][-1]
            elif name not in tables:
                page += [*_show_plot(name), f"[The table](tables/{name})", ""]
            world = {"World": subsection} if subsection else {}
            names = _make_unique(head)
            tables.setdefault(name, []).extend(
                world | dict(zip(names, row, strict=True)) for row in cells
            )
        elif not (subsection and line.startswith("True value: ")):
            page.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(page)).rstrip() + "\n", tables


def _show_plot(name: str) -> list[str]:
    plot = name.replace(".csv", ".svg")
    is_there = (EVIDENCE / "plots" / plot).exists()
    return [f"![A plot of the table](plots/{plot})", ""] if is_there else []


def _take_table(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a table after its first, up to the blank one that ends it."""
    yield from iter(lambda: next(lines), "")


def write_tables(tables: Mapping[str, Sequence[Mapping[str, str]]]) -> None:
    """Write the files."""
    for name, rows in tables.items():
        with (EVIDENCE / "tables" / name).open("w", encoding="utf-8", newline="") as file:
            columns = dict.fromkeys(column for row in rows for column in row)
            writer = csv.DictWriter(file, [*columns], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def _make_unique(head: Sequence[str]) -> list[str]:
    """Return the names of the columns, different ones: with the last one that occurs once."""
    names: list[str] = []
    for at, name in enumerate(head):
        earlier = [each for each in head[:at] if head.count(each) == 1]
        names.append(f"{earlier[-1]}: {name}" if head.count(name) > 1 and earlier else name)
    return [name or "row" for name in names]


def _read_cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip()[1:-1])
    return [_read_cell(cell) for cell in cells]


def _read_cell(cell: str) -> str:
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"[`]|\*\*", "", cell))
    text = text.replace("\\|", "|").strip()
    return text.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+", text) else text


def _make_slug(title: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", title.lower())[:4])
