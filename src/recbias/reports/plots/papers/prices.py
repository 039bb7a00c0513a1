"""Who is recommended what price: the share of each price level by label, a panel a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.papers import plot_rows as rows
from recbias.reports.plots.papers.forest import Forest, Mark, Panel, Row, forest
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables

PLUGIN = "price_percentage"


def prices(run: RunTables, dataset: str, name: rows.Namer) -> Iterator[Picture]:
    """Yield a picture for each metric of shares by price level.

    Raises:
        MissingEvidence: The metric was asked for and none of its figures is defined.
    """
    for known in rows.metrics_of(run, PLUGIN):
        found = [row for row in rows.rows_for(run, known, dataset) if row["group"]]
        found = [row for row in found if row["target"]]
        if not found:
            message = f"{known.title} has no defined share of a level by label"
            raise MissingEvidence(message)
        labels = rows.parts_of(run, known, dataset, "group")
        picture = _picture(run, (known, labels), found, name(f"levels-{_of(found)}"))
        yield rows.add_note(picture, rows.undrawn(run, [known], dataset))


def _picture(
    run: RunTables,
    what: tuple[Definition, Sequence[str]],
    found: Sequence[rows.Row],
    name: str,
) -> Picture:
    known, labels = what
    levels = rows.distinct(found, "target")
    at = {(row["model"], row["target"], row["group"]): row for row in found}
    models = rows.in_order(run, (row["model"] for row in found))
    panels = []
    for model in models:
        marks = {
            level: [
                _mark(at[model, level, label], place)
                for place, label in enumerate(labels)
                if (model, level, label) in at
            ]
            for level in levels
        }
        lines = [Row(rows.value_of(each), tuple(marks[each])) for each in levels if marks[each]]
        panels.append(Panel(model, tuple(lines)))
    neutral = neutral_of(labels, str(known.parameters.get("within") or ""))
    of = _of(found)
    level = rows.heads(levels) or "level"
    drawn = forest(
        Forest(
            panels=tuple(panels),
            series=tuple(map(rows.value_of, labels)),
            axis=f"Share of the {level} level's slots",
            neutral=neutral,
            marked="" if math.isnan(neutral) else f"equal shares, {neutral:.2g}",
        )
    )
    title = f"{level.capitalize()} levels by {of}"
    within = str(known.parameters.get("within") or "")
    caption = f"{known.title}. {_caption(found, level, neutral, within)}"
    return drawn.picture(name=name, title=title, caption=caption)


def neutral_of(labels: Sequence[str], within: str = "") -> float:
    """Return the share of each label without bias, NaN for one label or classes of several sizes.

    Args:
        labels: The label values, ``race=black&gender=F``.
        within: The label within each value of which shares add up to 1, blank for all together.

    >>> neutral_of(["race=a&sex=F", "race=b&sex=F", "race=a&sex=M", "race=b&sex=M"], "sex")
    0.5
    """
    names = [each.strip() for each in within.split("&")]
    classes = Counter(
        tuple(part for part in each.split("&") if part.partition("=")[0] in names)
        for each in labels
    )
    sizes = set(classes.values())
    size = sizes.pop() if len(sizes) == 1 else 1
    return 1 / size if size > 1 else math.nan


def _of(found: Sequence[rows.Row]) -> str:
    return rows.heads([row["group"] for row in found]) or "label"


def _mark(row: rows.Row, place: int) -> Mark:
    figure = rows.interval(row)
    words = f"{row['model']}, {row['target']}, {row['group']}: {rows.said(figure)}"
    return Mark(figure, place, words)


def _caption(found: Sequence[rows.Row], level: str, neutral: float, within: str) -> str:
    said = [
        f"Of all slots that go to a {level} level, the share under each label.",
        f"The shares of a level add up to 1{f' within each {within}' if within else ''}.",
    ]
    if not math.isnan(neutral):
        said.append(f"Without a difference between labels each share is {neutral:.2g}.")
        far = max(found, key=lambda row: abs(row["value"] - neutral))
        words = rows.said(rows.interval(far))
        said.append(
            f"Furthest from it: {rows.value_of(far['group'])} at {rows.value_of(far['target'])} "
            f"by {far['model']}, {words}."
        )
    if rows.with_intervals(map(rows.interval, found)):
        said.append("Lines are 95% intervals.")
    return " ".join(said)
