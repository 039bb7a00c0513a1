from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray
from recbias.core.errors import Contradiction, UnknownColumn
from recbias.core.evidence import Evidence
from recbias.metrics.templates.metrics import VarianceSplit
from support.worlds.template_worlds import (
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
    make_prompt_queries,
    plant_couple_bias,
)

RACE = VarianceSplit(label="race", attribute="level")
LEVELS = make_priced_items(["$"] * 10, level=[*range(9), np.nan])
# two names a label in two templates, one item a list whose level is its code
#              b00: 1 3   b01: 2 6   w00: 5 7   w01: 8 8
# label 32, name 8, template 8, rest 4 of 52: worked in tests/statistics/test_variance_components
LISTS = [[1], [3], [2], [6], [5], [7], [8], [8]]
HAND = make_prompt_evidence(cross_names(make_names(2), 2), LISTS, LEVELS)


def measure_shares(metric: VarianceSplit, of: Evidence) -> dict[str, float]:
    return {measurement.target: measurement.value for measurement in metric.measure(of)}


def test_shares_by_hand() -> None:
    expected = {"label": 32 / 52, "name": 8 / 52, "template": 8 / 52, "rest": 4 / 52}
    measurements = RACE.measure(HAND)
    assert {
        measurement.target: measurement.value for measurement in measurements
    } == pytest.approx(expected)
    assert {(measurement.n, measurement.undefined) for measurement in measurements} == {(4, 0)}


def test_two_names_a_label_leave_no_interval_for_the_names() -> None:
    # a sample of one of two names has no variance between names
    for row in RACE.measure(HAND):
        has_interval = row.ci_low < row.value < row.ci_high
        assert has_interval == (row.target != "name")
        assert row.df == 2


def test_components_by_hand() -> None:
    # 7, 4/3, 5/3 and 4/3: in all 34/3
    expected = {"label": 21 / 34, "name": 4 / 34, "template": 5 / 34, "rest": 4 / 34}
    assert measure_shares(replace(RACE, form="components"), HAND) == pytest.approx(expected)


def test_lists_without_a_level_leave_an_unbalanced_design() -> None:
    lists = [[9], *LISTS[1:]]
    with collect_warnings() as warnings:
        measurements = RACE.measure(
            make_prompt_evidence(cross_names(make_names(2), 2), lists, LEVELS)
        )
    assert sum(measurement.value for measurement in measurements) == pytest.approx(1)
    assert "1 positions of the lists hold an item without level" in warnings[0]
    with collect_warnings() as warnings:
        undefined = replace(RACE, form="components").measure(
            make_prompt_evidence(cross_names(make_names(2), 2), lists, LEVELS)
        )
    assert all(np.isnan(measurement.value) for measurement in undefined)
    assert {(measurement.n, measurement.undefined) for measurement in undefined} == {(0, 4)}
    assert "form: components needs an item with a level in every list" in warnings[-1]


def test_lists_that_are_all_alike_split_nothing() -> None:
    measurements = RACE.measure(
        make_prompt_evidence(cross_names(make_names(2), 2), [[3]] * 8, LEVELS)
    )
    assert all(np.isnan(measurement.value) for measurement in measurements)
    assert {(measurement.n, measurement.undefined) for measurement in measurements} == {(0, 4)}


def test_pairs_of_words_are_the_names_of_a_label_of_both_and_have_no_interval() -> None:
    metric = VarianceSplit(label="orientation", attribute="price")
    measurements = metric.measure(plant_couple_bias(0))
    assert {measurement.n for measurement in measurements} == {96}
    assert all(np.isnan(measurement.ci_low) for measurement in measurements)


def make_lists(levels: FloatArray) -> list[list[int]]:
    return np.clip(np.rint(levels), 0, 8).astype(int).reshape(-1, 1).tolist()


@pytest.mark.parametrize("part", ["label", "name", "template", "rest"])
def test_a_planted_part_has_the_largest_share(part: str, rng: np.random.Generator) -> None:
    n, t = 10, 8
    levels = np.full((2 * n, t), 4.0) + rng.normal(0, 0.3, (2 * n, t))
    levels += {
        "label": np.repeat([-2.0, 2], n)[:, None],
        "name": rng.normal(0, 2, (2 * n, 1)),
        "template": rng.normal(0, 2, t)[None],
        "rest": rng.normal(0, 2, (2 * n, t)),
    }[part]
    of = make_prompt_evidence(cross_names(make_names(n), t), make_lists(levels), LEVELS)
    for form in ("squares", "components"):
        shares = measure_shares(replace(RACE, form=form), of)
        assert max(shares, key=lambda source: shares[source]) == part
        assert shares[part] > 0.6


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
def test_designs_that_cannot_be_split() -> None:
    queries = HAND.queries.take(np.arange(7))
    ragged = make_prompt_evidence(queries, LISTS[:7], LEVELS)
    assert sum(measure_shares(RACE, ragged).values()) == pytest.approx(1)
    with pytest.raises(Contradiction, match="not every name is in every template") as caught:
        replace(RACE, form="components").check(ragged)
    assert caught.value.where == "form"
    plain = make_prompt_queries(pd.DataFrame({"race": ["a", "b"]}, dtype=object))
    with pytest.raises(UnknownColumn, match="no column 'template'"):
        RACE.check(make_prompt_evidence(plain, [[0], [1]], LEVELS))
