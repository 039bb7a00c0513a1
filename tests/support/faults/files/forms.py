"""A form: a way in which a file from outside is read, with a valid example of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from support.faults.files.contents import Table, to_file

Read = Callable[[Path], object]


@dataclass(frozen=True)
class Form:
    """A file that is read, and the reader.

    Args:
        name: The plug-in and setting, or the command, and the format: ``datasets/tables.items``.
        files: The content of each file by its path; faults change the first.
        read: Reads the files in a folder as a run does.
        kind: The format of the content: a delimiter, or ``json``, ``jsonl``, ``yaml``,
            ``parquet``, ``array``, ``archive``, ``lines`` (one value per line) or ``binary``.
        header: Whether the first line names the columns.
    """

    name: str
    files: Mapping[str, bytes]
    read: Read
    kind: str
    header: bool = True

    @property
    def target(self) -> str:
        """The path of the file that faults change."""
        return next(iter(self.files))

    @property
    def is_packed(self) -> bool:
        return self.target.endswith(".gz")

    @property
    def is_text(self) -> bool:
        return self.kind not in {"parquet", "array", "archive", "binary"}

    @property
    def is_delimited(self) -> bool:
        return self.is_text and self.kind not in {"json", "jsonl", "yaml"}


KINDS = {
    ".csv": ",",
    ".tsv": "\t",
    ".inter": "\t",
    ".jsonl": "jsonl",
    ".json": "json",
    ".yaml": "yaml",
    ".parquet": "parquet",
    ".xlsx": "binary",
    ".npy": "array",
    ".npz": "archive",
    ".txt": "lines",
}
"""The kind of a file by its suffix."""

TABLE_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".parquet", ".xlsx")
TEXT_SUFFIXES = (".csv", ".tsv.gz", ".jsonl", ".parquet")


def find_kind(name: str) -> str:
    return KINDS[PurePosixPath(name.removesuffix(".gz")).suffix]


def make_form(name: str, files: Mapping[str, bytes], read: Read, kind: str = "") -> Form:
    target = next(iter(files))
    return Form(f"{name} {target}", files, read, kind or find_kind(target))


def make_table_forms(
    name: str,
    table: Table,
    read: Callable[[Path, Path], object],
    suffixes: Sequence[str] = TABLE_SUFFIXES,
    others: Mapping[str, bytes] | None = None,
) -> list[Form]:
    """Return a form for each format of a table; ``read`` takes its path and the folder."""
    return [
        make_form(
            name,
            {f"table{suffix}": to_file(table, suffix), **(others or {})},
            lambda folder, suffix=suffix: read(folder / f"table{suffix}", folder),  # type: ignore[misc]
        )
        for suffix in suffixes
    ]
