"""Plots of metrics by query label: forests of group means, prices, words and associations."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from recbias.core.errors import MissingEvidence
from recbias.core.measures import to_loss
from recbias.reports import plots as rows
from recbias.reports import svg, views
from recbias.reports.run import RunTables
from recbias.reports.svg import Interval, Plot, Scale, describe_lines, pad_range
from recbias.reports.views import Definition, collect_definitions
from recbias.reports.wording import Safe, count_decimals, format_value, join

Check: TypeAlias = Mapping[str, Any]
"""A check in the manifest."""

_ASSOCIATION = "association"
_MOST_PAIRS = 3
# label values at the positive end of an axis, as in the paper; else the first value
_POSITIVE = ("female", "white")

_LEFT, _TOP, _RIGHT, _FOOT = 52.0, 34.0, 468.0, 62.0
# settings in which the metrics of the two axes may differ
_OWN_SETTINGS = {"label", "positive", "words", "units"}


@dataclass(frozen=True)
class _Axis:
    """One axis: one value of a label against the others."""

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


_Points = Mapping[str, tuple[Interval, Interval]]  # by attribute value, across and upwards


def draw_associations(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[svg.Plot]:
    """Yield a plot for each two metrics of association over the same attribute, and each model."""
    candidates = [
        _make_axis(run, metric, dataset) for metric in rows.find_metrics(run, _ASSOCIATION)
    ]
    partners = _collect_partners(run)
    pairs = itertools.combinations(candidates, 2)
    compatible = [pair for pair in pairs if _are_compatible(*pair, partners)]
    for x, y in compatible[:_MOST_PAIRS]:
        models = rows.sort_models(run, (model for model, target in x.values.keys() & y.values))
        if not models:
            message = f"no attribute value has both {x.metric.heading} and {y.metric.heading}"
            raise MissingEvidence(message)
        for model in models[: rows.MOST_MODELS]:
            plot = _draw_association(x, y, model, name_file)
            yield rows.add_omitted(plot, models)


def _make_axis(run: RunTables, metric: Definition, dataset: str) -> _Axis:
    labels = rows.list_labels(run, metric, dataset, "group") or [""]
    labels.sort(key=lambda label: rows.get_label_value(label) not in _POSITIVE)
    plus, *negative = map(rows.get_label_value, labels)
    return _Axis(
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


def _are_compatible(x: _Axis, y: _Axis, partners: Mapping[str, set[str]] | None) -> bool:
    """Return whether two metrics differ in their label only, and queries carry both labels."""
    x_settings, y_settings = (
        {key: value for key, value in axis.metric.parameters.items() if key not in _OWN_SETTINGS}
        for axis in (x, y)
    )
    if x_settings != y_settings or x.label == y.label:
        return False
    return partners is None or y.label in partners.get(x.label, ())


def _draw_association(x: _Axis, y: _Axis, model: str, name_file: rows.NameFile) -> svg.Plot:
    points = {
        target: (interval, y.values[model, target])
        for (name, target), interval in x.values.items()
        if name == model and (model, target) in y.values
    }
    height = 420.0 + 8 * max(0, min(len(points), 60) - 12)
    bottom = height - _FOOT
    x_range = pad_range([x.neutral, *(across.value for across, _ in points.values())])
    y_range = pad_range([y.neutral, *(upwards.value for _, upwards in points.values())])
    axes = svg.Axes(Scale(*x_range, _LEFT, _RIGHT), Scale(*y_range, bottom, _TOP))
    middle, level = axes.at(x.neutral, y.neutral)
    sure = {
        target: x.excludes_neutral(across) or y.excludes_neutral(upwards)
        for target, (across, upwards) in points.items()
    }
    marks, n_unlabelled = _draw_points(points, sure, axes)
    ends = _name_ends(x, y)
    left, right, below, above = (svg.shorten(name, 24) for name in ends)
    attribute = rows.get_label_name(points) or "attribute values"
    sentences = [
        f"An attribute value further right is recommended more under {ends[1]},",
        f"one further up more under {ends[3]}; at {x.neutral:g} there is no difference.",
    ]
    if not all(sure.values()):
        sentences.append(f"Open points: both 95% intervals include {x.neutral:g}.")
    if n_unlabelled:
        sentences.append(f"{n_unlabelled} labels do not fit; the table has them.")
    return svg.Plot(
        name=name_file(f"association-{x.label}-{y.label}-{model}"),
        title=f"{attribute.capitalize()} by {x.label} and {y.label}: {model}",
        caption=" ".join(sentences),
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


def _name_ends(x: _Axis, y: _Axis) -> tuple[str, str, str, str]:
    """Return the names of the ends of both axes, with their labels if both axes have the same."""
    if x.plus != y.plus:
        return x.minus, x.plus, y.minus, y.plus
    left, right = f"{x.label} {x.minus}", f"{x.label} {x.plus}"
    return left, right, f"{y.label} {y.minus}", f"{y.label} {y.plus}"


def _draw_points(points: _Points, sure: Mapping[str, bool], axes: svg.Axes) -> tuple[Safe, int]:
    """Return points with their labels, and the number of points without a label."""
    centres = [axes.at(across.value, upwards.value) for across, upwards in points.values()]
    labels = [svg.shorten(rows.get_label_value(target), 22) for target in points]
    texts = svg.draw_labels(centres, labels, (4.0, _TOP - 4, _RIGHT + 8, axes.y.start - 2))
    dots = []
    for (target, (across, upwards)), centre in zip(points.items(), centres, strict=True):
        title = f"{target}: {across.describe()} across, {upwards.describe()} upwards"
        class_ = "dot c0" if sure[target] else "dot open c0"
        dots.append(svg.draw_circle(centre, 4, class_, title))
    return join(*texts, *dots), texts.count(Safe(""))


_HEAD, _LONGEST = 26.0, 24


@dataclass(frozen=True)
class Mark:
    """A value in a row: the number of its series, and the text that shows on hover."""

    interval: Interval
    series: int = 0
    title: str = ""
    hollow: bool = False


@dataclass(frozen=True)
class Row:
    """A labelled row of marks, with a note at its right end.

    ``shaded`` is a band from the lowest to the highest mark, below the note in bold.
    """

    label: str
    marks: tuple[Mark, ...]
    note: str = ""
    shaded: bool = False


@dataclass(frozen=True)
class Panel:
    """Rows under a title, which may be blank."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Forest:
    """A forest plot.

    A single series has no legend; ``neutral`` is the value without bias or the limit, or NaN, and
    ``other_limit`` the second one. The marks of a row are below each other.
    """

    panels: tuple[Panel, ...]
    series: tuple[str, ...]
    axis: str
    note: str = ""
    neutral: float = math.nan
    neutral_label: str = ""
    other_limit: float = math.nan

    @property
    def lines(self) -> list[float]:
        """The values of the vertical lines."""
        return [each for each in (self.neutral, self.other_limit) if not math.isnan(each)]

    def rows(self) -> list[Row]:
        """Return all rows."""
        return [row for panel in self.panels for row in panel.rows]


