"""The format of delimited text files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa

Kind: TypeAlias = Literal["int32", "int64", "float32", "float64", "id", "text"]
"""What a column holds: whole numbers, ratings (``float32``, finite), numbers that may be missing
(``float64``), identifiers (text that is never empty) or text."""

BadLines: TypeAlias = Literal["error", "skip"]
"""What to do with a malformed line: report it and stop, or skip and count it."""

SKIP_HINT = "correct the line, or skip such lines with --set dataset.bad_lines=skip"
"""The remedy for a malformed line."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The format of a delimited text file.

    Args:
        columns: The columns to read and what they hold; all columns, in order, if the file has no
            header.
        delimiter: The text between cells; ``::`` as in MovieLens is supported.
        header: Whether the first line names the columns.
        quoted: Whether a cell may be in double quotes, with delimiters and line ends inside.
        encoding: The encoding of the text.
    """

    columns: Mapping[str, Kind]
    delimiter: str = ","
    header: bool = True
    quoted: bool = False
    encoding: str = "utf-8"

    @property
    def quoted_delimiter(self) -> str:
        """The delimiter if cells may be in double quotes, else nothing."""
        return self.delimiter if self.quoted else ""

    def schema(self, *, ratings: str = "float32") -> Any:
        """Return the ``pyarrow.Schema`` of the columns, with ratings of a given type."""
        alias = {"id": "string", "text": "string", "float32": ratings}
        types = {name: alias.get(kind, kind) for name, kind in self.columns.items()}
        return pa.schema([(name, pa.type_for_alias(type_)) for name, type_ in types.items()])
