"""The mean of an item attribute by query label, ranked: average price by location."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.papers import plot_rows as rows
from recbias.reports.plots.papers.forest import Forest, Mark, Panel, Row, aside_of, forest
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables

PLUGIN = "mean_attribute"
NEUTRAL = "neutral"
"""The group of prompts that name nobody: no label, but where the line of the labels is."""

LONGEST = 60
"""Of more labels than this the highest and the lowest are drawn."""


def ranking(run: RunTables, dataset: str, name: rows.Namer) -> Iterator[Picture]:
    """Yield a picture for each metric of a mean by label, and each model.

    Raises:
        MissingEvidence: The metric was asked for and none of its figures is defined.
    """
    for known in rows.metrics_of(run, PLUGIN):
        defined = [row for row in rows.rows_for(run, known, dataset) if row["group"]]
        found = [row for row in defined if row["group"] != NEUTRAL]
        lines = {row["model"]: row["value"] for row in defined if row["group"] == NEUTRAL}
        if not found:
            raise MissingEvidence(f"{known.title} has no defined mean of a label")
        models = rows.in_order(run, (row["model"] for row in found))
        for model in models[: rows.MOST_MODELS]:
            own = [row for row in found if row["model"] == model]
            file = name(f"ranking-{_what(known)}-{_of(own)}-{model}")
            line = lines.get(model, math.nan)
            picture = _picture(known, own, line, left=models[rows.MOST_MODELS :], name=file)
            yield rows.add_note(picture, rows.undrawn(run, [known], dataset, model=model))


def _picture(
    known: Definition, found: Sequence[rows.Row], line: float, *, left: Sequence[str], name: str
) -> Picture:
    ranked = sorted(found, key=lambda row: (-row["value"], row["group"]))
    of, what = _of(found), _what(known)
    marked = "without any word"
    if math.isnan(line):
        line, marked = (
            math.fsum(row["value"] for row in found) / len(found),
            "mean over the labels",
        )
    panels = [Panel("", tuple(map(_row, ranked)))]
    if len(ranked) > LONGEST:
        half = LONGEST // 2
        panels = [
            Panel(f"The {half} highest", tuple(map(_row, ranked[:half]))),
            Panel(f"The {half} lowest", tuple(map(_row, ranked[-half:]))),
        ]
    drawn = forest(
        Forest(
            panels=tuple(panels),
            series=("",),
            axis=f"Mean {what}",
            aside=aside_of(known),
            neutral=line,
            marked=marked,
        )
    )
    model = ranked[0]["model"]
    title = f"Average {what} by {of}: {model}"
    return drawn.picture(name=name, title=title, caption=_caption(ranked, what, left))


def _of(found: Sequence[rows.Row]) -> str:
    return rows.heads([row["group"] for row in found]) or "label"


def _what(known: Definition) -> str:
    return str(known.parameters.get("attribute") or known.title)


def _row(row: rows.Row) -> Row:
    figure = rows.interval(row)
    words = f"{row['group']}: {rows.said(figure)}"
    return Row(rows.value_of(row["group"]), (Mark(figure, 0, words),))


def _caption(ranked: Sequence[rows.Row], what: str, left: Sequence[str]) -> str:
    high, low = ranked[0], ranked[-1]
    said = [f"The mean {what} of the recommended items under each label, the highest first."]
    if len(ranked) > 1:
        said.append(
            f"Highest: {rows.value_of(high['group'])}, {rows.said(rows.interval(high))}; "
            f"lowest: {rows.value_of(low['group'])}, {rows.said(rows.interval(low))}."
        )
    if rows.with_intervals(map(rows.interval, ranked)):
        said.append("Lines are 95% intervals.")
    if left:
        said.append(f"The table has {rows.listed(left)} too.")
    return " ".join(said)
