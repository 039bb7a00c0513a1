"""The first picture of a report: the one chart that answers what the verdict is about."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pandas as pd

from recbias.core.errors import MissingEvidence
from recbias.core.measures import SERVED
from recbias.reports import plots as rows
from recbias.reports import svg, views
from recbias.reports.plots_models import (
    OTHER_BIASES,
    POPULARITY_BIAS,
    draw_scatter,
    draw_tradeoff_curves,
)
from recbias.reports.plots_prompts import (
    Check,
    Forest,
    Mark,
    Panel,
    Row,
    draw_forest,
    draw_groups,
    draw_values,
    list_group_rows,
    list_group_tests,
)
from recbias.reports.run import RunTables, to_records
from recbias.reports.svg import Interval, Plot
from recbias.reports.views import Definition, collect_definitions
from recbias.reports.wording import Safe, count_decimals, format_value, to_line

_MOST_GROUPS = 12
_MOST_LABELS = 6  # published values that are named
_LOG_RATIO = 30.0  # the ratio of the ends from which the axes are logarithmic


def draw_first_picture(
    run: RunTables, subject: str, *, name: str, reference: pd.DataFrame | None = None
) -> Plot | None:
    """Return the chart that answers what a spec asks; None if there is nothing to draw.

    It shows the estimate of a claim, groups with their gaps for checks of groups and for groups,
    values with their limit for other checks, measured against published values for a reference,
    versions before and after re-ranking, and else accuracy against bias.

    Args:
        run: The run.
        subject: The subject of its verdict.
        name: The name of the plot's file.
        reference: The comparison with published tables, for the subject ``reference``.
    """
    return next(_draw_pictures(run, subject, name, reference), None)


def _draw_pictures(
    run: RunTables, subject: str, name: str, reference: pd.DataFrame | None
) -> Iterator[Plot]:
    """Yield what can be drawn, the best answer first."""
    if subject == "reference" and reference is not None and not reference.empty:
        yield _draw_reference(run, reference, name)
    if subject == "checks":
        yield from _draw_check(run, name)
    if subject == "claim" and run.manifest["claim"].get("estimate") is not None:
        yield _draw_claim(run, name)
    for dataset in rows.list_plotted_datasets(run)[:1]:
        if subject in {"groups", "claim"}:
            yield from _draw_gaps(run, dataset, name)
        yield from draw_tradeoff_curves(run, dataset, lambda _: name)
        yield from _draw_models(run, dataset, name)


def _draw_claim(run: RunTables, name: str) -> Plot:
    """Return the estimate of the claim with its interval, beside the side that it claims."""
    claim, spec = run.manifest["claim"], run.spec["claim"]
    interval = Interval(*(claim[key] for key in ("estimate", "ci_low", "ci_high")))
    other = spec.get("against") or spec.get("than") or "0"
    label = f"{spec['model']} \N{MINUS SIGN} {other}" if other != "0" else spec["model"]
    mark = Mark(interval, 0 if claim["verdict"] == "holds" else 1, interval.describe(4))
    forest = Forest(
        panels=(Panel("", (Row(label, (mark,)),)),),
        series=("",),
        axis="difference of gaps" if spec.get("by") and spec.get("against") else "difference",
        note=f"claimed: {'above' if spec['direction'] == 'higher' else 'below'} 0",
        neutral=0.0,
    )
    caption = " ".join([f"{to_line(claim['claim'])}.", *svg.describe_lines([interval])])
    return draw_forest(forest, name=name, title="The estimate of the claim", caption=caption)


def _draw_models(run: RunTables, dataset: str, name: str) -> Iterator[Plot]:
    """Yield accuracy against a bias, and the values of the metrics."""
    for family in (POPULARITY_BIAS, *OTHER_BIASES):
        with contextlib.suppress(MissingEvidence):
            yield draw_scatter(run, dataset, name=name, family=family)
    metrics = collect_definitions(run).values()
    for metric in filter(None, (views.select_accuracy_metric(metrics), *metrics)):
        with contextlib.suppress(MissingEvidence):
            yield draw_values(run, metric, dataset, name=name)


def _draw_check(run: RunTables, name: str) -> Iterator[Plot]:
    """Yield the checks of a metric that failed, else those undecided; of groups if there are."""
    definitions = collect_definitions(run)
    checks = [
        (check, metric, _find_grouped(run, check, metric))
        for check in run.manifest.get("checks", [])
        if (metric := definitions.get(views.format_title(check["metric"], check["k"])))
        and check["value"] is not None
    ]
    checks.sort(
        key=lambda each: (not each[0]["failed"], each[0]["verdict"] == "pass", each[2] is None)
    )
    for check, metric, grouped in checks[:1]:
        same = [
            each
            for each, other, _ in checks
            if (other.title, each["dataset"]) == (metric.title, check["dataset"])
        ]
        if grouped is None:
            yield draw_values(run, metric, check["dataset"], name=name, checks=same)
        else:
            yield _draw_groups(run, grouped, check["dataset"], name, same)


def _find_grouped(run: RunTables, check: Check, metric: Definition) -> Definition | None:
    """Return the metric that has the values of the groups of a check, if it has groups."""
    named = [
        other
        for other in collect_definitions(run).values()
        if other is metric
        or (metric.gap and not other.gap and other.heading == metric.groups_heading)
    ]
    for each in named:
        if {row["group"] for row in list_group_rows(run, each, check["dataset"])} - {SERVED}:
            return each
    return None


def _draw_gaps(run: RunTables, dataset: str, name: str) -> Iterator[Plot]:
    """Yield the groups of the first metric with a significant test, else of the first one."""
    metrics = [
        metric
        for metric in collect_definitions(run).values()
        if len({row["group"] for row in list_group_rows(run, metric, dataset)}) > 1
    ]
    metrics.sort(
        key=lambda metric: (
            not any(each.significant for each in list_group_tests(run, metric, dataset))
        )
    )
    for metric in metrics[:1]:
        yield _draw_groups(run, metric, dataset, name)


def _draw_groups(
    run: RunTables, metric: Definition, dataset: str, name: str, checks: Sequence[Check] = ()
) -> Plot:
    """Return the groups by the models of the checks, then by those that are no baselines."""
    values = list_group_rows(run, metric, dataset)
    models = rows.sort_models(run, (row["model"] for row in values))
    checked = [model for model in models if any(check["model"] == model for check in checks)]
    hidden = {*views.list_baselines(run), *checked}
    models = [*checked, *(model for model in models if model not in hidden)] or models
    values = [row for model in models for row in values if row["model"] == model]
    return draw_groups(run, metric, values, name=name, checks=checks, most=_MOST_GROUPS)


def _draw_reference(run: RunTables, reference: pd.DataFrame, name: str) -> Plot:
    """Return the differences from the published values, with the band of the tolerance."""
    values = [
        row
        for row in to_records(reference)
        if svg.fits_axis(row["published"]) and svg.fits_axis(row["difference"])
    ]
    values.sort(key=lambda row: (not row["within"], -abs(row["difference"])))
    tolerance = float((run.spec.get("report") or {}).get("tolerance", 0.01))
    published = [row["published"] for row in values]
    low, high = min(published), max(published)
    is_log = low > 0 and high / low >= _LOG_RATIO
    x_range = (low / 1.2, high * 1.2) if is_log else svg.pad_range(published)
    ends = [*(row["difference"] for row in values), 1.5 * tolerance, -1.5 * tolerance]
    axes = svg.make_axes(x_range, svg.pad_range(ends), 330, log_x=is_log)
    centres = [axes.at(row["published"], row["difference"]) for row in values]
    places = count_decimals([*published, *(row["measured"] for row in values)])
    names = [to_line(f"{row['system']}, {row['metric']}") for row in values]
    marks = []
    for row, centre, label in zip(values, centres, names, strict=True):
        texts = [format_value(row[side], places) for side in ("published", "measured")]
        title = f"{label}: published {texts[0]}, measured {texts[1]}"
        marks.append(_draw_value(centre, title, is_within=row["within"]))
    n_within = sum(row["within"] for row in values)
    farthest = slice(n_within, n_within + _MOST_LABELS)
    labels = [svg.shorten(label, 26) for label in names[farthest]]
    left, top = axes.at(x_range[0], tolerance)
    right, bottom = axes.at(x_range[1], -tolerance)
    zero = axes.at(x_range[0], 0.0), axes.at(x_range[1], 0.0)
    return svg.draw_chart(
        axes,
        svg.draw_path(f"M{left:.1f},{top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}Z", "band c0"),
        svg.draw_line(*zero, "zero"),
        *marks,
        *svg.draw_labels(centres[farthest], labels, axes.frame, obstacles=centres),
        x_title=("Published value", ""),
        y_title=("Measured minus published", ""),
        drawn=axes.draw(svg.choose_log_ticks(*x_range) if is_log else None),
        name=name,
        title="Differences from the published table",
        caption=(
            f"Each point is a value of the published table. In the band ({n_within:,} of "
            f"{len(values):,}) the difference is at most {tolerance:g}"
            f"{'; diamonds are beyond it' * (n_within < len(values))}."
        ),
    )


def _draw_value(centre: svg.Point, title: str = "", *, is_within: bool) -> Safe:
    shape, class_ = (0, "dot c0") if is_within else (svg.DIAMOND, "dot c1")
    return svg.draw_marker(centre, shape, class_, radius=4.5, title=title)