def draw_forest(forest: Forest, *, name: str, title: str, caption: str) -> svg.Plot:
    """Return the plot with this file name, title and caption."""
    names = forest.series if len(forest.series) > 1 else ()
    legend, top = svg.draw_legend(names, forest.neutral_label)
    most = max(len(row.marks) for row in forest.rows())
    row_height = 22.0 if most < 2 else 12.0 + 9.0 * most
    titles = sum(bool(panel.title) for panel in forest.panels)
    body = len(forest.rows()) * row_height + titles * _HEAD
    if top + body + 66 > svg.TALL:
        top += 20.0
    height = top + body + 66
    scale = _make_scale(forest)
    lines = [value for value in forest.lines if scale.low <= value <= scale.high]
    neutral = [
        svg.draw_line((scale.at(value), top), (scale.at(value), height - 58), "neutral")
        for value in lines
    ]
    return svg.Plot(
        name=name,
        title=title,
        caption=caption,
        height=height,
        body=join(
            svg.draw_row_axis(scale, top, forest.axis, forest.note, height),
            *neutral,
            legend,
            _draw_panels(forest, scale, top, row_height),
        ),
    )


def _make_scale(forest: Forest) -> Scale:
    widest = max(map(svg.estimate_width, _shorten_labels(forest).values()))
    ends = [end for row in forest.rows() for mark in row.marks for end in mark.interval.ends()]
    notes = max(svg.estimate_width(row.note) for row in forest.rows())
    end = svg.width() - svg.MARGIN - (notes + 16 if notes else 4)
    return Scale(*pad_range([*ends, *forest.lines]), 18 + widest, end)


