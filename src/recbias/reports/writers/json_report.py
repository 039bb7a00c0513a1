"""``report.json``: metrics, significance, manifest and definitions for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import pandas as pd

from recbias.reports.views.definitions import definitions
from recbias.reports.views.run_tables import RunTables, rows_of
from recbias.reports.views.trials import trial_rows

SCHEMA_VERSION = 1
"""Raised when a field changes its meaning or goes."""


def json_report(run: RunTables, reference: pd.DataFrame | None = None) -> str:
    """Return the report as JSON; what is undefined is null.

    Args:
        run: The run.
        reference: The comparison with published figures, or None.
    """
    parts = {
        "schema_version": json.dumps(SCHEMA_VERSION),
        "metrics": _lines(rows_of(run.metrics)),
        "significance": _lines(map(_with_verdict, rows_of(run.significance))),
        "trials": _lines(trial_rows(run)),
        "importances": "[]" if run.importances is None else _lines(rows_of(run.importances)),
        "reference": "null" if reference is None else _lines(rows_of(reference)),
        "definitions": _lines(asdict(each) for each in definitions(run).values()),
        "manifest": _text(run.manifest),
    }
    said = ",\n".join(f"{_text(name)}: {part}" for name, part in parts.items())
    return f"{{\n{said}\n}}\n"


def _lines(rows: Iterable[object]) -> str:
    """Return a list with one line an entry."""
    inside = ",\n".join(map(_text, rows))
    return f"[\n{inside}\n]" if inside else "[]"


def _text(value: object) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _with_verdict(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"significant": str(row["significant"]).casefold() in {"true", "1"}}


def _plain(value: Any) -> Any:
    """Return a JSON value without NaN and infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value
