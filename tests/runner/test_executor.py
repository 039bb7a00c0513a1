from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias import api
from recbias.core.context import Checkpoints, StageRecord
from recbias.core.errors import (
    BrokenContract,
    NothingLeft,
    StageError,
    Unwritable,
)
from recbias.core.files import compute_digest
from recbias.kernels import devices
from recbias.runner.boundary import attempt, blame_plugin
from recbias.runner.checks import add_preflight
from recbias.runner.execute import (
    Executor,
    execute,
    make_record,
    run_stages,
    to_error,
)
from recbias.runner.plan import Keys, Observer, Plan, Stage
from recbias.runner.store import Store, list_checkpoints
from recbias.runner.workers import Job, Jobs, run_job
from support.specs import make_small_spec
from support.worlds.texts.sentence_worlds import make_world


class RecordingObserver(Observer):
    def __init__(self) -> None:
        self.events: list[str] = []

    def started(self, stage: Stage) -> None:
        self.events.append(f"started {stage.title}")

    def progressed(self, what: str, done: int, total: int) -> None:
        self.events.append(f"{what} {done}/{total}")

    def finished(self, record: StageRecord) -> None:
        state = "failed" if record.failure else "stored" if record.reused else "done"
        self.events.append(f"{state} {record.stage}")


def make_stage(name: str, work: Callable[..., Any], *inputs: Stage) -> Stage:
    return Stage("fit", name, work, inputs, Keys("d", 1, 1, "m"), compute_digest(name))


def make_one() -> dict[str, Any]:
    return {"x": np.array([1.0])}


def double(value: dict[str, Any]) -> dict[str, Any]:
    return {"x": value["x"] * 2}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_stage_is_computed_once_and_then_reused(store: Store) -> None:
    first = make_stage("first", make_one)
    second = make_stage("second", double, first)
    observer = RecordingObserver()
    assert Executor(store, observer).value(second)["x"].tolist() == [2.0]
    assert observer.events == ["started first", "done first", "started second", "done second"]
    again = RecordingObserver()
    assert Executor(store, again).value(second)["x"].tolist() == [2.0]
    assert again.events == ["stored second"]


def test_a_stage_whose_input_failed_is_skipped_and_names_it(store: Store) -> None:
    def fail() -> None:
        raise ValueError("bad weights")

    first = make_stage("fit EASE", fail)
    executor = Executor(store, Observer())
    record = executor.ensure(make_stage("recommend EASE", double, first))
    assert record.failure is not None
    assert "'fit EASE' failed: " in record.failure.message
    assert "ValueError: bad weights" in record.failure.message
    assert not store.has(first.digest)
    with pytest.raises(StageError, match="bad weights"):
        executor.value(first)


def test_an_error_of_the_user_names_the_spec_and_a_bug_does_not(store: Store) -> None:
    def fail_on_input() -> None:
        raise NothingLeft("no rows", where="by", remedy="filter less")

    def divide_by_zero() -> None:
        raise ZeroDivisionError

    faulty = replace(make_stage("faulty", fail_on_input), spec_location="a.yaml:3:5: metrics[0]")
    record = Executor(store, Observer()).ensure(faulty)
    assert record.failure is not None
    assert record.failure.message == "a.yaml:3:5: metrics[0]: by: no rows"
    assert to_error(record).lines()[0] == "error: a.yaml:3:5: metrics[0]: by: no rows"
    broken = Executor(store, Observer()).ensure(
        replace(make_stage("bug", divide_by_zero), spec_location="a.yaml:3:5: x")
    )
    assert broken.failure is not None
    assert broken.failure.message.startswith("ZeroDivisionError")


def test_a_damaged_result_is_computed_again(store: Store) -> None:
    first = make_stage("first", make_one)
    Executor(store, Observer()).ensure(first)
    path = store.path(first.digest) / "arrays.npz"
    content = bytearray(path.read_bytes())
    content[-20] ^= 0xFF
    path.write_bytes(bytes(content))
    executor = Executor(store, Observer())
    assert executor.value(make_stage("second", double, first))["x"].tolist() == [2.0]
    assert not executor.records[first.digest].reused


def make_counter(error: BaseException | None) -> Callable[[], dict[str, Any]]:
    """Return work that counts to three, with a checkpoint per step, and may fail at the second."""

    def count() -> dict[str, Any]:
        checkpoints = Checkpoints.current()
        last = checkpoints.load()
        begins = 0 if last is None else int(last["step"])
        for step in range(begins + 1, 4):
            checkpoints.due = 0
            checkpoints.save_if_due(lambda step=step: {"step": np.array(step)})  # type: ignore[misc]
            if step == 2 and error is not None:
                raise error
        return {"began": np.array(begins)}

    return count


