"""Threads that wait for a backend, so that the thread that decides never does."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Generic, TypeVar

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
        self._results: queue.SimpleQueue[tuple[list[J], list[R] | BaseException | None]] = (
            queue.SimpleQueue()
        )
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
        """
        try:
            batch, results = self._results.get(
                timeout=None if seconds is None else max(seconds, 0)
            )
        except queue.Empty:
            return []
        self.n_batches -= 1
        self.n_jobs -= len(batch)
        if isinstance(results, BaseException):
            raise results
        return list(zip(batch, results or [], strict=True))

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
