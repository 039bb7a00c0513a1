"""The verdicts of the checks of a finished run, decided again on its recomputed values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from recbias.config.checks import CheckSpec
from recbias.core.errors import UserError
from recbias.runner.checks.verdicts import Interval, decide
from recbias.runner.comparison.run_comparison import to_text
from recbias.runner.recomputation.stored_tables import make_row_key
from recbias.statistics.compare import compare_two
from recbias.statistics.compared_estimates import ESTIMATE_KEYS, SystemEstimates


def recompute_checks(
    checks: Sequence[Mapping[str, Any]],
    spec: Mapping[str, Any],
    metrics: pd.DataFrame,
    estimates: Sequence[SystemEstimates],
) -> list[dict[str, Any]]:
    """Return the checks of a manifest with values, intervals and verdicts computed again.

    A check keeps what does not follow from the files: the difference from a baseline without
    values of units or samples, and the verdict where the spec has no such limit.

    Args:
        checks: The checks of the manifest.
        spec: The content of ``spec.yaml``, which has the limits.
        metrics: The recomputed ``metrics.csv``.
        estimates: The values of all models on each quantity.
    """
    limits = _read_limits(spec)
    rows = {make_row_key(row): row for row in metrics.to_dict("records")} if checks else {}
    compared = {_make_key(estimate.keys): estimate for estimate in estimates}
    return [_decide(check, limits, rows, compared) for check in checks]


def _decide(
    check: Mapping[str, Any],
    limits: Mapping[str, Interval],
    rows: Mapping[Any, Mapping[Any, Any]],
    compared: Mapping[Any, SystemEstimates],
) -> dict[str, Any]:
    numbers = {name: _to_float(check[name]) for name in ("value", "ci_low", "ci_high")}
    row, estimate = rows.get(make_row_key(check)), compared.get(_make_key(check))
    if not check["baseline"] and row is not None:
        numbers = {name: float(row[name]) for name in numbers}
    elif check["baseline"] and estimate is not None and estimate.comparable:
        systems = (str(check["model"]), str(check["baseline"]))
        if {*systems} <= {*estimate.systems}:
            test = compare_two(estimate, *systems)
            numbers = dict(
                zip(numbers, (test[n] for n in ("difference", "ci_low", "ci_high")), strict=True)
            )
    values = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    if check["line"] not in limits:
        return {**check, **values}
    verdict = decide(
        numbers["value"], (numbers["ci_low"], numbers["ci_high"]), limits[check["line"]]
    )
    failed = verdict == "fail" or (bool(check["strict"]) and verdict == "undecided")
    return {**check, **values, "verdict": verdict, "failed": failed}


def _read_limits(spec: Mapping[str, Any]) -> dict[str, Interval]:
    """Return the limits of the checks of a spec by their line, without ambiguous ones."""
    limits: dict[str, set[Interval]] = {}
    for entry in spec.get("checks") or ():
        try:
            check = TypeAdapter(CheckSpec).validate_python(entry)
        except (ValidationError, UserError):
            continue
        limits.setdefault(check.line, set()).add(check.limits)
    return {line: next(iter(numbers)) for line, numbers in limits.items() if len(numbers) == 1}


def _make_key(row: Mapping[Any, Any]) -> tuple[str, ...]:
    return tuple(to_text(row[name]) for name in ESTIMATE_KEYS)


def _to_float(value: float | None) -> float:
    return math.nan if value is None else float(value)
