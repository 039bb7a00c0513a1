"""The first picture of a report: the one chart that answers what the verdict is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from recbias.core.measures import SERVED
from recbias.reports import svg, views
from recbias.reports.charts import (
    Axis,
    Dot,
    Mark,
    Row,
    Rows,
    describe_intervals,
    draw_points,
    draw_rows,
)
from recbias.reports.plots import (
    Check,
    draw_groups,
    draw_scatters,
    draw_tradeoff_curves,
    draw_values,
    list_distinct,
    list_group_rows,
    list_group_tests,
    list_plotted_datasets,
    list_rows,
)
from recbias.reports.run import RunTables, to_records
from recbias.reports.svg import Interval, Plot
from recbias.reports.views import Definition, collect_definitions
from recbias.reports.wording import count_decimals, format_value, to_line

if TYPE_CHECKING:
    import pandas as pd

_MOST_GROUPS = 12
_MOST_LABELS = 6  # published values that are named


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
    for dataset in list_plotted_datasets(run)[:1]:
        if subject in {"groups", "claim"}:
            yield from _draw_gaps(run, dataset, name)
        yield from draw_tradeoff_curves(run, dataset, lambda _: name)
        yield from draw_scatters(run, dataset, lambda _: name)
        metrics = collect_definitions(run).values()
        for metric in filter(None, (views.select_accuracy_metric(metrics), *metrics)):
            yield from _draw_values(run, metric, dataset, name)


def _draw_claim(run: RunTables, name: str) -> Plot:
    """Return the estimate of the claim with its interval, beside the side that it claims."""
    claim, spec = run.manifest["claim"], run.spec["claim"]
    interval = Interval(*(claim[key] for key in ("estimate", "ci_low", "ci_high")))
    other = spec.get("against") or spec.get("than") or "0"
    label = f"{spec['model']} \N{MINUS SIGN} {other}" if other != "0" else spec["model"]
    mark = Mark(interval, 0 if claim["verdict"] == "holds" else 1, interval.describe(4))
    chart = Rows(
        (Row(label, (mark,)),),
        axis="difference of gaps" if spec.get("by") and spec.get("against") else "difference",
        note=f"claimed: {'above' if spec['direction'] == 'higher' else 'below'} 0",
        lines=(0.0,),
    )
    caption = f"{to_line(claim['claim'])}. {describe_intervals([interval])}".strip()
    return draw_rows(chart, name=name, title="The estimate of the claim", caption=caption)


def _draw_values(
    run: RunTables, metric: Definition, dataset: str, name: str, checks: Sequence[Check] = ()
) -> Iterator[Plot]:
    rows = list_rows(run, metric, dataset)
    if rows := [row for row in rows if not (row["group"] or row["target"])]:
        yield draw_values(run, rows, name=name, checks=checks)


def _draw_check(run: RunTables, name: str) -> Iterator[Plot]:
    """Yield the checks of a metric that failed, else those undecided; of groups if there are."""
    definitions = collect_definitions(run)
    checks = [
        (check, metric, _find_grouped(run, check, metric))
        for check in run.manifest.get("checks", [])
        if (metric := definitions.get(views.get_title(check))) and check["value"] is not None
    ]
    checks.sort(
        key=lambda each: (not each[0]["failed"], each[0]["verdict"] == "pass", each[2] is None)
    )
    for check, metric, grouped in checks[:1]:
        dataset = check["dataset"]
        same = [
            each
            for each, other, _ in checks
            if (other.title, each["dataset"]) == (metric.title, dataset)
        ]
        if grouped is None:
            yield from _draw_values(run, metric, dataset, name, same)
        else:
            yield _draw_groups(run, grouped, dataset, name, same)


def _find_grouped(run: RunTables, check: Check, metric: Definition) -> Definition | None:
    """Return the metric that has the values of the groups of a check, if it has groups."""
    for each in collect_definitions(run).values():
        is_gap = metric.gap and not each.gap and each.heading == metric.groups_heading
        if each is metric or is_gap:
            rows = list_group_rows(run, each, check["dataset"])
            if {row["group"] for row in rows} - {SERVED}:
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
    models = list_distinct(values, "model")
    checked = [model for model in models if any(check["model"] == model for check in checks)]
    hidden = {*views.list_baselines(run), *checked}
    models = [*checked, *(model for model in models if model not in hidden)] or models
    values = [row for model in models for row in values if row["model"] == model]
    return draw_groups(run, values, name=name, checks=checks, most=_MOST_GROUPS)


def _draw_reference(run: RunTables, reference: pd.DataFrame, name: str) -> Plot:
    """Return the differences from the published values, with the band of the tolerance."""
    rows = [
        row
        for row in to_records(reference)
        if svg.fits_axis(row["published"]) and svg.fits_axis(row["difference"])
    ]
    rows.sort(key=lambda row: (row["within"], -abs(row["difference"])))
    tolerance = float((run.spec.get("report") or {}).get("tolerance", 0.01))
    places = count_decimals(row[side] for row in rows for side in ("published", "measured"))
    dots = list[Dot]()
    for row in rows:
        label = to_line(f"{row['system']}, {row['metric']}")
        texts = [format_value(row[side], places) for side in ("published", "measured")]
        is_named = not row["within"] and len(dots) < _MOST_LABELS
        dots.append(
            Dot(
                Interval(row["published"]),
                Interval(row["difference"]),
                label=label if is_named else "",
                title=f"{label}: published {texts[0]}, measured {texts[1]}",
                series=int(not row["within"]),
                shape=0 if row["within"] else svg.DIAMOND,
            )
        )
    n_within = sum(row["within"] for row in rows)
    return draw_points(
        dots,
        Axis("Published value", may_be_log=True),
        Axis("Measured minus published", lines={0.0: "zero"}, band=(-tolerance, tolerance)),
        330.0,
        name=name,
        title="Differences from the published table",
        caption=(
            f"Each point is a value of the published table. In the band ({n_within:,} of "
            f"{len(rows):,}) the difference is at most {tolerance:g}"
            f"{'; diamonds are beyond it' * (n_within < len(rows))}."
        ),
    )
