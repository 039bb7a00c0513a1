"""``report.json``: metrics, significance, manifest and definitions for programs."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import pandas as pd

from recbias.reports.definitions import definitions
from recbias.reports.frame import RunTables, rows_of

SCHEMA_VERSION = 1
"""Raised when a field changes its meaning or goes."""


def json_report(run: RunTables, reference: pd.DataFrame | None = None) -> str:
    """Return the report as JSON; what is undefined is null.

    Args:
        run: The run.
        reference: The comparison with published figures, or None.
    """
    report = {
        "schema_version": SCHEMA_VERSION,
        "metrics": rows_of(run.metrics),
        "significance": [_with_verdict(row) for row in rows_of(run.significance)],
        "reference": None if reference is None else rows_of(reference),
        "definitions": [asdict(each) for each in definitions(run).values()],
        "manifest": run.manifest,
    }
    return json.dumps(_plain(report), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


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
