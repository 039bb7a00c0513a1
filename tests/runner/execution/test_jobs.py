from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias import api
from recbias.core.records import Failure, StageRecord
from recbias.runner.execution.executor import Executor, Silent, execute, record_of, walk_chain
from recbias.runner.execution.jobs import Job, Jobs, work_on
from recbias.runner.planning.plan import Plan
from recbias.runner.storage.store import Store
from support.specs import make_small_spec


class Records(Silent):
    def __init__(self) -> None:
        self.seen: list[StageRecord] = []

    def finished(self, record: StageRecord) -> None:
        self.seen.append(record)


def searching(name: str, trials: int, parallel: int, **settings: Any) -> dict[str, Any]:
    tune = {"metric": "nDCG", "trials": trials, "parallel": parallel, "space": settings}
    return {"name": name, "tune": tune}


MODELS = [
    searching("ItemKNN", 3, 2, neighbors={"int": [1, 30]}),
    "MostPop",
    searching("UserKNN", 2, 1, neighbors={"int": [1, 10]}),
]
SPLIT = {"name": "random", "test": 0.2, "validation": 0.2}


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Plan, Store]:
    plan, store = api.plan(
        make_small_spec(models=MODELS, split=SPLIT, metrics=["nDCG"]), out=tmp_path
    )
    execute(plan, store, Silent(), fresh=False, stop=True, chains=lambda plan, walk: [])
    return plan, store


def titles(jobs: Jobs) -> list[str]:
    return [job.stages[0].title for job in jobs.take()]


def done(job: Job) -> list[StageRecord]:
    return [record_of(each) for each in job.stages]


def test_trials_of_a_batch_are_ready_together_and_what_learns_of_them_waits(
    planned: tuple[Plan, Store],
) -> None:
    plan, store = planned
    jobs = Jobs.of(plan, Executor(store, Silent()))
    first, second, *others = jobs.take()
    assert [each.stages[0].title for each in (first, second)] == [
        "trial 1 of ItemKNN",
        "trial 2 of ItemKNN",
    ]
    # trials one after another stay with their model, which has nothing to wait for
    assert [each.stages[0].title for each in others] == ["fit MostPop", "trial 1 of UserKNN"]
    assert len(others[1].stages) == 2 + 1 + 3
    jobs.finish(second, done(second))
    assert titles(jobs) == []
    jobs.finish(first, done(first))
    (third,) = jobs.take()
    assert third.stages[0].title == "trial 3 of ItemKNN"
    jobs.finish(third, done(third))
    (rest,) = jobs.take()
    assert [each.title for each in rest.stages] == [
        *("search ItemKNN", "fit ItemKNN", "ask ItemKNN", "measure nDCG of ItemKNN")
    ]


def test_no_more_are_taken_than_asked_for(planned: tuple[Plan, Store]) -> None:
    plan, store = planned
    jobs = Jobs.of(plan, Executor(store, Silent()))
    assert [len(jobs.take(n)) for n in (0, 1, 2, 9)] == [0, 1, 2, 1]


def test_what_waits_for_a_trial_that_failed_is_not_taken(planned: tuple[Plan, Store]) -> None:
    plan, store = planned
    walk = Executor(store, heard := Records())
    jobs = Jobs.of(plan, walk)
    first, second, *_ = jobs.take()
    jobs.finish(first, done(first))
    (record,) = jobs.finish(second, jobs.died(second))
    assert (record.stage, record.model) == ("trial 2 of ItemKNN", "ItemKNN")
    assert record.failure is not None
    assert record.failure.message == "the worker process died"
    assert titles(jobs) == []
    assert heard.seen[-1] is walk.records[record.digest] is record


def test_stored_trials_are_no_jobs_but_are_told(planned: tuple[Plan, Store]) -> None:
    plan, store = planned
    walk_chain(Executor(store, Silent()), plan.chains[0])
    store.remove(plan.chains[0].trials[1].digest)
    search = plan.chains[0].search
    assert search is not None
    store.remove(search.digest)
    jobs = Jobs.of(plan, Executor(store, heard := Records()))
    assert titles(jobs)[0] == "trial 2 of ItemKNN"
    assert [(each.stage, each.reused) for each in heard.seen] == [
        ("trial 1 of ItemKNN", True),
        ("trial 3 of ItemKNN", True),
    ]
    everything = Jobs.of(plan, Executor(store, Silent(), fresh=True))
    assert titles(everything)[:2] == ["trial 1 of ItemKNN", "trial 2 of ItemKNN"]


def test_where_the_search_is_stored_its_trials_are_not_needed(planned: tuple[Plan, Store]) -> None:
    plan, store = planned
    walk_chain(Executor(store, Silent()), plan.chains[0])
    for each in plan.chains[0].trials:
        store.remove(each.digest)
    jobs = Jobs.of(plan, Executor(store, Silent()))
    job, *_ = jobs.take()
    assert job.work == plan.chains[0]
    # a worker that dies with it was not busy with what is stored already
    last = plan.chains[0].measures[0]
    store.remove(last.digest)
    assert [each.stage for each in jobs.died(job)] == [last.title]


def test_a_search_that_stands_twice_in_a_spec_is_made_once(tmp_path: Path) -> None:
    twice = [MODELS[0], {**MODELS[0], "label": "again"}]  # type: ignore[dict-item]
    plan, store = api.plan(make_small_spec(models=twice, split=SPLIT), out=tmp_path)
    assert titles(Jobs.of(plan, Executor(store, Silent()))) == [
        "trial 1 of ItemKNN",
        "trial 2 of ItemKNN",
    ]


@pytest.mark.parametrize("fresh", [False, True])
def test_a_worker_knows_what_this_run_has_made(planned: tuple[Plan, Store], fresh: bool) -> None:
    plan, store = planned
    walk = Executor(store, Silent(), fresh=fresh)
    jobs, rounds = Jobs.of(plan, walk), 0
    for world in plan.worlds:
        for stage in (world.dataset, world.split, world.queries):
            walk.ensure(stage)
    while ready := jobs.take():
        rounds += 1
        for job in ready:
            jobs.finish(job, work_on(store, job, jobs.known(job), fresh=fresh))
    assert rounds == 3
    own = [each for each in walk.records.values() if each.model]
    assert len(own) == sum(len(each.stages) for each in plan.chains)
    assert not any(each.reused or each.failure for each in own)


def test_a_failure_of_the_work_is_a_record(planned: tuple[Plan, Store]) -> None:
    plan, store = planned
    (job, *_) = Jobs.of(plan, Executor(store, Silent())).take()
    broken = record_of(plan.worlds[0].dataset, failure=Failure("no"))
    (record,) = work_on(store, job, {broken.digest: broken}, fresh=False)
    assert record.failure is not None
    assert "'load demo' failed: " in record.failure.message
