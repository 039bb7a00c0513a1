"""How delimited text files are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["int32", "int64", "float32", "float64", "id", "text"]
"""What a column holds: whole numbers, ratings (``float32``, finite), numbers that may be missing
(``float64``), identifiers (text that is never empty) or text."""

BadLines: TypeAlias = Literal["error", "skip"]
"""What a malformed line does: stop with its place, or be left out and counted."""

SKIPPING = "mend the line, or leave such lines out with --set dataset.bad_lines=skip"
"""The remedy for a malformed line."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a text file is written.

    Args:
        columns: The columns to read and what they hold; all of them, in order, where the file has
            no header.
        delimiter: What stands between cells; ``::`` as in MovieLens is one.
        header: Whether the first line names the columns.
        quoted: Whether a cell may stand in double quotes, with delimiters and line ends in it.
        encoding: The text's encoding.
    """

    columns: Mapping[str, Kind]
    delimiter: str = ","
    header: bool = True
    quoted: bool = False
    encoding: str = "utf-8"

    def schema(self, *, ratings: str = "float32") -> Any:
        """Return the Arrow schema of the columns, with ratings of the type named."""
        import pyarrow as pa

        alias = {"id": "string", "text": "string", "float32": ratings}
        kinds = {name: alias.get(kind, kind) for name, kind in self.columns.items()}
        return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in kinds.items()])
