"""Models and trials as Ray tasks, on this machine or on the cluster that ``RAY_ADDRESS`` names.

Every machine of the cluster must see the data under the same paths, and the results folder too
unless the store is also at a URL: a task reads its inputs from the store, writes its results
there, and returns its records only. What a node did not finish when it died, another does.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from recbias.core.errors import UserError
from recbias.core.models.planned_requests import sends_requests
from recbias.core.packages import require_packages
from recbias.core.records import StageRecord
from recbias.core.registry import import_files, list_imported_files
from recbias.runner.environment import limit_card, measure_card
from recbias.runner.execution.executor import Executor
from recbias.runner.execution.jobs import Job, Jobs, digest_code, run_job
from recbias.runner.execution.ray_nodes import (
    check_gpus,
    check_nodes,
    count_memory,
    find_lacking_files,
    plan_cards,
    plan_memory,
    read_version,
    require_same_recbias,
    take_store,
)
from recbias.runner.execution.stage_records import make_record
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.planning.preview import preview
from recbias.runner.source_digest import digest_package
from recbias.runner.storage.remote_store import RemoteStore
from recbias.runner.storage.store import Store

MAX_NODE_DEATHS = 3
"""The number of nodes that may die under a task before it fails."""


@dataclass(frozen=True)
class RayTasks:
    """Runs the models of a plan, and independent trials, as Ray tasks of one core each.

    A task that computes on CUDA has a GPU, which Ray selects: a share of it if the memory that it
    needs is known, several if several train its model. A task whose process dies fails
    its own model only; one whose node dies is started again on another. Models that send requests
    to a language model stay on the node that started the run if the others do not share its
    folder, because the replies are stored there.

    Args:
        workers: The number of cores of a local Ray; a running cluster has its own number.

    Raises:
        MissingExtra: Ray is not installed.
    """

    workers: int

    def __post_init__(self) -> None:
        require_packages("--executor ray", "ray")

    @contextmanager
    def prepare(self, plan: Plan, store: Store) -> Iterator[None]:
        """Connect to Ray and check its nodes, before the data are read.

        Raises:
            Contradiction: A node has another recbias or lacks the results folder, or a model needs
                a GPU that none has.
        """
        import ray

        starts_ray = not ray.is_initialized()
        if starts_ray:
            own = {"address": "local", "num_cpus": self.workers}  # not a cluster that runs here
            options = {} if os.environ.get("RAY_ADDRESS") else own
            ray.init(**options, include_dashboard=False, log_to_driver=False)
        try:
            check_gpus(plan, ray)
            check_nodes(ray, store)
            yield
        finally:
            if starts_ray:
                ray.shutdown()

    def __call__(self, plan: Plan, executor: Executor) -> Iterator[list[StageRecord]]:
        """Yield the records of each job as it finishes; Ray is connected."""
        import ray

        steps = preview(plan, executor.store).steps
        needs = plan_memory(steps, ray), plan_cards(steps, measure_card())
        tasks = _RunningTasks(ray, executor, Jobs.from_plan(plan, executor), *needs)
        while True:
            for job in tasks.jobs.take():
                tasks.start(job)
            if not tasks.running:
                return
            records = tasks.receive()
            if records is not None:
                yield records


@dataclass(eq=False)
class _RunningTasks:
    """The jobs of a plan that Ray runs: started, and received as they end."""

    ray: Any
    executor: Executor
    jobs: Jobs
    memory: Mapping[str, int]  # The bytes that stages need at most, by address
    shares: Mapping[str, float]  # The shares of a GPU that stages need, by address
    running: dict[Any, Job] = field(default_factory=dict)
    deaths: Counter[Job] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        store = self.executor.store
        self.store = replace(store, folder=store.folder.absolute())
        self.origin = self.ray.get_runtime_context().get_node_id()
        self.task = self.ray.remote(num_cpus=1, max_retries=0)(_run_task)
        files = list_imported_files()
        code = files, [str(Path(folder).absolute()) for folder in sys.path]
        self.facts = (read_version(), digest_package()), self.origin, self.ray.put(code)

    def start(self, job: Job) -> None:
        executor, records = self.executor, self.jobs.select_input_records(job)
        arguments = self.store, job, records, executor.fresh, executor.run_id, digest_code(job)
        options: dict[str, Any] = {"num_gpus": self.jobs.count_gpus(job, self.shares)}
        if n_bytes := count_memory(job, self.memory):
            options["memory"] = n_bytes
        if isinstance(self.store, RemoteStore) and _sends_requests(job):
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
            if self.deaths[job] < MAX_NODE_DEATHS:
                message = "a node of Ray died: its task starts again on another node"
                self.executor.observer.warned(message)
                self.start(job)
                return None
        except (errors.WorkerCrashedError, errors.OutOfMemoryError):
            pass
        except errors.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, UserError) else error) from None
        return self.jobs.finish(self.jobs.report_dead_worker(job), job)


def _sends_requests(job: Job) -> bool:
    return isinstance(job.work, ModelPlan) and sends_requests(job.work.model.plugin)


def _stay_on(node: str, ray: Any) -> dict[str, Any]:
    """Return the options of a task that stays on a node, whose cores may all be kept from Ray."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    cores = next(each["Resources"].get("CPU", 0) for each in ray.nodes() if each["NodeID"] == node)
    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    return {"scheduling_strategy": strategy, "num_cpus": min(1, cores)}


def _run_task(
    expected: tuple[str, str],
    origin: str,
    imported: tuple[Sequence[tuple[Path, bytes]], Sequence[str]],
    pickled: bytes,
) -> list[StageRecord]:
    import ray

    context = ray.get_runtime_context()
    node = context.get_node_id()
    limit_card(context.get_assigned_resources().get("GPU", 0))
    require_same_recbias(*expected, "that started the run")
    files, search_path = imported
    sys.path += [folder for folder in search_path if folder not in sys.path]
    import_files(files)
    store, job, records, fresh, run_id, code = ForkingPickler.loads(pickled)
    store = take_store(store, node=node, origin=origin)
    failure = find_lacking_files(job, store)
    if failure is not None:
        return [make_record(job.stages[0], failure=failure)]
    return run_job(store, job, records, fresh=fresh, run_id=run_id, code=code)
