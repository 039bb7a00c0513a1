"""Curves of metrics over the rounds of a feedback loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recbias.reports.markup import join
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Axes, Scale, choose_ticks, fits_axis, pad_range
from recbias.reports.plots.drawing.label_placement import draw_curve_labels
from recbias.reports.views.round_curves import RoundCurve, list_round_curves
from recbias.reports.views.rounding import count_decimals, format_value
from recbias.reports.views.run_tables import RunTables

MOST_PLOTS = 12
"""Plots of a dataset; the table has the other metrics."""

MOST_CURVES = 12
"""Curves of a plot, the first ones."""

_LEFT, _TOP, _RIGHT, _HEIGHT = 60.0, 34.0, 456.0, 300.0


def draw_round_curves(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[svg.Plot]:
    """Yield a plot for each metric and target, with a curve for each model and group of users."""
    plots: dict[tuple[str, str], list[RoundCurve]] = {}
    for curve in list_round_curves(run, dataset):
        if any(map(fits_axis, curve.values.values())):
            plots.setdefault((curve.metric.title, curve.target), []).append(curve)
    for (title, target), curves in list(plots.items())[:MOST_PLOTS]:
        stem = "-".join(filter(None, ["rounds", title, target]))
        yield _draw(curves[:MOST_CURVES], name_file(stem), len(curves) - MOST_CURVES)


def _draw(curves: Sequence[RoundCurve], name: str, n_omitted: int) -> svg.Plot:
    metric, target = curves[0].metric, curves[0].target
    points = {
        " ".join(filter(None, (curve.model, curve.group))): [
            (float(number), value) for number, value in curve.values.items() if fits_axis(value)
        ]
        for curve in curves
    }
    last = max(number for ends in points.values() for number, _ in ends)
    heights = pad_range([value for ends in points.values() for _, value in ends])
    axes = Axes(Scale(1.0, max(last, 2.0), _LEFT, _RIGHT), Scale(*heights, _HEIGHT - 54, _TOP))
    lines = {label: [axes.at(*point) for point in ends] for label, ends in points.items()}
    colours = {label: svg.format_colour(at) for at, label in enumerate(lines)}
    places = count_decimals([value for ends in points.values() for _, value in ends])
    elements = [
        svg.draw_polyline(line, f"curve {colours[label]}", label) for label, line in lines.items()
    ]
    for label, ends in points.items():
        for (number, value), place in zip(ends, lines[label], strict=True):
            text = f"{label}, round {number:.0f}: {format_value(value, places)}"
            colour = colours[label].split()[0]
            elements.append(svg.draw_circle(place, 3, f"dot {colour}", text))
    texts = {label: f"halo {colours[label].split()[0]}" for label in lines}
    frame = (axes.x.start + 4, axes.y.end, axes.x.end, axes.y.start - 4)
    heading = metric.groups_heading if curves[0].group else metric.heading
    of_target = f" of {target}" if target else ""
    omitted = f" {n_omitted:,} more curves are in the table only." if n_omitted > 0 else ""
    ticks = [tick for tick in choose_ticks(1.0, last) if tick == round(tick)]
    return svg.Plot(
        name=name,
        title=f"{heading}{of_target} over rounds of feedback",
        caption=(
            "In each round a model is trained on what users accepted from its lists before; the "
            f"mean over seeds and folds.{omitted}"
        ),
        height=_HEIGHT,
        body=join(
            axes.draw(sorted({1.0, *ticks})),
            svg.draw_title((4, 16), f"{heading}{of_target}", rows.describe_direction(metric)),
            svg.draw_title((_RIGHT, _HEIGHT - 8), "Round", "", "end"),
            *elements,
            draw_curve_labels(lines, texts, frame),
        ),
    )
