from __future__ import annotations

import csv
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.errors import Contradiction, UnknownColumn, UserError
from recbias.core.evidence import Evidence
from recbias.core.plugins import ChecksEarly, Pools
from recbias.metrics.templates.metrics import PricePercentage
from support.worlds.template_worlds import (
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
    make_prompt_queries,
    plant_couple_bias,
)

RACE = PricePercentage(label="race", attribute="price")
ITEMS = make_priced_items(["$", "$$", None])

# two black names (b00 female, b01 male), two white ones, in two templates each
# places at $: b00 2 + 1, b01 1 + 1, w00 1 + 0, w01 0 + 1; at $$: b 0 0 0 1, w 1 2 1 1
LISTS = [[0, 0], [0], [0], [0, 1], [0, 1], [1, 1], [1], [0, 1]]
HAND = make_prompt_evidence(cross_names(make_names(2), 2), LISTS, ITEMS)


def index_shares(measurements: Any) -> dict[tuple[str, str], float]:
    return {
        (measurement.group, measurement.target): measurement.value for measurement in measurements
    }


def test_shares_by_hand() -> None:
    # at $: black 5, white 2; at $$: black 1, white 5
    shares = index_shares(RACE.measure(HAND))
    assert shares == pytest.approx(
        {
            ("race=black", "price=$"): 5 / 7,
            ("race=black", "price=$$"): 1 / 6,
            ("race=white", "price=$"): 2 / 7,
            ("race=white", "price=$$"): 5 / 6,
        }
    )


def make_unequal() -> Evidence:
    """One black and two white names, a list of one $ each."""
    names = {"b": {"race": "black"}, "v": {"race": "white"}, "w": {"race": "white"}}
    return make_prompt_evidence(cross_names(names, 2), [[0]] * 6, ITEMS)


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
@pytest.mark.parametrize(("rescale", "expected"), [(True, 1 / 2), (False, 1 / 3)])
def test_labels_of_unequal_size_are_rescaled_to_weigh_alike(
    rescale: bool, expected: float
) -> None:
    metric = replace(RACE, units="name", rescale=rescale)
    assert metric.measure(make_unequal())[0].value == pytest.approx(expected)


def test_the_published_shares_are_those_of_one_price() -> None:
    published = resources.files("recbias.reports") / "published_data/lmrec/text_figures.csv"
    rows = csv.DictReader(published.read_text(encoding="utf-8").splitlines())
    figures = [float(row["value"]) for row in rows if row["metric"].startswith("price percent")]
    assert figures == [0.6949, 0.3051]
    assert sum(figures) == pytest.approx(1)
    # 6,949 places at $ from black names and 3,051 from white ones
    names = {"b": {"race": "black"}, "w": {"race": "white"}}
    of = make_prompt_evidence(
        cross_names(names, 1), [[0] * round(10_000 * figure) for figure in figures], ITEMS
    )
    shares = index_shares(replace(RACE, units="name").measure(of))
    assert [shares[f"race={label}", "price=$"] for label in ("black", "white")] == figures


def test_locations_are_compared_template_by_template() -> None:
    rows = [{"template": f"t{t}", "location": word} for word in ("bank", "farm") for t in range(6)]
    of = make_prompt_evidence(
        make_prompt_queries(pd.DataFrame(rows, dtype=object)), [[1]] * 6 + [[0]] * 6, ITEMS
    )
    measurements = replace(RACE, label="location").measure(of)
    (row,) = measurements[0].contrasts
    assert (row.a, row.b, row.n) == ("location=bank", "location=farm", 6)
    assert row.p == 2 / 2**6


def test_the_tests_count_relabellings_of_names() -> None:
    # two names a label: of 6 labellings two split black from white; 2 of 6 is the least p
    (row,) = RACE.measure(HAND)[0].contrasts
    assert row.test == "permutation"
    assert row.n == 4
    assert row.difference == pytest.approx(3 / 7)
    assert row.statistic == pytest.approx(3 / 7)
    assert row.p == pytest.approx(2 / 6)


def measure_pooled(metric: PricePercentage, *worlds: Evidence) -> float:
    counts = np.stack([np.asarray(metric.measure(of)[0].counts) for of in worlds])
    return metric.of_counts(counts.sum(axis=0))


def test_counts_pool_over_datasets() -> None:
    # black and white at $, per query: 5/4 and 2/4 here, 1 and 1 there: 2.25 of 3.75
    other = make_prompt_evidence(cross_names(make_names(2), 2), [[0]] * 8, ITEMS)
    assert isinstance(RACE, Pools)
    assert measure_pooled(RACE, HAND, other) == pytest.approx((1.25 + 1) / (1.75 + 2))
    assert measure_pooled(replace(RACE, rescale=False), HAND, HAND) == pytest.approx(5 / 7)
    assert np.isnan(RACE.of_counts(np.zeros(2)))


def test_words_of_both_slots_are_resampled_and_exchanged() -> None:
    metric = PricePercentage(label="orientation", attribute="price", permutations=199)
    inside, detected, rejected = 0, 0, 0
    for seed in range(80):
        different = metric.measure(plant_couple_bias(seed, effect=0.065))[0]
        inside += different.ci_low <= 0.4675 <= different.ci_high
        detected += different.contrasts[0].p <= 0.05
        rejected += metric.measure(plant_couple_bias(seed + 500))[0].contrasts[0].p <= 0.05
    assert (different.n, different.undefined) == (22, 0)
    # 76 and 4 are expected, standard error 1.9
    assert inside >= 71
    assert detected >= 74
    assert rejected <= 10


@pytest.mark.parametrize(
    ("settings_", "error", "parameter"),
    [
        ({"label": "rase"}, UnknownColumn, "label"),
        ({"label": "kind"}, UserError, "label"),
        ({"attribute": "prise"}, UnknownColumn, "attribute"),
        ({"within": "gendre"}, UnknownColumn, "within"),
        ({"within": "race"}, Contradiction, "within"),
        ({"words": "nom"}, UnknownColumn, "words"),
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
