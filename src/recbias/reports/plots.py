"""The plots of models, of groups of queries and of assumptions, from the tables of a run.

Each yields nothing where it does not apply.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from recbias.core.measures import to_loss
from recbias.core.text import normalize_name
from recbias.reports import charts, svg, views, wording
from recbias.reports.run import RunTables
from recbias.reports.svg import Plot
from recbias.reports.views import Definition, collect_definitions

NameFile = Callable[[str], str]
"""From the content of a plot to the name of its file."""

Estimate: TypeAlias = Mapping[str, Any]
"""A row of ``metrics.csv``."""

Check: TypeAlias = Mapping[str, Any]
"""A check in the manifest."""

# ---- what is drawn ----

# with more datasets than this only the values over all of them are plotted
_MOST_PLOTTED_DATASETS = 3

_MOST_ROWS = 60


def find_metrics(run: RunTables, *names: str) -> list[Definition]:
    """Return the metrics of the run whose plug-in has one of these names."""
    metrics, wanted = collect_definitions(run).values(), {*map(normalize_name, names)}
    return [metric for metric in metrics if normalize_name(metric.name) in wanted]


def list_plotted_datasets(run: RunTables) -> list[str]:
    """Return the datasets with plots of their own, the mean over all of them first."""
    names = views.list_datasets(run)
    return [views.ALL] if views.ALL in names and len(names) > _MOST_PLOTTED_DATASETS + 1 else names


def list_rows(run: RunTables, metric: Definition, dataset: str) -> list[Estimate]:
    """Return the headline values of a metric on one dataset that an axis can show."""
    rows = views.list_headline(run).get((metric.title, dataset), ())
    return [row for row in rows if svg.fits_axis(row["value"])]


def list_whole_rows(run: RunTables, metric: Definition, dataset: str) -> list[Estimate]:
    """Return the values over all queries and items."""
    rows = views.list_whole(run, metric.title, dataset)
    return [row for row in rows if svg.fits_axis(row["value"])]


def list_group_rows(
    run: RunTables, metric: Definition, dataset: str, target: str = ""
) -> list[Estimate]:
    """Return the values of groups of queries on a metric, in the order of the models."""
    rows = list_rows(run, metric, dataset)
    own = [row for row in rows if row["group"] and row["target"] == target]
    models = views.list_models(run)
    return sorted(own, key=lambda row: models.index(row["model"]))


def list_group_tests(run: RunTables, metric: Definition, dataset: str) -> list[views.Comparisons]:
    """Return the comparisons within a model on a metric, those of the first test."""
    found = [
        each
        for each in views.collect_comparisons(run)
        if not each.compares_models and (each.title, each.place[0]) == (metric.title, dataset)
    ]
    return [each for each in found if each.test == found[0].test]


def list_distinct(rows: Sequence[Estimate], column: str) -> list[str]:
    """Return the distinct values of a column in order of appearance."""
    return list(dict.fromkeys(str(row[column]) for row in rows))


def describe_direction(metric: Definition, *, groups: bool = False) -> str:
    """Return which direction is better, of values by group with ``groups``; blank if none is."""
    direction = metric.group_direction if groups else metric.direction
    scale = f", {metric.scale}" * bool(metric.scale)
    return "" if direction == "none" else f"{views.DIRECTION_LABELS[direction]}{scale}"


def make_mark(row: Estimate, series: int, *, hollow: bool = False) -> charts.Mark:
    """Return the mark of an estimate."""
    interval = charts.Interval.of_row(row)
    name = ", ".join(filter(None, (row["model"], row["group"], row["target"])))
    return charts.Mark(
        interval, series, f"{name}: {interval.describe(4)}, n {row['n']:,.0f}", hollow
    )


def make_rows(
    values: Sequence[Estimate],
    rows: tuple[str, Mapping[str, str]],
    marks: tuple[str, Sequence[str]],
    most: int = _MOST_ROWS,
) -> list[charts.Row]:
    """Return a row for each value of a column, with a mark for each value of another.

    Args:
        values: The estimates.
        rows: The column of the rows, and what each value is called.
        marks: The column of the marks, and its values in the order of the series.
        most: The number of rows above which only the highest and the lowest remain.
    """
    (column, names), (series_column, series) = rows, marks
    drawn = []
    for (value,), own in views.group_rows(values, [column]).items():
        own.sort(key=lambda row: series.index(row[series_column]))
        points = tuple(make_mark(row, series.index(row[series_column])) for row in own)
        drawn.append(charts.Row(names[value], points))
    if len(drawn) <= most:
        return drawn
    half = most // 2
    drawn.sort(key=lambda row: -max(mark.interval.value for mark in row.marks))
    lowest = [charts.Row(f"The {half} lowest"), *drawn[-half:]]
    return [charts.Row(f"The {half} highest"), *drawn[:half], *lowest]


def _join(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


# ---- models ----

_BIASES: Mapping[str, tuple[str, ...]] = {
    "popularity": views.POPULARITY,
    "stereotypes": ("REC-ST", "HIT_BAD", "MRR_BAD"),
    "prices": ("price_percentage", "mean_attribute"),
    "exposure": ("AWRF", "EE-L", "EXP", "provider_gap"),
}
"""The metrics of each bias that gets a plot beside accuracy, by preference."""

_MOST_METRICS = 6  # of re-ranked models that have a plot; the tables have the others


def draw_scatters(run: RunTables, dataset: str, name_file: NameFile) -> Iterator[Plot]:
    """Yield accuracy against each bias that the run has a metric of."""
    metrics = [each for each in collect_definitions(run).values() if "gap" not in each.parameters]
    x = views.select_accuracy_metric(metrics)
    for bias, names in _BIASES.items():
        directed = [each for each in metrics if each.direction != "none" or bias == "popularity"]
        y = views.select_first(directed, names)
        if x is not None and y is not None:
            yield from _draw_scatter(run, dataset, (x, y), name_file(f"accuracy-{bias}"))


def _draw_scatter(
    run: RunTables, dataset: str, metrics: tuple[Definition, Definition], name: str
) -> Iterator[Plot]:
    """Yield two metrics of each model that has both; the second may be of a group or target."""
    x, y = metrics
    across = {row["model"]: row for row in list_whole_rows(run, x, dataset)}
    rows = list_whole_rows(run, y, dataset) or list_rows(run, y, dataset)
    part = [rows[0]["group"], rows[0]["target"]] if rows else []
    up = {row["model"]: row for row in rows if [row["group"], row["target"]] == part}
    baselines, dots = views.list_baselines(run), []
    for series, model in enumerate(views.list_models(run)):
        if model in across and model in up:
            ends = charts.Interval.of_row(across[model]), charts.Interval.of_row(up[model])
            title = f"{model}: {ends[1].describe(6)} against {ends[0].describe(6)}"
            kind = "open" if model in baselines else ""
            dots.append(charts.Dot(*ends, model, title, series, kind=kind))
    if not dots:
        return
    names = views.name_metric(run, x), _join(views.name_metric(run, y), *part)
    sides = [dot.x for dot in dots], [dot.y for dot in dots]
    zero = {0.0: "zero"} if y.direction == "zero" else {}
    yield charts.draw_points(
        dots,
        charts.Axis(names[0], describe_direction(x)),
        charts.Axis(names[1], describe_direction(y), lines=zero),
        330.0 + 12 * max(0, len(dots) - 8),
        name=name,
        title=f"{names[1]} against {names[0]}",
        caption=_join(
            "Each point is a model.",
            charts.describe_intervals([*sides[0], *sides[1]]),
            "The dotted line is 0: no bias." * bool(zero),
            "Hollow points are baselines." * any(dot.kind for dot in dots),
        ),
    )


def draw_tradeoff_curves(run: RunTables, dataset: str, name_file: NameFile) -> Iterator[Plot]:
    """Yield a plot for each re-ranked model and metric of bias, of the first metrics."""
    plots: dict[str, dict[tuple[str, str], list[Estimate]]] = defaultdict(dict)
    for row in views.select_tradeoffs(run):
        ends = (row["accuracy_after"], row["bias_after"], row["bias_before"])
        if row["dataset"] == dataset and all(map(svg.fits_axis, ends)):
            plots[row["baseline"]].setdefault((row["bias"], row["target"]), []).append(row)
    for baseline, metrics in plots.items():
        for (bias, _), rows in [*metrics.items()][:_MOST_METRICS]:
            yield _draw_tradeoffs(run, rows, name_file(f"tradeoff-{baseline}-{bias}"))


def _draw_tradeoffs(run: RunTables, rows: Sequence[Estimate], name: str) -> Plot:
    """Return a line from the model to the versions of each re-ranker, by their setting."""
    first, definitions = rows[0], collect_definitions(run)
    before, plain = first["accuracy_before"], first["baseline"]
    points = {plain: [(first["bias_before"], charts.Interval(before))]}
    texts = {plain: [f"{plain}: {before:.4f}, {first['bias_before']:.4f}"]}
    for row in sorted(rows, key=lambda row: max(row["strength"], 0.0)):
        ends = before - row["accuracy_lost_high"], before - row["accuracy_lost_low"]
        point = row["bias_after"], charts.Interval(row["accuracy_after"], *ends)
        text = f"{row['model']}: {row['accuracy_after']:.4f}, {row['bias_after']:.4f}"
        reranker = views.name_reranker(row)
        points.setdefault(reranker, [*points[plain]]).append(point)
        texts.setdefault(reranker, [*texts[plain]]).append(text)
    accuracy, bias = (
        views.name_metric(run, definitions[title])
        if title in definitions
        else wording.make_heading(title)
        for title in (first["accuracy"], first["bias"])
    )
    metric = definitions.get(first["bias"])
    bias += f" of {first['target']}" if first["target"] else ""
    return charts.draw_lines(
        {series: charts.Line(points[series], texts[series], series) for series in points},
        charts.Axis(bias, describe_direction(metric) if metric else ""),
        charts.Axis(accuracy, "higher is better"),
        name=name,
        title=f"{accuracy} against {bias} of {plain}, re-ranked",
        caption=(
            f"Each line leads from {plain} to its versions by a re-ranker, in the order of their "
            "setting. Vertical lines are 95% intervals of the difference in accuracy."
        ),
    )


# ---- groups of queries, and checks ----

_MOST_MODELS, _MOST_SIZES = 8, 4
_COMPARED = ("identity_effect", "list_overlap", "mean_attribute")  # by group without ``by``
_LIMIT = re.compile(r"(?:at (?:least|most)|between) (\S+)(?: and (\S+))?")
_VERDICTS = {"fail": "✗ fail", "undecided": "? undecided", "pass": "✓ pass"}


def draw_group_means(run: RunTables, dataset: str, name_file: NameFile) -> Iterator[Plot]:
    """Yield a plot for each metric with values of groups of queries, and each target."""
    for metric in collect_definitions(run).values():
        if metric.by or metric.name in _COMPARED:
            rows = [row for row in list_rows(run, metric, dataset) if row["group"]]
            for target in list_distinct(rows, "target"):
                name = name_file(f"groups-{metric.title}-{target}")
                yield draw_groups(run, list_group_rows(run, metric, dataset, target), name=name)


def draw_groups(
    run: RunTables,
    values: Sequence[Estimate],
    *,
    name: str,
    checks: Sequence[Check] = (),
    most: int = _MOST_ROWS,
) -> Plot:
    """Return the value of each group by each model, with significant gaps shaded.

    Models are rows and groups marks; groups are rows where there are more than 8.

    Args:
        run: The run.
        values: Rows of ``list_group_rows``; the models are drawn in their order.
        name: The name of the file.
        checks: The checks of the metric or of its gap.
        most: The number of groups above which only the highest and the lowest are drawn.
    """
    dataset, target = values[0]["dataset"], values[0]["target"]
    metric = collect_definitions(run)[views.get_title(values[0])]
    everything = list_group_rows(run, metric, dataset, target)
    groups, drawn = list_distinct(everything, "group"), list_distinct(values, "model")
    drawn = drawn[:_MOST_MODELS]
    tests = list_group_tests(run, metric, dataset)
    label = wording.get_label_name(groups)
    names = _name_groups(values, groups)
    if len(groups) > svg.COLOURS:
        shown = [row for row in values if row["model"] in drawn]
        rows, series = make_rows(shown, ("group", names), ("model", drawn), most), drawn
    else:
        compared = [row for each in tests for row in each.rows]
        own = {model: [row for row in values if row["model"] == model] for model in drawn}
        places = wording.count_decimals(row["value"] for row in everything)
        rows = [_make_model_row(own[model], compared, groups, checks, places) for model in drawn]
        series = [*names.values()]
    marks = [mark for row in rows for mark in row.marks]
    omitted = [model for model in list_distinct(everything, "model") if model not in drawn]
    checked = {check["model"] for check in checks}
    method = views.describe_methods(tests[:1]) if tests else ""
    heading = views.name_metric(run, metric, "group")
    lines, line_label = _place_limit(metric, [check for check in checks if check["group"]])
    return charts.draw_rows(
        rows,
        charts.Axis(heading, describe_direction(metric, groups=True), lines=lines),
        series=series,
        line_label=line_label,
        name=name,
        title=", ".join(filter(None, [f"{heading} by {label or 'group'}", target])),
        caption=_join(
            charts.describe_intervals([mark.interval for mark in marks]),
            f"Shaded, *: a gap is significant ({method})." * any(row.shaded for row in rows),
            "Hollow: no significant difference." * any(mark.hollow for mark in marks),
            _count_unlabelled(run, metric, everything, tests),
            f"Of {len(groups)} groups only the ends are drawn." * (len(groups) > most),
            "If all n values are equal, the interval allows for unseen different values."
            * any(row["std"] == 0 < row["ci_high"] - row["ci_low"] for row in values),
            "Models without ✓, ✗ or ? are not checked against this limit."
            * bool(checks and {*drawn} - checked),
            f"Not drawn: {wording.count_names(omitted)}." if omitted else "",
        ),
    )


def _count_unlabelled(
    run: RunTables,
    metric: Definition,
    values: Sequence[Estimate],
    tests: Sequence[views.Comparisons],
) -> str:
    """Return how many units are in no group, where each is in one at most; blank if none is."""
    sizes = {row["group"]: row["n"] + row["undefined"] for row in values}
    is_single = {row["fold"] for row in values} | {row["seed"] for row in values}
    asked = {queries["dataset"]: queries for queries in run.manifest.get("queries", [])}
    queries = asked.get(values[0]["dataset"])
    if queries is None or views.ALL in is_single or not tests or tests[0].test != "welch_t":
        return ""
    n = queries["asked"] - sum(sizes.values())
    return (
        f"{wording.format_count(n, queries['unit'])} without {metric.by} not drawn."
        if n > 0
        else ""
    )


def _name_groups(values: Sequence[Estimate], groups: Sequence[str]) -> dict[str, str]:
    """Return the groups as a legend names them: without a shared label, a few with their n."""
    label = wording.get_label_name(groups)
    names = {group: wording.get_label_value(group) if label else group for group in groups}
    sizes = {(row["group"], f"{row['n']:,.0f}") for row in values}
    if len(sizes) == len(groups) <= _MOST_SIZES:
        return {group: f"{names[group]}, n {dict(sizes)[group]}" for group in groups}
    return names


def _make_model_row(
    values: Sequence[Estimate],
    tests: Sequence[views.Row],
    groups: Sequence[str],
    checks: Sequence[Check],
    places: int,
) -> charts.Row:
    """Return the groups of a model; hollow if a test of the group is not significant."""
    model = values[0]["model"]
    tests = [row for row in tests if row["model"] == model]
    hollow = {row["group"] for row in tests if not views.is_significant(row)}
    marks = tuple(
        make_mark(row, groups.index(row["group"]), hollow=row["group"] in hollow)
        for row in sorted(values, key=lambda row: groups.index(row["group"]))
    )
    pairs = [row for row in tests if {row["a"], row["b"]} <= {row["group"] for row in values}]
    shaded = any(map(views.is_significant, pairs))
    own = [check for check in checks if check["model"] == model]
    if any(check["group"] for check in checks):
        return charts.Row(model, marks, _mark_verdict(own), shaded)
    numbers = [row["value"] for row in values]
    size = max(numbers) - min(numbers)
    gap = f"gap {wording.format_value(size, places)}" if pairs or own else ""
    note = _join(gap, "*" if shaded else "", _mark_verdict(own)[:1])
    return charts.Row(model, marks, note, shaded)


def _mark_verdict(checks: Sequence[Check]) -> str:
    """Return the worst verdict of checks, blank without any."""
    verdicts = {"fail" if check["failed"] else check["verdict"] for check in checks}
    return next((mark for verdict, mark in _VERDICTS.items() if verdict in verdicts), "")


def _place_limit(metric: Definition, checks: Sequence[Check]) -> tuple[dict[float, str], str]:
    """Return the lines of a chart, and their label: limits without a baseline, or no bias."""
    match = _LIMIT.fullmatch(str(checks[0]["limit"])) if checks else None
    if match is None or checks[0]["baseline"]:
        return ({0.0: "neutral"} if metric.direction == "zero" else {}), ""
    limits = [text for text in match.groups() if text is not None]
    label = f"limit{'s' * (len(limits) > 1)} {' and '.join(limits)}"
    return dict.fromkeys(map(float, limits), "neutral"), label.replace("-", "\N{MINUS SIGN}")


def draw_values(
    run: RunTables, values: Sequence[Estimate], *, name: str, checks: Sequence[Check] = ()
) -> Plot:
    """Return the values of the models on a metric, the best first, with the limit of checks."""
    metric = collect_definitions(run)[views.get_title(values[0])]
    ranked = sorted(
        values, key=lambda row: (to_loss(row["value"], metric.direction), row["value"])
    )
    baselines, heading = views.list_baselines(run), views.name_metric(run, metric)
    marks = [make_mark(row, 0, hollow=row["model"] in baselines) for row in ranked]
    notes = [
        _mark_verdict([check for check in checks if check["model"] == row["model"]])
        or "not checked" * bool(checks)
        for row in ranked
    ]
    lines, label = _place_limit(metric, checks)
    part = [values[0][name] for name in ("group", "target")]
    return charts.draw_rows(
        [
            charts.Row(row["model"], (mark,), note)
            for row, mark, note in zip(ranked, marks, notes, strict=True)
        ],
        charts.Axis(heading, describe_direction(metric, groups=True), lines=lines),
        line_label=label,
        name=name,
        title=", ".join(filter(None, [f"{heading} of each model", *part])),
        caption=_join(
            charts.describe_intervals([mark.interval for mark in marks]),
            "Hollow: baselines." * any(mark.hollow for mark in marks),
        ),
    )


# ---- curves over an assumption ----

_ASSUMING = ("position_bias", "examination_sensitivity", "propensity_sensitivity")
_TURNS = "turns"  # the target of the value at which the sign turns
_ASSUMED: Mapping[str, tuple[str, str]] = {
    "position": ("Position", "Examination of each position, relative to the first."),
    "exponent": ("Exponent of the position bias", "Position p is examined 1 / p^exponent times."),
    "factor": (
        "Factor by which propensities may be wrong",
        "The worst gap if each propensity is wrong by at most the factor.",
    ),
}
"""The title of the axis, and what a point is, by the beginning of the targets of a metric."""


@dataclass(frozen=True)
class Curve:
    """The values of a metric of one model over an assumption, and where its sign turns.

    ``axis`` is what is assumed; the points are its values with the rows of the estimates.
    """

    metric: Definition
    model: str
    axis: str
    points: tuple[tuple[float, Estimate], ...]
    turn: float

    def describe(self) -> str:
        """Return a sentence that says where the sign turns; blank for the bias by position."""
        if self.axis == "position":
            return ""
        first, sides = self.points[0][1], wording.to_line(self._name_sides())
        if not (first["ci_low"] > 0 or first["ci_high"] < 0):
            return f"{sides} is not shown to differ from 0."
        sign = "positive" if first["value"] > 0 else "negative"
        what, end = "the exponent of the position bias is", 5
        if self.axis == "factor":
            what, end = "propensities are wrong by a factor of", 100
        if math.isnan(self.turn):
            return f"{sides} stays {sign} even if {what} {end}."
        return f"{sides} is {sign} unless {what} {wording.format_value(self.turn, 2)} or more."

    def _name_sides(self) -> str:
        groups, model = self.metric.parameters.get("groups"), self.model
        if not groups:
            other = self.metric.parameters.get("against") or "what was shown"
            return f"The gap of {model} to {other}"
        count = self.metric.parameters.get("count")
        of = f" in {count}" if count else ""
        return f"The gap of {groups['a']} to {groups['b']}{of} with {model}"


def collect_curves(run: RunTables, dataset: str) -> Iterator[Curve]:
    """Yield the curves of a dataset that have a value."""
    for metric in find_metrics(run, *_ASSUMING):
        curves: dict[str, dict[str, Estimate]] = defaultdict(dict)
        for row in views.list_headline(run).get((metric.title, dataset), ()):
            if row["target"] and not math.isnan(row["value"]):
                place = ", ".join(filter(None, [row["model"], row["group"]]))
                curves[place][row["target"]] = row
        for model, rows in curves.items():
            turn = rows.pop(_TURNS, {}).get("value", math.nan)
            points = tuple((float(x.partition("=")[2]), row) for x, row in rows.items())
            if points:
                yield Curve(metric, model, next(iter(rows)).partition("=")[0], points, turn)


def draw_assumptions(run: RunTables, dataset: str, name_file: NameFile) -> Iterator[Plot]:
    """Yield a plot for each metric over an assumption, with a curve for each model."""
    plots: dict[str, list[Curve]] = defaultdict(list)
    for curve in collect_curves(run, dataset):
        plots[curve.metric.title].append(curve)
    for title, curves in plots.items():
        metric, (axis, meaning) = curves[0].metric, _ASSUMED[curves[0].axis]
        lines = dict[str, charts.Line]()
        for curve in curves:
            points = [(x, charts.Interval.of_row(row)) for x, row in curve.points]
            points = [(x, y) for x, y in points if svg.fits_axis(y.value)]
            texts = [f"{curve.model}, {axis} {x:g}: {y.describe(4)}" for x, y in points]
            lines |= {curve.model: charts.Line(points, texts, curve.model)} if points else {}
        if not lines:
            continue
        intervals = [y for line in lines.values() for _, y in line.points]
        sentences = [curve.describe() for curve in curves]
        yield charts.draw_lines(
            lines,
            charts.Axis(axis),
            charts.Axis(metric.heading, describe_direction(metric), lines={0.0: "zero"}),
            name=name_file(title),
            title=f"{metric.heading} by {axis[0].lower()}{axis[1:]}",
            caption=_join(meaning, *sentences, charts.describe_intervals(intervals)),
        )
