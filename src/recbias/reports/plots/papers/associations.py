"""Which item attribute values go with which query labels, on two labels at once."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recbias.core.errors import MissingEvidence
from recbias.reports.markup import Safe, join
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Axes, Interval, Scale, pad_range
from recbias.reports.plots.drawing.label_placement import draw_labels
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables

PLUGIN = "association"
MOST_PAIRS = 3
POSITIVE = ("female", "white")
"""Label values at the positive end of an axis, as in the paper; else the first value."""

_LEFT, _TOP, _RIGHT, _FOOT = 52.0, 34.0, 468.0, 62.0
_OWN_SETTINGS = {"label", "positive", "words", "units"}
"""Settings in which the metrics of the two axes may differ."""


@dataclass(frozen=True)
class Axis:
    """One axis: one value of a label against the others.

    The values are the association of each model and attribute value.
    """

    metric: Definition
    plus: str
    minus: str
    values: Mapping[tuple[str, str], Interval]
    neutral: float

    @property
    def label(self) -> str:
        """The query label."""
        return str(self.metric.parameters.get("label", self.plus))

    def excludes_neutral(self, interval: Interval) -> bool:
        """Return whether an interval excludes the neutral value; true without an interval."""
        return not (interval.bounded and interval.low <= self.neutral <= interval.high)


@dataclass(frozen=True)
class AttributeValue:
    """An attribute value with its associations on both axes."""

    target: str
    x: Interval
    y: Interval


Pair = tuple[Axis, Axis]


def draw_associations(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[svg.Plot]:
    """Yield a plot for each two metrics of association over the same attribute, and each model.

    Raises:
        MissingEvidence: No attribute value has both associations.
    """
    candidates = [_make_axis(run, metric, dataset) for metric in rows.find_metrics(run, PLUGIN)]
    partners = _collect_partners(run)
    pairs = itertools.combinations(candidates, 2)
    compatible = [pair for pair in pairs if _are_compatible(*pair, partners)]
    for x, y in compatible[:MOST_PAIRS]:
        models = rows.sort_models(run, (model for model, target in x.values.keys() & y.values))
        if not models:
            message = f"no attribute value has both {x.metric.heading} and {y.metric.heading}"
            raise MissingEvidence(message)
        for model in models[: rows.MOST_MODELS]:
            plot = _draw_plot((x, y), model, name_file)
            note = rows.describe_undrawn(run, [x.metric, y.metric], dataset, model=model)
            yield rows.add_omitted(plot, models, note)


def _make_axis(run: RunTables, metric: Definition, dataset: str) -> Axis:
    labels = rows.list_labels(run, metric, dataset, "group") or [""]
    labels.sort(key=lambda label: rows.get_label_value(label) not in POSITIVE)
    plus, *negative = map(rows.get_label_value, labels)
    return Axis(
        metric=metric,
        plus=plus or metric.heading,
        minus=negative[0] if len(negative) == 1 else f"less {plus}",
        values={
            (row["model"], row["target"]): Interval.of_row(row)
            for row in rows.list_rows(run, metric, dataset)
            if row["target"] and row["group"] == labels[0]
        },
        neutral=1.0 if "ratio" in metric.parameters.values() else 0.0,
    )


def _collect_partners(run: RunTables) -> Mapping[str, set[str]] | None:
    """Return the labels that occur together with each label; None if the run does not say."""
    partners: dict[str, set[str]] = defaultdict(set)
    for queries in run.manifest.get("queries", []):
        for label, names in (queries.get("labels") or {}).items():
            partners[label] |= set(names)
    return partners or None


def _are_compatible(x: Axis, y: Axis, partners: Mapping[str, set[str]] | None) -> bool:
    """Return whether two metrics differ in their label only, and queries carry both labels."""
    x_settings, y_settings = (
        {key: value for key, value in axis.metric.parameters.items() if key not in _OWN_SETTINGS}
        for axis in (x, y)
    )
    if x_settings != y_settings or x.label == y.label:
        return False
    return partners is None or y.label in partners.get(x.label, ())


def _draw_plot(pair: Pair, model: str, name_file: rows.NameFile) -> svg.Plot:
    x, y = pair
    points = [
        AttributeValue(target, interval, y.values[model, target])
        for (name, target), interval in x.values.items()
        if name == model and (model, target) in y.values
    ]
    height = 420.0 + 8 * max(0, min(len(points), 60) - 12)
    bottom = height - _FOOT
    x_range = pad_range([x.neutral, *(point.x.value for point in points)])
    y_range = pad_range([y.neutral, *(point.y.value for point in points)])
    axes = Axes(Scale(*x_range, _LEFT, _RIGHT), Scale(*y_range, bottom, _TOP))
    middle, level = axes.at(x.neutral, y.neutral)
    marks, n_unlabelled = _draw_points(points, pair, axes)
    left, right, below, above = (svg.shorten(name, 24) for name in _name_ends(x, y))
    attribute = rows.get_label_name(point.target for point in points) or "attribute values"
    return svg.Plot(
        name=name_file(f"association-{x.label}-{y.label}-{model}"),
        title=f"{attribute.capitalize()} by {x.label} and {y.label}: {model}",
        caption=_write_caption(pair, points, n_unlabelled),
        height=height,
        body=join(
            axes.draw(),
            svg.draw_line((middle, _TOP), (middle, bottom), "axis"),
            svg.draw_line((_LEFT, level), (_RIGHT, level), "axis"),
            svg.draw_title((_LEFT, height - 14), f"← {left}"),
            svg.draw_title((_RIGHT, height - 14), f"{right} →", class_="end"),
            svg.draw_title((8, 16), f"↑ {above}"),
            svg.draw_title((8, bottom + 32), f"↓ {below}"),
            marks,
        ),
    )


def _name_ends(x: Axis, y: Axis) -> tuple[str, str, str, str]:
    """Return the names of the ends of both axes, with their labels if both axes have the same."""
    if x.plus != y.plus:
        return x.minus, x.plus, y.minus, y.plus
    left, right = f"{x.label} {x.minus}", f"{x.label} {x.plus}"
    return left, right, f"{y.label} {y.minus}", f"{y.label} {y.plus}"


def _draw_points(points: Sequence[AttributeValue], pair: Pair, axes: Axes) -> tuple[Safe, int]:
    """Return points with their labels, and the number of points without a label."""
    centres = [axes.at(point.x.value, point.y.value) for point in points]
    labels = [svg.shorten(rows.get_label_value(point.target), 22) for point in points]
    texts = draw_labels(centres, labels, (4.0, _TOP - 4, _RIGHT + 8, axes.y.start - 2))
    dots = []
    for point, centre in zip(points, centres, strict=True):
        title = f"{point.target}: {point.x.describe()} across, {point.y.describe()} upwards"
        class_ = "dot c0" if _is_sure(point, pair) else "dot open c0"
        dots.append(svg.draw_circle(centre, 4, class_, title))
    return join(*texts, *dots), texts.count(Safe(""))


def _is_sure(point: AttributeValue, pair: Pair) -> bool:
    """Return whether the interval on either axis excludes the neutral value."""
    return pair[0].excludes_neutral(point.x) or pair[1].excludes_neutral(point.y)


def _write_caption(pair: Pair, points: Sequence[AttributeValue], n_unlabelled: int) -> str:
    x, y = pair
    _, right, _, above = _name_ends(x, y)
    sentences = [
        f"An attribute value further right is recommended more under {right},",
        f"one further up more under {above}; at {x.neutral:g} there is no difference.",
        _describe_extreme(x, {point.target: point.x for point in points}),
        _describe_extreme(y, {point.target: point.y for point in points}),
    ]
    if not all(_is_sure(point, pair) for point in points):
        sentences.append(f"Open points: both 95% intervals include {x.neutral:g}.")
    if n_unlabelled:
        sentences.append(f"{n_unlabelled} labels do not fit; the table has them.")
    return " ".join(sentences)


def _describe_extreme(axis: Axis, values: Mapping[str, Interval]) -> str:
    target = max(values, key=lambda name: abs(values[name].value - axis.neutral))
    value = f"{rows.get_label_value(target)}, {values[target].describe()}"
    return f"Furthest on {axis.metric.heading}: {value}."
