"""Observers receive the progress of a run."""

from __future__ import annotations

from typing import Protocol

from recbias.core.records import StageRecord
from recbias.runner.stage import Stage


class Observer(Protocol):
    """Receives the progress of a run."""

    def started(self, stage: Stage) -> None:
        """Report that a stage starts to compute."""

    def progressed(self, what: str, done: int, total: int) -> None:
        """Report the progress of the running stage: ``done`` of ``total`` epochs, batches, ..."""

    def finished(self, record: StageRecord) -> None:
        """Report that a stage was computed, was reused, or failed."""


class Silent:
    """An observer that reports nothing."""

    def started(self, stage: Stage) -> None:
        """Report nothing."""

    def progressed(self, what: str, done: int, total: int) -> None:
        """Report nothing."""

    def finished(self, record: StageRecord) -> None:
        """Report nothing."""
