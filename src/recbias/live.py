"""The progress of a run in terminals and notebooks, drawn by rich, which takes 20 ms to import."""

from __future__ import annotations

import threading

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
from recbias.runner.plan import (
    Observer,
    RemainingWork,
    Stage,
    is_notable,
    render_record,
    select_new_warnings,
)


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


class Live(Observer):
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
