"""The headline rows of a run: means over seeds and folds where there are several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from recbias.core.measurements import columns
from recbias.reports.views.run_tables import RunTables

ALL = columns.ALL
"""The value of ``dataset``, ``seed`` or ``fold`` in rows that hold the mean over all of them."""


def list_datasets(run: RunTables) -> list[str]:
    """Return the datasets of ``metrics.csv``: ``all`` first, then in the manifest's order."""
    labels = [ALL, *(str(dataset.get("label")) for dataset in run.manifest.get("datasets", []))]
    return _sort_by(labels, run.metrics["dataset"])


def list_single_datasets(run: RunTables) -> list[str]:
    """Return the datasets, without the mean over all of them."""
    return [dataset for dataset in list_datasets(run) if dataset != ALL]


def list_models(run: RunTables) -> list[str]:
    """Return the models of ``metrics.csv`` in the manifest's order, unlisted models last."""
    labels = [str(model.get("label")) for model in run.manifest.get("models", [])]
    return _sort_by(labels, run.metrics["model"])


def _sort_by(labels: Sequence[str], column: pd.Series) -> list[str]:
    position = {label: number for number, label in enumerate(labels)}
    return sorted(column.unique(), key=lambda name: position.get(name, len(position)))


def select_headline(run: RunTables, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the means over seeds and folds, else the rows of the first seed and fold."""
    headlines = []
    for name in list_datasets(run):
        rows = frame[frame["dataset"] == name]
        for column in ("seed", "fold"):
            values = rows[column].unique().tolist()
            if len(values) > 1:
                rows = rows[rows[column] == (ALL if ALL in values else values[0])]
        headlines.append(rows)
    return pd.concat(headlines) if headlines else frame


def select_varying(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return the columns that hold more than one value."""
    return [column for column in columns if len(frame[column].unique()) > 1]


def get_place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the dataset, seed and fold of a row."""
    return str(row["dataset"]), str(row["seed"]), str(row["fold"])


def rank_label(text: str) -> tuple[bool, int, str]:
    """Return a sort key: ``all`` first, then numbers by value, then text.

    >>> sorted(["10", "2", "all"], key=rank_label)
    ['all', '2', '10']
    """
    return text != ALL, int(text) if text.isascii() and text.isdigit() else 0, text
