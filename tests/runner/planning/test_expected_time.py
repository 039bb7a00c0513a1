from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import recbias
from recbias import api
from recbias.core.records import Stored
from recbias.runner.planning.expected_sizes import ExpectedSizes
from recbias.runner.planning.expected_time import StoredTimes
from recbias.runner.planning.preview import Preview, preview
from recbias.runner.stage import Keys, Stage
from support.specs import make_small_spec

FIT = Stage("fit", "fit EASE", "", print, (), Keys(), subject="EASE", settings="a")


def store_fit(seconds: float, training: int, settings: str = "a", subject: str = "EASE") -> Stored:
    sizes = {"training": training}
    stored = Stored("", "fit", {}, seconds, subject=subject, settings=settings)
    return replace(stored, sizes=sizes)


def test_the_time_grows_with_the_exponent_of_the_nearest_sizes() -> None:
    times = StoredTimes([store_fit(1.0, 100), store_fit(8.0, 400), store_fit(3.0, 10)])
    expected = times.estimate(FIT, {"training": 1600})
    assert expected == pytest.approx((64.0, 3))
    assert StoredTimes([store_fit(2.0, 100)]).estimate(FIT, {"training": 50}) == (1.0, 1)


def test_the_same_settings_count_before_others_and_other_models_never() -> None:
    records = [store_fit(5.0, 100, "b"), store_fit(9.0, 100, subject="SLIM")]
    assert StoredTimes([*records, store_fit(1.0, 100)]).estimate(FIT, {"training": 100}) == (1, 1)
    assert StoredTimes(records).estimate(FIT, {"training": 100}) == (5, 1)
    assert StoredTimes(records[1:]).estimate(FIT, {"training": 100}) is None
    assert StoredTimes([store_fit(1.0, 100)]).estimate(FIT, {}) is None


def preview_spec(tmp_path: Path, **changes: object) -> Preview:
    plan, store = api.plan(make_small_spec(**changes), out=tmp_path)
    return preview(plan, store)


def test_a_plan_estimates_the_time_of_what_other_data_have_taken(tmp_path: Path) -> None:
    first = preview_spec(tmp_path)
    assert first.expected_seconds is None
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
    assert again.n_unexpected == 2
    assert again.expected_seconds is not None
    assert again.expected_seconds > 0


def test_the_sizes_of_later_stages_follow_from_the_dataset(tmp_path: Path) -> None:
    plan, store = api.plan(make_small_spec(), out=tmp_path, limit=5)
    recbias.run(make_small_spec(), out=tmp_path)
    context = plan.data_contexts[0]
    loaded = store.record(context.dataset.digest)
    assert loaded is not None
    sizes = ExpectedSizes({context.dataset.digest: loaded})
    assert sizes.find(context.split)["interactions"] == loaded.sizes["interactions"]
    assert sizes.find(context.queries)["queries"] == 5
    answer = plan.model_plans[0].answer
    assert answer is not None
    assert sizes.find(answer)["queries"] == 5
    assert ExpectedSizes({}).find(context.split) == {}
    assert ExpectedSizes({}, {}, [loaded]).find(context.dataset) == loaded.sizes
