"""A bias against accuracy: a point for each model, with 95% intervals.

Lines join models with their variants by mitigation: what a mitigation gains and costs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from recbias.core.errors import MissingEvidence
from recbias.reports.markup import Safe, join
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import (
    Axes,
    Interval,
    Scale,
    describe_omitted,
    fits_axis,
    pad_range,
)
from recbias.reports.plots.drawing.label_placement import (
    Spot,
    draw_labels,
    interpolate_points,
    list_spots,
)
from recbias.reports.plots.variants import pair_variants
from recbias.reports.views.definitions import (
    ACCURACY,
    POPULARITY,
    Definition,
    collect_definitions,
    select_accuracy_metric,
    select_first,
)
from recbias.reports.views.headline import list_models
from recbias.reports.views.run_tables import RunTables

_LEFT, _TOP, _RIGHT, _FOOT = 52.0, 34.0, 468.0, 54.0


@dataclass(frozen=True)
class BiasFamily:
    """Metrics of one bias.

    The names are by preference; ``directed`` excludes metrics without a better direction.
    """

    bias: str
    names: tuple[str, ...]
    directed: bool = True

    def choose_metric(self, metrics: Iterable[Definition]) -> Definition | None:
        """Return the preferred metric among those of a run, or None."""
        eligible = (
            metric for metric in metrics if metric.direction != "none" or not self.directed
        )
        return select_first(eligible, self.names)


POPULARITY_BIAS = BiasFamily("popularity", POPULARITY, directed=False)
OTHER_BIASES = (
    BiasFamily("stereotypes", ("REC-ST", "HIT_BAD", "MRR_BAD")),
    BiasFamily("prices", ("price_percentage", "mean_attribute")),
    BiasFamily("exposure", ("AWRF", "EE-L", "EXP", "provider_gap")),
)
"""Biases that get a plot if the run has one of their metrics."""


@dataclass(frozen=True)
class ModelPoint:
    """A model's accuracy and bias, and the class of its colour."""

    model: str
    colour: str
    x: Interval
    y: Interval


def draw_scatter(
    run: RunTables, dataset: str, *, name: str, family: BiasFamily = POPULARITY_BIAS
) -> svg.Plot:
    """Return the scatter plot of one dataset.

    Raises:
        MissingEvidence: The run has no accuracy metric, none of the bias, or no model with both.
    """
    metrics = [
        metric for metric in collect_definitions(run).values() if "gap" not in metric.parameters
    ]
    x, y = select_accuracy_metric(metrics), family.choose_metric(metrics)
    if x is None or y is None:
        lacking, names = ("accuracy", ACCURACY) if y else (family.bias, family.names)
        remedy = f"measure {' or '.join(names[:4])}"
        raise MissingEvidence(f"the run has no metric of {lacking}", remedy=remedy)
    y, points, n_omitted = _collect_points(run, dataset, x, y)
    if not points:
        raise MissingEvidence(f"no model has both {x.heading} and {y.heading}")
    height = 330.0 + 12 * max(0, len(points) - 8)
    axes = _make_axes(points, y, height - _FOOT)
    middle = axes.y.at(0)
    zero = [svg.draw_line((axes.x.start, middle), (axes.x.end, middle), "zero")]
    zero *= axes.y.low < 0 < axes.y.high
    lines = _locate_pairs(run, points, axes)
    return svg.Plot(
        name=name,
        title=f"{y.heading} against {x.heading}",
        caption=_write_caption(points, x, y, n_omitted, has_pairs=bool(lines)),
        height=height,
        body=join(
            axes.draw(),
            *zero,
            *(svg.draw_line(plain, variant, "pair") for plain, variant in lines),
            svg.draw_title((4, 16), y.heading, rows.describe_direction(y)),
            svg.draw_title((_RIGHT, height - 8), x.heading, rows.describe_direction(x), "end"),
            _draw_points(points, axes, lines),
        ),
    )


