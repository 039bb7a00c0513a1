"""Models and trials as Ray tasks, on this machine or on the cluster that ``RAY_ADDRESS`` names.

Every machine of the cluster must see the results and data folders under the same paths: a task
reads its inputs from the store, writes its results there, and returns its records only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from recbias.core.errors import Contradiction
from recbias.core.models.devices import is_cuda
from recbias.core.packages import require_packages
from recbias.core.records import StageRecord
from recbias.core.registry import import_files, list_imported_files
from recbias.runner.execution.executor import Executor
from recbias.runner.execution.jobs import Job, Jobs, run_job
from recbias.runner.planning.plan import Plan
from recbias.runner.storage.store import Store


@dataclass(frozen=True)
class RayTasks:
    """Runs the models of a plan, and independent trials, as Ray tasks of one core each.

    A task that computes on CUDA has one GPU, which Ray selects. A task whose process dies fails
    its own model only.

    Args:
        workers: The number of cores of a local Ray; a running cluster has its own number.

    Raises:
        MissingExtra: Ray is not installed.
    """

    workers: int

    def __post_init__(self) -> None:
        require_packages("--executor ray", "ray")

    def __call__(self, plan: Plan, executor: Executor) -> Iterable[list[StageRecord]]:
        """Yield the records of each job as it finishes."""
        import ray

        starts_ray = not ray.is_initialized()
        if starts_ray:
            options = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": self.workers}
            ray.init(**options, include_dashboard=False, log_to_driver=False)
        try:
            _check_gpus(plan, ray)
            yield from _run_tasks(plan, executor, ray)
        finally:
            if starts_ray:
                ray.shutdown()


def _check_gpus(plan: Plan, ray: Any) -> None:
    """Refuse a plan with models on CUDA if no node has a GPU, or if a model selects one of them.

    Raises:
        Contradiction: Ray would never start its tasks, or would hide the selected GPU from it.
    """
    devices = {device for stage in plan.stages for device in stage.devices if is_cuda(device)}
    if numbered := sorted(devices - {"cuda"}):
        message = f"device {numbered[0]}: Ray selects the GPU of each task"
        raise Contradiction(message, remedy="set device: cuda")
    if devices and not ray.cluster_resources().get("GPU", 0):
        message = "device cuda: no node of Ray has a GPU, so its tasks would never start"
        raise Contradiction(message, remedy="set device: cpu, or add a node with a GPU")


def _run_tasks(plan: Plan, executor: Executor, ray: Any) -> Iterator[list[StageRecord]]:
    task = ray.remote(num_cpus=1, max_retries=0)(_run_task)
    files, jobs = list_imported_files(), Jobs.from_plan(plan, executor)
    store = Store(executor.store.folder.absolute())
    running: dict[Any, Job] = {}
    while True:
        for job in jobs.take():
            arguments = (
                store,
                job,
                jobs.select_input_records(job),
                executor.fresh,
                executor.run_id,
            )
            # A task unpickles its job after it has imported the plug-in files.
            placed = task.options(num_gpus=jobs.count_gpus(job))
            running[placed.remote(files, bytes(ForkingPickler.dumps(arguments)))] = job
        if not running:
            return
        (ready,), _ = ray.wait(list(running), num_returns=1)
        job = running.pop(ready)
        try:
            records = ray.get(ready)
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
            records = jobs.report_dead_worker(job)
        yield jobs.finish(records)


def _run_task(files: Sequence[Path], pickled: bytes) -> list[StageRecord]:
    import_files(files)
    store, job, records, fresh, run_id = ForkingPickler.loads(pickled)
    return run_job(store, job, records, fresh=fresh, run_id=run_id)
