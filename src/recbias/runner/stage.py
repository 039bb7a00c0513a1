"""A stage of a run: one step, with the stages that it depends on, its cost and its record."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.core.context import Failure, StageRecord
from recbias.core.errors import StageError, UserError


@dataclass(frozen=True)
class Keys:
    """The dataset, seed, fold and model that a result belongs to; blank if one does not apply."""

    dataset: str = ""
    seed: int | None = None
    fold: int | None = None
    model: str = ""


@dataclass(frozen=True)
class Stage:
    """One step of a run.

    Args:
        kind: ``dataset``, ``split``, ``queries``, ``label``, ``baseline``, ``trial``, ``search``,
            ``fit``, ``answer`` or ``measure``.
        title: What users read: ``fit ItemKNN``.
        work: Called with the results of ``inputs``, in order; returns the result.
        spec_location: The entry of the spec that requests it, for messages:
            ``FILE:LINE:COLUMN: metrics[0]``.
        files: The input files that it reads, with their digests at planning time.
        devices: The devices that its model computes on; empty if it has no choice.
        subject: The name of its plug-in.
        settings: The digest of the settings of its plug-ins.
    """

    kind: str
    title: str
    digest: str
    work: Callable[..., Any] = field(compare=False)
    inputs: tuple[Stage, ...] = field(compare=False, repr=False)
    keys: Keys
    spec_location: str = field(default="", compare=False)
    files: Mapping[Path, str] = field(default_factory=dict, compare=False, repr=False)
    devices: tuple[str, ...] = field(default=(), compare=False)
    subject: str = field(default="", compare=False)
    settings: str = field(default="", compare=False)


_Cost: TypeAlias = Mapping[str, float | None]

NO_COST: _Cost = MappingProxyType(dict.fromkeys(("cpu_seconds", "gpu_seconds", "gpu_memory_mb")))
"""The cost of a stage of which nothing is known, such as a reused one."""


def _read_cpu() -> tuple[float, float]:
    """Return the seconds of this process, with all threads, and of its ended children."""
    times = os.times()
    return time.process_time(), times.children_user + times.children_system


def _find_cuda() -> Any:
    """Return ``torch.cuda`` if this process has used a card; importing torch would be slow."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


@dataclass(frozen=True)
class CostMeter:
    """Measures a stage from now on."""

    cpu: tuple[float, float] = field(default_factory=_read_cpu)

    def __post_init__(self) -> None:
        """Reset the peak memory of the cards."""
        if cuda := _find_cuda():
            for card in range(cuda.device_count()):
                cuda.reset_peak_memory_stats(card)

    def measure(self, seconds: float) -> dict[str, float | None]:
        """Return the cost of a stage that took ``seconds``.

        ``gpu_seconds`` is the time for which the stage held cards, one after the other if it held
        several; it and the memory are None if other processes worked for the stage, which may
        have used cards.
        """
        process, children = (end - start for end, start in zip(_read_cpu(), self.cpu, strict=True))
        cost = dict(NO_COST) | {"cpu_seconds": round(process + children, 3)}
        if children:
            return cost
        cuda = _find_cuda()
        cards = range(cuda.device_count() if cuda else 0)
        peaks = [peak for card in cards if (peak := cuda.max_memory_allocated(card))]
        return cost | {
            "gpu_seconds": round(seconds * len(peaks), 3),
            "gpu_memory_mb": round(math.fsum(peaks) / 2**20, 1),
        }


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
