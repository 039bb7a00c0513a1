"""A fine-tuning in several processes of this machine, one for each device."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import DeadProcess, UserError
from recbias.core.machine.interrupts import hold_signals
from recbias.core.registry import list_imported_files
from recbias.core.stage_context import (
    Checkpoints,
    has_validation_listener,
    record_fact,
    report_progress,
    report_validation,
    warn,
)
from recbias.models.training.fine_tuning_plan import FineTuning, LearningCurve, Task
from recbias.models.training.several_devices.rank_work import ASKED, WEIGHTS, WORK, Work, run_rank
from recbias.numerics.devices import find_devices

GRACE_SECONDS = 3.0
"""How long the other processes may take to say why one of them failed."""


def train_in_processes(
    task: Task,
    plan: FineTuning,
    rng: np.random.Generator,
    checkpoint: Mapping[str, AnyArray] | None,
) -> LearningCurve:
    """Fine-tune a module in place, as ``fine_tune``, with a process for each device.

    The processes report to this one, which writes the checkpoints and knows the listeners of the
    stage. If one fails, or this one is interrupted, all end.
    """
    import torch

    device = next(task.module.parameters()).device
    task.module.to("cpu")
    work = Work(task, plan, rng, checkpoint, has_validation_listener())
    with tempfile.TemporaryDirectory(prefix="recbias-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        torch.save(work, folder / WORK)
        curve, state = _RankProcesses(plan.name).run(
            folder, find_devices(device.type, plan.devices)
        )
        weights = torch.load(folder / WEIGHTS, weights_only=True, map_location="cpu")
        task.module.load_state_dict(weights)
    rng.bit_generator.state = state
    task.module.to(device).eval()
    return curve


@dataclass(eq=False)
class _RankProcesses:
    name: str  # The model, in messages
    processes: list[Any] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    errors: list[UserError] = field(default_factory=list)
    context: Any = None  # That of torch
    result: tuple[LearningCurve, Any] | None = None

    def run(self, folder: Path, devices: tuple[str, ...]) -> tuple[LearningCurve, Any]:
        """Return the result of the first process; each has a device."""
        from torch.multiprocessing.spawn import start_processes

        pipes = [Pipe() for _ in devices]
        self.connections = [parent for parent, _ in pipes]
        arguments = (folder, devices, [child for _, child in pipes], list_imported_files())
        with hold_signals():
            self.context = start_processes(  # type: ignore[no-untyped-call]
                run_rank, arguments, nprocs=len(devices), join=False, start_method="spawn"
            )
        self.processes = self.context.processes
        try:
            while any(process.exitcode is None for process in self.processes):
                self._receive(None)
                if self._has_failed:
                    self._raise_failure(devices)
            self._receive(0)
        finally:
            for process in self.processes:
                process.kill()
            for process in self.processes:
                process.join()
        if self.result is None:
            raise DeadProcess(f"the processes of {self.name} ended without a result")
        return self.result

    @property
    def _has_failed(self) -> bool:
        return bool(self.errors) or any(process.exitcode for process in self.processes)

    def _receive(self, timeout: float | None) -> None:
        """Wait for messages or ends of processes, and do what the messages say.

        Nothing more comes once all have ended, which may be after the caller has looked.
        """
        running = [process.sentinel for process in self.processes if process.exitcode is None]
        for ready in wait([*self.connections, *running], timeout if running else 0):
            if isinstance(ready, Connection):
                with suppress(EOFError, ConnectionResetError):
                    self._handle(ready, *ready.recv())

    def _handle(self, connection: Connection, kind: str, *values: Any) -> None:
        handlers: Mapping[str, Any] = {
            "progress": report_progress,
            "validation": report_validation,
            "checkpoint": _save,
            "fact": record_fact,
            "warning": warn,
            "error": self.errors.append,
            "result": self._keep_result,
        }
        handlers[kind](*values)
        if kind in ASKED:
            connection.send(None)

    def _keep_result(self, curve: LearningCurve, state: Any) -> None:
        self.result = curve, state

    def _raise_failure(self, devices: tuple[str, ...]) -> None:
        """Raise the cause of a failure: what a process says is its fault, or which one died.

        The others fail because they lost the one that did, at times before it is known to have.
        """
        deadline = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < deadline and not self.errors:
            codes = [process.exitcode for process in self.processes]
            if None not in codes or any((code or 0) < 0 for code in codes):
                break
            self._receive(max(0.0, deadline - time.monotonic()))
        if self.errors:
            raise self.errors[0]
        for rank, process in enumerate(self.processes):
            if (process.exitcode or 0) < 0:
                message = f"process {rank + 1} of {len(devices)} of {self.name}, on "
                message += f"{devices[rank]}, died (signal {-process.exitcode})"
                raise DeadProcess(message)
        self.context.join()  # raises the traceback of the first one


def _save(arrays: Mapping[str, AnyArray]) -> None:
    Checkpoints.current().save(lambda: arrays)
