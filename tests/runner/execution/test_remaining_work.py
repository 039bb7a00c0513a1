from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from recbias import api
from recbias.core.context import Failure, StageRecord, Stored
from recbias.runner.execute import Silent
from recbias.runner.remaining import RemainingWork, WatchesWork
from recbias.runner.stage import Keys, Stage, make_record
from support.specs import make_small_spec


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def make_stage(title: str, kind: str, model: str = "", fold: int = 1) -> Stage:
    return Stage(kind, title, f"{title} {fold}", str, (), Keys("demo", 42, fold, model))


def make_model(model: str, fold: int = 1) -> list[Stage]:
    return [
        make_stage(f"fit {model}", "fit", model, fold),
        make_stage(f"ask {model}", "answer", model, fold),
        make_stage(f"measure HR of {model}", "measure", model, fold),
    ]


def finish(work: RemainingWork, stage: Stage, seconds: float) -> None:
    work.start(stage)
    work.finish(make_record(stage, seconds=seconds))


def test_there_is_no_estimate_until_each_stage_has_a_basis() -> None:
    clock = Clock()
    stages = [*make_model("A"), *make_model("A", fold=2)]
    work = RemainingWork(stages, clock=clock)
    assert work.describe() == "0 of 6 stages"
    for stage, seconds in zip(stages[:3], (60.0, 30.0, 5.0), strict=True):
        assert work.estimate() is None
        finish(work, stage, seconds)
    assert work.estimate() == pytest.approx(95)
    assert work.describe() == "3 of 6 stages, 2 min left"
    for stage in stages[3:]:
        finish(work, stage, 1.0)
    assert work.describe() == "6 of 6 stages"


