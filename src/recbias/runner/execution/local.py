"""Models and trials in worker processes of this machine, which share the store only."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

WAIT_SECONDS = 1.0
"""How long is waited for a job before the pool is looked at."""


@dataclass(frozen=True)
class Processes:
    """Runs the models of a plan, and independent trials, in worker processes.

    A worker that dies (out of memory, a crash in a library) fails its own model only: the jobs
    that were running then are repeated one at a time.

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
            yield from _run_in_sequence(plan, executor)
            return
        jobs = Jobs.from_plan(plan, executor)
        while suspects := (yield from self._run_together(jobs)):
            for job in suspects:
                yield jobs.finish(_run_alone(jobs, job), job)

    def _run_together(self, jobs: Jobs) -> Generator[list[StageRecord], None, list[Job]]:
        """Run jobs at the same time; return those that were running when a worker died."""
        suspects: list[Job] = []
        running: dict[Future[list[StageRecord]], Job] = {}
        n_workers = min(self.workers, max(1, len(jobs.waiting)))
        with _open_pool(n_workers) as pool:
            while True:
                for job in jobs.take(0 if suspects else self.workers - len(running)):
                    running[_submit(pool, jobs, job)] = job
                if not running:
                    return suspects
                done = wait(running, WAIT_SECONDS, FIRST_COMPLETED).done
                if not done and _is_broken(pool):  # submitted while a worker died: never done
                    return [*suspects, *running.values()]
                for future in done:
                    job = running.pop(future)
                    if isinstance(future.exception(), BrokenProcessPool):
                        suspects.append(job)
                    else:
                        yield jobs.finish(future.result(), job)


def _run_alone(jobs: Jobs, job: Job) -> list[StageRecord]:
    with _open_pool(1) as pool:
        future = _submit(pool, jobs, job)
        processes = [*(pool._processes or {}).values()]  # noqa: SLF001  public from Python 3.14
        wait([future])
    if not isinstance(future.exception(), BrokenProcessPool):
        return future.result()
    code = processes[0].exitcode if processes else None  # known when the pool is closed
    return jobs.report_dead_worker(job, code)


def _run_in_sequence(plan: Plan, executor: Executor) -> Iterable[list[StageRecord]]:
    for model_plan, next_plan in zip(plan.model_plans, (*plan.model_plans[1:], None), strict=True):
        yield run_model(executor, model_plan)
        needed = () if next_plan is None else next_plan.data_context.stages
        context = model_plan.data_context
        executor.forget(stage for stage in (context.split, context.queries) if stage not in needed)


@contextmanager
def _open_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of workers.

    They all start with the first job: the pool would wait for ever for one that starts while
    another one dies. They are killed when the run is interrupted, and when one of them has died.
    """
    files = list_imported_files()
    with hold_signals():  # the process that tracks semaphores starts here
        pool = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_prepare_worker,
            initargs=(workers, files),
        )
    pool._safe_to_dynamically_spawn_children = False  # type: ignore[attr-defined]  # noqa: SLF001
    with pool:
        try:
            yield pool
        except (KeyboardInterrupt, GeneratorExit):
            _kill_workers(pool)  # the store holds complete results only
            raise
        if _is_broken(pool):
            _kill_workers(pool)


def _is_broken(pool: ProcessPoolExecutor) -> bool:
    return bool(pool._broken)  # noqa: SLF001  nothing public tells


def _kill_workers(pool: ProcessPoolExecutor) -> None:
    for process in [*(pool._processes or {}).values()]:  # noqa: SLF001  public from Python 3.14
        process.kill()


def _submit(pool: ProcessPoolExecutor, jobs: Jobs, job: Job) -> Future[list[StageRecord]]:
    """Submit a job to a pool; if its workers have died, the job fails in the same way."""
    executor, records = jobs.executor, jobs.select_input_records(job)
    options: dict[str, Any] = {"fresh": executor.fresh, "run_id": executor.run_id}
    options["code"] = digest_code(job)
    try:
        with hold_signals():
            return pool.submit(run_job, executor.store, job, records, **options)
    except BrokenProcessPool as error:
        failed: Future[list[StageRecord]] = Future()
        failed.set_exception(error)
        return failed


def _prepare_worker(workers: int, files: Sequence[tuple[Path, bytes]]) -> None:
    """Prepare a worker: limit its threads, and import the user's plug-in files."""
    from threadpoolctl import threadpool_limits

    follow_parent()
    share_heap()
    os.dup2(2, 1)  # what plug-ins print is not the result
    guard_messages()
    threadpool_limits(max(1, count_cores() // workers))
    import_files(files)
