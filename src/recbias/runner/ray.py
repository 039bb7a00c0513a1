"""Models and trials as Ray tasks, on this machine or on the cluster that ``RAY_ADDRESS`` names.

Every machine of the cluster must have this recbias and see the data under the same paths, and the
results folder too unless the store is also at a URL: a task reads its inputs from the store,
writes its results there, and returns its records only. What a node did not finish when it died,
another does.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from recbias.core.context import StageRecord
from recbias.core.errors import Contradiction, UserError
from recbias.core.packages import require_packages
from recbias.core.plugins import is_cuda, sends_requests
from recbias.core.registry import import_files, list_imported_files
from recbias.runner.address import digest_package
from recbias.runner.execute import Executor, Job, Jobs, digest_code, run_job
from recbias.runner.plan import Plan
from recbias.runner.store import Store
from recbias.runner.store_url import RemoteStore

_MAX_NODE_DEATHS = 3
"""The number of nodes that may die under a task before it fails."""


@dataclass(frozen=True)
class RayTasks:
    """Runs the models of a plan, and independent trials, as Ray tasks of one core each.

    A task that computes on CUDA has a GPU, which Ray selects, or several if several train its
    model. A task whose process dies fails its own model only; one whose node dies is started again
    on another. Models that send requests to a language model stay on the node that started the run
    if the others do not share its folder, because the replies are stored there.

    Args:
        workers: The number of cores of a local Ray; a running cluster has its own number.

    Raises:
        MissingExtra: Ray is not installed.
    """

    workers: int

    def __post_init__(self) -> None:
        require_packages("--executor ray", "ray")

    @contextmanager
    def prepare(self, plan: Plan) -> Iterator[None]:
        """Connect to Ray, before the data are read.

        Raises:
            Contradiction: A model needs a GPU that no node has.
        """
        import ray

        starts_ray = not ray.is_initialized()
        if starts_ray:
            own = {"address": "local", "num_cpus": self.workers}  # not a cluster that runs here
            options = {} if os.environ.get("RAY_ADDRESS") else own
            ray.init(**options, include_dashboard=False, log_to_driver=False)
        try:
            _check_gpus(plan, ray)
            yield
        finally:
            if starts_ray:
                ray.shutdown()

    def __call__(self, plan: Plan, executor: Executor) -> Iterator[list[StageRecord]]:
        """Yield the records of each job as it finishes; Ray is connected.

        Raises:
            Contradiction: A node has another recbias, or lacks the results folder.
        """
        import ray

        tasks = _RunningTasks(ray, executor, Jobs.from_plan(plan, executor))
        while True:
            for job in tasks.jobs.take():
                tasks.start(job)
            if not tasks.running:
                return
            records = tasks.receive()
            if records is not None:
                yield records


def _check_gpus(plan: Plan, ray: Any) -> None:
    """Refuse a plan with models on CUDA without a GPU, or with a selected one."""
    stages = [stage for model_plan in plan.model_plans for stage in model_plan.stages]
    devices = {device for stage in stages for device in stage.devices if is_cuda(device)}
    if numbered := sorted(devices - {"cuda"}):
        message = f"device {numbered[0]}: Ray selects the GPU of each task"
        raise Contradiction(message, remedy="set device: cuda")
    if devices and not ray.cluster_resources().get("GPU", 0):
        message = "device cuda: no node of Ray has a GPU, so its tasks would never start"
        raise Contradiction(message, remedy="set device: cpu, or add a node with a GPU")


@dataclass(eq=False)
class _RunningTasks:
    """The jobs of a plan that Ray runs: started, and received as they end."""

    ray: Any
    executor: Executor
    jobs: Jobs
    running: dict[Any, Job] = field(default_factory=dict)
    deaths: Counter[Job] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        store = self.executor.store
        self.store = replace(store, folder=store.folder.absolute())
        self.origin = self.ray.get_runtime_context().get_node_id()
        self.task = self.ray.remote(num_cpus=1, max_retries=0)(_run_task)
        search_path = [str(Path(folder).absolute()) for folder in sys.path]
        code = list_imported_files(), search_path, digest_package()
        self.facts = self.origin, self.ray.put(code)

    def start(self, job: Job) -> None:
        executor, records = self.executor, self.jobs.select_records(job)
        arguments = self.store, job, records, executor.fresh, executor.run_id, digest_code(job)
        options: dict[str, Any] = {"num_gpus": self.jobs.count_gpus(job)}
        works = (getattr(stage.work, "work", stage.work) for stage in job.stages)
        asks = any(sends_requests(getattr(work, "model", None)) for work in works)
        if isinstance(self.store, RemoteStore) and asks:
            options |= _stay_on(self.origin, self.ray)
        # A task unpickles its job after it has imported the plug-in files.
        pickled = bytes(ForkingPickler.dumps(arguments))
        self.running[self.task.options(**options).remote(*self.facts, pickled)] = job

    def receive(self) -> list[StageRecord] | None:
        """Return the records of the next job that ends; None if it was started again."""
        errors = self.ray.exceptions
        (ready,), _ = self.ray.wait(list(self.running), num_returns=1)
        job = self.running.pop(ready)
        try:
            return self.jobs.finish(self.ray.get(ready), job)
        except errors.NodeDiedError:
            self.deaths[job] += 1
            if self.deaths[job] < _MAX_NODE_DEATHS:
                message = "a node of Ray died: its task starts again on another node"
                self.executor.observer.warned(message)
                self.start(job)
                return None
        except (errors.WorkerCrashedError, errors.OutOfMemoryError):
            pass
        except errors.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, UserError) else error) from None
        return self.jobs.finish(self.jobs.report_dead_worker(job), job)


def _stay_on(node: str, ray: Any) -> dict[str, Any]:
    """Return the options of a task that stays on a node, whose cores may all be kept from Ray."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    cores = next(each["Resources"].get("CPU", 0) for each in ray.nodes() if each["NodeID"] == node)
    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    return {"scheduling_strategy": strategy, "num_cpus": min(1, cores)}


def _run_task(
    origin: str,
    code: tuple[Sequence[tuple[Path, bytes]], Sequence[str], str],
    pickled: bytes,
) -> list[StageRecord]:
    """Run a job on a node, which must compute what the node that started the run would."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    files, search_path, package = code
    if digest_package() != package:
        message = f"the node {node} of Ray has another recbias than the one that runs"
        raise Contradiction(message, remedy="install the same commit on both")
    sys.path += [folder for folder in search_path if folder not in sys.path]
    import_files(files)
    store, job, records, fresh, run_id, digest = ForkingPickler.loads(pickled)
    if not (isinstance(store, RemoteStore) or store.folder.is_dir()):
        message = f"the node {node} of Ray does not see {store.folder}"
        remedy = "mount the results folder there under the same path, or give --store URL"
        raise Contradiction(message, remedy=remedy)
    store = take_store(store, node=node, origin=origin)
    return run_job(store, job, records, fresh=fresh, run_id=run_id, code=digest)


def take_store(store: Store, *, node: str, origin: str) -> Store:
    """Return the store of a task: on another node than the origin, in a folder of that node.

    Args:
        store: The store of the run.
        node: The identifier of the node of the task.
        origin: The identifier of the node on which the run was started.
    """
    if node == origin or not isinstance(store, RemoteStore):
        return store
    folder = Path(tempfile.gettempdir()) / f"recbias-{node}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return replace(store, folder=folder / "store")
