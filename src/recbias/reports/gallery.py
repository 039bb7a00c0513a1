"""All plots of a run: the first picture, the others in their order, and their files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recbias.core.errors import OutOfRange
from recbias.core.files import to_local_path
from recbias.core.measures import SERVED
from recbias.core.packages import CONVERTER, require_packages
from recbias.reports import charts, plots, plots_papers, svg, views
from recbias.reports.conclusions import split_conclusions
from recbias.reports.run import RunTables, to_records
from recbias.reports.svg import FileNames, Plot
from recbias.reports.views import Definition, collect_definitions
from recbias.reports.wording import Safe, count_decimals, format_value, to_line
from recbias.runner.boundary import attempt

if TYPE_CHECKING:
    import pandas as pd

# ---- the first picture ----

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
    for dataset in plots.list_plotted_datasets(run)[:1]:
        if subject in {"groups", "claim"}:
            yield from _draw_gaps(run, dataset, name)
        yield from plots.draw_tradeoff_curves(run, dataset, lambda _: name)
        yield from plots.draw_scatters(run, dataset, lambda _: name)
        metrics = collect_definitions(run).values()
        for metric in filter(None, (views.select_accuracy_metric(metrics), *metrics)):
            if rows := plots.list_whole_rows(run, metric, dataset):
                yield plots.draw_values(run, rows, name=name)


def _draw_claim(run: RunTables, name: str) -> Plot:
    """Return the estimate of the claim with its interval, beside the side that it claims."""
    claim, spec = run.manifest["claim"], run.spec["claim"]
    interval = charts.Interval.of_row(claim, "estimate")
    other = spec.get("against") or spec.get("than") or "0"
    label = f"{spec['model']} \N{MINUS SIGN} {other}" if other != "0" else spec["model"]
    mark = charts.Mark(interval, 0 if claim["verdict"] == "holds" else 1, interval.describe(4))
    title = "difference of gaps" if spec.get("by") and spec.get("against") else "difference"
    note = f"claimed: {'above' if spec['direction'] == 'higher' else 'below'} 0"
    return charts.draw_rows(
        [charts.Row(label, (mark,))],
        charts.Axis(title, note, lines={0.0: "neutral"}),
        name=name,
        title="The estimate of the claim",
        caption=f"{to_line(claim['claim'])}. {charts.describe_intervals([interval])}".strip(),
    )


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
    for first, metric, grouped in checks[:1]:
        dataset = first["dataset"]
        same = [
            check
            for check, other, _ in checks
            if (other.title, check["dataset"]) == (metric.title, dataset)
        ]
        if grouped is not None:
            yield _draw_groups(run, grouped, dataset, name, same)
        elif rows := plots.list_whole_rows(run, metric, dataset):
            yield plots.draw_values(run, rows, name=name, checks=same)


def _find_grouped(run: RunTables, check: plots.Check, metric: Definition) -> Definition | None:
    """Return the metric that has the values of the groups of a check, if it has groups."""
    for each in collect_definitions(run).values():
        is_gap = metric.gap and not each.gap and each.heading == metric.groups_heading
        if each is metric or is_gap:
            rows = plots.list_group_rows(run, each, check["dataset"])
            if {row["group"] for row in rows} - {SERVED}:
                return each
    return None


def _draw_gaps(run: RunTables, dataset: str, name: str) -> Iterator[Plot]:
    """Yield the groups of the first conclusion, else of a metric with a significant test."""
    first = [conclusion.metric for conclusion in split_conclusions(run)[0][:1]]
    metrics = [
        metric
        for metric in collect_definitions(run).values()
        if len({row["group"] for row in plots.list_group_rows(run, metric, dataset)}) > 1
    ]
    metrics.sort(
        key=lambda metric: (
            metric.title not in first,
            not any(each.significant for each in plots.list_group_tests(run, metric, dataset)),
        )
    )
    for metric in metrics[:1]:
        yield _draw_groups(run, metric, dataset, name)


def _draw_groups(
    run: RunTables, metric: Definition, dataset: str, name: str, checks: Sequence[plots.Check] = ()
) -> Plot:
    """Return the groups by the models of the checks, then by those that are no baselines."""
    values = plots.list_group_rows(run, metric, dataset)
    models = plots.list_distinct(values, "model")
    checked = [model for model in models if any(check["model"] == model for check in checks)]
    hidden = {*views.list_baselines(run), *checked}
    models = [*checked, *(model for model in models if model not in hidden)] or models
    values = [row for model in models for row in values if row["model"] == model]
    return plots.draw_groups(run, values, name=name, checks=checks, most=_MOST_GROUPS)


def _draw_reference(run: RunTables, reference: pd.DataFrame, name: str) -> Plot:
    """Return the differences from the published values, with lines at the tolerance."""
    rows = [
        row
        for row in to_records(reference)
        if svg.fits_axis(row["published"]) and svg.fits_axis(row["difference"])
    ]
    rows.sort(key=lambda row: (row["within"], -abs(row["difference"])))
    tolerance = float((run.spec.get("report") or {}).get("tolerance", 0.01))
    places = count_decimals(row[side] for row in rows for side in ("published", "measured"))
    dots = list[charts.Dot]()
    for row in rows:
        label = to_line(f"{row['system']}, {row['metric']}")
        published, measured = (
            format_value(row[side], places) for side in ("published", "measured")
        )
        is_named = not row["within"] and len(dots) < _MOST_LABELS
        dots.append(
            charts.Dot(
                charts.Interval(row["published"]),
                charts.Interval(row["difference"]),
                label=label if is_named else "",
                title=f"{label}: published {published}, measured {measured}",
                series=int(not row["within"]),
                shape=0 if row["within"] else svg.DIAMOND,
            )
        )
    n_within = sum(row["within"] for row in rows)
    lines = {0.0: "zero", tolerance: "neutral", -tolerance: "neutral"}
    return charts.draw_points(
        dots,
        charts.Axis("Published value", may_be_log=True),
        charts.Axis("Measured minus published", lines=lines),
        330.0,
        name=name,
        title="Differences from the published table",
        caption=(
            "Each point is a value of the published table. Between the dashed lines "
            f"({n_within:,} of {len(rows):,}) the difference is at most {tolerance:g}"
            f"{'; diamonds are beyond it' * (n_within < len(rows))}."
        ),
    )


# ---- the other plots ----

_DrawPlots = Callable[[RunTables, str, plots.NameFile], Iterator[Plot]]

# plots of the models, and of the users and items, of one dataset
_OVERVIEW: Mapping[str, _DrawPlots] = {
    "Accuracy against bias": plots.draw_scatters,
    "Long tail": plots_papers.draw_long_tail,
    "Mean popularity": plots_papers.draw_popularity_means,
}
_UNIT_PLOTS: Mapping[str, _DrawPlots] = {
    "Stereotype exposure": plots_papers.draw_stereotypes,
    "Latent space": plots_papers.draw_projections,
}

# plots of ``metrics.csv``, of the mean over all datasets too
_METRIC_PLOTS: Mapping[str, _DrawPlots] = {
    "Means by group": plots.draw_group_means,
    "Attribute values by label": plots_papers.draw_targets,
    "Lists with a stereotype": plots_papers.draw_hit_shares,
    "What a log assumes": plots.draw_assumptions,
    "Accuracy against bias by re-ranking": plots.draw_tradeoff_curves,
}

_MOST_UNIT_DATASETS = 6  # datasets that get unit plots


@dataclass(frozen=True, eq=False)
class Gallery:
    """The plots of a run, and a sentence for each that failed."""

    plots: tuple[Plot, ...]
    failed: tuple[str, ...]

    def dump(self) -> dict[str, Any]:
        """Return what ``load_gallery`` reads."""
        return {"plots": [vars(plot) for plot in self.plots], "failed": self.failed}


def load_gallery(stored: Mapping[str, Any]) -> Gallery:
    """Return the plots of a run, from what ``dump`` returned for one with the same tables."""
    found = [Plot(**{**plot, "body": Safe(plot["body"])}) for plot in stored["plots"]]
    return Gallery(tuple(found), tuple(stored["failed"]))


def draw_gallery(run: RunTables) -> Gallery:
    """Return the plots of a run, with their dataset where there are several.

    One that fails costs no other.
    """
    single = views.list_single_datasets(run)
    name_files, every, failed = _name_files(run), list[Plot](), list[str]()
    for kinds, datasets in (
        (_OVERVIEW, single),
        (_UNIT_PLOTS, single[:_MOST_UNIT_DATASETS]),
        (_METRIC_PLOTS, plots.list_plotted_datasets(run)),
    ):
        for dataset, (title, draw) in itertools.product(datasets, kinds.items()):
            of = "over all datasets" if dataset == views.ALL else dataset
            drawn, reason = _draw(draw, run, dataset, name_files(dataset))
            if reason:
                failed.append(f"{title}: the plot failed ({reason}).")
            for plot in drawn:
                titled = replace(plot, title=f"{plot.title}, {of}")
                every.append(titled if len(single) > 1 else plot)
    return Gallery(tuple(every), tuple(dict.fromkeys(failed)))


def _draw(
    draw: _DrawPlots, run: RunTables, dataset: str, name_file: plots.NameFile
) -> tuple[list[Plot], str]:
    """Return plots, and why they failed if they did; an unexpected value costs nothing else."""
    found, failure = attempt(lambda: [*draw(run, dataset, name_file)])
    return found or [], failure.message[:200] if failure else ""


def draw_narrow_groups(run: RunTables) -> dict[str, Plot]:
    """Return the plots of groups for the screen of a phone, by their names in the gallery."""
    name_files, drawn = _name_files(run), dict[str, Plot]()
    with svg.narrow():
        for dataset in plots.list_plotted_datasets(run):
            found, _ = _draw(plots.draw_group_means, run, dataset, name_files(dataset))
            drawn |= {plot.name: plot for plot in found}
    return drawn


def _name_files(run: RunTables) -> Callable[[str], plots.NameFile]:
    """Return what names the files of the plots of a dataset, which the name has if needed."""
    names, several = FileNames(), len(views.list_single_datasets(run)) > 1
    return lambda dataset: lambda text: names.free(f"{text}-{dataset}" if several else text)


# ---- files ----

_SCALE = 3  # a PNG has about 300 pixels an inch

IMAGES = ("pdf", "png")
"""The formats that figures are converted to."""

_DARK = re.compile(r"@media.*(?=</style>)", re.DOTALL)


def convert_svg(svg: str, image: str) -> bytes:
    """Return a figure as ``pdf`` or ``png``.

    Raises:
        MissingExtra: The package that converts figures is not installed.
    """
    require_packages("a figure as PDF or PNG", CONVERTER)
    import vl_convert

    svg = _DARK.sub("", svg, count=1)  # which the converter does not know
    if image == "pdf":
        return bytes(vl_convert.svg_to_pdf(svg))
    return bytes(vl_convert.svg_to_png(svg, scale=_SCALE))


@dataclass(frozen=True)
class Figure:
    """A figure of a run; a notebook shows it.

    Args:
        name: The name of its file without the suffix.
        title: What it shows.
        caption: How to read it.
        svg: The figure as an SVG document.
    """

    name: str
    title: str
    caption: str
    svg: str = field(repr=False)

    def save(self, path: Path | str) -> Path:
        """Write the figure and return the path; its suffix is ``.svg``, ``.pdf`` or ``.png``.

        Raises:
            OutOfRange: Another suffix.
            MissingExtra: PDF and PNG need ``recbias[figures]``.
        """
        target = to_local_path(path)
        image = target.suffix.lower().removeprefix(".")
        if image not in {"svg", *IMAGES}:
            message = f"a figure cannot be written as {target.name!r}"
            raise OutOfRange(message, remedy="end the name in .svg, .pdf or .png")
        target.write_bytes(self.svg.encode() if image == "svg" else convert_svg(self.svg, image))
        return target

    def _repr_svg_(self) -> str:
        """Return the figure for a notebook."""
        return self.svg
