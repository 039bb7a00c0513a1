"""Which rows of a run are its headline: the mean over seeds and folds where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from recbias.core.measurements import columns
from recbias.reports.views.run_tables import RunTables

ALL = columns.ALL
"""What stands for the mean over datasets, seeds or folds."""


def datasets(run: RunTables) -> list[str]:
    """Return the datasets of ``metrics.csv``: ``all`` in front, then as the manifest has them."""
    present = run.metrics["dataset"].unique().tolist()
    listed = [str(each.get("label")) for each in run.manifest.get("datasets", [])]
    place = {label: number for number, label in enumerate([ALL, *listed])}
    return sorted(present, key=lambda each: place.get(each, len(place)))


def models(run: RunTables) -> list[str]:
    """Return the models of ``metrics.csv`` as the manifest has them, then any others."""
    present = run.metrics["model"].unique().tolist()
    listed = [str(each.get("label")) for each in run.manifest.get("models", [])]
    place = {label: number for number, label in enumerate(listed)}
    return sorted(present, key=lambda each: place.get(each, len(place)))


def headline(run: RunTables, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows over all seeds and folds, else those of the first seed and fold.

    Args:
        run: The run, for the order of its datasets.
        frame: Rows with the columns ``dataset``, ``seed`` and ``fold``.
    """
    kept = [
        _first(_first(frame[frame["dataset"] == label], "seed"), "fold") for label in datasets(run)
    ]
    return pd.concat(kept) if kept else frame


def _first(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    found = frame[column].unique().tolist()
    if len(found) < 2:
        return frame
    return frame[frame[column] == (ALL if ALL in found else found[0])]


def varying(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return the columns that hold more than one value."""
    return [each for each in columns if len(frame[each].unique()) > 1]


def place_of(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the dataset, seed and fold of a row."""
    return str(row["dataset"]), str(row["seed"]), str(row["fold"])


def all_first(text: str) -> tuple[bool, int, str]:
    """Return a key that sorts ``all`` in front, then numbers by size, then text.

    >>> sorted(["10", "2", "all"], key=all_first)
    ['all', '2', '10']
    """
    return text != ALL, int(text) if text.isascii() and text.isdigit() else 0, text
