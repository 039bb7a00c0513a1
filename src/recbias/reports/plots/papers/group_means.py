"""A metric by what the queries are: each group's mean for each model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.drawing.colours import SERIES
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.papers import plot_rows as rows
from recbias.reports.plots.papers.forest import Forest, Mark, Panel, Row, aside_of, forest
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables


def gaps(run: RunTables, dataset: str, name: rows.Namer) -> Iterator[Picture]:
    """Yield a picture for each metric that is split by a label of the queries.

    Raises:
        MissingEvidence: The split was asked for and the metric is defined in no group.
    """
    for known in rows.definitions_where(run, {"gap": "groups"}):
        found = [row for row in rows.rows_for(run, known, dataset) if row["group"]]
        if not found:
            raise MissingEvidence(f"{known.title} is defined in no group")
        for target in rows.distinct(found, "target"):
            own = [row for row in found if row["target"] == target]
            file = name(f"groups-{known.title}-{target}")
            note = rows.undrawn(run, [known], dataset, target=target)
            yield rows.add_note(_picture(run, known, own, file), note)


def _picture(run: RunTables, known: Definition, found: Sequence[rows.Row], name: str) -> Picture:
    groups = rows.distinct(found, "group")
    models = rows.in_order(run, (row["model"] for row in found))
    at = {(row["model"], row["group"]): row for row in found}
    few = len(groups) <= len(SERIES)
    if few:
        panels = [Panel("", tuple(_of_model(at, model, groups) for model in models))]
    else:
        panels = [Panel(model, tuple(_of_groups(at, model, groups))) for model in models]
    drawn = forest(
        Forest(
            panels=tuple(panels),
            series=tuple(groups) if few else ("",),
            axis=known.title,
            aside=aside_of(known),
        )
    )
    target = found[0]["target"]
    title = ", ".join(filter(None, [known.title, target])) + " for each group"
    return drawn.picture(name=name, title=title, caption=_caption(found, models, at))


def _of_model(at: dict[tuple[str, str], rows.Row], model: str, groups: Sequence[str]) -> Row:
    marks = [
        _mark(at[model, group], place)
        for place, group in enumerate(groups)
        if (model, group) in at
    ]
    return Row(model, tuple(marks))


def _of_groups(
    at: dict[tuple[str, str], rows.Row], model: str, groups: Sequence[str]
) -> Iterator[Row]:
    for group in groups:
        if (model, group) in at:
            yield Row(group, (_mark(at[model, group], 0),))


def _mark(row: rows.Row, place: int) -> Mark:
    figure = rows.interval(row)
    words = f"{row['model']}, {row['group']}: {rows.said(figure)}, n {row['n']:,.0f}"
    return Mark(figure, place, words)


def _caption(
    found: Sequence[rows.Row], models: Sequence[str], at: dict[tuple[str, str], rows.Row]
) -> str:
    said = ["The mean over the queries of each group."]
    spans = {}
    for model in models:
        own = [row for (name, _), row in at.items() if name == model]
        high = max(own, key=lambda row: row["value"])
        low = min(own, key=lambda row: row["value"])
        if len(own) > 1:
            spans[model] = (high["value"] - low["value"], high, low)
    if spans:
        model = max(spans, key=lambda each: spans[each][0])
        _, high, low = spans[model]
        said.append(
            f"The widest gap is {model}'s: {high['group']} {rows.said(rows.interval(high))} "
            f"against {low['group']} {rows.said(rows.interval(low))}."
        )
    sizes = {row["group"]: row["n"] for row in found}
    counts = rows.listed([f"{group} {n:,.0f}" for group, n in sizes.items()], 6)
    said.append(f"Queries: {counts}.")
    if rows.with_intervals(map(rows.interval, found)):
        said.append("Lines are 95% intervals.")
    return " ".join(said)
