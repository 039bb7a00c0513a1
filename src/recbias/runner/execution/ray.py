"""Models and trials as Ray tasks: on this machine, or on the cluster that ``RAY_ADDRESS`` names.

Every machine of the cluster must see the same results and data folders under the same paths: a
task reads its inputs from the store and writes its results there, and sends back its records only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from recbias.core.errors import MissingExtra
from recbias.core.records import StageRecord
from recbias.core.registry import import_files, list_imported_files
from recbias.runner.execution.executor import Executor
from recbias.runner.execution.jobs import Job, Jobs, work_on
from recbias.runner.planning.plan import Plan
from recbias.runner.storage.store import Store


@dataclass(frozen=True)
class RayTasks:
    """Walks the models of a plan, and trials that may run at once, as Ray tasks of one core each.

    A task whose process dies costs its own model only.

    Args:
        workers: Cores of a Ray that is started here; a running cluster has its own.

    Raises:
        MissingExtra: Ray is not installed.
    """

    workers: int

    def __post_init__(self) -> None:
        """Find out at once whether Ray is there."""
        try:
            import ray
        except ModuleNotFoundError as error:
            found = "--executor ray needs the package 'ray', which is not installed"
            raise MissingExtra(found, remedy="pip install 'recbias[ray]'") from error
        del ray

    def __call__(self, plan: Plan, walk: Executor) -> Iterable[list[StageRecord]]:
        """Yield the records of each job as it is done."""
        import ray

        started = not ray.is_initialized()
        if started:
            ray.init(**self._where(), include_dashboard=False, log_to_driver=False)
        try:
            yield from self._tasks(plan, walk, ray)
        finally:
            if started:
                ray.shutdown()

    def _where(self) -> dict[str, Any]:
        return {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": self.workers}

    def _tasks(self, plan: Plan, walk: Executor, ray: Any) -> Iterable[list[StageRecord]]:
        task = ray.remote(num_cpus=1, max_retries=0)(_work)
        files, jobs = list_imported_files(), Jobs.of(plan, walk)
        running: dict[Any, Job] = {}
        while True:
            for job in jobs.take():
                running[task.remote(files, _sent(jobs, job))] = job
            if not running:
                return
            (ready,), _ = ray.wait(list(running), num_returns=1)
            job = running.pop(ready)
            try:
                records = ray.get(ready)
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
                records = jobs.died(job)
            yield jobs.finish(job, records)


def _sent(jobs: Jobs, job: Job) -> bytes:
    """Return a job as bytes: a task reads it only once it has the user's own plug-in files."""
    store = Store(jobs.walk.store.folder.absolute())
    return bytes(ForkingPickler.dumps((store, job, jobs.known(job), jobs.walk.fresh)))


def _work(files: Sequence[Path], sent: bytes) -> list[StageRecord]:
    """Do one job; runs as a task."""
    import_files(files)
    store, job, known, fresh = ForkingPickler.loads(sent)
    return work_on(store, job, known, fresh=fresh)
