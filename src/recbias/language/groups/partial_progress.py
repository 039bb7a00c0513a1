"""Progress of a function that computes a part of a larger task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from recbias.core.stage_context import get_context, stage_context


@contextmanager
def report_part(task: str, start: int, stop: int, total: int) -> Iterator[None]:
    """Report what is completed inside the block as steps ``start`` to ``stop`` of a task.

    >>> from recbias.core.stage_context import report_progress
    >>> def show(task: str, completed: int, total: int) -> None:
    ...     print(task, completed, total)
    >>> with stage_context(on_progress=show), report_part("texts", 40, 60, 100):
    ...     report_progress("tokens scored", 500, 1000)
    texts 50 100
    texts 60 100
    """
    listener = get_context().on_progress
    if listener is None:
        yield
        return

    def report(_: str, completed: int, n_steps: int) -> None:
        listener(task, start + (stop - start) * completed // max(n_steps, 1), total)

    with stage_context(on_progress=report):
        yield
    listener(task, stop, total)
