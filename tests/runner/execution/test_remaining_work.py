from __future__ import annotations

from dataclasses import dataclass

import pytest

from recbias.core.context import Stored
from recbias.runner.remaining import RemainingWork
from recbias.runner.stage import Keys, Stage, make_record


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


def test_workers_share_the_stages() -> None:
    stages = [make_stage("fit A", "fit", "A", fold) for fold in (1, 2, 3, 4)]
    work = RemainingWork(stages, workers=2, clock=Clock())
    finish(work, stages[0], 60.0)
    assert work.estimate() == pytest.approx(90)
    many = RemainingWork(stages[:2], workers=8, clock=Clock())
    finish(many, stages[0], 60.0)
    assert many.estimate() == pytest.approx(60)