@pytest.mark.parametrize(
    ("error", "begins"),
    [(MemoryError(), 2), (KeyboardInterrupt(), 2), (Unwritable("full"), 2), (ValueError(), 0)],
)
def test_interrupted_work_resumes_and_failed_work_restarts(
    store: Store, error: BaseException, begins: int
) -> None:
    with suppress(KeyboardInterrupt, Unwritable):
        Executor(store, Observer()).ensure(make_stage("fit", make_counter(error)))
    assert bool(list_checkpoints(store)) == (begins > 0)
    executor = Executor(store, Observer())
    again = make_stage("fit", make_counter(None))
    assert executor.value(again)["began"] == begins
    assert (executor.records[again.digest].resumed_seconds > 0) == (begins > 0)
    assert list_checkpoints(store) == []


class RecordingObserverJobs(Observer):
    def __init__(self) -> None:
        self.records: list[StageRecord] = []

    def finished(self, record: StageRecord) -> None:
        self.records.append(record)


def make_search(name: str, trials: int, parallel: int, **settings: Any) -> dict[str, Any]:
    tune = {"metric": "nDCG", "trials": trials, "parallel": parallel, "space": settings}
    return {"name": name, "tune": tune}


MODELS = [
    make_search("ItemKNN", 3, 2, neighbors={"int": [1, 30]}),
    "MostPop",
    make_search("UserKNN", 2, 1, neighbors={"int": [1, 10]}),
]
SPLIT = {"name": "random", "test": 0.2, "validation": 0.2}


@pytest.fixture
def plan_and_store(tmp_path: Path) -> tuple[Plan, Store]:
    plan, store = api.plan(
        make_small_spec(models=MODELS, split=SPLIT, metrics=["nDCG"]), out=tmp_path
    )
    execute(plan, store, Observer(), add_preflight(lambda plan, executor: []))
    return plan, store


def take_titles(jobs: Jobs) -> list[str]:
    return [job.stages[-1].title for job in jobs.take()]


def finish(jobs: Jobs, job: Job) -> None:
    jobs.finish([make_record(stage) for stage in job.stages], job)


def test_trials_of_a_batch_are_ready_together_and_later_trials_wait(
    plan_and_store: tuple[Plan, Store],
) -> None:
    plan, store = plan_and_store
    jobs = Jobs.from_plan(plan, Executor(store, Observer()))
    first, second, *other_jobs = jobs.take()
    assert [[stage.title for stage in job.stages] for job in (first, second)] == [
        ["trial 1 of ItemKNN"],
        ["trial 2 of ItemKNN"],
    ]
    # trials that depend on one another stay with their model, which is ready
    assert [job.stages[0].title for job in other_jobs] == ["fit MostPop", "trial 1 of UserKNN"]
    assert len(other_jobs[1].stages) == 2 + 1 + 3
    finish(jobs, second)
    assert take_titles(jobs) == []
    finish(jobs, first)
    (third,) = jobs.take()
    assert third.stages[-1].title == "trial 3 of ItemKNN"
    finish(jobs, third)
    (last,) = jobs.take()
    assert [stage.title for stage in last.stages[3:]] == [
        *("search ItemKNN", "fit ItemKNN", "recommend ItemKNN", "measure nDCG of ItemKNN")
    ]


def run(jobs: Jobs, job: Job, fresh: bool = False) -> list[StageRecord]:
    return run_job(**jobs.pack(job) | {"fresh": fresh})


def test_jobs_that_need_a_failed_trial_compute_nothing(
    plan_and_store: tuple[Plan, Store],
) -> None:
    plan, store = plan_and_store
    executor = Executor(store, observer := RecordingObserverJobs())
    jobs = Jobs.from_plan(plan, executor)
    first, second, *_ = jobs.take()
    finish(jobs, first)
    (record,) = jobs.finish(jobs.report_dead_worker(second), second)
    assert (record.stage, record.model) == ("trial 2 of ItemKNN", "ItemKNN")
    assert record.failure is not None
    assert record.failure.message == "the worker process died"
    (third,) = jobs.take()
    assert jobs.finish(run(jobs, third), third) == []
    (last,) = jobs.take()
    assert jobs.finish(run(jobs, last), last) == []
    assert observer.records[-1] is executor.records[record.digest] is record


