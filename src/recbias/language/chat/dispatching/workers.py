"""Threads that wait for a backend, so that the thread that decides never does."""

from __future__ import annotations

import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Generic, TypeVar

from recbias.core.machine.interrupts import handle_signal

J = TypeVar("J")
R = TypeVar("R")


class Workers(Generic[J, R]):
    """Threads that answer batches of jobs; they do not delay the end of the process.

    A new thread is started when all are busy.

    Args:
        answer: Returns the result of each job of a batch.
    """

    def __init__(self, answer: Callable[[Sequence[J]], Iterable[R]]) -> None:
        self._answer = answer
        self._batches: queue.SimpleQueue[list[J] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[tuple[list[J], list[R] | BaseException | None] | None] = (
            queue.SimpleQueue()
        )
        """Finished batches; None is an interrupt."""
        self._n_threads = 0
        self.n_batches = 0
        self.n_jobs = 0

    def submit(self, batch: list[J]) -> None:
        """Let a thread answer a batch."""
        if self.n_batches == self._n_threads:
            self._n_threads += 1
            arguments = (self._work,)  # in the context of the caller: its stage
            threading.Thread(target=copy_context().run, args=arguments, daemon=True).start()
        self.n_batches += 1
        self.n_jobs += len(batch)
        self._batches.put(batch)

    def receive(self, seconds: float | None) -> list[tuple[J, R]]:
        """Return the jobs of the next finished batch with their results.

        Args:
            seconds: How long to wait for it; None for any time.

        Raises:
            KeyboardInterrupt: An interrupt was deferred.
        """
        try:
            finished = self._results.get(timeout=None if seconds is None else max(seconds, 0))
        except queue.Empty:
            return []
        if finished is None:
            raise KeyboardInterrupt
        batch, results = finished
        self.n_batches -= 1
        self.n_jobs -= len(batch)
        if isinstance(results, BaseException):
            raise results
        return list(zip(batch, results or [], strict=True))

    @contextmanager
    def defer_interrupts(self) -> Iterator[None]:
        """Let ``receive`` raise an interrupt, so that no result is lost between two lines.

        The second interrupt is raised at once. Other threads and handlers of other programs are
        left as they are.
        """
        default = signal.getsignal(signal.SIGINT)
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or default not in {signal.default_int_handler, handle_signal}:
            yield
            return
        is_raised = False

        def defer(_number: int, _frame: object) -> None:
            signal.signal(signal.SIGINT, default)
            self._results.put(None)

        signal.signal(signal.SIGINT, defer)
        try:
            yield
        except KeyboardInterrupt:
            is_raised = True
            raise
        finally:
            is_deferred = signal.getsignal(signal.SIGINT) is not defer
            signal.signal(signal.SIGINT, default)
            if is_deferred and not is_raised:
                raise KeyboardInterrupt

    def close(self) -> None:
        """Let the threads end after the batches that they have begun."""
        for _ in range(self._n_threads):
            self._batches.put(None)

    def _work(self) -> None:
        for batch in iter(self._batches.get, None):
            results: list[R] | None = None
            with suppress(Exception):  # receive raises it, in the thread of the caller
                try:
                    results = list(self._answer(batch))
                finally:
                    self._results.put((batch, sys.exception() or results))