def _shorten_labels(forest: Forest) -> dict[str, str]:
    labels = [row.label for row in forest.rows()]
    return dict(zip(labels, svg.shorten_all(labels, svg.scale_length(_LONGEST)), strict=True))


def _draw_panels(forest: Forest, scale: Scale, y: float, row_height: float) -> Safe:
    elements, labels = [], _shorten_labels(forest)
    for panel in forest.panels:
        if panel.title:
            size = (svg.width(), _HEAD - 1)
            elements.append(svg.draw_rectangle((0, y - 1), size, "paper"))
            title = svg.shorten(panel.title, svg.scale_length(52))
            elements.append(svg.draw_title((4, y + 19), title))
            y += _HEAD
        for row in panel.rows:
            middle = y + row_height / 2
            elements.append(
                svg.draw_text((scale.start - 10, middle + 4.5), labels[row.label], "end")
            )
            if row.shaded:
                places = [scale.at(mark.interval.value) for mark in row.marks]
                band = max(places) - min(places), row_height - 4
                elements.append(svg.draw_rectangle((min(places), y + 2), band, "gap"))
            elements.append(_draw_marks(row, scale, middle))
            place = svg.width() - svg.MARGIN, middle + 4.5
            elements.append(svg.draw_text(place, row.note, f"end {'name' * row.shaded}".strip()))
            y += row_height
    return join(*elements)


def _draw_marks(row: Row, scale: Scale, middle: float) -> Safe:
    elements = []
    for position, mark in enumerate(row.marks):
        y = middle + (position - (len(row.marks) - 1) / 2) * 9.0
        colour, shape = svg.choose_look(mark.series)
        if mark.interval.bounded:
            start, end = (scale.at(mark.interval.low), y), (scale.at(mark.interval.high), y)
            elements.append(svg.draw_line(start, end, f"interval {colour}"))
        centre = (scale.at(mark.interval.value), y)
        class_ = f"dot{' open' * mark.hollow} {colour}"
        elements.append(svg.draw_marker(centre, shape, class_, title=mark.title))
    return join(*elements)


_MEAN_ATTRIBUTE = "mean_attribute"
_NEUTRAL = "neutral"  # the group of prompts without a label word; its mean is the reference line

MOST_LABELS = 60
"""With more labels than this, only the highest and the lowest are drawn."""


def _list_measured(
    run: RunTables, name: str, dataset: str, *columns: str
) -> Iterator[tuple[Definition, list[rows.Row]]]:
    """Yield the metrics of a name with their values that have a group, or all of some columns."""
    for metric in rows.find_metrics(run, name):
        measured = rows.list_rows(run, metric, dataset)
        values = [row for row in measured if all(row[column] for column in columns)]
        if not values:
            raise MissingEvidence(f"{metric.heading} has no value by {' and '.join(columns)}")
        yield metric, values


def _split_models(
    run: RunTables, values: Sequence[rows.Row]
) -> Iterator[tuple[str, list[rows.Row], str]]:
    """Yield the models that get a plot, with their values and a note on the others."""
    models = rows.sort_models(run, (row["model"] for row in values))
    omitted = models[rows.MOST_MODELS :]
    note = f" The table also has {rows.join_names(omitted)}." if omitted else ""
    for model in models[: rows.MOST_MODELS]:
        yield model, [row for row in values if row["model"] == model], note


