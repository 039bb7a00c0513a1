from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import recbias
from recbias import api
from recbias.core.context import Stored
from recbias.runner.estimate import Preview, StoredCosts, preview
from recbias.runner.stage import Keys, Stage
from support.specs import make_small_spec

FIT = Stage("fit", "fit EASE", "", print, (), Keys(), subject="EASE", settings="a")


def store_fit(
    seconds: float, training: int, settings: str = "a", subject: str = "EASE", peak_mb: float = 0.0
) -> Stored:
    stored = Stored("", "fit", {}, seconds, peak_mb, subject=subject, settings=settings)
    return replace(stored, sizes={"training": training})


def test_the_time_grows_with_the_exponent_of_the_nearest_sizes() -> None:
    costs = StoredCosts([store_fit(1.0, 100), store_fit(8.0, 400), store_fit(3.0, 10)])
    expected = costs.estimate(FIT, {"training": 1600})
    assert expected is not None
    assert expected.seconds == pytest.approx(64.0)
    assert expected.n_records == 3
    assert StoredCosts([store_fit(2.0, 100)]).estimate(FIT, {"training": 50}) == (1, 1, None, None)


def preview_spec(tmp_path: Path, **changes: object) -> Preview:
    plan, store = api.plan(make_small_spec(**changes), out=tmp_path)
    return preview(plan, store)


def test_a_plan_estimates_what_stages_take_by_what_other_data_have_taken(tmp_path: Path) -> None:
    first = preview_spec(tmp_path)
    assert first.expected_seconds is first.memory_mb is None
    assert first.n_unexpected == len(first.steps)
    recbias.run(make_small_spec(), out=tmp_path)
    stored = preview_spec(tmp_path)
    assert stored.expected_seconds is None
    assert stored.n_unexpected == 0
    spec = make_small_spec(seed=7, models=["MostPop", "Random"])
    plan, store = api.plan(spec, out=tmp_path)
    recbias.run(make_small_spec(seed=7, models=["MostPop"], metrics=["HR"]), out=tmp_path)
    again = preview(plan, store)
    titles = {step.stage.title for step in again.steps if not step.stored and not step.expected}
    assert titles == {"fit Random", "ask Random"}
    assert again.n_unexpected == again.n_without_memory == 2
    assert again.expected_seconds is not None
    assert again.expected_seconds > 0