def _collect_points(
    run: RunTables, dataset: str, x: Definition, y: Definition
) -> tuple[Definition, list[ModelPoint], int]:
    """Return the metric of the y axis, the points, and the number of models that do not fit.

    A bias without a value of the whole is shown by its first group and target.
    """
    across = _group_values(run, dataset, x).get(("", ""), {})
    upwards = _group_values(run, dataset, y)
    part = ("", "") if ("", "") in upwards else next(iter(upwards), ("", ""))
    values = upwards.get(part, {})
    points, n_omitted = [], 0
    for series, model in enumerate(list_models(run)):
        if model in values and model in across:
            point = ModelPoint(model, f"c{series % svg.COLOURS}", across[model], values[model])
            if fits_axis(point.x.value) and fits_axis(point.y.value):
                points.append(point)
            else:
                n_omitted += 1
    return replace(y, title=" ".join(filter(None, [y.heading, *part]))), points, n_omitted


def _group_values(
    run: RunTables, dataset: str, metric: Definition
) -> Mapping[tuple[str, str], Mapping[str, Interval]]:
    """Return the value of each model, by group and target."""
    values: dict[tuple[str, str], dict[str, Interval]] = defaultdict(dict)
    for row in rows.list_defined_rows(run, metric, dataset):
        values[row["group"], row["target"]][row["model"]] = Interval.of_row(row)
    return values


def _locate_pairs(
    run: RunTables, points: Sequence[ModelPoint], axes: Axes
) -> list[tuple[svg.Point, svg.Point]]:
    """Return the positions of each plain model and mitigated variant that are both drawn."""
    centres = {point.model: axes.at(point.x.value, point.y.value) for point in points}
    return [
        (centres[plain], centres[variant])
        for plain, variant in pair_variants(run)
        if plain in centres and variant in centres
    ]


def _make_axes(points: Sequence[ModelPoint], y: Definition, bottom: float) -> Axes:
    zero = [0.0] if y.direction == "zero" else []
    x_range = _choose_range([end for point in points for end in point.x.ends()])
    y_range = _choose_range([*zero, *(end for point in points for end in point.y.ends())])
    return Axes(Scale(*x_range, _LEFT, _RIGHT), Scale(*y_range, bottom, _TOP))


def _choose_range(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis, which begins at 0 if the values are close to it."""
    low, high = min(values), max(values)
    start, end = pad_range(values, 0.08)
    return (0.0 if 0 <= low < (high - low) * 0.3 else start), end


def _draw_points(
    points: Sequence[ModelPoint], axes: Axes, lines: Sequence[tuple[svg.Point, svg.Point]]
) -> Safe:
    centres = [axes.at(point.x.value, point.y.value) for point in points]
    labels = svg.shorten_all(point.model for point in points)
    spots: list[list[Spot]] = []
    obstacles = [point for line in lines for point in interpolate_points(line)]
    whiskers, dots = [], []
    for point, (x, y), label in zip(points, centres, labels, strict=True):
        across = [(axes.x.at(end), y) for end in point.x.ends()[1:]]
        upwards = [(x, axes.y.at(end)) for end in point.y.ends()[1:]]
        obstacles += [*across, *upwards]
        whiskers += [
            svg.draw_line(ends[0], ends[1], f"whisker {point.colour}")
            for ends in (across, upwards)
            if len(ends) == 2
        ]
        reach = max([abs(end - x) for end, _ in across], default=0.0)
        gap = min(max(9.0, 4.0 + reach), 26.0)  # beyond the interval if that is short
        spots.append(list_spots((x, y), label, gap))
        title = f"{point.model}: {point.y.describe(6)} against {point.x.describe(6)}"
        dots.append(svg.draw_circle((x, y), 5, f"dot {point.colour}", title))
    texts = draw_labels(
        centres,
        labels,
        (4, _TOP - 6, _RIGHT + 10, axes.y.start - 2),
        [f"halo {point.colour}" for point in points],
        spots=spots,
        obstacles=obstacles,
    )
    return join(*whiskers, *texts, *dots)


def _write_caption(
    points: Sequence[ModelPoint],
    x: Definition,
    y: Definition,
    n_omitted: int,
    *,
    has_pairs: bool,
) -> str:
    lines = "Lines are 95% intervals, which may be shorter than the point is wide."
    sentences = [
        f"Each point is a model: {y.heading} upwards, {x.heading} to the right.",
        lines if any(point.x.bounded or point.y.bounded for point in points) else "",
        "The dotted line is 0: no bias." if y.direction == "zero" else "",
        "Solid lines join models with their mitigated variants." if has_pairs else "",
        describe_omitted(n_omitted),
    ]
    return " ".join(filter(None, sentences))