def draw_attribute_ranking(
    run: RunTables, dataset: str, name_file: rows.NameFile
) -> Iterator[Plot]:
    """Yield a plot for each metric of a mean by label, and each model."""
    for metric, values in _list_measured(run, _MEAN_ATTRIBUTE, dataset, "group"):
        means = [row for row in values if row["group"] != _NEUTRAL]
        label = rows.get_label_name(row["group"] for row in means) or "label"
        attribute = str(metric.parameters.get("attribute") or metric.heading)
        for model, own, note in _split_models(run, means):
            neutral = [
                row["value"] for row in values if (row["model"], row["group"]) == (model, _NEUTRAL)
            ]
            mean = math.fsum(row["value"] for row in own) / len(own)
            forest = Forest(
                panels=_split_panels(sorted(own, key=lambda row: (-row["value"], row["group"]))),
                series=("",),
                axis=f"Mean {attribute}",
                note=rows.describe_direction(metric),
                neutral=neutral[0] if neutral else mean,
                neutral_label="without any word" if neutral else "mean over the labels",
            )
            yield draw_forest(
                forest,
                name=name_file(f"ranking-{attribute}-{label}-{model}"),
                title=f"Average {attribute} by {label}: {model}",
                caption=f"The mean {attribute} of the recommended items under each label.{note}",
            )


def _split_panels(ranked: Sequence[rows.Row]) -> tuple[Panel, ...]:
    lines = [Row(rows.get_label_value(row["group"]), (_mark(row, 0),)) for row in ranked]
    if len(lines) <= MOST_LABELS:
        return (Panel("", tuple(lines)),)
    half = MOST_LABELS // 2
    highest = Panel(f"The {half} highest", tuple(lines[:half]))
    return highest, Panel(f"The {half} lowest", tuple(lines[-half:]))


_MOST_MODELS, _MOST_GROUPS, _MOST_SIZES = 8, 30, 4
_SMALL = 0.001  # gaps below have as many decimal places as they need
_COMPARED = ("identity_effect", "list_overlap")  # metrics of groups of prompts without ``by``
_LIMIT = re.compile(r"(?:at (?:least|most)|between) (\S+)(?: and (\S+))?")
_VERDICTS = {"fail": "✗ fail", "undecided": "? undecided", "pass": "✓ pass"}


