"""The folder of a published dataset: where it lies below the data folder, and its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recbias.core.errors import MissingFile
from recbias.core.input_files import has_file
from recbias.formats.delimited.layout import BadLines, Layout
from recbias.formats.delimited.reader import Rows, read_table
from recbias.formats.json_lines import Fields, read_json_lines


@dataclass(frozen=True)
class Folder:
    """The folder of a dataset whose files are being read.

    Args:
        path: The folder.
        bad_lines: What a malformed line does.
        skipped: How many lines of each file were left out so far.
    """

    path: Path
    bad_lines: BadLines = "error"
    skipped: dict[str, int] = field(default_factory=dict)

    def read(self, name: str, layout: Layout, *, keep: Callable[[Any], Any] | None = None) -> Rows:
        """Return the rows of one of its text files; see ``reading.read_table``."""
        rows = read_table(self.path / name, layout, bad_lines=self.bad_lines, keep=keep)
        self.skipped[name] = rows.bad_lines
        return rows

    def read_json(
        self, name: str, fields: Fields, *, keep: Callable[[Any], Any] | None = None
    ) -> Rows:
        """Return the lines of one of its files of JSON; see ``json_lines.read_json_lines``."""
        rows = read_json_lines(self.path / name, fields, bad_lines=self.bad_lines, keep=keep)
        self.skipped[name] = rows.bad_lines
        return rows

    @property
    def counts(self) -> dict[str, int]:
        """``bad_lines`` of all files together, for ``Dataset.counts``."""
        return {"bad_lines": sum(self.skipped.values())}


def find_folder(name: str, data: Path, *, holds: str, inner: str = "") -> Path:
    """Return the folder of a dataset: ``<data>/<name>``, or as its own archive unpacks.

    Args:
        name: The published name.
        data: The folder of datasets.
        holds: A file that shows which folder it is.
        inner: The folder inside the publisher's archive.
    """
    places = [data / name]
    if inner:
        places += [data / name / inner, data / inner]
    found = [each for each in places if has_file(each / holds)]
    return found[0] if found else places[0]


def present(paths: Sequence[Path], *, fetch: str) -> list[Path]:
    """Return the paths, all of which must be there.

    Args:
        paths: The files of a dataset.
        fetch: The name that ``recbias data fetch`` takes.
        data: The folder of datasets.

    Raises:
        MissingFile: One is not, with the command that fetches it.
    """
    for path in paths:
        if not has_file(path):
            remedy = f"recbias data fetch {fetch}, or give --data with the folder that has it"
            raise MissingFile(
                f"{fetch} lacks the file {path.name}", where=str(path), remedy=remedy
            )
    return list(paths)
