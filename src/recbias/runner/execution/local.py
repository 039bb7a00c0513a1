"""Models and trials in worker processes of this machine, which share the store only."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from recbias.core.errors import RecbiasError
from recbias.core.machine.interrupts import follow_parent, hold_signals
from recbias.core.machine.memory import share_heap
from recbias.core.machine.operating_system import count_cores
from recbias.core.printable import guard_messages
from recbias.core.records import StageRecord
from recbias.core.registry import import_files, list_imported_files
from recbias.runner.execution.executor import Executor, run_model
from recbias.runner.execution.jobs import Job, Jobs, digest_code, run_job
from recbias.runner.planning.plan import Plan
from recbias.runner.storage.store import Store


@dataclass(frozen=True)
class Processes:
    """Runs the models of a plan, and independent trials, in worker processes.

    A worker that dies (out of memory, a crash in a library) fails its own model only.

    Args:
        workers: The number of processes; 1 runs the models in this process.
    """

    workers: int

    def prepare(self, plan: Plan, store: Store) -> AbstractContextManager[None]:
        """Return an empty context: this machine needs no preparation."""
        return nullcontext()

    def __call__(self, plan: Plan, executor: Executor) -> Iterable[list[StageRecord]]:
        """Yield the records of each job as it finishes."""
        if self.workers <= 1:
            return _run_in_sequence(plan, executor)
        return _run_in_workers(Jobs.from_plan(plan, executor), self.workers)


def _run_in_sequence(plan: Plan, executor: Executor) -> Iterator[list[StageRecord]]:
    for model_plan, next_plan in zip(plan.model_plans, (*plan.model_plans[1:], None), strict=True):
        yield run_model(executor, model_plan)
        needed = () if next_plan is None else next_plan.data_context.stages
        context = model_plan.data_context
        executor.forget(stage for stage in (context.split, context.queries) if stage not in needed)


def _run_in_workers(jobs: Jobs, n_workers: int) -> Iterator[list[StageRecord]]:
    n_threads = max(1, count_cores() // min(n_workers, max(1, len(jobs.waiting))))
    idle: list[_Worker] = []
    running: dict[Any, tuple[_Worker, Job]] = {}
    try:
        while True:
            for job in jobs.take(n_workers - len(running)):
                worker = idle.pop() if idle else _Worker.start(n_threads)
                running[worker.connection] = worker, job
                worker.send(jobs, job)
            if not running:
                return
            for connection in wait([*running]):
                worker, job = running.pop(connection)
                records = worker.receive()
                if records is None:
                    records = jobs.report_dead_worker(job, worker.process.exitcode)
                else:
                    idle.append(worker)
                yield jobs.finish(records, job)
    finally:
        for worker in [*idle, *(worker for worker, _ in running.values())]:
            worker.process.kill()  # the store holds complete results only
            worker.process.join()


@dataclass(frozen=True, eq=False)
class _Worker:
    """A process that runs jobs, one after the other."""

    process: BaseProcess
    connection: Connection

    @classmethod
    def start(cls, n_threads: int) -> _Worker:
        here, there = Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=_work, args=(there, n_threads, list_imported_files())
        )
        with hold_signals():
            process.start()
        there.close()
        return cls(process, here)

    def send(self, jobs: Jobs, job: Job) -> None:
        """Let the process run a job; that it has died is seen when its answer is received."""
        executor, records = jobs.executor, jobs.select_input_records(job)
        options = {"fresh": executor.fresh, "run_id": executor.run_id, "code": digest_code(job)}
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(((executor.store, job, records), options))

    def receive(self) -> list[StageRecord] | None:
        """Return the records of its job, None if the process has died.

        Raises:
            RecbiasError: The run cannot go on, as when the disk is full.
        """
        try:
            answer: list[StageRecord] | RecbiasError = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            return None
        if isinstance(answer, RecbiasError):
            raise answer
        return answer


def _work(
    connection: Connection, n_threads: int, plugin_files: Sequence[tuple[Path, bytes]]
) -> None:
    """Run the jobs that arrive, until there are no more."""
    from threadpoolctl import threadpool_limits

    follow_parent()
    share_heap()
    with suppress(OSError):  # a stream is closed
        os.dup2(2, 1)  # what plug-ins print is not the result
    guard_messages()
    threadpool_limits(n_threads)
    import_files(plugin_files)
    with suppress(EOFError, OSError):  # the run has ended
        while True:
            inputs, options = connection.recv()
            try:
                answer: list[StageRecord] | RecbiasError = run_job(*inputs, **options)
            except RecbiasError as error:
                answer = error
            connection.send(answer)
