"""The first picture of a report: the one chart that answers what the verdict is about."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from recbias.core.errors import MissingEvidence
from recbias.core.measures import to_loss
from recbias.reports import plots as rows
from recbias.reports import svg, views
from recbias.reports.plots_models import (
    OTHER_BIASES,
    POPULARITY_BIAS,
    draw_scatter,
    draw_tradeoff_curves,
)
from recbias.reports.plots_prompts import Forest, Mark, Panel, Row, draw_forest
from recbias.reports.run import RunTables, to_records
from recbias.reports.svg import Interval, Plot
from recbias.reports.views import Comparisons, Definition, collect_definitions, is_significant
from recbias.reports.wording import (
    Safe,
    count_decimals,
    format_value,
    join,
    to_line,
)

_MOST_MODELS, _MOST_GROUPS = 8, 12
_MOST_LABELS = 6  # published values that are named

_LIMIT = re.compile(r"(?:at (?:least|most)|between) (\S+)(?: and (\S+))?")
_LOG_RATIO = 30.0


def draw_first_picture(
    run: RunTables, subject: str, *, name: str, reference: pd.DataFrame | None = None
) -> Plot | None:
    """Return the chart that answers what a spec asks; None if there is nothing to draw.

    Groups with their gaps for checks of groups and for groups, values with their limits for other
    checks, measured against published values for a reference, versions before and after for
    mitigation, and else accuracy against bias.

    Args:
        run: The run.
        subject: The subject of its verdict.
        name: The name of the plot's file.
        reference: The comparison with published tables, for the subject ``reference``.
    """
    if subject == "reference" and reference is not None and not reference.empty:
        return _draw_reference(run, reference, name)
    if subject == "checks" and (plot := _draw_check(run, name)):
        return plot
    if subject == "groups" and (plot := _draw_groups(run, name)):
        return plot
    return _draw_models(run, name)


def _choose_dataset(run: RunTables) -> str:
    return rows.list_plotted_datasets(run)[0]


# checks


def _draw_check(run: RunTables, name: str) -> Plot | None:
    """Return the first check that failed, else one of groups, beside its limit."""
    titles = {title: metric for title, metric in collect_definitions(run).items()}
    checks = [
        (check, metric)
        for check in run.manifest.get("checks", [])
        if (metric := titles.get(views.format_title(check["metric"], check["k"])))
        and check["value"] is not None
    ]
    checks.sort(key=lambda each: (not each[0]["failed"], each[0]["verdict"] == "pass"))
    drawn = [(check, metric) for check, metric in checks if _find_grouped(run, check, metric)]
    chosen = drawn or checks
    if not chosen:
        return None
    check, metric = chosen[0]
    same = [
        each
        for each, other in checks
        if other.title == metric.title and each["dataset"] == check["dataset"]
    ]
    grouped = _find_grouped(run, check, metric)
    if grouped is not None:
        return _draw_group_values(run, grouped, check["dataset"], name, same)
    return _draw_values(run, metric, check["dataset"], name, same)


def _find_grouped(
    run: RunTables, check: Mapping[str, Any], metric: Definition
) -> Definition | None:
    """Return the metric that has the values of the groups of a check, if it has groups."""
    candidates = [metric]
    if metric.gap:
        candidates = [
            other
            for other in collect_definitions(run).values()
            if not other.gap and other.heading == metric.groups_heading
        ]
    has_groups = (each for each in candidates if _list_group_rows(run, each, check["dataset"]))
    return next(has_groups, None)


def _read_limits(check: Mapping[str, Any]) -> list[float]:
    """Return the limits of a check that is not relative to a baseline."""
    match = _LIMIT.fullmatch(str(check["line"]))
    return (
        []
        if check["baseline"] or match is None
        else [float(each) for each in match.groups() if each]
    )


# groups


def _draw_groups(run: RunTables, name: str) -> Plot | None:
    """Return the groups of the first metric with a significant gap, else of the first one."""
    dataset = _choose_dataset(run)
    metrics = [
        metric
        for metric in collect_definitions(run).values()
        if len({row["group"] for row in _list_group_rows(run, metric, dataset)}) > 1
    ]
    if not metrics:
        return None
    found = (
        metric for metric in metrics if any(map(is_significant, _list_tests(run, metric, dataset)))
    )
    return _draw_group_values(run, next(found, metrics[0]), dataset, name)


def _list_group_rows(run: RunTables, metric: Definition, dataset: str) -> list[rows.Row]:
    return [
        row for row in rows.list_rows(run, metric, dataset) if row["group"] and not row["target"]
    ]


def _list_tests(run: RunTables, metric: Definition, dataset: str) -> list[views.Row]:
    """Return the tests within a model on a metric, by the first test of the run."""
    found = [
        each for each in views.collect_comparisons(run) if _tests_groups(each, metric, dataset)
    ]
    return [row for each in found if each.test == found[0].test for row in each.rows]


def _tests_groups(comparisons: Comparisons, metric: Definition, dataset: str) -> bool:
    place = comparisons.title, comparisons.place[0]
    return not comparisons.compares_models and place == (metric.title, dataset)


def _draw_group_values(
    run: RunTables,
    metric: Definition,
    dataset: str,
    name: str,
    checks: Sequence[Mapping[str, Any]] = (),
) -> Plot:
    """Return a row for each model, with a mark for each group; significant gaps are shaded."""
    values = _list_group_rows(run, metric, dataset)
    groups = rows.list_distinct(values, "group")
    models = _choose_models(run, (row["model"] for row in values), checks)
    tests = _list_tests(run, metric, dataset)
    lines, spread = [], len(groups) > _MOST_GROUPS
    places = count_decimals([row["value"] for row in values])
    for model in models[:_MOST_MODELS]:
        own = [row for row in values if row["model"] == model]
        own.sort(key=lambda row: groups.index(row["group"]))
        if spread:  # only the ends
            own = [min(own, key=_get_value), max(own, key=_get_value)]
        line = _make_group_row(model, own, tests, [] if spread else groups, places)
        lines.append(replace(line, note=_mark_checks(line.note, model, checks)))
    unchecked = {line.label for line in lines} - {check["model"] for check in checks}
    of_gap = bool(checks) and not checks[0]["group"]
    limits = _read_limits(checks[0]) if checks and not of_gap else []
    label, heading = rows.get_label_name(groups), views.name_metric(run, metric, "group")
    value_names = list(map(rows.get_label_value if label else str, groups))
    significant = any(line.shaded for line in lines)
    hollow = any(mark.hollow for line in lines for mark in line.marks)
    sentences = [
        "Lines are 95% intervals.",
        f"Shaded, *: the gap is significant ({_describe_tests(run, metric, dataset)})."
        if significant
        else "",
        "Hollow: not significantly different from the comparison." if hollow else "",
        f"Limit of the gap: {checks[0]['line']}." if of_gap else "",
        "Models without a mark are not checked." if checks and unchecked else "",
        _describe_omitted(run, models, values),
        f"Of {len(groups)} groups only the lowest and the highest are drawn." if spread else "",
    ]
    return draw_forest(
        Forest(
            panels=(Panel("", tuple(lines)),),
            series=("lowest group", "highest group") if spread else tuple(value_names),
            axis=heading,
            note=rows.describe_direction(metric),
            neutral=_choose_neutral(metric, limits),
            neutral_label=_describe_limits(limits),
        ),
        name=name,
        title=f"{heading} by {label or 'group'}",
        caption=" ".join(filter(None, sentences)),
    )


def _get_value(row: rows.Row) -> float:
    return float(row["value"])


def _make_group_row(
    model: str,
    own: Sequence[rows.Row],
    tests: Sequence[views.Row],
    groups: Sequence[str],
    places: int,
) -> Row:
    tests = [row for row in tests if row["model"] == model]
    significant = {row["group"] for row in tests if row["group"] and is_significant(row)}
    tested = {row["group"] for row in tests if row["group"]}
    marks = []
    for at, row in enumerate(own):
        interval = Interval.of_row(row)
        title = f"{model}, {row['group']}: {interval.describe(places)}, n {row['n']:,.0f}"
        hollow = row["group"] in tested - significant
        marks.append(Mark(interval, groups.index(row["group"]) if groups else at, title, hollow))
    sides = {row["group"] for row in own}
    pairs = [row for row in tests if {row["a"], row["b"]} <= sides]
    pairs.sort(key=lambda row: (is_significant(row), abs(row["difference"])))
    if not pairs:
        return Row(model, tuple(marks))
    widest = max(row["value"] for row in own) - min(row["value"] for row in own)
    shaded = is_significant(pairs[-1])
    note = f"gap {format_value(widest, min(places, 3))}{' *' if shaded else ''}"
    return Row(model, tuple(marks), note, shaded)


_VERDICTS = {"fail": "✗ fail", "undecided": "? undecided", "pass": "✓ pass"}


def _mark_checks(note: str, model: str, checks: Sequence[Mapping[str, Any]]) -> str:
    """Return the worst verdict on a model, behind the gap if the checks are of gaps."""
    own = [check for check in checks if check["model"] == model]
    if not own:
        return "" if checks and checks[0]["group"] else note
    verdicts = {"fail" if check["failed"] else check["verdict"] for check in own}
    worst = next(mark for verdict, mark in _VERDICTS.items() if verdict in verdicts)
    return f"{note} {worst[0]}" if note and not own[0]["group"] else worst


def _describe_tests(run: RunTables, metric: Definition, dataset: str) -> str:
    found = [
        each for each in views.collect_comparisons(run) if _tests_groups(each, metric, dataset)
    ]
    return views.describe_methods(found[:1])


def _choose_models(
    run: RunTables, present: Iterable[str], checks: Sequence[Mapping[str, Any]] = ()
) -> list[str]:
    """Return the models of the checks, then those that are no baselines; all if there is none."""
    models = rows.sort_models(run, present)
    checked = [model for model in models if any(check["model"] == model for check in checks)]
    hidden = {*views.list_baselines(run), *checked}
    return [*checked, *(model for model in models if model not in hidden)] or models


def _describe_omitted(run: RunTables, models: Sequence[str], values: Sequence[rows.Row]) -> str:
    drawn = set(models[:_MOST_MODELS])
    others = [model for model in rows.list_distinct(values, "model") if model not in drawn]
    return f"Not drawn: {rows.join_names(others)}." if others else ""


def _choose_neutral(metric: Definition, limits: Sequence[float]) -> float:
    if limits:
        return limits[0]
    return 0.0 if metric.direction == "zero" else math.nan


def _describe_limits(limits: Sequence[float]) -> str:
    return f"limit {limits[0]:g}" if limits else ""


# values of models


def _draw_values(
    run: RunTables,
    metric: Definition,
    dataset: str,
    name: str,
    checks: Sequence[Mapping[str, Any]] = (),
) -> Plot | None:
    """Return the value of each model on a metric, the best first, with the limit of checks."""
    values = [
        row for row in rows.list_rows(run, metric, dataset) if not (row["group"] or row["target"])
    ]
    if not values:
        return None
    values.sort(key=lambda row: to_loss(row["value"], metric.direction))
    baselines, heading = views.list_baselines(run), views.name_metric(run, metric)
    limits = _read_limits(checks[0]) if checks else []
    lines = [
        Row(
            row["model"],
            (
                Mark(
                    Interval.of_row(row),
                    0,
                    f"{row['model']}: {Interval.of_row(row).describe(4)}",
                    hollow=row["model"] in baselines,
                ),
            ),
            _mark_checks("", row["model"], checks),
        )
        for row in values
    ]
    hollow = [row["model"] for row in values if row["model"] in baselines]
    sentences = [
        "Lines are 95% intervals.",
        f"Hollow: {'baselines' if len(hollow) > 1 else 'a baseline'}." if hollow else "",
    ]
    return draw_forest(
        Forest(
            panels=(Panel("", tuple(lines)),),
            series=("",),
            axis=heading,
            note=rows.describe_direction(metric),
            neutral=_choose_neutral(metric, limits),
            neutral_label=_describe_limits(limits),
        ),
        name=name,
        title=f"{heading} of each model",
        caption=" ".join(filter(None, sentences)),
    )


def _draw_models(run: RunTables, name: str) -> Plot | None:
    """Return re-ranked versions, else accuracy against a bias, else the first metric."""
    dataset = _choose_dataset(run)
    changed = next(draw_tradeoff_curves(run, dataset, lambda _: name), None)
    if changed is not None:
        return changed
    for family in (POPULARITY_BIAS, *OTHER_BIASES):
        try:
            return draw_scatter(run, dataset, name=name, family=family)
        except MissingEvidence:
            continue
    metrics = collect_definitions(run).values()
    accuracy = views.select_accuracy_metric(metrics)
    drawn = (_draw_values(run, each, dataset, name) for each in (accuracy, *metrics) if each)
    return next(filter(None, drawn), None)


# published tables


def _draw_reference(run: RunTables, reference: pd.DataFrame, name: str) -> Plot:
    """Return measured against published values, with the diagonal and the tolerance."""
    points = [
        row
        for row in to_records(reference)
        if svg.fits_axis(row["published"]) and svg.fits_axis(row["measured"])
    ]
    tolerance = float((run.spec.get("report") or {}).get("tolerance", 0.01))
    ends = [row[side] for row in points for side in ("published", "measured")]
    is_log = min(ends) > 0 and max(ends) / min(ends) >= _LOG_RATIO
    span = (min(ends) / 1.2, max(ends) * 1.2) if is_log else svg.pad_range(ends)
    axes = svg.make_axes(span, span, 380, log_x=is_log, log_y=is_log)
    beyond = sorted((row for row in points if not row["within"]), key=_measure_distance)[::-1]
    within = [row for row in points if row["within"]]
    places = count_decimals(ends)
    labels = [f"{row['system']}, {row['metric']}" for row in beyond[:_MOST_LABELS]]
    marks = [
        svg.draw_marker(
            axes.at(row["published"], row["measured"]),
            0 if row["within"] else svg.DIAMOND,
            "dot c0" if row["within"] else "dot c1",
            radius=4.5,
            title=(
                f"{row['system']}, {row['metric']}: published {format_value(row['published'], places)}, "
                f"measured {format_value(row['measured'], places)}"
            ),
        )
        for row in (*within, *beyond)
    ]
    texts = svg.draw_labels(
        [axes.at(row["published"], row["measured"]) for row in beyond[:_MOST_LABELS]],
        [svg.shorten(label, 26) for label in labels],
        axes.frame,
        ["halo c1"] * len(labels),
        obstacles=[axes.at(row["published"], row["measured"]) for row in points],
    )
    ticks = svg.choose_log_ticks(*span) if is_log else svg.choose_ticks(*span)
    worst = beyond[:1]
    sentences = [
        f"Each point is a value of the published table; on the diagonal both agree, and in the "
        f"band they differ by at most {tolerance:g}.",
        *(
            f"Farthest: {to_line(row['system'])}, {row['metric']}, by {format_value(row['difference'], places)}."
            for row in worst
        ),
    ]
    return svg.draw_chart(
        axes,
        _draw_band(axes, tolerance),
        *marks,
        *texts,
        _draw_key(axes, len(within), len(beyond), tolerance),
        x_title=("Published", ""),
        y_title=("Measured", ""),
        drawn=axes.draw(ticks, ticks),
        name=name,
        title="Measured against published values",
        caption=" ".join(sentences),
    )


def _measure_distance(row: Mapping[str, Any]) -> float:
    return abs(float(row["difference"]))


def _draw_band(axes: svg.Axes, tolerance: float) -> Safe:
    """Return the diagonal and the band of the tolerance, within the axes."""
    low, high = axes.x.low, axes.x.high
    steps = [
        low * (high / low) ** (at / 40) if axes.x.log else low + (high - low) * at / 40
        for at in range(41)
    ]

    def locate(x: float, side: float) -> str:
        across, up = axes.at(x, min(max(x + side * tolerance, low), high))
        return f"{across:.1f},{up:.1f}"

    corners = [
        *(locate(x, 1) for x in steps),
        *(locate(x, -1) for x in reversed(steps)),
    ]
    return join(
        svg.draw_path(f"M{' '.join(corners)}Z", "band c0"),
        svg.draw_line(axes.at(low, low), axes.at(high, high), "zero"),
    )


def _draw_key(axes: svg.Axes, n_within: int, n_beyond: int, tolerance: float) -> Safe:
    x, y = axes.x.start + 12, axes.y.end + 14
    return join(
        svg.draw_marker((x, y - 4), 0, "dot c0", radius=4.5),
        svg.draw_text((x + 11, y), f"{n_within:,} within {tolerance:g}", "halo"),
        svg.draw_marker((x, y + 15), svg.DIAMOND, "dot c1", radius=4.5),
        svg.draw_text((x + 11, y + 19), f"{n_beyond:,} beyond", "halo"),
    )
