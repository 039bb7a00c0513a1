"""Parquet files of run folders, and the remedies for damaged ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from recbias.core.errors import MissingRun
from recbias.core.input_files import convert_read_errors

REMEDY = "give a folder that `recbias run` wrote: it holds manifest.json and metrics.csv"

REPAIR = "copy the run folder again, or `recbias run` its spec again: stored stages are reused"

_KEYS = ("dataset", "model", "seed", "fold")
_MEASURED = (*_KEYS, "metric", "k", "group", "target")
_COLUMNS = {
    "per_unit.parquet": (*_MEASURED, "unit", "unit_id", "value"),
    "replicates.parquet": _MEASURED,
    "lists.parquet": (*_KEYS, "query_id", "rank", "item_id", "score"),
    "popularity.parquet": ("dataset", "item_id", "interactions"),
}
"""The columns of each file that readers use."""


@contextmanager
def convert_parquet_errors(path: Path) -> Iterator[None]:
    """Raise what pyarrow raises for a file of a run folder as an error with a remedy.

    Raises:
        MissingFile: It cannot be read.
        MissingRun: It is damaged.
    """
    from pyarrow import ArrowException

    try:
        with convert_read_errors(path):
            try:
                yield
            except OSError as error:  # pyarrow has no other error for a damaged page
                if error.errno is None:
                    raise ValueError(str(error)) from error
                raise
    except (ArrowException, ValueError) as error:
        raise MissingRun(f"it cannot be read: {error}", where=str(path), remedy=REPAIR) from error


def require_columns(path: Path, names: Sequence[object]) -> None:
    """Refuse a Parquet file without the columns that a run writes.

    Raises:
        MissingRun: A column is absent.
    """
    missing = [name for name in _COLUMNS.get(path.name, ()) if name not in names]
    if missing:
        message = f"it has no column {', '.join(missing)}"
        raise MissingRun(message, where=str(path), remedy=REPAIR)
