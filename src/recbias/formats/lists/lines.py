"""Files of lists as lines of text: their first line, their records, and where a row stands."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from recbias.core.errors import MalformedLine
from recbias.formats.text_files import any_length, opened_text


@dataclass(frozen=True)
class Lines:
    """How a text file of lists is written.

    Args:
        path: The file.
        delimiter: What stands between cells; None is any white space.
        header: Whether the first line names the columns.
        quoted: Whether a cell may stand in double quotes, with delimiters and line ends in it.
        width: How many cells a line has; None for as many as the first has.
    """

    path: Path
    delimiter: str | None = ","
    header: bool = True
    quoted: bool = True
    width: int | None = None

    def place(self, row: int) -> str:
        """Return ``file:line`` of a row (from 0)."""
        line, _ = next(islice(self.records(), row + self.header, None))
        return f"{self.path}:{line}"

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each record with the line it starts at; a quoted cell may hold line ends."""
        with opened_text(self.path) as file, any_length():
            if not self.quoted:
                lines = enumerate(file, start=1)
                yield from ((line, self._cells(text)) for line, text in lines if text.strip())
                return
            reader = csv.reader(file, delimiter=self.delimiter or " ")
            start = 1
            for cells in reader:
                if cells:
                    yield start, cells
                start = reader.line_num + 1

    def malformed(self, error: Exception) -> MalformedLine:
        """Return the error that names the first line of another width, where there is one."""
        width = self.width
        for line, cells in self.records():
            width = width or len(cells)
            if len(cells) != width:
                found = f"{len(cells)} cells, not {width}"
                return MalformedLine(found, where=f"{self.path}:{line}")
        return MalformedLine(str(error).partition("\n")[0], where=str(self.path))

    def _cells(self, text: str) -> list[str]:
        return (
            text.split() if self.delimiter is None else text.rstrip("\r\n").split(self.delimiter)
        )


def first_line(path: Path) -> str:
    """Return the first line that holds anything, without its end; "" where there is none."""
    with opened_text(path) as file:
        return next((line.rstrip("\r\n") for line in file if line.strip()), "")
