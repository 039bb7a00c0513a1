"""Where models run, and the trials of one batch, at the same time: processes or Ray tasks.

A worker reads its inputs from the store, writes its results there, and returns records only.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from recbias.core.context import Failure, StageRecord
from recbias.core.errors import Contradiction, RecbiasError, UserError
from recbias.core.machine import count_cores, follow_parent, hold_signals, share_heap
from recbias.core.plugins import is_cuda, sends_requests
from recbias.core.registry import import_files, list_imported_files
from recbias.core.text import guard_messages
from recbias.runner.address import digest_own_sources, digest_package
from recbias.runner.execute import Executor, make_record, run_stages, select_needed_stages
from recbias.runner.plan import Observer, Plan, Stage
from recbias.runner.store import Store

# ---- jobs ----

_SEARCHING = frozenset({"baseline", "trial"})
"""Kinds of stage that come before the result of a search."""


@dataclass(frozen=True, eq=False)
class Job:
    """The unit of work of a worker: the stages of a model, or a trial with those before it.

    Args:
        stages: The stages in order; the first ones may be those of other jobs.
        after: The addresses that earlier jobs compute, which end before.
    """

    stages: tuple[Stage, ...]
    after: frozenset[str] = frozenset()

    @property
    def read(self) -> tuple[Stage, ...]:
        """Its stages and their inputs."""
        return tuple(each for stage in self.stages for each in (stage, *stage.inputs))


@dataclass
class Jobs:
    """The remaining jobs of a plan.

    Args:
        waiting: The jobs that no worker has started, in the order of the plan.
        ended: The addresses of the stages of ended jobs, also of those without a record.
    """

    executor: Executor
    waiting: list[Job] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)

    @classmethod
    def from_plan(cls, plan: Plan, executor: Executor) -> Jobs:
        """Return the jobs of a plan, without the trials that are already stored."""
        jobs, planned = cls(executor), set[str]()
        for model_plan in plan.model_plans:
            for stages in _divide(select_needed_stages(executor, model_plan)):
                if stages[-1].kind in _SEARCHING and executor.is_stored(stages[-1]):
                    executor.ensure(stages[-1])
                    continue
                job = Job(stages)
                after = frozenset(stage.digest for stage in job.read) & planned
                if stages[-1].digest not in planned:
                    jobs.waiting.append(replace(job, after=after))
                planned |= {stage.digest for stage in stages}
        return jobs

    def take(self, limit: int | None = None) -> Sequence[Job]:
        """Remove the next jobs that can start from the queue and return them."""
        ended = self.executor.records.keys() | self.ended
        ready = [job for job in self.waiting if job.after <= ended][:limit]
        self.waiting = [job for job in self.waiting if job not in ready]
        return ready

    def count_gpus(self, job: Job) -> int:
        """Return the number of GPUs that a job needs: the most of a stage to run."""
        missing = [stage for stage in job.stages if not self.executor.is_stored(stage)]
        return max((sum(map(is_cuda, stage.devices)) for stage in missing), default=0)

    def pack(self, job: Job) -> dict[str, Any]:
        """Return the arguments of ``run_job``; the records are those of what the job reads."""
        executor, records = self.executor, self.executor.records
        known = {each.digest: records[each.digest] for each in job.read if each.digest in records}
        return {
            "store": executor.store,
            "job": job,
            "records": known,
            "fresh": executor.fresh,
            "run_id": executor.run_id,
            "code": _digest_code(job),
        }

    def report_dead_worker(self, job: Job, exit_code: int | None = None) -> list[StageRecord]:
        """Return the record of the stage that a worker was computing when its process died.

        Args:
            job: What it was computing.
            exit_code: The exit code of the process, negative for a signal; None if unknown.
        """
        store = self.executor.store
        for stage in job.stages:
            store.look_again(stage.digest)
        unfinished = (stage for stage in job.stages if not store.has(stage.digest))
        stage = next(unfinished, job.stages[-1])
        return [make_record(stage, failure=_describe_death(exit_code))]

    def finish(self, records: list[StageRecord], job: Job | None = None) -> list[StageRecord]:
        """Take over the new records of a worker for a job, and pass them to the observer."""
        self.ended |= {stage.digest for stage in job.stages} if job else set()
        new = [record for record in records if record.digest not in self.executor.records]
        for record in new:
            self.executor.records[record.digest] = record
            self.executor.store.look_again(record.digest)
            self.executor.observer.finished(record)
        return new


def _divide(stages: tuple[Stage, ...]) -> Iterator[tuple[Stage, ...]]:
    """Yield the stages of each job of a model: what trials share, every trial, then the model.

    If every trial depends on all before, one worker runs them in order with the model.
    """
    trials = [stage for stage in stages if stage.kind in _SEARCHING]
    earlier = [tuple(each for each in trial.inputs if each.kind in _SEARCHING) for trial in trials]
    if any(len(before) < at for at, before in enumerate(earlier)):
        if shared := stages[: stages.index(trials[0])]:
            yield shared
        for before, trial in zip(earlier, trials, strict=True):
            yield (*shared, *before, trial)
    yield stages


def _describe_death(exit_code: int | None) -> Failure:
    how = ""
    if exit_code is not None:
        how = f" (signal {-exit_code})" if exit_code < 0 else f" (exit code {exit_code})"
    remedy = (
        "it may have run out of memory: use --workers 1, lower what makes it large (batch_size, "
        "negatives, embedding_size, the dataset), or give it more memory"
    )
    return Failure(f"the worker process died{how}", remedy)


def _digest_code(job: Job) -> str:
    """Return the digest of the code outside recbias that a job can run, as it was first read."""
    return digest_own_sources(stage.work for stage in job.stages)


def run_job(
    store: Store,
    job: Job,
    records: dict[str, StageRecord],
    *,
    fresh: bool,
    run_id: str,
    code: str,
) -> list[StageRecord]:
    """Run a job in a worker process; it fails with other ``code`` than that of the plan."""
    if _digest_code(job) != code:
        message = "the code of its plug-in changed while the run was using it"
        remedy = "run again, and do not change the code before the run has ended"
        return [make_record(job.stages[-1], failure=Failure(message, remedy, user=True))]
    executor = Executor(store, Observer(), fresh=fresh, records=records, run_id=run_id)
    return run_stages(executor, job.stages)


# ---- processes ----


@dataclass(frozen=True)
class Processes:
    """Runs the models of a plan, and independent trials, in worker processes.

    A worker that dies (out of memory, a crash in a library) fails its own model only.

    Args:
        workers: The number of processes; 1 runs the models in this process.
    """

    workers: int

    def prepare(self, plan: Plan) -> AbstractContextManager[None]:
        """Return an empty context: this machine needs no preparation."""
        return nullcontext()

    def __call__(self, plan: Plan, executor: Executor) -> Iterable[list[StageRecord]]:
        """Yield the records of each job as it finishes."""
        if self.workers <= 1:
            return _run_in_sequence(plan, executor)
        return _run_in_workers(Jobs.from_plan(plan, executor), self.workers)


def _run_in_sequence(plan: Plan, executor: Executor) -> Iterator[list[StageRecord]]:
    for model_plan, next_plan in zip(plan.model_plans, (*plan.model_plans[1:], None), strict=True):
        yield run_stages(executor, select_needed_stages(executor, model_plan))
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
        resource_tracker.ensure_running()  # its start would unblock the signals that are held
        with hold_signals():
            process.start()
        there.close()
        return cls(process, here)

    def send(self, jobs: Jobs, job: Job) -> None:
        """Let the process run a job; that it has died is seen when its answer is received."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(jobs.pack(job))

    def receive(self) -> list[StageRecord] | None:
        """Return the records of its job, None if the process has died."""
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
            arguments = connection.recv()
            try:
                answer: list[StageRecord] | RecbiasError = run_job(**arguments)
            except RecbiasError as error:
                answer = error
            connection.send(answer)


# ---- Ray tasks ----

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
    """

    workers: int

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
        arguments = self.jobs.pack(job) | {"store": self.store}
        options: dict[str, Any] = {"num_gpus": self.jobs.count_gpus(job)}
        works = (getattr(stage.work, "work", stage.work) for stage in job.stages)
        asks = any(sends_requests(getattr(work, "model", None)) for work in works)
        if self.store.is_remote and asks:
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
    arguments = ForkingPickler.loads(pickled)
    store = arguments["store"]
    if not (store.is_remote or store.folder.is_dir()):
        message = f"the node {node} of Ray does not see {store.folder}"
        remedy = "mount the results folder there under the same path, or give --store URL"
        raise Contradiction(message, remedy=remedy)
    return run_job(**arguments | {"store": take_store(store, node=node, origin=origin)})


def take_store(store: Store, *, node: str, origin: str) -> Store:
    """Return the store of a task: on another node than the origin, in a folder of that node.

    Args:
        store: The store of the run.
        node: The identifier of the node of the task.
        origin: The identifier of the node on which the run was started.
    """
    if node == origin or not store.is_remote:
        return store
    folder = Path(tempfile.gettempdir()) / f"recbias-{node}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return replace(store, folder=folder / "store")
