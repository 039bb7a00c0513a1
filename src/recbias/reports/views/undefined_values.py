"""Undefined values: of units, and of models that do not provide what a metric needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from recbias.reports.views.definitions import format_title
from recbias.reports.views.headings import make_heading
from recbias.reports.views.run_tables import RunTables

MAX_COUNTS = 4
"""The largest number of models that a footnote names."""

MissingOutputs: TypeAlias = Mapping[tuple[str, str], str]
"""The outputs that models do not provide, by title of the metric and model."""


def collect_missing_outputs(run: RunTables) -> MissingOutputs:
    """Return the outputs that models do not provide and metrics need."""
    return {
        (format_title(entry["metric"], entry.get("k")), entry["model"]): entry["missing"]
        for entry in run.manifest.get("undefined", [])
    }


def describe_missing_outputs(run: RunTables) -> list[str]:
    """Return a sentence for each metric that is undefined for some models."""
    models: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (title, model), outputs in collect_missing_outputs(run).items():
        models[title, outputs].append(model)
    return [
        f"{make_heading(title)} is undefined for {', '.join(names)}, "
        f"which {'provides' if len(names) == 1 else 'provide'} no {outputs}."
        for (title, outputs), names in models.items()
    ]


def count_undefined(
    records: Sequence[Mapping[str, Any]],
    titles: Sequence[str],
    missing: MissingOutputs,
    heading: str = "",
) -> list[str]:
    """Return a footnote for the metrics with the same counts of undefined values.

    Models without the outputs that a metric needs are not counted. A ``heading`` stands in place
    of that of a metric whose rows are those of groups.
    """
    titles_by_counts: dict[str, list[str]] = {}
    for title in titles:
        counts: dict[str, float] = {}
        for row in records:
            is_counted = row["undefined"] > 0 and (title, row["model"]) not in missing
            if is_counted and format_title(row["metric"], row["k"]) == title:
                counts[row["model"]] = max(counts.get(row["model"], 0), row["undefined"])
        if counts:
            texts = [f"{count:,.0f} for {model}" for model, count in counts.items()]
            more = len(texts) - MAX_COUNTS
            suffix = f" and {more} more models" if more > 0 else ""
            counts_text = f"{', '.join(texts[:MAX_COUNTS])}{suffix}"
            titles_by_counts.setdefault(counts_text, []).append(heading or make_heading(title))
    return [
        f"{', '.join(headings)}: undefined values are excluded from the mean ({counts_text})."
        for counts_text, headings in titles_by_counts.items()
    ]
