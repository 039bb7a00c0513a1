"""Models and trials in processes of this machine: a worker reads and writes the store only."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recbias.core.printable import guard_messages
from recbias.core.records import StageRecord
from recbias.core.registry import import_files, list_imported_files
from recbias.runner.execution.executor import Executor, one_after_another
from recbias.runner.execution.jobs import Job, Jobs, work_on
from recbias.runner.planning.plan import Plan

PATIENCE = 1.0
"""Seconds that a worker has to end of itself."""


@dataclass(frozen=True)
class Processes:
    """Walks the models of a plan, and trials that may run at once, in ``workers`` processes.

    A worker that dies (out of memory, a crash in a library) costs its own model only: what was
    under way when one died is done again, each by itself.

    Args:
        workers: How many at once; 1 walks them in this process.
    """

    workers: int

    def __call__(self, plan: Plan, walk: Executor) -> Iterable[list[StageRecord]]:
        """Yield the records of each job as it is done."""
        if self.workers <= 1:
            yield from one_after_another(plan, walk)
            return
        jobs = Jobs.of(plan, walk)
        while suspects := (yield from self._together(jobs)):
            for job in suspects:
                yield jobs.finish(job, _alone(jobs, job))

    def _together(self, jobs: Jobs) -> Generator[list[StageRecord], None, list[Job]]:
        """Do jobs at once; return those that were under way when a worker died."""
        suspects: list[Job] = []
        running: dict[Future[list[StageRecord]], Job] = {}
        with _pool(min(self.workers, max(1, len(jobs.waiting)))) as pool:
            while True:
                for job in jobs.take(0 if suspects else self.workers - len(running)):
                    running[_sent(pool, jobs, job)] = job
                if not running:
                    return suspects
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    job = running.pop(future)
                    if isinstance(future.exception(), BrokenProcessPool):
                        suspects.append(job)
                    else:
                        yield jobs.finish(job, future.result())


def _alone(jobs: Jobs, job: Job) -> list[StageRecord]:
    with _pool(1) as pool:
        try:
            return _sent(pool, jobs, job).result()
        except BrokenProcessPool:
            return jobs.died(job)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of workers; they end at once where the run is interrupted or given up."""
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=prepare_worker,
        initargs=(workers, list_imported_files()),
    )
    with pool:
        try:
            yield pool
        except (KeyboardInterrupt, GeneratorExit):
            _end_workers(pool)
            raise


def _end_workers(pool: ProcessPoolExecutor) -> None:
    """End the workers of a pool in the midst of their work: what is stored stays whole."""
    workers = [*(pool._processes or {}).values()]  # noqa: SLF001  public from Python 3.14 only
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(PATIENCE)
        if worker.is_alive():
            worker.kill()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold an interrupt back until the block is over; processes that start in it never get one."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _sent(pool: ProcessPoolExecutor, jobs: Jobs, job: Job) -> Future[list[StageRecord]]:
    """Hand a job to a pool; where its workers are gone already, that is the job's outcome."""
    walk = jobs.walk
    try:
        with _interrupts_held():
            return pool.submit(work_on, walk.store, job, jobs.known(job), fresh=walk.fresh)
    except BrokenProcessPool as error:
        gone: Future[list[StageRecord]] = Future()
        gone.set_exception(error)
        return gone


def prepare_worker(workers: int, files: Sequence[Path]) -> None:
    """Make a worker ready: its share of the cores, and the user's own plug-in files.

    It ends with the process that started it, so that nothing goes on behind a run that was killed.
    Ctrl-C reaches every process of a terminal: only the one that started the workers answers it.
    """
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    guard_messages()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threadpool_limits(max(1, (os.cpu_count() or 1) // workers))
    import_files(files)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
