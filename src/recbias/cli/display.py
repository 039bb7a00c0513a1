"""The progress of a run, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

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

from recbias.cli.printing import print_line
from recbias.core.printable import MAX_VALUE_LENGTH, make_printable
from recbias.core.records import StageRecord
from recbias.runner.execution.executor import Observer, Silent
from recbias.runner.stage import Stage

PLAIN_EVERY = 10.0
"""Seconds between the progress lines of a stage when stderr is not a terminal."""


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
