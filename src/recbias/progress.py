"""The progress of a run: one line per stage in logs, a live display in terminals and notebooks."""

from __future__ import annotations

import builtins
import importlib.util
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

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

from recbias.core.context import StageRecord
from recbias.core.text import MAX_VALUE_LENGTH, make_printable
from recbias.runner.execute import Observer, Silent
from recbias.runner.remaining import (
    RemainingWork,
    is_notable,
    render_record,
    render_title,
    select_new_warnings,
)
from recbias.runner.stage import Stage

PLAIN_EVERY = 10.0
"""Seconds between the progress lines of a stage when stderr is not a terminal."""


@contextmanager
def open_observer(*, quiet: bool = False, verbose: bool = False) -> Iterator[Observer]:
    """Yield an observer: warnings only, a live display, or one line per stage.

    The display is live in a terminal, and in a notebook that has ``ipywidgets``. The lines go to
    standard error, in a notebook to standard output, since its errors are red.
    """
    if quiet:
        yield WarningsOnly()
    elif _has_widgets() if is_notebook() else sys.stderr.isatty():
        with Live(verbose=verbose) as live:
            yield live
    else:
        yield Plain(verbose=verbose, stream=sys.stdout if is_notebook() else None)


def is_notebook() -> bool:
    """Return whether this code runs in the kernel of a notebook, such as Jupyter or Colab."""
    get_shell = getattr(builtins, "get_ipython", None)  # IPython adds it
    shell = type(get_shell()) if get_shell else None
    return shell is not None and (
        shell.__name__ == "ZMQInteractiveShell" or shell.__module__.startswith("google.colab")
    )


def _has_widgets() -> bool:
    return importlib.util.find_spec("ipywidgets") is not None


class WarningsOnly(Silent):
    """Prints warnings to standard error, each with the stage that it is about."""

    def __init__(self) -> None:
        self._messages = set[str]()

    def finished(self, record: StageRecord) -> None:
        """Print the warnings of a stage."""
        for warning in select_new_warnings(record, self._messages):
            self.warned(f"{render_title(record)}: {warning}")

    def warned(self, warning: str) -> None:
        """Print a warning."""
        sys.stderr.write(f"{make_printable(f'warning: {warning}')}\n")
        sys.stderr.flush()


class Plain:
    """Prints one line per stage, for logs.

    Args:
        verbose: Whether to print stages from the cache as well.
        stream: Where to print, by default to standard error.
    """

    def __init__(self, *, verbose: bool, stream: TextIO | None = None) -> None:
        self.verbose = verbose
        self._stream = stream
        self._last_line_at = 0.0
        self._work = RemainingWork(())
        self._messages = set[str]()

    def planned(self, work: RemainingWork) -> None:
        """Number the lines from now on, and add the time that is left."""
        self._work = work

    def started(self, stage: Stage) -> None:
        """Restart the clock of progress lines."""
        self._work.start(stage)
        self._last_line_at = time.monotonic()

    def progressed(self, activity: str, done: int, total: int) -> None:
        """Print the progress of a long stage every few seconds."""
        if time.monotonic() - self._last_line_at > PLAIN_EVERY:
            self._last_line_at = time.monotonic()
            title = make_printable(activity, MAX_VALUE_LENGTH)
            self._print(f"  {title}: {done:,} of {total:,}")

    def finished(self, record: StageRecord) -> None:
        """Print the result of a stage and its warnings."""
        work = self._work
        work.finish(record)
        if self.verbose or is_notable(record):
            number = f"[{work.n_done}/{work.n_stages}] " if work.n_stages else ""
            left = f", {text}" if (text := work.describe_time()) else ""
            self._print(f"{number}{render_record(record, self._messages)}{left}")
        for warning in select_new_warnings(record, self._messages):
            self._print(f"  warning: {warning}")

    def warned(self, warning: str) -> None:
        """Print a warning of the whole run."""
        self._print(f"warning: {warning}")

    def _print(self, line: str) -> None:
        stream = self._stream or sys.stderr
        stream.write(f"{make_printable(line)}\n")
        stream.flush()


class _TitleColumn(TextColumn):
    """What a stage does, or the work that is left."""

    def render(self, task: Task) -> Text:
        work: RemainingWork | None = task.fields.get("work")
        return super().render(task) if work is None else Text(work.describe())


class _CountColumn(MofNCompleteColumn):
    """The number of completed steps; blank if the total is unknown or stands in the title."""

    def render(self, task: Task) -> Text:
        is_shown = task.total is not None and "work" not in task.fields
        return super().render(task) if is_shown else Text("")


class Live:
    """Shows the progress of the run and of its running stage below the finished stages.

    A lock guards lines and refreshes: a refresh within a line would leave a bar on the screen.

    Args:
        verbose: Whether to print stages from the cache and every metric as well.
    """

    def __init__(self, *, verbose: bool) -> None:
        self.verbose = verbose
        self._console = Console(stderr=True, highlight=False)
        self._progress = Progress(
            SpinnerColumn(),
            _TitleColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _CountColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            auto_refresh=False,
        )
        self._lock, self._stopped = threading.RLock(), threading.Event()
        self._refresher = threading.Thread(target=self._refresh, daemon=True)
        self._task: TaskID | None = None
        self._title = ""
        self._work = RemainingWork(())
        self._messages = set[str]()
        self._total: TaskID | None = None

    def __enter__(self) -> Live:  # noqa: PYI034  a plain class
        self._progress.start()
        self._refresher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._refresher.join()
        self._progress.stop()

    def _refresh(self) -> None:
        while not self._stopped.wait(0.1):  # seconds
            with self._lock:
                self._progress.refresh()

    def planned(self, work: RemainingWork) -> None:
        """Show the work of the run."""
        with self._lock:
            self._work = work
            self._total = self._progress.add_task("", total=work.n_stages, work=work)

    def started(self, stage: Stage) -> None:
        """Show a stage that starts."""
        with self._lock:
            self._clear()
            self._work.start(stage)
            self._title = make_printable(stage.title, MAX_VALUE_LENGTH)
            self._task = self._progress.add_task(self._title, total=None)

    def progressed(self, activity: str, done: int, total: int) -> None:
        """Update the progress bar."""
        title = f"{self._title}: {make_printable(activity, MAX_VALUE_LENGTH)}"
        with self._lock:
            if self._task is not None:
                self._progress.update(self._task, description=title, completed=done, total=total)

    def finished(self, record: StageRecord) -> None:
        """Print the result of a stage and its warnings above the progress bars."""
        with self._lock:
            self._show_record(record)

    def _show_record(self, record: StageRecord) -> None:
        self._clear()
        self._work.finish(record)
        if self._total is not None:
            self._progress.update(self._total, completed=self._work.n_done)
        if self.verbose or is_notable(record):
            style = "red" if record.failure else "dim" if record.reused else ""
            line = make_printable(render_record(record, self._messages))
            self._console.print(Text(line, style=style))
        for warning in select_new_warnings(record, self._messages):
            line = make_printable(f"  warning: {warning}")
            self._console.print(Text(line, style="yellow"))

    def warned(self, warning: str) -> None:
        """Print a warning of the whole run."""
        with self._lock:
            self._console.print(Text(make_printable(f"warning: {warning}"), style="yellow"))

    def _clear(self) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
