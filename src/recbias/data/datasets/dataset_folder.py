"""The folder of a published dataset: where it is below the data folder, and its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recbias.core.errors import MissingFile
from recbias.core.input_files import has_file
from recbias.formats.delimited import BadLines, Layout, Rows, read_table
from recbias.formats.json_files import Fields, read_json_lines


@dataclass(frozen=True)
class Folder:
    """Reads the files of a dataset; ``skipped`` counts the malformed lines of each."""

    path: Path
    bad_lines: BadLines = "error"
    skipped: dict[str, int] = field(default_factory=dict)

    def read(
        self, name: str, columns: Layout | Fields, *, keep: Callable[[Any], Any] | None = None
    ) -> Rows:
        """Read a file: delimited text with a ``Layout``, JSON lines with ``Fields``."""
        path = self.path / name
        if isinstance(columns, Layout):
            rows = read_table(path, columns, bad_lines=self.bad_lines, keep=keep)
        else:
            rows = read_json_lines(path, columns, bad_lines=self.bad_lines, keep=keep)
        self.skipped[name] = rows.bad_lines
        return rows

    @property
    def counts(self) -> dict[str, int]:
        """``bad_lines`` of all files together, for ``Dataset.counts``."""
        return {"bad_lines": sum(self.skipped.values())}


def find_folder(name: str, data: Path, *, holds: str, inner: str = "") -> Path:
    """Return the folder of a dataset: ``<data>/<name>``, or as its archive unpacks.

    It is identified by the file ``holds``; ``inner`` is the folder inside the archive.
    """
    folders = [data / name, *([data / name / inner, data / inner] if inner else [])]
    return next((folder for folder in folders if has_file(folder / holds)), folders[0])


def require_files(paths: Sequence[Path], *, fetch: str) -> list[Path]:
    """Return the paths if all files exist.

    Raises:
        MissingFile: A file does not exist; the remedy is ``recbias data fetch`` with ``fetch``.
    """
    for path in paths:
        if not has_file(path):
            message = f"{fetch} lacks the file {path.name}"
            remedy = f"recbias data fetch {fetch}, or set --data to the folder that contains it"
            raise MissingFile(message, where=str(path), remedy=remedy)
    return list(paths)
