from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import recbias
from recbias import api
from recbias.core.context import Stored
from recbias.runner.estimate import Preview, StageSizes, StoredCosts, preview
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


def test_the_same_settings_count_before_others_and_other_models_never() -> None:
    records = [store_fit(5.0, 100, "b"), store_fit(9.0, 100, subject="SLIM")]
    sizes = {"training": 100}
    expected = [
        costs and costs[:2]
        for known in ([*records, store_fit(1.0, 100)], records, records[1:])
        for costs in (StoredCosts(known).estimate(FIT, sizes),)
    ]
    assert expected == [(1, 1), (5, 1), None]
    assert StoredCosts([store_fit(1.0, 100)]).estimate(FIT, {}) is None


def test_the_memory_above_that_of_a_process_without_data_grows() -> None:
    records = [store_fit(1.0, 1, subject="Random", peak_mb=150.0), store_fit(1.0, 1)]
    for peaks, expected in (({100: 160.0}, 190.0), ({100: 160.0, 200: 190.0}, 310.0)):
        fits = [store_fit(1.0, size, peak_mb=peak) for size, peak in peaks.items()]
        estimate = StoredCosts([*records, *fits]).estimate(FIT, {"training": 400})
        assert estimate is not None
        assert estimate.memory_mb == pytest.approx(expected)


def test_the_memory_of_a_card_is_that_of_results_that_used_one() -> None:
    on_card = replace(store_fit(1.0, 100), cost={"gpu_memory_mb": 40.0})
    on_cpu = replace(store_fit(1.0, 100), cost={"gpu_memory_mb": 0.0})
    for records, card_mb in (([on_card, on_cpu], 80.0), ([on_cpu], None)):
        estimate = StoredCosts(records).estimate(FIT, {"training": 200})
        assert estimate is not None
        assert estimate.card_mb == card_mb


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


def test_a_model_that_says_what_it_needs_has_an_estimate_without_results(tmp_path: Path) -> None:
    recbias.run(make_small_spec(models=["MostPop"]), out=tmp_path)
    plan, store = api.plan(make_small_spec(models=["EASE"]), out=tmp_path)
    memory = {step.stage.title: step.memory_mb for step in preview(plan, store).steps}
    dataset = store.record(plan.data_contexts[0].dataset.digest)
    assert dataset is not None
    assert memory["ask EASE"] is None
    assert (memory["fit EASE"] or 0.0) > 12 * dataset.sizes["items"] ** 2 / 2**20


def test_the_sizes_of_stages_follow_from_those_of_similar_ones(tmp_path: Path) -> None:
    spec = make_small_spec(split={"name": "random", "test": 0.2, "folds": 2})
    plan, store = api.plan(spec, out=tmp_path)
    recbias.run(spec, out=tmp_path)
    first, second = plan.data_contexts
    records = [store.record(stage.digest) for stage in (first.dataset, first.split, first.queries)]
    stored = [record for record in records if record is not None]
    measured = {first.dataset.digest: stored[0].sizes}
    alone = StageSizes(measured, plan.stages)
    assert alone.find(second.split) == stored[0].sizes
    sizes = StageSizes(measured, plan.stages, stored)
    assert sizes.find(second.split) == stored[1].sizes
    answer = plan.model_plans[-1].answer
    assert answer is not None
    assert sizes.find(answer)["queries"] == stored[2].sizes["queries"]
    assert StageSizes({}, plan.stages).find(first.split) == {}
