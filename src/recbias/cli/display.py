"""What a run and a plan show in the terminal: progress on stderr, tables on stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from recbias.api import Run
from recbias.cli.grids import Output, print_conclusions, print_grid, print_rows
from recbias.cli.printing import print_line
from recbias.cli.request_lines import show_requests
from recbias.core.printable import MAX_VALUE_LENGTH, make_printable
from recbias.core.records import StageRecord
from recbias.reports.views.run_tables import read_run
from recbias.runner.execution.executor import Observer, Silent
from recbias.runner.execution.request_totals import RequestTotals
from recbias.runner.planning.plan import Plan
from recbias.runner.planning.preview import Preview, Step
from recbias.runner.stage import Stage

PLAIN_EVERY = 10.0
"""Seconds between the progress lines of a stage when stderr is not a terminal."""

NUMEROUS = frozenset({"measure", "trial"})
"""Kinds of stage that a plan counts instead of listing them."""

MOST_ROWS = 24
"""The maximum number of rows of a table by group; the report has all of them."""


@contextmanager
def open_observer(*, quiet: bool, verbose: bool) -> Iterator[Observer]:
    """Yield an observer: silent, a live display in a terminal, else one line per stage."""
    if quiet:
        yield Silent()
    elif sys.stderr.isatty():
        with Live(verbose=verbose) as live:
            yield live
    else:
        yield Plain(verbose=verbose)


class Plain:
    """Prints one line per stage, for logs.

    Args:
        verbose: Whether to print stages from the cache as well.
    """

    def __init__(self, *, verbose: bool) -> None:
        self.verbose = verbose
        self._last_line_at = 0.0

    def started(self, stage: Stage) -> None:
        """Restart the clock of progress lines."""
        self._last_line_at = time.monotonic()

    def progressed(self, activity: str, done: int, total: int) -> None:
        """Print the progress of a long stage every few seconds."""
        if time.monotonic() - self._last_line_at > PLAIN_EVERY:
            self._last_line_at = time.monotonic()
            title = make_printable(activity, MAX_VALUE_LENGTH)
            print_line(f"  {title}: {done:,} of {total:,}", to_stderr=True)

    def finished(self, record: StageRecord) -> None:
        """Print the result of a stage and its warnings."""
        if self.verbose or _is_notable(record):
            print_line(_render_record(record), to_stderr=True)
        for warning in record.warnings:
            print_line(f"  warning: {warning}", to_stderr=True)


class _CountColumn(MofNCompleteColumn):
    """The number of completed steps; blank if the total is unknown."""

    def render(self, task: Task) -> Text:
        return Text("") if task.total is None else super().render(task)


class Live:
    """Shows a spinner with the progress of the running stage below the finished stages.

    Args:
        verbose: Whether to print stages from the cache and every metric as well.
    """

    def __init__(self, *, verbose: bool) -> None:
        self.verbose = verbose
        self._console = Console(stderr=True, highlight=False)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _CountColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._title = ""

    def __enter__(self) -> Live:  # noqa: PYI034  a plain class
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def started(self, stage: Stage) -> None:
        """Show a stage that starts."""
        self._clear()
        self._title = make_printable(stage.title, MAX_VALUE_LENGTH)
        self._task = self._progress.add_task(self._title, total=None)

    def progressed(self, activity: str, done: int, total: int) -> None:
        """Update the progress bar."""
        if self._task is not None:
            title = f"{self._title}: {make_printable(activity, MAX_VALUE_LENGTH)}"
            self._progress.update(self._task, description=title, completed=done, total=total)

    def finished(self, record: StageRecord) -> None:
        """Print the result of a stage and its warnings above the progress bar."""
        self._clear()
        if self.verbose or _is_notable(record):
            style = "red" if record.failure else "dim" if record.reused else ""
            self._console.print(Text(make_printable(_render_record(record)), style=style))
        for warning in record.warnings:
            line = make_printable(f"  warning: {warning}")
            self._console.print(Text(line, style="yellow"))

    def _clear(self) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None


def show_run(run: Run) -> None:
    """Print the conclusions of a run, its tables, its failed stages and the paths of its files."""
    from recbias.reports.views.conclusions.conclude import split_sentences
    from recbias.reports.views.groups.group_tables import build_group_tables
    from recbias.reports.views.wide_tables import build_summary

    console, tables = Output(), read_run(run.folder)
    print_conclusions(*split_sentences(tables), console)
    headline = build_summary(tables)
    if headline.rows:
        print_grid(headline, console)
    for table in build_group_tables(tables):
        n_hidden = len(table.rows) - MOST_ROWS
        note = f"{n_hidden:,} more rows are in the report and in metrics.csv."
        notes = (*((note,) if n_hidden > 0 else ()), *table.notes)
        print_grid(replace(table, rows=table.rows[:MOST_ROWS], notes=notes), console)
    error_console = Console(stderr=True, highlight=False)
    for failure in run.failures:
        line = make_printable(f"failed: {failure['stage']}: {failure['message']}")
        error_console.print(Text(line, style="red"))
        if failure["help"]:
            error_console.print(Text(make_printable(f"help: {failure['help']}")))
    report = run.folder / "report.html"
    for line in (f"run folder: {run.folder}", *([f"report: {report}"] * report.exists())):
        console.print(Text(make_printable(line, None)), soft_wrap=True)


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
            ("stage", "dataset", "seed", "fold", "state", "took", "address"),
            [*zip(*_render_steps(steps), strict=True)],
            title=plan.experiment.name,
            numeric=("seed", "fold", "took"),
        )
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
    print_line(f"estimated memory: {preview.memory_mb:,.0f} MB")


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
        ["" if step.seconds is None else f"{step.seconds:.2f} s" for step in steps],
        [step.stage.digest[:12] for step in steps],
    ]


def _render_state(step: Step) -> str:
    """Return whether a stage is cached, and for a search the number of its cached trials."""
    if step.stored:
        return "cached"
    if step.stage.kind == "search":
        return f"to run ({step.trials} of {len(step.stage.inputs)} trials cached)"
    return "to resume from its checkpoint" if step.partial else "to run"


def _is_notable(record: StageRecord) -> bool:
    """Return whether a stage is shown without ``--verbose``: if it was long, or failed."""
    is_short = record.reused or record.kind in {"measure", "queries"}
    return record.failure is not None or not is_short


def _render_record(record: StageRecord) -> str:
    fold = f", fold {record.fold}" if record.fold and record.fold > 1 else ""
    seed = f", seed {record.seed}" if record.seed is not None and record.kind != "dataset" else ""
    title = f"{record.stage} [{record.dataset}{seed}{fold}]" if record.dataset else record.stage
    if record.failure is not None:
        return f"{title}: failed: {record.failure.message}"
    if record.reused:
        return f"{title}: cached"
    earlier = record.resumed_seconds
    resumed = f" ({earlier:.2f} s of it in an earlier run)" if earlier else ""
    return f"{title}: {record.seconds:.2f} s{resumed}, {record.peak_memory_mb:,.0f} MB"
