from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.errors import UnknownColumn, UserError
from recbias.core.evidence import Evidence
from recbias.core.plugins import ChecksEarly, Pools
from recbias.metrics.templates.metrics import Association
from support.worlds.template_worlds import (
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
    make_random_prompts,
    plant_bias,
)

RACE = Association(label="race", attribute="categories")
ITEMS = make_priced_items(["$"] * 4, categories=["Bars|Wine", "Bars", "Cafes", None])

# black: [0, 1], [2, 2], [1], [0]: 6 places, Bars 4, Wine 2, Cafes 2
# white: [2], [2], [0], [1, 3]: 4 places with categories, Bars 2, Wine 1, Cafes 2
LISTS = [[0, 1], [2, 2], [1], [0], [2], [2], [0], [1, 3]]
HAND = make_prompt_evidence(cross_names(make_names(2), 2), LISTS, ITEMS)


def index_scores(measurements: Any) -> dict[tuple[str, str], float]:
    return {
        (measurement.group, measurement.target): measurement.value for measurement in measurements
    }


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
def test_difference_by_hand() -> None:
    # Bars: (4/6 - 2/4) / (6/10) = 5/18; Cafes: (2/6 - 2/4) / (4/10) = -5/12
    # Wine: (2/6 - 1/4) / (3/10) = 5/18
    scores = index_scores(RACE.measure(HAND))
    assert scores["race=black", "categories=Bars"] == pytest.approx(5 / 18)
    assert scores["race=black", "categories=Cafes"] == pytest.approx(-5 / 12)
    assert scores["race=black", "categories=Wine"] == pytest.approx(5 / 18)
    assert scores["race=white", "categories=Wine"] == pytest.approx(-5 / 18)


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
def test_ratio_by_hand_and_its_direction() -> None:
    metric = replace(RACE, form="ratio")
    scores = index_scores(metric.measure(HAND))
    assert scores["race=black", "categories=Bars"] == pytest.approx(4 / 3)
    assert scores["race=white", "categories=Bars"] == pytest.approx(3 / 4)
    assert (RACE.direction, metric.direction) == ("zero", "none")


def measure_pooled(metric: Association, *worlds: Evidence) -> float:
    counts = np.stack([np.asarray(metric.measure(of)[0].counts) for of in worlds])
    return metric.of_counts(counts.sum(axis=0))


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
def test_counts_pool_over_datasets() -> None:
    # Bars: black 4 of 6 and 4 of 4, white 2 of 4 and 0 of 4: 8/10 against 2/8, 10/18 of all
    other = make_prompt_evidence(cross_names(make_names(2), 2), [[1]] * 4 + [[2]] * 4, ITEMS)
    assert isinstance(RACE, Pools)
    assert measure_pooled(RACE, HAND, other) == pytest.approx((8 / 10 - 2 / 8) / (10 / 18))
    assert measure_pooled(replace(RACE, form="ratio"), HAND, other) == pytest.approx(
        (8 / 10) / (2 / 8)
    )
    (counts,) = [np.asarray(RACE.measure(HAND)[0].counts)]
    assert counts.tolist() == [[4, 2], [6, 4]]


def test_intervals_hold_a_planted_score_and_tests_of_nothing_keep_their_level() -> None:
    # Fast Food is a value of the $ item only, with chance 0.4 and 0.25; every item has Bars, so
    # f is the share of places: B = (0.4 - 0.25) / 0.325
    metric = replace(RACE, permutations=199)
    inside, rejected = 0, 0
    for seed in range(150):
        measurement = metric.measure(plant_bias(seed, cheap=(0.4, 0.25)).evidence)[1]
        inside += measurement.ci_low <= 0.15 / 0.325 <= measurement.ci_high
        row = metric.measure(plant_bias(seed + 500).evidence)[1].contrasts[0]
        rejected += row.p <= 0.05
    # 142.5 and 7.5 are expected, standard error 2.7
    assert 134 <= inside <= 150
    assert 1 <= rejected <= 16


@pytest.mark.parametrize(
    ("settings_", "error", "parameter"),
    [
        ({"label": "rase"}, UnknownColumn, "label"),
        ({"label": "kind"}, UserError, "label"),
        ({"attribute": "category"}, UnknownColumn, "attribute"),
        ({"only": ("Bar", "Museums")}, UnknownColumn, "only"),
        ({"only": ()}, UnknownColumn, "only"),
    ],
)
def test_faults_are_found_before_any_model(
    settings_: dict[str, Any], error: type[UserError], parameter: str
) -> None:
    metric = replace(RACE, **settings_)
    assert isinstance(metric, ChecksEarly)
    with pytest.raises(error) as caught:
        metric.check(replace(HAND, lists=None))
    assert caught.value.where == parameter
    assert caught.value.remedy


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_restricted_figures_are_the_unrestricted_ones(seed: int) -> None:
    queries, codes, items = make_random_prompts(np.random.default_rng(seed))
    of = make_prompt_evidence(queries, codes.tolist(), items, n_bootstrap=20)
    metric = replace(RACE, permutations=20, units="template")
    every = metric.measure(of)
    targets = sorted({measurement.target for measurement in every})
    chosen = targets[seed % len(targets) :]
    only = tuple(target.partition("=")[2].upper() for target in chosen)
    measurements = replace(metric, only=only).measure(of)
    assert {measurement.target for measurement in measurements} == {*chosen}
    expected = {key: value for key, value in index_scores(every).items() if key[1] in chosen}
    assert index_scores(measurements) == pytest.approx(expected, nan_ok=True)
    p = {
        measurement.target: [row.p for row in measurement.contrasts]
        for measurement in every
        if measurement.contrasts
    }
    for measurement in measurements:
        if measurement.contrasts:
            assert [row.p for row in measurement.contrasts] == pytest.approx(
                p[measurement.target], nan_ok=True
            )


def test_values_that_no_item_has_are_said_in_one_line() -> None:
    metric = replace(RACE, only=("Museums", "bars", "Zoos"))
    with collect_warnings() as warnings:
        metric.check(HAND)
        measurements = metric.measure(HAND)
    assert {measurement.target for measurement in measurements} == {"categories=Bars"}
    messages = [message for message in warnings if "only" in message]
    assert len(messages) == 1
    assert messages[0].endswith("no item has these categories of only: Museums, Zoos")
