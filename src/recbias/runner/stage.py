"""A stage of a run: one step, with the stages that it depends on.

What a stage costs beside wall time and memory: time of processors and cards, and energy.
The records of stages: made, observed, and turned into errors for users.

The counters of energy are those of processors (RAPL, on Linux) and of NVIDIA cards (NVML).
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

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

NO_COST: _Cost = MappingProxyType(
    dict.fromkeys(
        ("cpu_seconds", "gpu_seconds", "gpu_memory_mb", "cpu_energy_joules", "gpu_energy_joules")
    )
)
"""The cost of a stage of which nothing is known, such as a reused one."""


_POWERCAP = Path("/sys/class/powercap")
"""Where Linux has the counters of the packages of processors; only root may read some of them."""

_MOST_WATTS = 500.0
"""The power of a package beyond which no counter is expected to run."""


class Counter(NamedTuple):
    """The joules of a package since some time, and the joules at which the counter restarts."""

    joules: float
    range: float


def read_packages(folder: Path = _POWERCAP) -> dict[str, Counter]:
    """Return the counters of the packages of processors; empty if the machine does not tell."""
    counters = {}
    for path in sorted(folder.glob("intel-rapl:*")):
        with suppress(OSError, ValueError):
            if (path / "name").read_text(encoding="ascii").startswith("package"):
                joules, most = (
                    int((path / name).read_text(encoding="ascii")) / 1e6
                    for name in ("energy_uj", "max_energy_range_uj")
                )
                counters[path.name] = Counter(joules, most)
    return counters


def subtract_packages(
    end: Mapping[str, Counter], start: Mapping[str, Counter], seconds: float
) -> float | None:
    """Return the joules of all packages between two readings; None if they are not known.

    They are not if a counter may have restarted twice.

    >>> subtract_packages({"a": Counter(5.0, 1e5)}, {"a": Counter(99_998.0, 1e5)}, 10.0)
    7.0
    """
    if not end or end.keys() != start.keys():
        return None
    if any(counter.range < _MOST_WATTS * seconds for counter in end.values()):
        return None
    return sum((end[name].joules - start[name].joules) % end[name].range for name in end)


@cache
def _load_library() -> Any:
    """Return NVIDIA's library, initialised; None on a machine without it."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libnvidia-ml.so.1")
        if library.nvmlInit_v2() == 0:
            return library
    return None


def read_card(uuid: str) -> float | None:
    """Return the joules of a card since its driver was loaded; None if it does not tell.

    Args:
        uuid: As NVIDIA writes it: ``GPU-8a0c...``.
    """
    library, handle, millijoules = _load_library(), ctypes.c_void_p(), ctypes.c_ulonglong()
    if library is None:
        return None
    if library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)):
        return None
    if library.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(millijoules)):
        return None
    return millijoules.value / 1000


def _subtract(end: float | None, start: float | None) -> float | None:
    return None if end is None or start is None else end - start


def _read_cpu() -> tuple[float, float]:
    """Return the seconds of this process, with all threads, and of its ended children."""
    times = os.times()
    return time.process_time(), times.children_user + times.children_system


def _find_cuda() -> Any:
    """Return ``torch.cuda`` if this process has used a card; importing torch would be slow."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def _read_cards() -> dict[int, float | None]:
    """Return the joules of each card that this process may use, by its number."""
    cuda = _find_cuda()
    return {
        card: read_card(f"GPU-{cuda.get_device_properties(card).uuid}")
        for card in (range(cuda.device_count()) if cuda else ())
    }


@dataclass(frozen=True)
class CostMeter:
    """Measures a stage from now on.

    The energy is that of the machine's processors and of the cards that the process uses, with
    whatever else runs on them.
    """

    cpu: tuple[float, float] = field(default_factory=_read_cpu)
    packages: Mapping[str, Counter] = field(default_factory=read_packages)
    cards: Mapping[int, float | None] = field(default_factory=_read_cards)

    def __post_init__(self) -> None:
        """Reset the peak memory of the cards."""
        if cuda := _find_cuda():
            for card in range(cuda.device_count()):
                cuda.reset_peak_memory_stats(card)

    def measure(self, seconds: float) -> dict[str, float | None]:
        """Return the cost of a stage that took ``seconds``.

        ``gpu_seconds`` is the time for which the stage held cards, one after the other if it held
        several; it and the memory are None if other processes worked for the stage, which may
        have used cards. Without a card in use at the start the energy of cards is None.
        """
        process, children = (end - start for end, start in zip(_read_cpu(), self.cpu, strict=True))
        cost = dict(NO_COST) | {
            "cpu_seconds": round(process + children, 3),
            "cpu_energy_joules": subtract_packages(read_packages(), self.packages, seconds),
        }
        if children:
            return cost
        cuda = _find_cuda()
        peaks = {
            card: cuda.max_memory_allocated(card) / 2**20
            for card in (range(cuda.device_count()) if cuda else ())
            if cuda.max_memory_allocated(card)
        }
        ends = _read_cards()
        joules = [_subtract(ends.get(card), self.cards.get(card)) for card in peaks]
        return cost | {
            "gpu_seconds": round(seconds * len(peaks), 3),
            "gpu_memory_mb": round(math.fsum(peaks.values()), 1),
            "gpu_energy_joules": None if None in joules else math.fsum(filter(None, joules)),
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
