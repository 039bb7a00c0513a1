from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from recbias.core.context import collect_warnings
from recbias.core.errors import UnknownColumn, UserError
from recbias.core.evidence import Evidence
from recbias.core.plugins import ChecksEarly
from recbias.metrics.templates.metrics import MeanAttribute
from recbias.statistics.paired import cohens_d
from support.worlds.template_worlds import (
    PRICES,
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
    make_prompt_queries,
    plant_couple_bias,
)

PLACE = MeanAttribute(label="location", attribute="price")
RACE = MeanAttribute(label="race", attribute="price")
ITEMS = make_priced_items([*PRICES, None])


def make_locations(lists: dict[str, list[list[int]]]) -> Evidence:
    rows = [
        {"template": f"t{number:02d}", "kind": "location", "location": word}
        for word, word_lists in lists.items()
        for number in range(len(word_lists))
    ]
    queries = make_prompt_queries(pd.DataFrame(rows, dtype=object))
    return make_prompt_evidence(
        queries, [codes for word_lists in lists.values() for codes in word_lists], ITEMS
    )


# bank: t00 [$, $$$] 2, t01 [$$$$] 4; farm: t00 [$] 1, t01 [$, $$] 1.5
HAND = make_locations({"bank": [[0, 2], [3]], "farm": [[0], [0, 1]]})


def test_means_of_templates_by_hand() -> None:
    bank, farm = PLACE.measure(HAND)
    assert (bank.group, farm.group) == ("location=bank", "location=farm")
    assert (bank.value, farm.value) == (3.0, 1.25)
    assert bank.units is not None
    assert (bank.units.unit, bank.units.ids.tolist()) == ("template", ["t00", "t01"])
    assert bank.units.values.tolist() == [2, 4]
    (row,) = bank.contrasts
    # differences 1 and 2.5: of 4 signings two are as far; d_z = 1.75 / sd(1, 2.5) = 1.75/1.06066
    assert (row.difference, row.n, row.p) == (1.75, 2, 0.5)
    assert row.effect_size == pytest.approx(1.649916)


def test_names_are_the_units_where_they_are_several() -> None:
    # b00: [$] [$$$]: 2; b01: 3 3: 3; w00: 1 1; w01: 4 1: 2.5
    lists = [[0], [2], [2], [2], [0], [0], [3], [0]]
    black, white = RACE.measure(make_prompt_evidence(cross_names(make_names(2), 2), lists, ITEMS))
    assert (black.value, white.value) == (2.5, 1.75)
    assert black.units is not None
    assert black.units.ids.tolist() == ["b00", "b01"]
    (row,) = black.contrasts
    assert row.effect_size == pytest.approx(cohens_d(np.array([2.0, 3]), np.array([1, 2.5])))
    # pairs of {2, 3, 1, 2.5}, gaps: 0.75 (2 3), -1.25 (2 1), 0.25 (2 2.5) and their opposites
    assert row.p == pytest.approx(4 / 6)


def test_nothing_to_exchange_is_undefined_and_said() -> None:
    with collect_warnings() as warnings:
        bank, _ = PLACE.measure(make_locations({"bank": [[4], [3]], "farm": [[0], [4]]}))
    assert np.isnan(bank.contrasts[0].p)
    assert "have no p-value" in warnings[-1]


def test_the_spread_of_paired_templates_is_that_of_their_differences(
    rng: np.random.Generator,
) -> None:
    codes = rng.integers(0, 4, (30, 5))
    of = make_locations({"bank": codes.tolist(), "farm": rng.integers(0, 4, (30, 5)).tolist()})
    measurements = PLACE.measure(replace(of, n_bootstrap=4000))
    first, second = (
        np.asarray(measurement.units.values)
        for measurement in measurements
        if measurement.units is not None
    )
    theirs = ttest_rel(first, second)
    (row,) = measurements[0].contrasts
    interval = theirs.confidence_interval()
    assert (row.ci_low, row.ci_high) == pytest.approx((interval.low, interval.high), abs=0.03)
    # sums of few small numbers tie often, and every tie counts: a little above the p of t
    assert theirs.pvalue < row.p < theirs.pvalue + 0.06


COUPLES = MeanAttribute(label="orientation", attribute="price", permutations=199)


def test_words_of_both_slots_are_counted_where_they_carry_the_label_together() -> None:
    different, same = COUPLES.measure(plant_couple_bias(0))
    assert (different.group, same.group) == ("orientation=different", "orientation=same")
    assert (different.n, different.undefined) == (22, 0)  # 16 first words, 6 second ones
    assert different.units is None  # 48 pairs that share words are no 48 units
    assert different.replicates is not None
    assert 4 <= different.df <= 18
    (row,) = different.contrasts
    assert (row.n, row.test) == (22, "permutation")
    crossed_ = replace(COUPLES, label="first_gender&second_gender").measure(plant_couple_bias(0))
    # ff with fm share 8 first words and have 3 second ones each, with mf 16 and 3
    assert [contrast.n for contrast in crossed_[0].contrasts] == [14, 19, 22]


@pytest.mark.parametrize(
    ("settings_", "error", "parameter"),
    [
        ({"label": "locatoin"}, UnknownColumn, "label"),
        ({"label": "kind"}, UserError, "label"),
        ({"attribute": "prices"}, UnknownColumn, "attribute"),
    ],
)
def test_faults_are_found_before_any_model(
    settings_: dict[str, Any], error: type[UserError], parameter: str
) -> None:
    metric = replace(PLACE, **settings_)
    assert isinstance(metric, ChecksEarly)
    with pytest.raises(error) as caught:
        metric.check(replace(HAND, lists=None))
    assert caught.value.where == parameter
    assert caught.value.remedy


def add_neutral(evidence: Evidence, lists: dict[str, list[int]]) -> Evidence:
    """The same queries, and templates without any word with the lists given."""
    table = evidence.queries.labels.frame.assign(neutral=0.0)
    rows = [{"template": name, "kind": "location", "neutral": 1.0} for name in lists]
    more = pd.concat([table, pd.DataFrame(rows)], ignore_index=True)
    more = more.astype({name: object for name in table if name != "neutral"})
    more = more.where(more.notna(), None)
    ranked = [[code for code in row if code >= 0] for row in evidence.ranked.items.tolist()]
    return make_prompt_evidence(make_prompt_queries(more), [*ranked, *lists.values()], ITEMS)


def test_templates_without_a_word_are_the_neutral_line() -> None:
    # t00 [$$$] 3 and t01 [$$, $$$] 2.5; t09 holds no location and does not count
    world = add_neutral(HAND, {"t01": [1, 2], "t09": [0], "t00": [2]})
    with collect_warnings() as warnings:
        *labels, neutral = PLACE.measure(world)
    assert warnings == []
    assert neutral.group == "neutral"
    assert (neutral.value, neutral.n, neutral.contrasts) == (2.75, 2, ())
    assert neutral.units is not None
    assert neutral.units.unit == "template"
    assert dict(zip(neutral.units.ids, neutral.units.values, strict=True)) == {
        "t00": 3.0,
        "t01": 2.5,
    }
    for mine, alone in zip(labels, PLACE.measure(HAND), strict=True):
        assert (mine.group, mine.value, mine.ci_low) == (alone.group, alone.value, alone.ci_low)
        assert [contrast.p for contrast in mine.contrasts] == [
            contrast.p for contrast in alone.contrasts
        ]
