"""What people see in the terminal: progress on stderr, tables on stdout."""

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
from recbias.cli.grids import Output, print_grid, print_rows
from recbias.cli.printing import print_line
from recbias.core.printable import LONGEST_VALUE, make_printable
from recbias.core.records import StageRecord
from recbias.reports.views.grid import Table
from recbias.reports.views.run_tables import read_run
from recbias.reports.views.wide_tables import by_part, summary
from recbias.runner.execution.executor import Observer, Silent
from recbias.runner.planning.plan import Plan
from recbias.runner.planning.preview import Preview, Step
from recbias.runner.stage import Stage

PLAIN_EVERY = 10.0
"""Seconds between the lines of a long stage where stderr is not a terminal."""

SHORT = frozenset({"measure", "trial"})
"""Kinds of stage of which there are many; a plan counts them."""

MOST_ROWS = 24
"""Rows that are printed of a table by label and value; the rest stands in the report."""


@contextmanager
def observing(*, quiet: bool, verbose: bool) -> Iterator[Observer]:
    """Yield the observer that fits: none, a live display, or one plain line a stage."""
    if quiet:
        yield Silent()
    elif sys.stderr.isatty():
        with Live(verbose=verbose) as live:
            yield live
    else:
        yield Plain(verbose=verbose)


class Plain:
    """One line a stage, for logs.

    Args:
        verbose: Also say which stages were reused.
    """

    def __init__(self, *, verbose: bool) -> None:
        self.verbose = verbose
        self._said = 0.0

    def started(self, stage: Stage) -> None:
        """Say nothing yet."""
        self._said = time.monotonic()

    def progressed(self, what: str, done: int, total: int) -> None:
        """Say how far a long stage is, every few seconds."""
        if time.monotonic() - self._said > PLAIN_EVERY:
            self._said = time.monotonic()
            title = make_printable(what, LONGEST_VALUE)
            print_line(f"  {title}: {done:,} of {total:,}", to_stderr=True)

    def finished(self, record: StageRecord) -> None:
        """Say what became of a stage."""
        if self.verbose or _worth_a_line(record):
            print_line(_line(record), to_stderr=True)
        for warning in record.warnings:
            print_line(f"  warning: {warning}", to_stderr=True)


class _Count(MofNCompleteColumn):
    """So many of so many; blank where it is not known of how many."""

    def render(self, task: Task) -> Text:
        return Text("") if task.total is None else super().render(task)


class Live:
    """A spinner with the running stage and its progress; finished stages scroll by above it.

    Args:
        verbose: Also show which stages were reused, and every measurement.
    """

    def __init__(self, *, verbose: bool) -> None:
        self.verbose = verbose
        self._console = Console(stderr=True, highlight=False)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _Count(),
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
        """Show the stage that starts."""
        self._clear()
        self._title = make_printable(stage.title, LONGEST_VALUE)
        self._task = self._progress.add_task(self._title, total=None)

    def progressed(self, what: str, done: int, total: int) -> None:
        """Move the bar."""
        if self._task is not None:
            title = f"{self._title}: {make_printable(what, LONGEST_VALUE)}"
            self._progress.update(self._task, description=title, completed=done, total=total)

    def finished(self, record: StageRecord) -> None:
        """Print the line of a stage above the bar."""
        self._clear()
        if self.verbose or _worth_a_line(record):
            style = "red" if record.failure else "dim" if record.reused else ""
            self._console.print(Text(make_printable(_line(record)), style=style))
        for warning in record.warnings:
            said = make_printable(f"  warning: {warning}")
            self._console.print(Text(said, style="yellow"))

    def _clear(self) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None


