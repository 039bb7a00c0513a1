"""The folder of a published dataset: where it is below the data folder, and its files."""

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
    """Reads the files of a dataset and counts their malformed lines.

    Args:
        path: The folder.
        bad_lines: Whether a malformed line is an error or is skipped.
        skipped: The number of skipped lines of each file read so far.
    """

    path: Path
    bad_lines: BadLines = "error"
    skipped: dict[str, int] = field(default_factory=dict)

    def read(self, name: str, layout: Layout, *, keep: Callable[[Any], Any] | None = None) -> Rows:
        """Read a delimited text file; see ``read_table``."""
        rows = read_table(self.path / name, layout, bad_lines=self.bad_lines, keep=keep)
        self.skipped[name] = rows.bad_lines
        return rows

    def read_json(
        self, name: str, fields: Fields, *, keep: Callable[[Any], Any] | None = None
    ) -> Rows:
        """Read a file of JSON lines; see ``read_json_lines``."""
        rows = read_json_lines(self.path / name, fields, bad_lines=self.bad_lines, keep=keep)
        self.skipped[name] = rows.bad_lines
        return rows

    @property
    def counts(self) -> dict[str, int]:
        """``bad_lines`` of all files together, for ``Dataset.counts``."""
        return {"bad_lines": sum(self.skipped.values())}


def find_folder(name: str, data: Path, *, holds: str, inner: str = "") -> Path:
    """Return the folder of a dataset: ``<data>/<name>``, or as its archive unpacks.

    Args:
        name: The published name.
        data: The folder of datasets.
        holds: A file that identifies the folder.
        inner: The folder inside the publisher's archive.
    """
    folders = [data / name]
    if inner:
        folders += [data / name / inner, data / inner]
    return next((folder for folder in folders if has_file(folder / holds)), folders[0])


def require_files(paths: Sequence[Path], *, fetch: str) -> list[Path]:
    """Return the paths if all files exist.

    Args:
        paths: The files of a dataset.
        fetch: The name that ``recbias data fetch`` takes.

    Raises:
        MissingFile: A file does not exist; the remedy is the command that fetches it.
    """
    for path in paths:
        if not has_file(path):
            message = f"{fetch} lacks the file {path.name}"
            remedy = f"recbias data fetch {fetch}, or set --data to the folder that contains it"
            raise MissingFile(message, where=str(path), remedy=remedy)
    return list(paths)
