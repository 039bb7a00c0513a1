"""Curves of accuracy against bias over the strength of a re-ranker."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recbias.reports.markup import Safe, join
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Axes, Scale, fits_axis, pad_range
from recbias.reports.plots.drawing.label_placement import draw_curve_labels
from recbias.reports.tradeoff_table import name_reranker, select_tradeoffs
from recbias.reports.views.definitions import collect_definitions
from recbias.reports.views.headings import make_heading
from recbias.reports.views.run_tables import RunTables

MOST_METRICS = 6
"""Metrics of bias with a plot of their own; the table has the others."""

_LEFT, _TOP, _RIGHT, _HEIGHT = 60.0, 34.0, 456.0, 320.0

Row = Mapping[str, Any]


def draw_tradeoff_curves(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[svg.Plot]:
    """Yield a plot for each re-ranked model and metric of bias, of the first metrics."""
    definitions = collect_definitions(run)
    plots: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in select_tradeoffs(run):
        ends = (row["accuracy_after"], row["bias_after"], row["bias_before"])
        if row["dataset"] == dataset and all(map(fits_axis, ends)):
            plots[row["baseline"], row["bias"], row["target"]].append(row)
    drawn: dict[str, int] = defaultdict(int)
    for (baseline, bias, _), points in plots.items():
        drawn[baseline] += 1
        if drawn[baseline] <= MOST_METRICS:
            note = rows.describe_direction(definitions[bias]) if bias in definitions else ""
            yield _draw(points, name_file(f"tradeoff-{baseline}-{bias}"), note)


def _draw(points: Sequence[Row], name: str, direction: str) -> svg.Plot:
    first = points[0]
    curves = _collect_curves(points)
    xs = [first["bias_before"], *(row["bias_after"] for row in points)]
    ys = [end for row in points for end in _list_ends(row)]
    axes = Axes(
        Scale(*pad_range(xs), _LEFT, _RIGHT),
        Scale(*pad_range([first["accuracy_before"], *ys]), _HEIGHT - 54, _TOP),
    )
    accuracy, bias = make_heading(first["accuracy"]), make_heading(first["bias"])
    target = f" of {first['target']}" if first["target"] else ""
    caption = (
        f"Each point is a version of {first['baseline']}; those of a re-ranker are joined in the "
        "order of its setting, and by a dotted line with the model. Vertical lines: 95% "
        f"intervals of the difference in accuracy from {first['baseline']}."
    )
    return svg.Plot(
        name=name,
        title=f"{accuracy} against {bias}{target} of {first['baseline']}, re-ranked",
        caption=caption,
        height=_HEIGHT,
        body=join(
            axes.draw(),
            svg.draw_title((4, 16), accuracy, "higher is better"),
            svg.draw_title((_RIGHT, _HEIGHT - 8), f"{bias}{target}", direction, "end"),
            _draw_curves(curves, first, axes),
        ),
    )


def _collect_curves(points: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the versions of each re-ranker in the order of its setting, by label."""
    curves: dict[str, list[Row]] = defaultdict(list)
    for row in points:
        curves[name_reranker(row)].append(row)
    return {name: sorted(each, key=_get_strength) for name, each in curves.items()}


def _get_strength(row: Row) -> float:
    return 0.0 if math.isnan(row["strength"]) else float(row["strength"])


def _list_ends(row: Row) -> list[float]:
    """Return the accuracy of a version, and the ends of its difference below the model's."""
    before = row["accuracy_before"]
    ends = (before - row["accuracy_lost_high"], before - row["accuracy_lost_low"])
    return [row["accuracy_after"], *filter(fits_axis, ends)]


def _draw_curves(curves: Mapping[str, Sequence[Row]], first: Row, axes: Axes) -> Safe:
    elements, lines = [], {}
    start = axes.at(first["bias_before"], first["accuracy_before"])
    for points in curves.values():
        nearest = axes.at(points[0]["bias_after"], points[0]["accuracy_after"])
        elements.append(svg.draw_line(start, nearest, "zero"))
    for number, (name, points) in enumerate(curves.items()):
        lines[name] = [axes.at(row["bias_after"], row["accuracy_after"]) for row in points]
        colour = svg.format_colour(number)
        if len(points) > 1:
            elements.append(svg.draw_polyline(lines[name], f"curve {colour}", name))
        for row, point in zip(points, lines[name], strict=True):
            ends = [axes.at(row["bias_after"], end) for end in _list_ends(row)[1:]]
            if len(ends) == 2:
                elements.append(svg.draw_line(ends[0], ends[1], f"curve {colour}"))
            title = f"{row['model']}: {row['accuracy_after']:.4f}, {row['bias_after']:.4f}"
            elements.append(svg.draw_circle(point, 4, f"dot c{number % svg.COLOURS}", title))
    title = f"{first['baseline']}: {first['accuracy_before']:.4f}, {first['bias_before']:.4f}"
    elements.append(svg.draw_circle(start, 5, "dot", title))
    frame = (axes.x.start + 4, axes.y.end, axes.x.end, axes.y.start - 4)
    texts = {name: f"halo c{at % svg.COLOURS}" for at, name in enumerate(lines)}
    return join(
        *elements, draw_curve_labels(lines, texts, frame, marks={first["baseline"]: start})
    )