def show_run(run: Run) -> None:
    """Print the summary table of a run, what failed, and where its files are."""
    console, tables = Output(), read_run(run.folder)
    headline = summary(tables)
    if headline.rows:
        print_grid(headline, console)
    for part in by_part(tables):
        print_grid(_first_rows(part), console)
    for failure in run.failures:
        error = Console(stderr=True, highlight=False)
        said = make_printable(f"failed: {failure['stage']}: {failure['message']}")
        error.print(Text(said, style="red"))
        if failure["help"]:
            error.print(Text(make_printable(f"help: {failure['help']}")))
    report = run.folder / "report.html"
    console.print(Text(make_printable(f"run folder: {run.folder}", None)), soft_wrap=True)
    if report.exists():
        console.print(Text(make_printable(f"report: {report}", None)), soft_wrap=True)


def _first_rows(table: Table) -> Table:
    """Return a table with so many rows as a person reads, and how many more there are."""
    more = len(table.rows) - MOST_ROWS
    if more <= 0:
        return table
    note = f"{more:,} more rows stand in the report and in metrics.csv."
    return replace(table, rows=table.rows[:MOST_ROWS], notes=(note, *table.notes))


def show_plan(plan: Plan, seen: Preview, *, quiet: bool, verbose: bool) -> None:
    """Print the stages of a plan, which are stored, and what the rest would cost."""
    if not quiet:
        shown = [step for step in seen.steps if verbose or step.stage.kind not in SHORT]
        print_rows(
            ("stage", "dataset", "seed", "fold", "state", "took", "address"),
            [*zip(*_places(shown), *_states(shown), strict=True)],
            title=plan.experiment.name,
            numeric=("seed", "fold", "took"),
        )
    stored = sum(step.stored for step in seen.steps)
    kinds = [step.stage.kind for step in seen.steps]
    trials = f", {kinds.count('trial')} trials" if "trial" in kinds else ""
    print_line(
        f"{len(kinds)} stages ({kinds.count('measure')} of them measurements{trials}): "
        f"{stored} stored, {len(kinds) - stored} to do"
    )
    print_line(f"language models: {seen.requests} requests, {seen.tokens} tokens to pay for")
    print_line(f"estimated memory: {seen.memory_mb:,.0f} MB")


def _places(steps: Sequence[Step]) -> list[list[str]]:
    """Return titles, datasets, seeds and folds; what is the same throughout is blank."""
    stages = [step.stage for step in steps]
    found = [[stage.title for stage in stages]]
    for name in ("dataset", "seed", "fold"):
        texts = ["" if (key := getattr(each.keys, name)) is None else str(key) for each in stages]
        found.append(texts if len({*texts} - {""}) > 1 else [""] * len(texts))
    return found


def _states(steps: Sequence[Step]) -> list[list[str]]:
    return [
        [_state(step) for step in steps],
        ["" if step.seconds is None else f"{step.seconds:.2f} s" for step in steps],
        [step.stage.digest[:12] for step in steps],
    ]


def _state(step: Step) -> str:
    """Return whether a stage is stored; of a search also how many of its trials are."""
    if step.stored:
        return "stored"
    if step.stage.kind == "search":
        return f"to do ({step.trials} of {len(step.stage.inputs)} trials stored)"
    return "to do from its checkpoint" if step.partial else "to do"


def _worth_a_line(record: StageRecord) -> bool:
    """Return whether a stage is shown without being asked for: what took work, and failures."""
    small = record.reused or record.kind in {"measure", "queries"}
    return record.failure is not None or not small


def _line(record: StageRecord) -> str:
    fold = f", fold {record.fold}" if record.fold and record.fold > 1 else ""
    seed = f", seed {record.seed}" if record.seed is not None and record.kind != "dataset" else ""
    at = f"{record.stage} [{record.dataset}{seed}{fold}]" if record.dataset else record.stage
    if record.failure is not None:
        return f"{at}: failed: {record.failure.message}"
    if record.reused:
        return f"{at}: stored"
    earlier = record.resumed_seconds
    before = f" ({earlier:.2f} s of it in an earlier run)" if earlier else ""
    return f"{at}: {record.seconds:.2f} s{before}, {record.peak_memory_mb:,.0f} MB"