def test_other_models_are_a_basis_if_there_are_three() -> None:
    clock = Clock()
    stages = [stage for model in "ABCD" for stage in make_model(model)]
    work = RemainingWork(stages, clock=clock)
    for index, stage in enumerate(stages[:8]):
        assert work.estimate() is None, f"after {index} stages"
        finish(work, stage, 10.0 * (1 + index // 3))
    finish(work, stages[8], 60.0)
    assert work.estimate() == pytest.approx(20 + 20 + 30)


def test_stored_results_are_a_basis_once_a_stage_of_the_kind_is_finished() -> None:
    earlier = [
        Stored("fit A", "fit", {}, seconds=100.0),
        Stored("fit A", "fit", {}, seconds=200.0),
        Stored("measure HR of A", "measure", {}, seconds=3.0),
    ]
    first, second, other = (make_stage(f"fit {model}", "fit", model) for model in "BAC")
    work = RemainingWork([first, second], earlier=earlier)
    assert work.describe() == "0 of 2 stages", "the store may be of other data"
    finish(work, first, 7.0)
    assert work.estimate() == pytest.approx(150, abs=1)
    work = RemainingWork([first, second, other], earlier=earlier)
    finish(work, first, 7.0)
    assert work.estimate() is None, "nothing is known of C"


def test_this_run_is_a_better_basis_than_the_store() -> None:
    first, second = (make_stage("fit A", "fit", "A", fold) for fold in (1, 2))
    earlier = [Stored("fit A", "fit", {}, seconds=100.0)]
    work = RemainingWork([first, second], earlier=earlier, clock=Clock())
    assert work.estimate() is None
    finish(work, first, 7.0)
    assert work.estimate() == pytest.approx(7)


def test_the_estimate_falls_while_a_stage_runs_and_never_below_zero() -> None:
    clock = Clock()
    stages = [make_stage(f"fit {model}", "fit", model) for model in "ABC"]
    earlier = [Stored("fit A", "fit", {}, seconds=60.0), Stored("fit B", "fit", {}, seconds=30.0)]
    work = RemainingWork(stages, earlier=earlier, clock=clock)
    finish(work, stages[2], 1.0)
    work.start(stages[0])
    assert work.estimate() == pytest.approx(90)
    clock.seconds = 0.5
    assert work.estimate() == pytest.approx(89.5)
    clock.seconds = 20.0
    assert work.estimate() == pytest.approx(70)
    clock.seconds = 1000.0
    assert work.estimate() == pytest.approx(30), "B has not started"
    work.finish(make_record(stages[0], seconds=1000.0))
    work.start(stages[1])
    clock.seconds = 1029.8
    assert work.describe_time() == "1 s left"
    clock.seconds = 5000.0
    assert work.estimate() == 0
    assert work.describe() == "2 of 3 stages", "it takes longer than estimated"


def test_cached_stages_take_no_time_and_are_no_basis() -> None:
    stages = [make_stage("fit A", "fit", "A", fold) for fold in (1, 2)]
    work = RemainingWork(stages, stored={stages[0].digest})
    work.finish(make_record(stages[0], reused=True))
    assert (work.n_done, work.n_stages, work.estimate()) == (1, 2, None)
    work = RemainingWork(stages, stored={stage.digest for stage in stages})
    assert work.estimate() is None, "nothing is left"


def test_trials_estimate_the_other_trials_and_the_training() -> None:
    clock = Clock()
    trials = [make_stage(f"trial {number} of A", "trial", "A") for number in (1, 2, 3)]
    rest = [make_stage("search A", "search", "A"), make_stage("fit A", "fit", "A")]
    work = RemainingWork([*trials, *rest], clock=clock)
    finish(work, trials[0], 30.0)
    assert work.estimate() == pytest.approx(30 * 3)


def test_workers_share_the_stages() -> None:
    stages = [make_stage("fit A", "fit", "A", fold) for fold in (1, 2, 3, 4)]
    work = RemainingWork(stages, workers=2, clock=Clock())
    finish(work, stages[0], 60.0)
    assert work.estimate() == pytest.approx(90)
    many = RemainingWork(stages[:2], workers=8, clock=Clock())
    finish(many, stages[0], 60.0)
    assert many.estimate() == pytest.approx(60)


def test_stages_after_a_failed_one_are_skipped() -> None:
    stages = [*make_model("A"), *make_model("A", fold=2), *make_model("B")]
    work = RemainingWork(stages)
    work.finish(make_record(stages[0], failure=Failure("no memory")))
    assert (work.n_done, work.n_stages) == (3, 9)
    work.finish(make_record(stages[5], failure=Failure("no labels")))
    assert work.n_done == 4, "the other metrics are still computed"


@dataclass
class Watcher(Silent):
    works: list[RemainingWork] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)
    lefts: list[float | None] = field(default_factory=list)

    def planned(self, work: RemainingWork) -> None:
        self.works.append(work)

    def started(self, stage: Stage) -> None:
        self.works[-1].start(stage)

    def finished(self, record: StageRecord) -> None:
        work = self.works[-1]
        work.finish(record)
        self.counts.append((work.n_done, work.n_stages))
        self.lefts.append(work.estimate())


def test_a_run_counts_every_stage_once(tmp_path: Path) -> None:
    watcher = Watcher()
    assert isinstance(watcher, WatchesWork)
    assert not isinstance(Silent(), WatchesWork)
    split = {"name": "random", "test": 0.2, "folds": 2}
    spec = make_small_spec(split=split)
    api.run(spec, out=tmp_path, observer=watcher)
    # per fold: split and queries, and of two models fit, answer and two metrics; and the dataset
    assert watcher.counts == [(number, 21) for number in range(1, 22)]
    api.run(spec, out=tmp_path, observer=watcher)
    # the trainings are not needed: the answers are stored
    assert watcher.counts[21:] == [(number, 17) for number in range(1, 18)]
    assert set(watcher.lefts[21:]) == {None}
    changed = make_small_spec(split=split, seed=43)
    api.run(changed, out=tmp_path, observer=watcher)
    last = watcher.counts[38:]
    assert last == [(number, 21) for number in range(1, 22)]
    lefts = watcher.lefts[38:]
    assert lefts[0] is None
    assert None not in lefts[lefts.index(next(filter(None, lefts))) : -1]
    assert any(lefts)


def test_workers_count_the_same_stages(tmp_path: Path) -> None:
    watcher = Watcher()
    api.run(make_small_spec(), out=tmp_path, observer=watcher, workers=2)
    assert watcher.counts[-1] == (11, 11)


def test_trials_after_a_failed_baseline_are_skipped() -> None:
    kinds = ("baseline", "trial", "trial", "search")
    stages = [make_stage(f"{n} of A", kind, "A") for n, kind in enumerate(kinds)]
    work = RemainingWork(stages)
    work.finish(make_record(stages[0], failure=Failure("no model")))
    assert work.n_done == 4