def draw_group_means(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[svg.Plot]:
    """Yield a plot for each metric with values of groups of queries, and each target."""
    for metric in collect_definitions(run).values():
        if metric.parameters.get("gap") != "groups" and metric.name not in _COMPARED:
            continue
        values = [row for row in rows.list_rows(run, metric, dataset) if row["group"]]
        if not values:
            raise MissingEvidence(f"{metric.heading} is defined in no group")
        for target in rows.list_distinct(values, "target"):
            name = name_file(f"groups-{metric.title}-{target}")
            yield draw_groups(run, metric, _sort_rows(run, values, target), name=name)


def _sort_rows(run: RunTables, values: Sequence[rows.Row], target: str) -> list[rows.Row]:
    """Return the values of a target in the order of the run's models."""
    models = views.list_models(run)
    own = [row for row in values if row["target"] == target]
    return sorted(own, key=lambda row: models.index(row["model"]))


def list_group_rows(
    run: RunTables, metric: Definition, dataset: str, target: str = ""
) -> list[rows.Row]:
    """Return the values of groups of queries on a metric."""
    values = rows.list_rows(run, metric, dataset)
    return [row for row in values if row["group"] and row["target"] == target]


def list_group_tests(run: RunTables, metric: Definition, dataset: str) -> list[views.Comparisons]:
    """Return the comparisons within a model on a metric, those of the first test."""
    found = [
        each
        for each in views.collect_comparisons(run)
        if not each.compares_models and (each.title, each.place[0]) == (metric.title, dataset)
    ]
    return [each for each in found if each.test == found[0].test]


def draw_groups(
    run: RunTables,
    metric: Definition,
    values: Sequence[rows.Row],
    *,
    name: str,
    checks: Sequence[Check] = (),
    most: int = _MOST_GROUPS,
) -> svg.Plot:
    """Return the value of each group by each model, with significant gaps shaded.

    Models are rows and groups marks; groups are rows where there are more than 8.

    Args:
        run: The run.
        metric: A metric with values of groups.
        values: Rows of ``list_group_rows``; the models are drawn in their order.
        name: The name of the file.
        checks: The checks of the metric or of its gap.
        most: The number of groups above which only the lowest and the highest are drawn.
    """
    dataset, target = values[0]["dataset"], values[0]["target"]
    groups = rows.list_distinct(list_group_rows(run, metric, dataset, target), "group")
    drawn = rows.list_distinct(values, "model")[:_MOST_MODELS]
    own = {model: [row for row in values if row["model"] == model] for model in drawn}
    tests = [row for each in list_group_tests(run, metric, dataset) for row in each.rows]
    label = rows.get_label_name(groups)
    series = [rows.get_label_value(group) if label else group for group in groups]
    codes = {group: at for at, group in enumerate(groups)}
    sizes = [{row["n"] for row in values if row["group"] == group} for group in groups]
    is_short = len(groups) <= _MOST_SIZES and len(set().union(*sizes)) > 1
    if is_short and all(len(each) == 1 for each in sizes):
        series = [f"{text}, n {n:,.0f}" for text, (n,) in zip(series, sizes, strict=True)]
    if len(groups) > most:
        own = {model: _select_ends(each) for model, each in own.items()}
        codes, series = {}, ["lowest group", "highest group"]
    if svg.COLOURS < len(groups) <= most:
        lines = [
            Row(group_name, tuple(_mark(row, at) for at, row in _find_group(own, group)))
            for group, group_name in zip(groups, series, strict=True)
        ]
        series = drawn
    else:
        lines = [_make_model_row(model, each, tests, codes, checks) for model, each in own.items()]
    heading = views.name_metric(run, metric, "group")
    return draw_forest(
        Forest(
            panels=(Panel("", tuple(lines)),),
            series=tuple(series),
            axis=heading,
            note=rows.describe_direction(metric, groups=True),
            **_place_limit(metric, [check for check in checks if check["group"]]),
        ),
        name=name,
        title=", ".join(filter(None, [f"{heading} by {label or 'group'}", target])),
        caption=_caption_groups(run, metric, values[0], lines, checks),
    )


def _select_ends(values: Sequence[rows.Row]) -> list[rows.Row]:
    ordered = sorted(values, key=lambda row: row["value"])
    return [ordered[0], ordered[-1]]


def _find_group(
    own: Mapping[str, Sequence[rows.Row]], group: str
) -> Iterator[tuple[int, rows.Row]]:
    """Yield the number of each model and its row of a group."""
    for at, values in enumerate(own.values()):
        yield from ((at, row) for row in values if row["group"] == group)


def _mark(row: rows.Row, series: int, *, hollow: bool = False, places: int = 4) -> Mark:
    interval = Interval.of_row(row)
    name = ", ".join(filter(None, (row["model"], row["group"], row["target"])))
    n = f", n {row['n']:,.0f}" if places else ""
    return Mark(interval, series, f"{name}: {interval.describe(places)}{n}", hollow)


def _make_model_row(
    model: str,
    values: Sequence[rows.Row],
    tests: Sequence[views.Row],
    codes: Mapping[str, int],
    checks: Sequence[Check],
) -> Row:
    """Return the groups of a model; hollow if a test of the group is not significant."""
    tests = [row for row in tests if row["model"] == model]
    hollow = {row["group"] for row in tests if not views.is_significant(row)}
    values = sorted(values, key=lambda row: codes.get(row["group"], 0))
    marks = tuple(
        _mark(row, codes.get(row["group"], at), hollow=row["group"] in hollow)
        for at, row in enumerate(values)
    )
    groups = {row["group"] for row in values}
    pairs = [row for row in tests if {row["a"], row["b"]} <= groups]
    shaded = any(map(views.is_significant, pairs))
    numbers = [row["value"] for row in values]
    size = max(numbers) - min(numbers)
    places = min(count_decimals(numbers), 3) if size >= _SMALL else count_decimals([size])
    gap = f"gap {format_value(size, places)}"
    note = (f"{gap} *" if shaded else gap) if pairs else ""
    own = [check for check in checks if check["model"] == model]
    if any(check["group"] for check in checks):
        note = _mark_verdict(own)
    elif own:
        note = f"{note or gap} {_mark_verdict(own)[0]}"
    return Row(model, marks, note, shaded)


def _mark_verdict(checks: Sequence[Check]) -> str:
    """Return the worst verdict of checks, blank without any."""
    verdicts = {"fail" if check["failed"] else check["verdict"] for check in checks}
    return next((mark for verdict, mark in _VERDICTS.items() if verdict in verdicts), "")


def _place_limit(metric: Definition, checks: Sequence[Check]) -> dict[str, Any]:
    """Return the line of a forest: the limit of checks without a baseline, or no bias."""
    match = None if not checks else _LIMIT.fullmatch(str(checks[0]["limit"]))
    if match is not None and not checks[0]["baseline"]:
        low, high = match.groups()
        if high is None:
            return {"neutral": float(low), "neutral_label": f"limit {low}"}
        label = f"limits {low} and {high}".replace("-", "\N{MINUS SIGN}")
        return {"neutral": float(low), "other_limit": float(high), "neutral_label": label}
    return {"neutral": 0.0 if metric.direction == "zero" else math.nan}


def _caption_groups(
    run: RunTables,
    metric: Definition,
    row: rows.Row,
    lines: Sequence[Row],
    checks: Sequence[Check],
) -> str:
    everything = list_group_rows(run, metric, row["dataset"], row["target"])
    models = rows.list_distinct(everything, "model")
    names = "".join(mark.title for line in lines for mark in line.marks)
    omitted = [model for model in models if f"{model}, " not in names]
    marks = [mark for line in lines for mark in line.marks]
    checked = {check["model"] for check in checks}
    sentences = describe_lines(mark.interval for mark in marks)
    if any(line.shaded for line in lines):
        method = views.describe_methods(list_group_tests(run, metric, row["dataset"])[:1])
        sentences.append(f"Shaded, *: a gap is significant ({method}).")
    n_groups = len(rows.list_distinct(everything, "group"))
    if lines[0].label in models and len(lines[0].marks) < n_groups > svg.COLOURS:
        sentences.append(f"Of {n_groups} groups only the ends are drawn.")
    if any(mark.hollow for mark in marks):
        sentences.append("Hollow: no significant difference.")
    if checks and not checks[0]["group"]:
        sentences.append(f"Limit of the gap: {checks[0]['limit']}.")
    if checks and any(line.label not in checked for line in lines):
        sentences.append("Models without a mark are not checked.")
    if omitted:
        sentences.append(f"Not drawn: {rows.join_names(omitted)}.")
    return " ".join(sentences)


_HIT = "HIT_BAD"


def draw_hit_shares(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[svg.Plot]:
    """Yield the share of lists with a labelled item, for each label, group and target."""
    for metric in rows.find_metrics(run, _HIT):
        if metric.parameters.get("gap") is not None:
            continue
        values = rows.list_rows(run, metric, dataset)
        for part in dict.fromkeys((row["group"], row["target"]) for row in values):
            name = name_file(f"hits-{metric.title}-{', '.join(filter(None, part))}")
            yield draw_values(run, metric, dataset, name=name, part=part)


def draw_values(
    run: RunTables,
    metric: Definition,
    dataset: str,
    *,
    name: str,
    part: tuple[str, str] = ("", ""),
    checks: Sequence[Check] = (),
) -> svg.Plot:
    """Return the value of each model on a metric, the best first, with the limit of checks."""
    values = [
        row
        for row in rows.list_rows(run, metric, dataset)
        if (row["group"], row["target"]) == part
    ]
    if not values:
        raise MissingEvidence(f"no model has a value of {metric.heading}")
    values.sort(key=lambda row: (to_loss(row["value"], metric.direction), row["value"]))
    baselines, heading = views.list_baselines(run), views.name_metric(run, metric)
    lines = [
        Row(
            row["model"],
            (_mark(row, 0, hollow=row["model"] in baselines),),
            _mark_verdict([check for check in checks if check["model"] == row["model"]])
            or "not checked" * bool(checks),
        )
        for row in values
    ]
    marks = [mark for line in lines for mark in line.marks]
    sentences = describe_lines(mark.interval for mark in marks)
    if any(mark.hollow for mark in marks):
        sentences.append("Hollow: baselines.")
    return draw_forest(
        Forest(
            panels=(Panel("", tuple(lines)),),
            series=("",),
            axis=heading,
            note=rows.describe_direction(metric, groups=True),
            **_place_limit(metric, checks),
        ),
        name=name,
        title=", ".join(filter(None, [f"{heading} of each model", *part])),
        caption=" ".join(sentences),
    )


_PRICES = "price_percentage"


def _make_rows(
    values: Sequence[rows.Row],
    targets: Sequence[str],
    groups: Sequence[str],
    places: int = 4,
) -> tuple[Row, ...]:
    """Return a row for each target, with a mark for each group."""
    lines = []
    for target in targets:
        own = [row for row in values if row["target"] == target]
        own.sort(key=lambda row: groups.index(row["group"]))
        marks = tuple(_mark(row, groups.index(row["group"]), places=places) for row in own)
        lines += [Row(rows.get_label_value(target), marks)] * bool(marks)
    return tuple(lines)


def draw_prices(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[Plot]:
    """Yield a plot for each metric of shares by price level."""
    for metric, shares in _list_measured(run, _PRICES, dataset, "group", "target"):
        labels = rows.list_labels(run, metric, dataset, "group")
        levels = rows.list_distinct(shares, "target")
        models = rows.sort_models(run, (row["model"] for row in shares))
        within = str(metric.parameters.get("within") or "")
        neutral = compute_neutral(labels, within)
        level_name = rows.get_label_name(levels) or "level"
        label_name = rows.get_label_name(row["group"] for row in shares) or "label"
        own = {model: [row for row in shares if row["model"] == model] for model in models}
        forest = Forest(
            panels=tuple(
                Panel(model, _make_rows(values, levels, labels)) for model, values in own.items()
            ),
            series=tuple(map(rows.get_label_value, labels)),
            axis=f"Share of the {level_name} level's slots",
            neutral=neutral,
            neutral_label="" if math.isnan(neutral) else f"equal shares, {neutral:.2g}",
        )
        yield draw_forest(
            forest,
            name=name_file(f"levels-{label_name}"),
            title=f"{level_name.capitalize()} levels by {label_name}",
            caption=(
                f"{metric.heading}. The share under each label of all slots that go to a "
                f"{level_name} level; those of a level add up to 1"
                f"{f' within each {within}' if within else ''}."
            ),
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


_TOP_WORDS = "top_words"
MOST_WORDS = 30
"""Words in a plot; the table has the others."""


def draw_word_counts(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[Plot]:
    """Yield a plot for each metric of word counts, and each model."""
    for _, values in _list_measured(run, _TOP_WORDS, dataset, "group", "target"):
        for model, counts, note in _split_models(run, values):
            groups = rows.list_distinct(counts, "group")
            ranked = sorted(counts, key=lambda row: (-row["value"], row["target"]))
            words = rows.list_distinct(ranked, "target")
            label, n_more = rows.get_label_name(groups) or "label", len(words) - MOST_WORDS
            forest = Forest(
                panels=(Panel("", _make_rows(counts, words[:MOST_WORDS], groups, places=0)),),
                series=tuple(map(rows.get_label_value, groups)),
                axis="Occurrences in the names of the recommended items",
            )
            more = f" {n_more} rarer words are in the table only." if n_more > 0 else ""
            yield draw_forest(
                forest,
                name=name_file(f"words-{label}-{model}"),
                title=f"Words in recommended names by {label}: {model}",
                caption=(
                    f"How often the names of items recommended under each {label} have a word. "
                    f"An item that is recommended again counts again.{more} A word without a mark "
                    f"for a label is not among its most frequent ones.{note}"
                ),
            )
