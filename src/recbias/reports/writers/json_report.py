"""``report.json``: metrics, significance, definitions and manifest for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from recbias.reports.views.comparisons import is_significant
from recbias.reports.views.conclusions.conclude import collect_conclusions
from recbias.reports.views.definitions import collect_definitions
from recbias.reports.views.run_tables import RunTables, to_records
from recbias.reports.views.trials import read_trials

SCHEMA_VERSION = 1
"""Incremented when a field is removed or changes its meaning."""


def render_json(run: RunTables, reference: pd.DataFrame | None = None) -> str:
    """Return the report as JSON, in which undefined values are null."""
    importances = [] if run.importances is None else to_records(run.importances)
    significance = [
        row | {"significant": is_significant(row)} for row in to_records(run.significance)
    ]
    sections = {
        "schema_version": json.dumps(SCHEMA_VERSION),
        "conclusions": _render_list(map(asdict, collect_conclusions(run))),
        "metrics": _render_list(to_records(run.metrics)),
        "significance": _render_list(significance),
        "trials": _render_list(read_trials(run)),
        "importances": _render_list(importances),
        "reference": "null" if reference is None else _render_list(to_records(reference)),
        "checks": _render_list(run.manifest.get("checks", [])),
        "definitions": _render_list(map(asdict, collect_definitions(run).values())),
        "manifest": render_value(_drop_reports(run.manifest)),
    }
    lines = ",\n".join(f"{render_value(name)}: {section}" for name, section in sections.items())
    return f"{{\n{lines}\n}}\n"


def _drop_reports(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest without the digests of reports, which are written after them."""
    return {key: value for key, value in manifest.items() if key != "reports"}


def _render_list(rows: Iterable[object]) -> str:
    """Return a list with one line per row."""
    lines = ",\n".join(map(render_value, rows))
    return f"[\n{lines}\n]" if lines else "[]"


def render_value(value: object) -> str:
    """Return a value as JSON on one line, in which undefined numbers are null."""
    return json.dumps(replace_undefined(value), ensure_ascii=False, allow_nan=False)


def replace_undefined(value: Any) -> Any:
    """Return a JSON value in which NaN and infinity are None."""
    if isinstance(value, dict):
        return {str(key): replace_undefined(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [*map(replace_undefined, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value
