"""Plots of models on the metrics of a run.

Rank correlations, bias against accuracy, and curves over settings and re-ranking strengths.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from recbias.core.errors import MissingEvidence
from recbias.reports import plots as rows
from recbias.reports import svg, views, wording
from recbias.reports.run import RunTables
from recbias.reports.svg import Interval
from recbias.reports.views import Definition, collect_definitions
from recbias.reports.wording import Safe, is_number, join


@dataclass(frozen=True)
class _BiasFamily:
    """Metrics of one bias."""

    bias: str
    names: tuple[str, ...]
    directed: bool = True

    def choose_metric(self, metrics: Iterable[Definition]) -> Definition | None:
        """Return the preferred metric among those of a run, or None."""
        eligible = (
            metric for metric in metrics if metric.direction != "none" or not self.directed
        )
        return views.select_first(eligible, self.names)


POPULARITY_BIAS = _BiasFamily("popularity", views.POPULARITY, directed=False)
OTHER_BIASES = (
    _BiasFamily("stereotypes", ("REC-ST", "HIT_BAD", "MRR_BAD")),
    _BiasFamily("prices", ("price_percentage", "mean_attribute")),
    _BiasFamily("exposure", ("AWRF", "EE-L", "EXP", "provider_gap")),
)
"""Biases that get a plot if the run has one of their metrics."""


@dataclass(frozen=True)
class _ModelPoint:
    """A model's accuracy and bias, and the class of its colour."""

    model: str
    colour: str
    x: Interval
    y: Interval
    hollow: bool = False


def draw_scatter(
    run: RunTables, dataset: str, *, name: str, family: _BiasFamily = POPULARITY_BIAS
) -> svg.Plot:
    """Return the scatter plot of one dataset."""
    metrics = [
        metric for metric in collect_definitions(run).values() if "gap" not in metric.parameters
    ]
    x, y = views.select_accuracy_metric(metrics), family.choose_metric(metrics)
    if x is None or y is None:
        lacking, names = ("accuracy", views.ACCURACY) if y else (family.bias, family.names)
        remedy = f"measure {' or '.join(names[:4])}"
        raise MissingEvidence(f"the run has no metric of {lacking}", remedy=remedy)
    y, points = _collect_points(run, dataset, x, y)
    if not points:
        raise MissingEvidence(f"no model has both {x.heading} and {y.heading}")
    height = 330.0 + 12 * max(0, len(points) - 8)
    axes = _make_scatter_axes(points, y, height)
    across, up = views.name_metric(run, x), y.title
    middle = axes.y.at(0)
    zero = [svg.draw_line((axes.x.start, middle), (axes.x.end, middle), "zero")]
    zero *= axes.y.low < 0 < axes.y.high
    return svg.draw_chart(
        axes,
        _draw_points(points, axes),
        x_title=(across, rows.describe_direction(x)),
        y_title=(up, rows.describe_direction(y)),
        drawn=join(axes.draw(), *zero),
        name=name,
        title=f"{up} against {across}",
        caption=_caption_scatter(points, y),
    )


def _collect_points(
    run: RunTables, dataset: str, x: Definition, y: Definition
) -> tuple[Definition, list[_ModelPoint]]:
    """Return the metric of the y axis, and the points that fit the axes."""
    across = _group_values(run, dataset, x).get(("", ""), {})
    upwards = _group_values(run, dataset, y)
    part = ("", "") if ("", "") in upwards else next(iter(upwards), ("", ""))
    values = upwards.get(part, {})
    points, baselines = [], views.list_baselines(run)
    for series, model in enumerate(views.list_models(run)):
        if model in values and model in across:
            colour = f"c{series % svg.COLOURS}"
            ends = across[model], values[model]
            point = _ModelPoint(model, colour, *ends, hollow=model in baselines)
            if svg.fits_axis(point.x.value) and svg.fits_axis(point.y.value):
                points.append(point)
    title = " ".join(filter(None, [views.name_metric(run, y), *part]))
    return replace(y, title=title), points


def _group_values(
    run: RunTables, dataset: str, metric: Definition
) -> Mapping[tuple[str, str], Mapping[str, Interval]]:
    """Return the value of each model, by group and target."""
    values: dict[tuple[str, str], dict[str, Interval]] = defaultdict(dict)
    for row in rows.list_defined_rows(run, metric, dataset):
        values[row["group"], row["target"]][row["model"]] = Interval.of_row(row)
    return values


