"""A metric by query label: each group's mean for each model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recbias.core.errors import MissingEvidence
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Interval, describe_lines
from recbias.reports.plots.papers import forest
from recbias.reports.views.definitions import Definition, collect_definitions
from recbias.reports.views.run_tables import RunTables


def draw_group_means(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[svg.Plot]:
    """Yield a plot for each metric that is grouped by a query label.

    Raises:
        MissingEvidence: A grouped metric is defined in no group.
    """
    for metric in collect_definitions(run).values():
        if metric.parameters.get("gap") != "groups":
            continue
        metric_rows = [row for row in rows.list_rows(run, metric, dataset) if row["group"]]
        if not metric_rows:
            raise MissingEvidence(f"{metric.heading} is defined in no group")
        for target in rows.list_distinct(metric_rows, "target"):
            target_rows = [row for row in metric_rows if row["target"] == target]
            name = name_file(f"groups-{metric.title}-{target}")
            note = rows.describe_undrawn(run, [metric], dataset, target=target)
            yield rows.add_note(_draw_plot(run, metric, target_rows, name), note)


def _draw_plot(
    run: RunTables, metric: Definition, metric_rows: Sequence[rows.Row], name: str
) -> svg.Plot:
    groups = rows.list_distinct(metric_rows, "group")
    models = rows.sort_models(run, (row["model"] for row in metric_rows))
    by_model = {model: [row for row in metric_rows if row["model"] == model] for model in models}
    coloured = len(groups) <= svg.COLOURS
    if coloured:
        lines = []
        for model in models:
            ordered = sorted(by_model[model], key=lambda row: groups.index(row["group"]))
            marks = tuple(_make_mark(row, groups.index(row["group"])) for row in ordered)
            lines.append(forest.Row(model, marks))
        panels = [forest.Panel("", tuple(lines))]
    else:
        panels = [
            forest.Panel(
                model, tuple(forest.Row(row["group"], (_make_mark(row, 0),)) for row in model_rows)
            )
            for model, model_rows in by_model.items()
        ]
    target = metric_rows[0]["target"]
    return forest.draw_forest(
        forest.Forest(
            panels=tuple(panels),
            series=tuple(groups) if coloured else ("",),
            axis=metric.heading,
            note=rows.describe_direction(metric),
        ),
        name=name,
        title=", ".join(filter(None, [metric.heading, target])) + " for each group",
        caption=_write_caption(by_model, metric_rows),
    )


def _make_mark(row: rows.Row, series: int) -> forest.Mark:
    interval = Interval.of_row(row)
    title = f"{row['model']}, {row['group']}: {interval.describe()}, n {row['n']:,.0f}"
    return forest.Mark(interval, series, title)


def _write_caption(by_model: dict[str, list[rows.Row]], metric_rows: Sequence[rows.Row]) -> str:
    sentences = ["The mean over the queries of each group."]
    gaps = []
    for model, model_rows in by_model.items():
        values = sorted(model_rows, key=lambda row: row["value"])
        if len(values) > 1:
            gaps.append((values[-1]["value"] - values[0]["value"], model, values))
    if gaps:
        _, model, values = max(gaps, key=lambda gap: gap[0])
        high, low = (
            f"{row['group']} {Interval.of_row(row).describe()}" for row in (values[-1], values[0])
        )
        sentences.append(f"{model} has the widest gap: {high} against {low}.")
    sizes = {row["group"]: row["n"] for row in metric_rows}
    counts = rows.join_names([f"{group} {n:,.0f}" for group, n in sizes.items()], 6)
    sentences.append(f"Queries: {counts}.")
    return " ".join([*sentences, *describe_lines(map(Interval.of_row, metric_rows))])
