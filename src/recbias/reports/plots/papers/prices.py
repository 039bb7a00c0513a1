"""The share of each price level by query label, a panel for each model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from recbias.core.errors import MissingEvidence
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing.axes import Interval, describe_lines
from recbias.reports.plots.drawing.svg import Plot
from recbias.reports.plots.papers import forest
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables

PLUGIN = "price_percentage"


def draw_prices(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[Plot]:
    """Yield a plot for each metric of shares by price level.

    Raises:
        MissingEvidence: A metric has no defined value.
    """
    for metric in rows.find_metrics(run, PLUGIN):
        shares = [
            row for row in rows.list_rows(run, metric, dataset) if row["group"] and row["target"]
        ]
        if not shares:
            raise MissingEvidence(f"{metric.heading} has no defined share of a level by label")
        labels = rows.list_labels(run, metric, dataset, "group")
        plot = _draw_plot(run, metric, labels, shares, name_file)
        yield rows.add_note(plot, rows.describe_undrawn(run, [metric], dataset))


def _draw_plot(
    run: RunTables,
    metric: Definition,
    labels: Sequence[str],
    shares: Sequence[rows.Row],
    name_file: rows.NameFile,
) -> Plot:
    levels = rows.list_distinct(shares, "target")
    panels = []
    for model in rows.sort_models(run, (row["model"] for row in shares)):
        lines = []
        for level in levels:
            level_rows = [row for row in shares if (row["model"], row["target"]) == (model, level)]
            level_rows.sort(key=lambda row: labels.index(row["group"]))
            marks = tuple(_make_mark(row, labels.index(row["group"])) for row in level_rows)
            if marks:
                lines.append(forest.Row(rows.get_label_value(level), marks))
        panels.append(forest.Panel(model, tuple(lines)))
    within = str(metric.parameters.get("within") or "")
    neutral = compute_neutral(labels, within)
    level_name = rows.get_label_name(levels) or "level"
    label_name = rows.get_label_name(row["group"] for row in shares) or "label"
    return forest.draw_forest(
        forest.Forest(
            panels=tuple(panels),
            series=tuple(map(rows.get_label_value, labels)),
            axis=f"Share of the {level_name} level's slots",
            neutral=neutral,
            neutral_label="" if math.isnan(neutral) else f"equal shares, {neutral:.2g}",
        ),
        name=name_file(f"levels-{label_name}"),
        title=f"{level_name.capitalize()} levels by {label_name}",
        caption=f"{metric.heading}. {_write_caption(shares, level_name, neutral, within)}",
    )


def compute_neutral(labels: Sequence[str], within: str = "") -> float:
    """Return the share of each label without bias.

    NaN for a single label, and where classes of ``within`` have different numbers of labels.

    Args:
        labels: The label values: ``race=black&gender=F``.
        within: The label within each value of which shares add up to 1, blank for all together.

    >>> compute_neutral(["race=a&sex=F", "race=b&sex=F", "race=a&sex=M", "race=b&sex=M"], "sex")
    0.5
    """
    names = [name.strip() for name in within.split("&")]
    classes = Counter(
        tuple(term for term in label.split("&") if term.partition("=")[0] in names)
        for label in labels
    )
    sizes = set(classes.values())
    size = sizes.pop() if len(sizes) == 1 else 1
    return 1 / size if size > 1 else math.nan


def _make_mark(row: rows.Row, series: int) -> forest.Mark:
    interval = Interval.of_row(row)
    title = f"{row['model']}, {row['target']}, {row['group']}: {interval.describe()}"
    return forest.Mark(interval, series, title)


def _write_caption(
    shares: Sequence[rows.Row], level_name: str, neutral: float, within: str
) -> str:
    sentences = [
        f"The share under each label of all slots that go to a {level_name} level.",
        f"The shares of a level add up to 1{f' within each {within}' if within else ''}.",
    ]
    if not math.isnan(neutral):
        extreme = max(shares, key=lambda row: abs(row["value"] - neutral))
        group, target = (rows.get_label_value(extreme[column]) for column in ("group", "target"))
        sentences.append(
            f"Without a difference between labels each share is {neutral:.2g}. Furthest from it: "
            f"{group} at {target} by {extreme['model']}, {Interval.of_row(extreme).describe()}."
        )
    return " ".join([*sentences, *describe_lines(map(Interval.of_row, shares))])
