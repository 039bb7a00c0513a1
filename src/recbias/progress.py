"""The progress of a run: warnings only, or one line per stage; ``recbias.live`` draws it."""

from __future__ import annotations

import builtins
import importlib.util
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from recbias.core.context import StageRecord
from recbias.core.text import MAX_VALUE_LENGTH, make_printable
from recbias.runner.plan import (
    Observer,
    RemainingWork,
    Stage,
    is_notable,
    render_record,
    render_title,
    select_new_warnings,
)

PLAIN_EVERY = 10.0
"""Seconds between the progress lines of a stage when stderr is not a terminal."""


@contextmanager
def open_observer(*, quiet: bool = False, verbose: bool = False) -> Iterator[Observer]:
    """Yield an observer: warnings only, a live display, or one line per stage.

    The display is live in a terminal, and in a notebook that has ``ipywidgets``. The lines go to
    standard error, in a notebook to standard output, since its errors are red.
    """
    if quiet:
        yield _WarningsOnly()
    elif importlib.util.find_spec("ipywidgets") if is_notebook() else sys.stderr.isatty():
        from recbias.live import Live

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


class _WarningsOnly(Observer):
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


class Plain(Observer):
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
            number = f"[{work.count_shown(verbose=self.verbose)}] " if work.n_stages else ""
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
