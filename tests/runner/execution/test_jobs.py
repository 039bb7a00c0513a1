from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias import api
from recbias.core.context import StageRecord
from recbias.kernels import devices
from recbias.runner.execute import (
    Executor,
    Job,
    Jobs,
    Silent,
    digest_code,
    execute,
    run_job,
    run_model,
)
from recbias.runner.plan import Plan
from recbias.runner.stage import make_record
from recbias.runner.store import Store
from support.specs import make_small_spec
from support.worlds.texts.sentence_worlds import make_world


class RecordingObserver(Silent):
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
    execute(plan, store, Silent(), fresh=False, stop=True, run_models=lambda plan, executor: [])
    return plan, store


def take_titles(jobs: Jobs) -> list[str]:
    return [job.stages[0].title for job in jobs.take()]


def make_records(job: Job) -> list[StageRecord]:
    return [make_record(stage) for stage in job.stages]


def test_trials_of_a_batch_are_ready_together_and_later_trials_wait(
    plan_and_store: tuple[Plan, Store],
) -> None:
    plan, store = plan_and_store
    jobs = Jobs.from_plan(plan, Executor(store, Silent()))
    first, second, *other_jobs = jobs.take()
    assert [job.stages[0].title for job in (first, second)] == [
        "trial 1 of ItemKNN",
        "trial 2 of ItemKNN",
    ]
    # trials that depend on one another stay with their model, which is ready
    assert [job.stages[0].title for job in other_jobs] == ["fit MostPop", "trial 1 of UserKNN"]
    assert len(other_jobs[1].stages) == 2 + 1 + 3
    jobs.finish(make_records(second))
    assert take_titles(jobs) == []
    jobs.finish(make_records(first))
    (third,) = jobs.take()
    assert third.stages[0].title == "trial 3 of ItemKNN"
    jobs.finish(make_records(third))
    (last,) = jobs.take()
    assert [stage.title for stage in last.stages] == [
        *("search ItemKNN", "fit ItemKNN", "ask ItemKNN", "measure nDCG of ItemKNN")
    ]


def test_jobs_that_need_a_failed_trial_never_start(plan_and_store: tuple[Plan, Store]) -> None:
    plan, store = plan_and_store
    executor = Executor(store, observer := RecordingObserver())
    jobs = Jobs.from_plan(plan, executor)
    first, second, *_ = jobs.take()
    jobs.finish(make_records(first))
    (record,) = jobs.finish(jobs.report_dead_worker(second))
    assert (record.stage, record.model) == ("trial 2 of ItemKNN", "ItemKNN")
    assert record.failure is not None
    assert record.failure.message == "the worker process died"
    assert take_titles(jobs) == []
    assert observer.records[-1] is executor.records[record.digest] is record


@pytest.mark.parametrize(
    ("exit_code", "message"),
    [
        (-9, "the worker process died (signal 9)"),
        (127, "the worker process died (exit code 127)"),
    ],
)
def test_a_dead_worker_is_a_failure_of_its_stage(
    plan_and_store: tuple[Plan, Store], exit_code: int, message: str
) -> None:
    plan, store = plan_and_store
    jobs = Jobs.from_plan(plan, Executor(store, Silent()))
    (record,) = jobs.report_dead_worker(jobs.take()[0], exit_code)
    assert record.failure is not None
    assert record.failure.message == message
    assert "--workers 1" in record.failure.help


def test_stored_trials_are_reported_as_reused(plan_and_store: tuple[Plan, Store]) -> None:
    plan, store = plan_and_store
    run_model(Executor(store, Silent()), plan.model_plans[0])
    store.remove(plan.model_plans[0].trials[1].digest)
    search = plan.model_plans[0].search
    assert search is not None
    store.remove(search.digest)
    jobs = Jobs.from_plan(plan, Executor(store, observer := RecordingObserver()))
    assert take_titles(jobs)[0] == "trial 2 of ItemKNN"
    assert [(record.stage, record.reused) for record in observer.records] == [
        ("trial 1 of ItemKNN", True),
        ("trial 3 of ItemKNN", True),
    ]
    fresh_jobs = Jobs.from_plan(plan, Executor(store, Silent(), fresh=True))
    assert take_titles(fresh_jobs)[:2] == ["trial 1 of ItemKNN", "trial 2 of ItemKNN"]


@pytest.mark.parametrize("fresh", [False, True])
def test_workers_reuse_results_of_this_run(
    plan_and_store: tuple[Plan, Store], fresh: bool
) -> None:
    plan, store = plan_and_store
    executor = Executor(store, Silent(), fresh=fresh)
    jobs, rounds = Jobs.from_plan(plan, executor), 0
    for context in plan.data_contexts:
        for stage in (context.dataset, context.split, context.queries):
            executor.ensure(stage)
    while ready := jobs.take():
        rounds += 1
        for job in ready:
            jobs.finish(
                run_job(
                    store,
                    job,
                    jobs.select_input_records(job),
                    fresh=fresh,
                    run_id="1",
                    code=digest_code(job),
                )
            )
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
    jobs = Jobs.from_plan(plan, Executor(store, Silent()))
    assert [jobs.count_gpus(job) for job in jobs.waiting] == n_gpus
    one_model = [Job(stage) for stage in plan.stages if stage.kind in {"fit", "trial", "measure"}]
    expected = {"fit": n_gpus[1], "trial": n_gpus[1], "measure": 0}
    for job in one_model[-5:]:
        assert jobs.count_gpus(job) == expected[job.stages[0].kind]


SIMILARITY = {
    "name": "direction_similarity",
    "groups": {"of": "users", "attribute": "gender", "a": "F", "b": "M"},
    "chosen_in": "first",
}


def make_choosing_jobs(folder: Path, first: dict[str, Any]) -> Jobs:
    models = [first | {"label": "first"}, {"name": "PureSVD", "label": "second", "factors": 3}]
    plan, store = api.plan(
        make_small_spec(models=models, split=SPLIT, metrics=[SIMILARITY]), out=folder
    )
    execute(plan, store, Silent(), fresh=False, stop=True, run_models=lambda plan, executor: [])
    return Jobs.from_plan(plan, Executor(store, Silent()))


def test_a_model_waits_for_the_one_that_chooses_its_members(tmp_path: Path) -> None:
    jobs = make_choosing_jobs(tmp_path, {"name": "PureSVD", "factors": 2})
    (first,) = jobs.take()
    assert first.work.model.label == "first"  # type: ignore[union-attr]  # a model's plan
    assert jobs.take() == []
    jobs.finish(make_records(first))
    assert len(jobs.take()) == 1


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
    jobs = Jobs.from_plan(plan, Executor(store, Silent()))
    (first,) = jobs.take()
    assert [stage.kind for stage in first.stages] == ["baseline"]
    assert jobs.take() == []
    jobs.finish(make_records(first))
    assert [job.stages[0].kind for job in jobs.take()] == ["trial", "trial"]