def test_stored_trials_are_reported_as_reused(plan_and_store: tuple[Plan, Store]) -> None:
    plan, store = plan_and_store
    run_stages(Executor(store, Observer()), plan.model_plans[0].stages)
    store.remove(plan.model_plans[0].trials[1].digest)
    search = plan.model_plans[0].search
    assert search is not None
    store.remove(search.digest)
    jobs = Jobs.from_plan(plan, Executor(store, observer := RecordingObserverJobs()))
    assert take_titles(jobs)[0] == "trial 2 of ItemKNN"
    assert [(record.stage, record.reused) for record in observer.records] == [
        ("trial 1 of ItemKNN", True),
        ("trial 3 of ItemKNN", True),
    ]
    fresh_jobs = Jobs.from_plan(plan, Executor(store, Observer(), fresh=True))
    assert take_titles(fresh_jobs)[:2] == ["trial 1 of ItemKNN", "trial 2 of ItemKNN"]


@pytest.mark.parametrize("fresh", [False, True])
def test_workers_reuse_results_of_this_run(
    plan_and_store: tuple[Plan, Store], fresh: bool
) -> None:
    plan, store = plan_and_store
    executor = Executor(store, Observer(), fresh=fresh)
    jobs, rounds = Jobs.from_plan(plan, executor), 0
    for context in plan.data_contexts:
        for stage in (context.dataset, context.split, context.queries):
            executor.ensure(stage)
    while ready := jobs.take():
        rounds += 1
        for job in ready:
            jobs.finish(run(jobs, job, fresh), job)
    assert rounds == 3
    records = [record for record in executor.records.values() if record.model]
    assert len(records) == sum(len(model_plan.stages) for model_plan in plan.model_plans)
    assert not any(record.reused or record.failure for record in records)


@pytest.mark.parametrize(("device", "n_gpus"), [("cuda", [0, 1, 1]), ("cpu", [0, 0, 0])])
def test_jobs_that_compute_on_cuda_need_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, n_gpus: list[int]
) -> None:
    monkeypatch.setattr(devices, "list_devices", lambda: ("cuda", "cpu"))
    tune = {"metric": "nDCG", "trials": 1, "space": {"epochs": {"int": [1, 2]}}}
    searched = {"name": "BPR-MF", "label": "searched", "tune": tune}
    spec = make_small_spec(models=["MostPop", "BPR-MF", searched], split=SPLIT, device=device)
    plan, store = api.plan(spec, out=tmp_path)
    jobs = Jobs.from_plan(plan, Executor(store, Observer()))
    assert [jobs.count_gpus(job) for job in jobs.waiting] == n_gpus
    one_model = [
        Job((stage,)) for stage in plan.stages if stage.kind in {"fit", "trial", "measure"}
    ]
    expected = {"fit": n_gpus[1], "trial": n_gpus[1], "measure": 0}
    for job in one_model[-5:]:
        assert jobs.count_gpus(job) == expected[job.stages[0].kind]


def test_trials_wait_for_the_baseline_that_they_are_compared_with(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    gap = {"name": "perplexity_gap", "a": "female", "b": "male"}
    search = {"metric": gap, "trials": 2, "space": {"epochs": {"int": [1, 9]}}, "parallel": 2}
    model = {"name": "language_model", "model": str(world.model), "terms": str(world.terms)}
    spec = {
        "name": "searched",
        "dataset": world.write_tables(tmp_path),
        "queries": {"name": "sentences", "part": "test"},
        "models": [{**model, "debias": {"method": "CTDA"}, "tune": search}],
        "metrics": [gap],
    }
    plan, store = api.plan(spec, out=tmp_path)
    jobs = Jobs.from_plan(plan, Executor(store, Observer()))
    (first,) = jobs.take()
    assert [stage.kind for stage in first.stages] == ["baseline"]
    assert jobs.take() == []
    finish(jobs, first)
    assert [job.stages[-1].kind for job in jobs.take()] == ["trial", "trial"]


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [
        (
            RuntimeError("CUDA error: unspecified launch failure\nCUDA kernel errors might be"),
            "the GPU failed: unspecified launch failure",
            "run the same command again to resume, on another device if it fails again",
        ),
    ],
)
def test_a_lost_device_or_process_keeps_the_checkpoint(
    error: Exception, message: str, remedy: str
) -> None:
    def lose() -> None:
        raise error

    discarded: list[bool] = []
    _, failure = attempt(lose, on_lasting_failure=lambda: discarded.append(True))
    assert failure is not None
    assert (failure.message, failure.help, failure.user) == (message, remedy, False)
    assert discarded == []


@pytest.mark.parametrize("error", [AssertionError(), SystemExit(0), KeyError("a"), OSError("b")])
def test_errors_in_plugin_code_name_its_line(error: BaseException) -> None:
    with pytest.raises(BrokenContract) as caught, blame_plugin("gives() of Mine"):
        raise error
    assert caught.value.message.startswith(f"gives() of Mine failed: {type(error).__name__}")
    assert "(test_executor.py:" in caught.value.message
    assert caught.value.__cause__ is error
