"""The tables of ``recbias run`` and ``recbias plan``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from recbias.cli.grids import Output, print_conclusions, print_grid, print_rows
from recbias.cli.printing import allow_closed_output, print_line
from recbias.cli.request_lines import show_requests
from recbias.core.printable import make_printable
from recbias.core.records import summarize_failures
from recbias.reports.check_table import build_check_table
from recbias.reports.round_table import build_round_table
from recbias.reports.views.definitions import Definition, collect_definitions
from recbias.reports.views.grid import Table
from recbias.reports.views.rounding import format_count
from recbias.reports.views.run_tables import read_run
from recbias.runner.execution.remaining_work import describe_seconds
from recbias.runner.execution.request_totals import RequestTotals
from recbias.runner.planning.plan import Plan
from recbias.runner.planning.preview import Preview, Step
from recbias.runs import Run

NUMEROUS = frozenset({"measure", "trial"})
"""Kinds of stage that a plan counts instead of listing them."""

MOST_ROWS = 24
"""The maximum number of rows of a table by group; the report has all of them."""

ELSEWHERE = "metrics.csv and the reports of the run folder have them"


def show_run(run: Run) -> None:
    """Print the conclusions of a run, its tables, its checks, its failures and its paths."""
    from recbias.reports.views.conclusions.conclude import split_conclusions
    from recbias.reports.views.groups.group_tables import build_group_tables
    from recbias.reports.views.wide_tables import build_summary

    console, tables = Output(), read_run(run.folder)
    summary = _leave_out_spreads(build_summary(tables), collect_definitions(tables).values())
    values = [column.title for column in summary.columns if column.numeric]
    more = (build_round_table(tables), build_check_table(tables))
    with allow_closed_output():
        print_conclusions(*split_conclusions(tables), console)
        if summary.rows:
            print_grid(summary, console, optional=values[:0:-1], elsewhere=ELSEWHERE)
        for table in (*build_group_tables(tables), *filter(None, more)):
            _print_first_rows(table, console)
    show_failures(run)
    report = run.folder / "report.html"
    with allow_closed_output():
        for line in (f"run folder: {run.folder}", *([f"report: {report}"] * report.exists())):
            console.print(Text(make_printable(line, None)), soft_wrap=True)


def _print_first_rows(table: Table, console: Output) -> None:
    n_hidden = len(table.rows) - MOST_ROWS
    note = f"{n_hidden:,} more rows are in the reports and in the CSV files."
    notes = (*((note,) if n_hidden > 0 else ()), *table.notes)
    print_grid(replace(table, rows=table.rows[:MOST_ROWS], notes=notes), console)


def _leave_out_spreads(summary: Table, metrics: Collection[Definition]) -> Table:
    """Return the table without the ratio and standard deviation of groups beside their gap."""
    gaps = {metric.groups_heading for metric in metrics if metric.gap == "difference"}
    spreads = {
        metric.heading
        for metric in metrics
        if metric.gap in {"ratio", "std"} and metric.groups_heading in gaps
    }
    titles = [column.title for column in summary.columns]
    if spreads.isdisjoint(titles):
        return summary
    retained = summary.select(*(title for title in titles if title not in spreads))
    note = f"Not shown: ratio and standard deviation of groups, beside their gap ({ELSEWHERE})."
    return replace(retained, notes=(*retained.notes, note))


def show_failures(run: Run) -> None:
    """Print the failed stages of a run on standard error, each cause once."""
    console = Console(stderr=True, highlight=False)
    for failure in summarize_failures(run.failures):
        failed = f"failed: {failure.stage}: {failure.message}"
        help_lines = [f"help: {failure.help}"] if failure.help else []
        for line, style in zip((failed, *help_lines), ("red", ""), strict=False):
            text = Text(make_printable(line), style=style)
            console.print(text, soft_wrap=not console.is_terminal)


def show_plan(
    plan: Plan,
    preview: Preview,
    requests: Sequence[RequestTotals],
    *,
    quiet: bool,
    verbose: bool,
) -> None:
    """Print the stages of a plan, which of them are cached, and the cost of the others."""
    if not quiet:
        steps = [step for step in preview.steps if verbose or step.stage.kind not in NUMEROUS]
        print_rows(
            ("stage", "dataset", "seed", "fold", "state", "took", "memory", "address"),
            [*zip(*_render_steps(steps), strict=True)],
            title=plan.experiment.name,
            numeric=("seed", "fold", "took", "memory"),
        )
    for kind, labels in plan.experiment.sweep.items():
        count = format_count(len(labels), kind.removesuffix("s"))
        print_line(f"sweep: {count}: {', '.join(labels)}")
    n_cached = sum(step.stored for step in preview.steps)
    kinds = [step.stage.kind for step in preview.steps]
    trials = f", {kinds.count('trial')} trials" if "trial" in kinds else ""
    print_line(
        f"{len(kinds)} stages ({kinds.count('measure')} metrics{trials}): "
        f"{n_cached} cached, {len(kinds) - n_cached} to run"
    )
    for metric, model, missing in plan.undefined:
        print_line(f"{metric.label} will be undefined for {model.label}: it provides no {missing}")
    show_requests(requests, quiet=quiet)
    if preview.expected_seconds is not None:
        left = f" without {preview.n_unexpected} stages" if preview.n_unexpected else ""
        time = describe_seconds(preview.expected_seconds)
        print_line(f"estimated time: {time}{left}, from stored results of the same kind")
    if preview.memory_mb is None:
        print_line("estimated memory: unknown without stored results of the same kind")
    else:
        unknown = preview.n_without_memory
        left = f", without {unknown} of the stages" if unknown else ""
        print_line(f"estimated memory: {preview.memory_mb:,.0f} MB{left}")


def _render_steps(steps: Sequence[Step]) -> list[list[str]]:
    """Return the columns of the table of stages; a constant dataset, seed or fold is blank."""
    columns = [[step.stage.title for step in steps]]
    for name in ("dataset", "seed", "fold"):
        values = [getattr(step.stage.keys, name) for step in steps]
        texts = ["" if value is None else str(value) for value in values]
        columns.append(texts if len({*texts} - {""}) > 1 else [""] * len(texts))
    return [
        *columns,
        [_render_state(step) for step in steps],
        [_render_time(step) for step in steps],
        ["" if step.memory_mb is None else f"{step.memory_mb:,.0f} MB" for step in steps],
        [step.stage.digest[:12] for step in steps],
    ]


def _render_time(step: Step) -> str:
    """Return the time that a stage took or, after ``~``, is expected to take."""
    if step.expected is not None:
        return f"~{describe_seconds(step.expected.seconds)}"
    return "" if step.seconds is None else f"{step.seconds:.2f} s"


def _render_state(step: Step) -> str:
    """Return whether a stage is cached, and for a search the number of its cached trials."""
    if step.stored:
        return "cached"
    if step.stage.kind == "search":
        return f"to run ({step.trials} of {len(step.stage.inputs)} trials cached)"
    return "to resume from its checkpoint" if step.partial else "to run"
