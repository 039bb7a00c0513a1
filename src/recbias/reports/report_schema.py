"""The schema of ``report.json``: the types of what a report states about a run.

Keys may be absent and others may be there, as in the reports of other versions of recbias.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError

from recbias.reports.manifest_schema import Check, Manifest, Number, Part, locate_fault

SCHEMA_VERSION = 1
"""Incremented when a field is removed or changes its meaning."""


class Row(Part):
    """What a row of a table is about."""

    dataset: str = ""
    model: str = ""
    seed: str = ""
    fold: str = ""
    metric: str
    k: Number = None
    group: str = ""
    target: str = ""


class Estimate(Row):
    """A row of ``metrics.csv``; undefined numbers are null."""

    value: Number
    std: Number = None
    n: Number = None
    undefined: Number = None
    ci_low: Number = None
    ci_high: Number = None


class Comparison(Row):
    """A row of ``significance.csv``."""

    test: str
    between: str
    a: str
    b: str
    n: Number = None
    mean_a: Number = None
    mean_b: Number = None
    difference: Number = None
    ci_low: Number = None
    ci_high: Number = None
    statistic: Number = None
    df: Number = None
    p: Number = None
    p_adjusted: Number = None
    correction: str = ""
    family: str = ""
    family_size: Number = None
    alpha: Number = None
    significant: bool
    effect_size: Number = None


class Conclusion(Part):
    """An answer of the run; its other fields are those of the rows that it is about."""

    kind: str
    sentence: str
    metric: str
    dataset: str


class Trial(Part):
    """A trial of a search of settings."""

    trial: float
    settings: dict[str, Any]


class Definition(Part):
    """The definition of a metric."""

    title: str
    name: str
    parameters: dict[str, Any]


class Report(Part):
    """The content of ``report.json``."""

    schema_version: Annotated[int, Field(ge=1, le=SCHEMA_VERSION)]
    conclusions: list[Conclusion] | None = None
    metrics: list[Estimate]
    significance: list[Comparison] | None = None
    trials: list[Trial] | None = None
    importances: list[dict[str, Any]] | None = None
    reference: list[dict[str, Any]] | None = None
    checks: list[Check] | None = None
    definitions: list[Definition] | None = None
    manifest: Manifest


def parse_report(text: str) -> tuple[Mapping[str, Any], str]:
    """Return the report in a text, and the place and reason of its first fault, blank without one.

    >>> parse_report("[]")[1]
    'it is not a JSON object'
    >>> parse_report('{"schema_version": 1, "metrics": [{"metric": 7}], "manifest": {}}')[1]
    'metrics.0.metric: Input should be a valid string'
    """
    try:
        report = json.loads(text)
        if not isinstance(report, dict):
            return {}, "it is not a JSON object"
        Report.model_validate(report)
    except ValidationError as error:
        return {}, locate_fault(error)
    except (ValueError, RecursionError) as error:
        return {}, f"it is not JSON: {error}"
    return report, ""
