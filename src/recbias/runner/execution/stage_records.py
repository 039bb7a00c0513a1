"""The records of stages: made, observed, and turned into errors for users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.core.errors import StageError, UserError
from recbias.core.records import Failure, StageRecord
from recbias.runner.stage import Stage
from recbias.runner.stage_cost import NO_COST


def make_record(stage: Stage, **facts: Any) -> StageRecord:
    """Return the record of a stage."""
    facts = {"cost": dict(NO_COST)} | facts
    return StageRecord(stage.title, stage.kind, stage.digest, **vars(stage.keys), **facts)


def to_error(record: StageRecord) -> UserError | StageError:
    """Return the failure of a stage as the error that the command line shows."""
    failure = record.failure or Failure("it failed")
    if failure.user:
        return UserError(failure.message, remedy=failure.help)
    message = f"{record.stage} failed: {failure.message}"
    return StageError(message, traceback=failure.traceback, remedy=failure.help)


def raise_failure(record: StageRecord) -> None:
    """Raise the failure of a stage, if it has one.

    Raises:
        UserError: The stage failed because of the user's input.
        StageError: It failed for another reason.
    """
    if record.failure is not None:
        raise to_error(record)


def skip_because(source: Stage, failure: Failure) -> Failure:
    """Return why a stage is skipped: the failure of its input, or of an input of that one."""
    if failure.because:
        return failure
    message = f"skipped because {source.title!r} failed: {failure.message}"
    return Failure(message, failure.help, user=failure.user, because=source.title)


def locate_failure(stage: Stage, failure: Failure | None) -> Failure | None:
    """Return a failure; one that is the user's names the entry of the spec."""
    if failure is None or not (failure.user and stage.spec_location):
        return failure
    return replace(failure, message=f"{stage.spec_location}: {failure.message}")


def locate_error(
    error: UserError, spec: PluginSpec | DatasetSpec, experiment: Experiment
) -> UserError:
    """Return an error at the entry of its plug-in, or at the setting that its message names.

    Of a dataset without interactions that is the file, unless filters may have left none.
    """
    key, colon, message = error.message.partition(": ")
    if isinstance(spec, DatasetSpec):
        names_file = not spec.filters and spec.source.parameters.get("interactions")
        spec, key, colon = spec.source, "interactions" if names_file else "", ":"
        message = error.message
    if colon and key in spec.parameters:
        return experiment.fault((*spec.where, key), message, remedy=error.remedy)
    return experiment.fault(spec.where, error.message, remedy=error.remedy)


class Observer(Protocol):
    """Receives the progress of a run."""

    def started(self, stage: Stage) -> None:
        """Report that a stage starts to compute."""

    def progressed(self, what: str, done: int, total: int) -> None:
        """Report the progress of the running stage: ``done`` of ``total`` epochs, batches, ..."""

    def finished(self, record: StageRecord) -> None:
        """Report that a stage was computed, was reused, or failed."""

    def warned(self, warning: str) -> None:
        """Report a warning that is not about one stage."""


class Silent:
    """An observer that reports nothing."""

    def started(self, stage: Stage) -> None:
        """Report nothing."""

    def progressed(self, what: str, done: int, total: int) -> None:
        """Report nothing."""

    def finished(self, record: StageRecord) -> None:
        """Report nothing."""

    def warned(self, warning: str) -> None:
        """Report nothing."""
