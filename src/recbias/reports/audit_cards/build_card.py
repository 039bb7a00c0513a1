"""Build the audit card of a run from its files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.core.digests import digest_file
from recbias.core.errors import MissingRun
from recbias.core.input_files import has_file
from recbias.reports.audit_cards.card import KIND, POWER, SCHEMA_VERSION, Card
from recbias.reports.markup import strip_folders
from recbias.reports.messages import list_failures, list_warnings
from recbias.reports.run_files import REMEDY
from recbias.reports.views.comparisons import is_significant
from recbias.reports.views.definitions import collect_definitions, format_title
from recbias.reports.views.headline import collect_estimates, select_headline
from recbias.reports.views.run_tables import RunTables, to_records
from recbias.reports.views.undefined_values import describe_missing_outputs
from recbias.statistics.interval_errors import detect_difference

MOST_ROWS = 5_000
"""With more estimates or comparisons, those of a target are in the files of the run only."""

_TIMED = frozenset({"trials.csv"})
"""Tables that hold durations, which differ between runs of equal results."""

_KEYS = ("dataset", "model", "seed", "fold")
_PLACE = ("group", "target")
_PLUGIN = ("label", "name", "parameters")


def build_card(run: RunTables) -> Card:
    """Return the audit card of a run, neither sealed nor signed.

    It has no time, duration or path, so that equal results give equal cards. The estimates are the
    means over seeds and folds where there are several.

    Raises:
        MissingRun: The manifest is not that of a run.
    """
    try:
        estimates, left_out = _limit(select_headline(run, collect_estimates(run)))
        comparisons, omitted = _limit(select_headline(run, run.significance))
        content = _describe_audit(run.manifest) | {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "groups": _list_groups(estimates),
            "definitions": _list_definitions(run),
            "estimates": [_describe_estimate(row) for row in to_records(estimates)],
            "comparisons": [_describe_comparison(row) for row in to_records(comparisons)],
            "limits": {
                "undefined": _count_undefined(estimates),
                "missing_outputs": describe_missing_outputs(run),
                "warnings": list_warnings(run),
                "failures": list_failures(run),
                "omitted_estimates": left_out,
                "omitted_comparisons": omitted,
            },
            "files": digest_files(run.folder, run.manifest),
        }
        return Card.model_validate(_replace_undefined(strip_folders(content)))
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        reason = f"manifest.json is not that of a run ({type(error).__name__}: {error})"
        raise MissingRun(reason, where=str(run.folder), remedy=REMEDY) from error


def digest_files(folder: Path, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 digests of the spec and of the tables that a run wrote."""
    sizes = manifest.get("files")
    tables = {str(name) for name in sizes} if isinstance(sizes, Mapping) else set()
    names = {"spec.yaml", "groups.csv", *tables} - _TIMED
    paths = {name: folder / Path(name).name for name in sorted(names)}
    return {name: digest_file(path) for name, path in paths.items() if has_file(path)}


def _describe_audit(manifest: Mapping[str, Any]) -> dict[str, Any]:
    names = ("name", "spec_digest", "recbias", "commit", "python", "libraries", "seeds", "limit")
    dataset_keys = (*_PLUGIN, "filters", "files", "counts")
    model_keys = (*_PLUGIN, "searched", "device", "precision")
    query_keys = ("dataset", "asked", "unit", "parameters")
    audited = {
        **{name: manifest.get(name) for name in names},
        "datasets": _select(manifest["datasets"], dataset_keys),
        "split": manifest.get("split"),
        "models": _select(manifest["models"], model_keys),
        "tests": _select(manifest["tests"], _PLUGIN),
    }
    checks = [_describe_check(row) for row in manifest.get("checks", [])]
    return {
        "audited": audited,
        "queries": _select(manifest["queries"], query_keys),
        "checks": checks,
    }


def _select(entries: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return some fields of the entries of a manifest."""
    return [{name: entry[name] for name in names if name in entry} for entry in entries]


def _describe_check(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("dataset", "model", *_PLACE, "baseline", "value", "ci_low", "ci_high", "line")
    cells = {name: row[name] for name in (*names, "verdict", "failed")}
    return cells | {"metric": format_title(row["metric"], row["k"])}


def _limit(rows: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the rows, and how many are left out: if they are many, those of a target."""
    limited = rows[rows["target"].fillna("") == ""] if len(rows) > MOST_ROWS else rows
    return limited, len(rows) - len(limited)


def _list_definitions(run: RunTables) -> list[dict[str, Any]]:
    names = ("name", "direction", "summary", "formula", "unit", "source")
    return [
        {name: getattr(metric, name) for name in names}
        | {"metric": title, "range": metric.values, "parameters": dict(metric.parameters)}
        for title, metric in collect_definitions(run).items()
    ]


def _list_groups(estimates: pd.DataFrame) -> list[dict[str, Any]]:
    """Return each group of queries with the largest number of its units, undefined ones too."""
    rows = estimates[estimates["group"] != ""]
    units = rows["n"].fillna(0) + rows["undefined"].fillna(0)
    keys = ["dataset", "group"]
    sizes = rows.assign(n=units.astype(int)).groupby(keys, sort=False)["n"].max()
    return to_records(sizes.reset_index())


def _count_undefined(estimates: pd.DataFrame) -> dict[str, float]:
    titles = [
        format_title(*pair) for pair in zip(estimates["metric"], estimates["k"], strict=True)
    ]
    counts = estimates["undefined"].groupby(titles, sort=False).sum()
    return {str(title): float(count) for title, count in counts.items() if count > 0}


def _describe_estimate(row: Mapping[str, Any]) -> dict[str, Any]:
    numbers = ("value", "std", "n", "undefined", "ci_low", "ci_high")
    return _describe_place(row) | {name: _to_number(row[name]) for name in numbers}


def _describe_comparison(row: Mapping[str, Any]) -> dict[str, Any]:
    texts = ("test", "between", "a", "b", "correction", "family")
    numbers = ("n", "difference", "ci_low", "ci_high", "p", "p_adjusted", "family_size", "alpha")
    return (
        _describe_place(row)
        | {name: str(row[name]) for name in texts}
        | {name: _to_number(row[name]) for name in (*numbers, "effect_size")}
        | {"significant": is_significant(row)}
        | {"detectable": _to_number(detect_difference(row, POWER))}
    )


def _describe_place(row: Mapping[str, Any]) -> dict[str, str]:
    location = {name: str(row[name]) for name in (*_KEYS, *_PLACE)}
    return location | {"metric": format_title(row["metric"], row["k"])}


def _replace_undefined(value: Any) -> Any:
    """Return settings in which numbers that JSON does not have are None."""
    if isinstance(value, dict):
        return {key: _replace_undefined(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(_replace_undefined, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _to_number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
