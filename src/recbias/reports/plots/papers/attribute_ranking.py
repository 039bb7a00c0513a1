"""The mean of an item attribute by query label, ranked: average price by location."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from recbias.core.errors import MissingEvidence
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing.axes import Interval, describe_lines
from recbias.reports.plots.drawing.svg import Plot
from recbias.reports.plots.papers import forest
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables

PLUGIN = "mean_attribute"
NEUTRAL = "neutral"
"""The group of prompts without a label word; its mean is the reference line."""

MOST_LABELS = 60
"""With more labels than this, only the highest and the lowest are drawn."""


def draw_attribute_ranking(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[Plot]:
    """Yield a plot for each metric of a mean by label, and each model.

    Raises:
        MissingEvidence: A metric has no defined value.
    """
    for metric in rows.find_metrics(run, PLUGIN):
        groups = [row for row in rows.list_rows(run, metric, dataset) if row["group"]]
        means = [row for row in groups if row["group"] != NEUTRAL]
        neutral = {row["model"]: row["value"] for row in groups if row["group"] == NEUTRAL}
        if not means:
            raise MissingEvidence(f"{metric.heading} has no defined mean of a label")
        models = rows.sort_models(run, (row["model"] for row in means))
        for model in models[: rows.MOST_MODELS]:
            model_means = [row for row in means if row["model"] == model]
            plot = _draw_plot(metric, model_means, neutral.get(model, math.nan), name_file)
            note = rows.describe_undrawn(run, [metric], dataset, model=model)
            yield rows.add_omitted(plot, models, note)


def _draw_plot(
    metric: Definition, means: Sequence[rows.Row], neutral: float, name_file: rows.NameFile
) -> Plot:
    ranked = sorted(means, key=lambda row: (-row["value"], row["group"]))
    model = ranked[0]["model"]
    label = rows.get_label_name(row["group"] for row in means) or "label"
    attribute = str(metric.parameters.get("attribute") or metric.heading)
    neutral_label = "without any word"
    if math.isnan(neutral):
        neutral = math.fsum(row["value"] for row in means) / len(means)
        neutral_label = "mean over the labels"
    plot = forest.Forest(
        panels=_split_panels(ranked),
        series=("",),
        axis=f"Mean {attribute}",
        note=rows.describe_direction(metric),
        neutral=neutral,
        neutral_label=neutral_label,
    )
    return forest.draw_forest(
        plot,
        name=name_file(f"ranking-{attribute}-{label}-{model}"),
        title=f"Average {attribute} by {label}: {model}",
        caption=_write_caption(ranked, attribute),
    )


def _split_panels(ranked: Sequence[rows.Row]) -> tuple[forest.Panel, ...]:
    lines = []
    for row in ranked:
        interval = Interval.of_row(row)
        mark = forest.Mark(interval, 0, f"{row['group']}: {interval.describe()}")
        lines.append(forest.Row(rows.get_label_value(row["group"]), (mark,)))
    if len(lines) <= MOST_LABELS:
        return (forest.Panel("", tuple(lines)),)
    half = MOST_LABELS // 2
    highest = forest.Panel(f"The {half} highest", tuple(lines[:half]))
    return highest, forest.Panel(f"The {half} lowest", tuple(lines[-half:]))


def _write_caption(ranked: Sequence[rows.Row], attribute: str) -> str:
    sentences = [
        f"The mean {attribute} of the recommended items under each label, the highest first."
    ]
    if len(ranked) > 1:
        high, low = (
            f"{rows.get_label_value(row['group'])}, {Interval.of_row(row).describe()}"
            for row in (ranked[0], ranked[-1])
        )
        sentences.append(f"Highest: {high}; lowest: {low}.")
    return " ".join([*sentences, *describe_lines(map(Interval.of_row, ranked))])
