"""The report of what a gap comes from: parts, interventions, and the frontier, as plots and files.

It is made of the tables of ``recbias.explain``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.reports import svg
from recbias.reports.plots_prompts import Forest, Mark, Panel, Row, draw_forest
from recbias.reports.render import replace_undefined
from recbias.reports.run import to_records
from recbias.reports.sections import Section, write_sections
from recbias.reports.svg import Interval, Plot
from recbias.reports.wording import join

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
    lines = []
    for name, own in parts.groupby("property", sort=False):
        marks = [
            _mark(row, "part", methods.index(row["method"]), f"{name}, {row['method']}")
            for row in to_records(own)
        ]
        lines.append(Row(str(name), tuple(marks)))
    *known, rest = lines
    known.sort(key=lambda row: -abs(row.marks[0].interval.value))
    forest = Forest(
        panels=(Panel("", (*known, rest)),),
        series=tuple(methods),
        axis="part of the gap",
        neutral=0.0,
        neutral_label="nothing",
    )
    caption = "Lines are 95% intervals. The parts of a method add up to the gap."
    return draw_forest(forest, name="parts", title="Parts of the gap", caption=caption)


def _draw_interventions(interventions: pd.DataFrame) -> Plot:
    before, *changes, after = (
        Row(row["change"], (_mark(row, "effect", 0, row["change"]),))
        for row in to_records(interventions)
    )
    panels = Panel("the gap", (before, after)), Panel("what each adds to it", tuple(changes))
    forest = Forest(panels, ("",), axis="gap, and its change", neutral=0.0)
    caption = "Lines are 95% intervals. The changes add up to the gap after less that before."
    return draw_forest(
        forest, name="interventions", title="The gap when training is changed", caption=caption
    )


def _draw_frontier(gap: Mapping[str, Any], changes: pd.DataFrame) -> Plot:
    """Return the gap against the mean of each model; those that no other beats are filled."""
    limit = gap["difference"] / 2
    axes = svg.make_axes(
        svg.pad_range(changes["mean"]), svg.pad_range([*changes["gap"], limit, 0.0]), 340.0
    )
    rows = to_records(changes)
    points = [axes.at(row["mean"], row["gap"]) for row in rows]
    dots = []
    for row, point in zip(rows, points, strict=True):
        colour = "c1" if row["model"] == gap["model"] else "c0"
        title = f"{row['model']}: gap {row['gap']:.4f}, mean {row['mean']:.4f}"
        class_ = f"dot{' open' * (not row['frontier'])} {colour}"
        dots.append(svg.draw_circle(point, 5, class_, title))
    names = svg.shorten_all(row["model"] for row in rows)
    half = axes.y.at(limit)
    return svg.draw_chart(
        axes,
        svg.draw_line((axes.x.start, half), (axes.x.end, half), "neutral"),
        *svg.draw_labels(points, names, axes.frame, obstacles=points),
        join(*dots),
        x_title=(gap["metric"], "mean"),
        y_title=(f"gap by {gap['by']}", "without sign"),
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
