"""The report of what a gap comes from: parts, interventions, and the frontier, as plots and files.

It is made of the tables of ``recbias.explain``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.reports.charts import (
    Axis,
    Dot,
    Mark,
    Row,
    Rows,
    draw_points,
    draw_rows,
)
from recbias.reports.render import Section, replace_undefined, write_sections
from recbias.reports.run import to_records
from recbias.reports.svg import Interval, Plot

TITLES: Mapping[str, tuple[str, str]] = {
    "parts": (
        "What the groups differ in",
        "The part of the gap that each property accounts for: an association, not an effect.",
    ),
    "properties": ("Means of the properties", ""),
    "interventions": (
        "What happens when it is changed",
        "The gap before, the change by each intervention, and the gap after all of them.",
    ),
    "worst": ("Who is worst off", "Groups found in one half of the users, tested in the other."),
    "examples": ("Users of the worst group", ""),
    "changes": ("What would halve it", "The models of the run, the smallest gap first."),
}
"""The title of each table of an explanation, and what it shows."""


def draw_explanation(
    gap: Mapping[str, Any], parts: pd.DataFrame, interventions: pd.DataFrame, changes: pd.DataFrame
) -> dict[str, Plot]:
    """Return the plots of an explanation by the table that each shows."""
    plots = {}
    if not parts.empty:
        plots["parts"] = _draw_parts(parts)
    if not interventions.empty:
        plots["interventions"] = _draw_interventions(interventions)
    if len(changes) > 1:
        plots["changes"] = _draw_frontier(gap, changes)
    return plots


def _mark(row: Mapping[str, Any], column: str, series: int, name: str) -> Mark:
    interval = Interval(row[column], row["ci_low"], row["ci_high"])
    return Mark(interval, series, f"{name}: {interval.describe(4)}")


def _draw_parts(parts: pd.DataFrame) -> Plot:
    """Return the part of each property by both methods, the largest first, and the rest."""
    methods = [*dict.fromkeys(parts["method"])]
    rows = []
    for name, own in parts.groupby("property", sort=False):
        marks = [
            _mark(row, "part", methods.index(row["method"]), f"{name}, {row['method']}")
            for row in to_records(own)
        ]
        rows.append(Row(str(name), tuple(marks)))
    *known, rest = rows
    known.sort(key=lambda row: -abs(row.marks[0].interval.value))
    chart = Rows(
        (*known, rest),
        axis="part of the gap",
        series=tuple(methods),
        lines=(0.0,),
        line_label="nothing",
    )
    caption = "Lines are 95% intervals. The parts of a method add up to the gap."
    return draw_rows(chart, name="parts", title="Parts of the gap", caption=caption)


def _draw_interventions(interventions: pd.DataFrame) -> Plot:
    before, *changes, after = (
        Row(row["change"], (_mark(row, "effect", 0, row["change"]),))
        for row in to_records(interventions)
    )
    rows = (Row("the gap"), before, after, Row("what each adds to it"), *changes)
    return draw_rows(
        Rows(rows, axis="gap, and its change", lines=(0.0,)),
        name="interventions",
        title="The gap when training is changed",
        caption="Lines are 95% intervals. The changes add up to the gap after less that before.",
    )


def _draw_frontier(gap: Mapping[str, Any], changes: pd.DataFrame) -> Plot:
    """Return the gap against the mean of each model; those that no other beats are filled."""
    dots = [
        Dot(
            Interval(row["mean"]),
            Interval(row["gap"]),
            label=row["model"],
            title=f"{row['model']}: gap {row['gap']:.4f}, mean {row['mean']:.4f}",
            series=int(row["model"] == gap["model"]),
            kind="" if row["frontier"] else "open",
        )
        for row in to_records(changes)
    ]
    half = {gap["difference"] / 2: "neutral", 0.0: "zero"}
    return draw_points(
        dots,
        Axis(gap["metric"], "mean"),
        Axis(f"gap by {gap['by']}", "without sign", lines=half),
        340.0,
        name="frontier",
        title="Gap against the mean",
        caption=(
            f"Each point is a model of the run, {gap['model']} in orange. No other beats the "
            "filled ones in both. Dashed: half the gap."
        ),
    )


def write_explanation(
    folder: Path,
    *,
    gap: Mapping[str, Any],
    sentences: Sequence[str],
    notes: Sequence[str],
    tables: Mapping[str, pd.DataFrame],
) -> None:
    """Write ``report.html``, ``report.md``, ``explanation.json`` and the plots into a folder.

    Args:
        folder: It is made where it does not exist.
        gap: The gap, as in ``Explanation``.
        sentences: What the report says; the first one is its title.
        notes: What was left out.
        tables: The tables by the keys of ``TITLES``.
    """
    plots = draw_explanation(gap, tables["parts"], tables["interventions"], tables["changes"])
    sections = [
        Section(title, tables[name], note, plots.get(name))
        for name, (title, note) in TITLES.items()
    ]
    write_sections(folder, sentences, notes, sections)
    records = {name: to_records(table) for name, table in tables.items()}
    document = {"sentences": [*sentences], "gap": dict(gap), **records, "notes": [*notes]}
    text = json.dumps(replace_undefined(document), indent=1, ensure_ascii=False)
    (folder / "explanation.json").write_text(text + "\n", encoding="utf-8")