def _make_scatter_axes(points: Sequence[_ModelPoint], y: Definition, height: float) -> svg.Axes:
    zero = [0.0] if y.direction == "zero" else []
    x_range = _choose_range([end for point in points for end in point.x.ends()])
    y_range = _choose_range([*zero, *(end for point in points for end in point.y.ends())])
    return svg.make_axes(x_range, y_range, height, margins=(52, 12))


def _choose_range(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis, which begins at 0 if the values are close to it."""
    low, high = min(values), max(values)
    start, end = svg.pad_range(values, 0.08)
    return (0.0 if 0 <= low < (high - low) * 0.3 else start), end


def _draw_points(points: Sequence[_ModelPoint], axes: svg.Axes) -> Safe:
    centres = [axes.at(point.x.value, point.y.value) for point in points]
    labels = svg.shorten_all(point.model for point in points)
    spots: list[list[svg.Spot]] = []
    obstacles: list[svg.Point] = []
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
        spots.append(svg.list_spots((x, y), label, gap))
        title = f"{point.model}: {point.y.describe(6)} against {point.x.describe(6)}"
        class_ = f"dot{' open' * point.hollow} {point.colour}"
        dots.append(svg.draw_circle((x, y), 5, class_, title))
    texts = svg.draw_labels(
        centres,
        labels,
        (4, axes.y.end - 6, axes.x.end + 10, axes.y.start - 2),
        [f"halo {point.colour}" for point in points],
        spots=spots,
        obstacles=obstacles,
    )
    return join(*whiskers, *texts, *dots)


def _caption_scatter(points: Sequence[_ModelPoint], y: Definition) -> str:
    sentences = [
        "Each point is a model.",
        *svg.describe_lines([*(point.x for point in points), *(point.y for point in points)]),
        "The dotted line is 0: no bias." if y.direction == "zero" else "",
        "Hollow points are baselines." if any(point.hollow for point in points) else "",
    ]
    return " ".join(filter(None, sentences))


_FEWEST = 3  # the fewest values of a number that make a plot


@dataclass(frozen=True)
class Variants:
    """Models of one plug-in.

    Args:
        name: The plug-in.
        settings: By model, the settings in which the models differ.
    """

    name: str
    settings: Mapping[str, Mapping[str, Any]]

    @property
    def names(self) -> list[str]:
        """The settings in which the models differ."""
        return [*next(iter(self.settings.values()))]

    @property
    def axis(self) -> str:
        """The setting with the most different numbers, blank if none has three."""
        counts = {
            name: len({s[name] for s in self.settings.values() if is_number(s[name])})
            for name in self.names
        }
        most = max(self.names, key=lambda name: counts[name])
        return most if counts[most] >= _FEWEST else ""


def render_setting(value: Any) -> str:
    """Return a setting as text.

    >>> render_setting(50.0), render_setting(None), render_setting(True)
    ('50', 'null', 'true')
    """
    is_word = value is None or isinstance(value, bool)
    return json.dumps(value) if is_word else wording.format_setting(value)


@lru_cache(maxsize=2)
def collect_variants(run: RunTables) -> tuple[Variants, ...]:
    """Return the plug-ins with models that differ in a number or a switch."""
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for model in run.manifest.get("models", []):
        if model.get("baseline"):  # a re-ranked model, whose curves are those of its re-ranker
            continue
        settings = dict(_flatten(model.get("parameters") or {}))
        groups.setdefault(str(model.get("name")), {})[str(model.get("label"))] = settings
    found = (Variants(name, _select_differing(models)) for name, models in groups.items())
    return tuple(group for group in found if _has_numbers(group))


def _flatten(settings: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting, that of a setting by its path: ``llm.temperature``."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{start}{name}.")
        else:
            yield f"{start}{name}", value


def _select_differing(models: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    names = dict.fromkeys(name for settings in models.values() for name in settings)
    differing = [name for name in names if len({repr(s.get(name)) for s in models.values()}) > 1]
    return {
        label: {name: settings.get(name) for name in differing}
        for label, settings in models.items()
    }


def _has_numbers(group: Variants) -> bool:
    values: Sequence[Any] = [value for s in group.settings.values() for value in s.values()]
    return any(isinstance(value, (bool, int, float)) for value in values)


MOST_METRICS = 6
"""Metrics with a plot of their own; the tables have the others."""


def draw_setting_curves(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[svg.Plot]:
    """Yield a plot for each plug-in and metric, of the first metrics without groups."""
    metrics = [metric for metric in collect_definitions(run).values() if not metric.gap]
    for group in filter(lambda each: each.axis, collect_variants(run)):
        setting = group.axis.replace("_", " ")
        curves = ((metric, _collect_series(run, group, metric, dataset)) for metric in metrics)
        for metric, lines in itertools.islice(filter(lambda each: each[1], curves), MOST_METRICS):
            heading = metric.heading
            yield rows.draw_lines(
                lines,
                x_title=(setting.capitalize(), ""),
                y_title=(heading, rows.describe_direction(metric)),
                may_be_log=True,
                name=name_file(f"{metric.title}-by-{group.axis}"),
                title=f"{heading} over {setting} of {group.name}",
                caption=f"{heading} of {group.name} over {setting}; each point is a model.",
            )


def _collect_series(
    run: RunTables, group: Variants, metric: Definition, dataset: str
) -> dict[str, list[tuple[float, Interval]]]:
    """Return the curves with at least two points."""
    series: dict[str, list[tuple[float, Interval]]] = {}
    for row in rows.list_rows(run, metric, dataset):
        settings = group.settings.get(row["model"])
        if settings is None or row["group"] or row["target"]:
            continue
        value = settings[group.axis]
        if is_number(value) and svg.fits_axis(value):
            point = float(value), Interval.of_row(row)
            series.setdefault(_name_series(group, settings), []).append(point)
    curves = {name: sorted(points, key=lambda point: point[0]) for name, points in series.items()}
    return {name: points for name, points in curves.items() if len(points) > 1}


def _name_series(group: Variants, settings: Mapping[str, Any]) -> str:
    others = [
        f"{name}={render_setting(settings[name])}" for name in group.names if name != group.axis
    ]
    return ", ".join(others) or group.name


_Row = Mapping[str, Any]


def draw_tradeoff_curves(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[svg.Plot]:
    """Yield a plot for each re-ranked model and metric of bias, of the first metrics."""
    plots: dict[tuple[str, str, str], list[_Row]] = defaultdict(list)
    for row in views.select_tradeoffs(run):
        ends = (row["accuracy_after"], row["bias_after"], row["bias_before"])
        if row["dataset"] == dataset and all(map(svg.fits_axis, ends)):
            plots[row["baseline"], row["bias"], row["target"]].append(row)
    drawn: dict[str, int] = defaultdict(int)
    for (baseline, bias, _), points in plots.items():
        drawn[baseline] += 1
        if drawn[baseline] <= MOST_METRICS:
            yield _draw_tradeoffs(run, points, name_file(f"tradeoff-{baseline}-{bias}"))


def _draw_tradeoffs(run: RunTables, points: Sequence[_Row], name: str) -> svg.Plot:
    """Return a line from the model to the versions of each re-ranker, by their setting."""
    first, definitions = points[0], collect_definitions(run)
    before, plain = first["accuracy_before"], first["baseline"]
    start = (first["bias_before"], Interval(before, math.nan, math.nan))
    lines = {plain: [start]}
    texts = {plain: [_describe_version(plain, first, "before")]}
    for row in sorted(points, key=_get_strength):
        ends = before - row["accuracy_lost_high"], before - row["accuracy_lost_low"]
        reranker = views.name_reranker(row)
        version = row["bias_after"], Interval(row["accuracy_after"], *ends)
        lines.setdefault(reranker, [start]).append(version)
        texts.setdefault(reranker, texts[plain][:1]).append(
            _describe_version(row["model"], row, "after")
        )
    accuracy, bias = (
        views.name_metric(run, definitions[title])
        if title in definitions
        else wording.make_heading(title)
        for title in (first["accuracy"], first["bias"])
    )
    metric = definitions.get(first["bias"])
    bias += f" of {first['target']}" if first["target"] else ""
    return rows.draw_lines(
        lines,
        x_title=(bias, rows.describe_direction(metric) if metric else ""),
        y_title=(accuracy, "higher is better"),
        labels=texts,
        name=name,
        title=f"{accuracy} against {bias} of {plain}, re-ranked",
        caption=(
            f"From {plain} to its re-ranked versions, in the order of their setting, with "
            "intervals of the difference in accuracy."
        ),
    )


def _get_strength(row: _Row) -> float:
    return 0.0 if math.isnan(row["strength"]) else float(row["strength"])


def _describe_version(name: str, row: _Row, when: str) -> str:
    return f"{name}: {row[f'accuracy_{when}']:.4f}, {row[f'bias_{when}']:.4f}"
