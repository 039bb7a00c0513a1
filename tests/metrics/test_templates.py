from __future__ import annotations

import csv
import math
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray, Queries
from recbias.core.errors import NothingLeft, UnknownColumn, UserError
from recbias.core.evidence import Evidence
from recbias.core.plugins import ChecksEarly, Pools
from recbias.metrics.templates.design import (
    Design,
    build_design,
    count_attribute_values,
    encode_words,
    group_queries,
    read_item_levels,
)
from recbias.metrics.templates.metrics import (
    Association,
    AttributeShare,
    MeanAttribute,
    PermutationResults,
    PricePercentage,
    TopWords,
    VarianceSplit,
    list_comparisons,
    list_rest_comparisons,
    run_permutation_tests,
)
from recbias.statistics.paired import SignFlip, cohens_d
from support.worlds.evidence_worlds import make_evidence, make_lists
from support.worlds.template_worlds import (
    PRICES,
    cross_couples,
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
    make_prompt_queries,
    make_random_prompts,
    plant_bias,
    plant_couple_bias,
)


def make_query_evidence(queries: Queries) -> Evidence:
    return make_evidence(make_lists([[0]] * len(queries)), queries=queries)


def make_table_evidence(rows: list[tuple[str, str, str]]) -> Evidence:
    """Queries of (template, race, name)."""
    frame = pd.DataFrame(rows, columns=["template", "race", "name"], dtype=object)
    return make_query_evidence(make_prompt_queries(frame))


LOCATIONS = make_query_evidence(
    make_prompt_queries(
        pd.DataFrame(
            [
                {"template": t, "kind": "location", "location": word}
                for word in ("school", "bank", "farm")
                for t in ("t1", "t0")
            ],
            dtype=object,
        )
    )
)


def test_names_are_the_units_where_each_value_has_several() -> None:
    design = build_design(make_query_evidence(cross_names(make_names(2), 3)), "race")
    assert design.unit == "name"
    assert not design.paired
    assert design.ids.tolist() == ["b00", "b01", "w00", "w01"]
    assert design.group.tolist() == [0, 0, 1, 1]
    assert design.sentences.tolist() == [3, 3, 3, 3]
    assert design.stratum.tolist() == [0, 0, 0, 0]
    assert design.cluster_strata.tolist() == [0, 0, 1, 1]
    assert design.df == 2


def test_templates_are_the_units_where_a_value_has_one_word() -> None:
    design = build_design(LOCATIONS, "location")
    assert design.unit == "template"
    assert design.paired
    assert design.ids.tolist() == ["t0", "t0", "t0", "t1", "t1", "t1"]
    assert design.group.tolist() == [0, 1, 2, 0, 1, 2]
    assert design.stratum.tolist() == design.cluster.tolist() == [0, 0, 0, 1, 1, 1]
    assert (design.cluster_strata.tolist(), design.df) == ([0, 0], 1)


def test_a_missing_second_word_is_a_word_of_its_own() -> None:
    rows = [("ann", "lee"), ("ann", "poe"), ("bea", None), ("bea", "lee"), ("ann", "lee")]
    frame = pd.DataFrame(rows, columns=["first", "last"], dtype=object)
    frame = frame.assign(race=["a", "a", "a", "b", "a"])
    of = make_query_evidence(make_prompt_queries(frame))
    groups = group_queries(of, "race")
    codes = encode_words(of.queries.labels, ["first", "last"], groups, groups.codes >= 0)
    assert codes[0] == codes[4]
    assert len(set(codes.tolist())) == 4


def test_queries_without_templates_are_units_of_their_own() -> None:
    frame = pd.DataFrame({"gender": ["F", "M", None, "F"]}, dtype=object)
    with collect_warnings() as warnings:
        design = build_design(make_query_evidence(make_prompt_queries(frame)), "gender")
    assert design.unit == "prompt"
    assert design.ids.tolist() == ["q0", "q1", "q3"]
    assert design.queries.tolist() == [0, 1, -1, 2]
    assert warnings == [
        "the metric: 1 queries carry no gender and are excluded",
        "the metric: gender=M has one prompt and no variance: no interval, no reliable test",
    ]


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
def test_names_of_queries_without_templates_can_be_named() -> None:
    frame = pd.DataFrame({"race": list("aabb"), "name": list("xyzz")}, dtype=object)
    design = build_design(make_query_evidence(make_prompt_queries(frame)), "race", words="name")
    assert design.ids.tolist() == ["x", "y", "z"]
    assert design.sentences.tolist() == [1, 1, 2]


def test_labels_are_exchanged_among_names_of_the_same_templates() -> None:
    nested = [(t, race, f"{race}{t}{n}") for t in ("t0", "t1") for race in "ab" for n in "12"]
    design = build_design(make_table_evidence(nested), "race")
    assert design.unit == "name"
    assert design.ids.tolist() == ["at01", "at02", "at11", "at12", "bt01", "bt02", "bt11", "bt12"]
    assert design.stratum.tolist() == [1, 1, 0, 0, 1, 1, 0, 0]


def test_values_asked_with_different_sentences_are_said() -> None:
    # t0: two names of a, one of b; t1: one of a, two of b
    rows = [("t0", race, name) for race, name in ("av", "aw", "bx")]
    rows += [("t1", race, name) for race, name in ("ay", "bz", "bu")]
    with collect_warnings() as warnings:
        design = build_design(make_table_evidence(rows), "race")
    assert design.stratum.tolist() == [0, 1, 1, 1, 0, 0]  # u, v, w, x, y, z
    assert len(warnings) == 1
    assert "the values of race occur in different sentences" in warnings[0]


def test_words_that_are_shared_without_every_combination_have_no_test_and_it_is_said() -> None:
    queries = cross_couples(2)
    rows = queries.labels.frame.index[queries.labels.frame["first"] != "f00"]
    whole = build_design(make_query_evidence(queries.take(np.asarray(rows))), "orientation")
    assert whole.words is not None  # 15 by 6
    with collect_warnings() as warnings:
        design = build_design(make_query_evidence(queries.take(np.arange(1, 192))), "orientation")
    assert (design.words, design.df) == (None, 0)
    assert design.stratum.tolist() == list(range(96))
    assert "share words, and not every combination occurs in the same templates" in warnings[0]
    assert "there is no interval and no test" in warnings[0]


def test_templates_must_be_there_to_be_units() -> None:
    frame = pd.DataFrame({"gender": ["F", "M"]}, dtype=object)
    with pytest.raises(UnknownColumn, match="no column 'template'") as caught:
        build_design(make_query_evidence(make_prompt_queries(frame)), "gender", "template")
    assert caught.value.where == "units"


ITEMS = make_priced_items(["$", "$$", None, "$"], categories=["A|B", "B", "A", None])


def make_world(lists: list[list[int]], **fields: Any) -> Any:
    return make_prompt_evidence(cross_names(make_names(1), 2), lists, ITEMS, **fields)


def test_an_item_of_several_values_counts_for_each() -> None:
    of = make_world([[0], [1], [2], [0]])
    slot_counts = count_attribute_values(
        of, build_design(of, "race", "name"), "categories", k=None
    )
    assert slot_counts.counts.tolist() == [[1, 2], [2, 1]]
    assert slot_counts.positions.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("cells", "levels"),
    [
        (["$", "$$$", None], [1, 3, np.nan]),
        (["££", "£"], [2, 1]),
        ([1.5, np.nan], [1.5, np.nan]),
        (["3", "10"], [3, 10]),
    ],
)
def test_levels_are_signs_or_numbers(cells: list[Any], levels: list[float]) -> None:
    of = make_prompt_evidence(cross_names(make_names(1), 1), [[0], [0]], make_priced_items(cells))
    assert read_item_levels(of, "price").tolist() == pytest.approx(levels, nan_ok=True)


def make_name_design(n: int, n_templates: int = 2) -> tuple[Evidence, Design]:
    queries = cross_names(make_names(n), n_templates)
    of = make_prompt_evidence(queries, [[0]] * len(queries), make_priced_items(["$"]))
    return of, build_design(of, "race")


def make_location_design(words: int, n_templates: int) -> tuple[Evidence, Design]:
    rows = [
        {"template": f"t{t:02d}", "location": f"l{word:02d}"}
        for word in range(words)
        for t in range(n_templates)
    ]
    queries = make_prompt_queries(pd.DataFrame(rows, dtype=object))
    of = make_prompt_evidence(queries, [[0]] * len(queries), make_priced_items(["$"]))
    return of, build_design(of, "location")


def run_tests(
    of: Evidence, design: Design, values: FloatArray, **fields: Any
) -> PermutationResults:
    comparisons = fields.pop("comparisons", list_comparisons(len(design.groups.names)))
    return run_permutation_tests(
        of, design, values, comparisons, np.subtract, **{"n_permutations": 2000, **fields}
    )


def test_names_are_relabelled_by_hand() -> None:
    of, design = make_name_design(2)
    # black 5 and 4, white 1 and 2: of 6 labellings {5, 4} and {1, 2} are as far apart
    outcomes = run_tests(of, design, np.array([[5.0], [4.0], [1.0], [2.0]]))
    assert outcomes.statistic.tolist() == [[3.0]]
    assert outcomes.p.tolist() == [[pytest.approx(2 / 6)]]
    assert outcomes.n.tolist() == [4]


def test_templates_as_units_are_the_sign_flip_test(rng: np.random.Generator) -> None:
    of, design = make_location_design(2, 7)
    values = rng.normal(size=(14, 1))
    by_template = values[:, 0].reshape(7, 2).T
    theirs = SignFlip().pairs(by_template, rng)["p"]
    outcomes = run_tests(of, design, values)
    assert outcomes.p[0].tolist() == pytest.approx(theirs.tolist())
    assert outcomes.n.tolist() == [7]


def test_each_against_the_rest_exchanges_within_templates(rng: np.random.Generator) -> None:
    of, design = make_location_design(12, 3)
    values = rng.normal(size=(36, 1))
    values[design.group == 4] += 50
    outcomes = run_tests(of, design, values)
    assert outcomes.p.shape == (12, 1)
    # 12³ = 1,728 labellings, of which that one alone takes all three: exact
    assert outcomes.p[4, 0] == pytest.approx(1 / 1728)
    alone = run_tests(of, design, values, comparisons=[list_rest_comparisons(range(12))[7]])
    assert outcomes.p[7, 0] == pytest.approx(alone.p[0, 0])


def test_pairs_of_unequal_sizes_are_each_tested_as_alone(rng: np.random.Generator) -> None:
    words = {f"{number:02d}": {"race": "aabbbcccc"[number]} for number in range(9)}
    queries = cross_names(words, 2)
    of = make_prompt_evidence(queries, [[0]] * len(queries), make_priced_items(["$"]))
    design, values = build_design(of, "race"), rng.normal(size=(9, 2))
    outcomes = run_tests(of, design, values)
    for index, side in enumerate(list_comparisons(3)):
        alone = run_tests(of, design, values, comparisons=[side])
        assert outcomes.p[index].tolist() == alone.p[0].tolist()


RACE = Association(label="race", attribute="categories")
ASSOCIATION_ITEMS = make_priced_items(["$"] * 4, categories=["Bars|Wine", "Bars", "Cafes", None])

# black: [0, 1], [2, 2], [1], [0]: 6 places, Bars 4, Wine 2, Cafes 2
# white: [2], [2], [0], [1, 3]: 4 places with categories, Bars 2, Wine 1, Cafes 2
LISTS = [[0, 1], [2, 2], [1], [0], [2], [2], [0], [1, 3]]
HAND = make_prompt_evidence(cross_names(make_names(2), 2), LISTS, ASSOCIATION_ITEMS)


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
    other = make_prompt_evidence(
        cross_names(make_names(2), 2), [[1]] * 4 + [[2]] * 4, ASSOCIATION_ITEMS
    )
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
    for seed in range(100):
        measurement = metric.measure(plant_bias(seed, cheap=(0.4, 0.25)).evidence)[1]
        inside += measurement.ci_low <= 0.15 / 0.325 <= measurement.ci_high
        row = metric.measure(plant_bias(seed + 500).evidence)[1].contrasts[0]
        rejected += row.p <= 0.05
    # 95 and 5 are expected, standard error 2.2
    assert 88 <= inside <= 99
    assert 1 <= rejected <= 12


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


SHARE_ITEMS = make_priced_items(["$", "$", "$$", None])
QUERIES = cross_names(make_names(1), 2)
PRICE = AttributeShare(attribute="price")
# $: 2 of 2, 1 of 2, 0 of 1; the last list has no price
SHARE_HAND = make_prompt_evidence(QUERIES, [[0, 1], [0, 2], [2, 3], [3]], SHARE_ITEMS)


def test_shares_of_the_lists_by_hand() -> None:
    with collect_warnings() as notes:
        cheap, dear = PRICE.measure(SHARE_HAND)
    assert (cheap.target, dear.target) == ("price=$", "price=$$")
    assert (cheap.value, dear.value) == ((1 + 1 / 2) / 3, (1 / 2 + 1) / 3)
    assert (cheap.n, cheap.undefined) == (3, 1)
    assert np.isnan(cheap.units.values[3])
    message = "2 positions of the lists hold an item without price and are excluded"
    assert notes == [f"the metric: {message}"]


def test_shares_of_the_items_by_hand() -> None:
    cheap, dear = AttributeShare(attribute="price", of="items").measure(SHARE_HAND)
    assert (cheap.value, dear.value) == pytest.approx((2 / 3, 1 / 3))
    assert (cheap.n, cheap.undefined) == (3, 1)
    assert cheap.units.unit == "item"


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_shares_of_one_value_each_sum_to_one_and_agree_with_a_loop(seed: int) -> None:
    queries, codes, items = make_random_prompts(np.random.default_rng(seed))
    with collect_warnings():
        estimates = PRICE.measure(make_prompt_evidence(queries, codes.tolist(), items))
    if estimates[0].n:
        assert sum(estimate.value for estimate in estimates) == pytest.approx(1.0)
    prices = items.column("price").tolist()
    for estimate in estimates:
        shares = []
        for row in codes.tolist():
            priced = [prices[item] for item in row if item >= 0 and prices[item] is not None]
            if priced:
                shares.append(priced.count(estimate.target.partition("=")[2]) / len(priced))
        assert estimate.value == pytest.approx(
            np.mean(shares) if shares else math.nan, nan_ok=True
        )


def test_a_missing_attribute_is_refused() -> None:
    with pytest.raises(UnknownColumn):
        AttributeShare(attribute="prize").check(SHARE_HAND)
    with pytest.raises(NothingLeft):
        PRICE.check(make_prompt_evidence(QUERIES, [[0]] * 4, make_priced_items([None])))
    assert PRICE.needs_now() == {"lists", "items"}
    assert AttributeShare(attribute="price", of="items").needs_now() == {"items"}


PLACE = MeanAttribute(label="location", attribute="price")
ATTRIBUTE_RACE = MeanAttribute(label="race", attribute="price")
ATTRIBUTE_ITEMS = make_priced_items([*PRICES, None])


def make_locations(lists: dict[str, list[list[int]]]) -> Evidence:
    rows = [
        {"template": f"t{number:02d}", "kind": "location", "location": word}
        for word, word_lists in lists.items()
        for number in range(len(word_lists))
    ]
    queries = make_prompt_queries(pd.DataFrame(rows, dtype=object))
    return make_prompt_evidence(
        queries, [codes for word_lists in lists.values() for codes in word_lists], ATTRIBUTE_ITEMS
    )


# bank: t00 [$, $$$] 2, t01 [$$$$] 4; farm: t00 [$] 1, t01 [$, $$] 1.5
ATTRIBUTE_HAND = make_locations({"bank": [[0, 2], [3]], "farm": [[0], [0, 1]]})


def test_means_of_templates_by_hand() -> None:
    bank, farm = PLACE.measure(ATTRIBUTE_HAND)
    assert (bank.group, farm.group) == ("location=bank", "location=farm")
    assert (bank.value, farm.value) == (3.0, 1.25)
    assert (bank.units.unit, bank.units.ids.tolist()) == ("template", ["t00", "t01"])
    assert bank.units.values.tolist() == [2, 4]
    (row,) = bank.contrasts
    # differences 1 and 2.5: of 4 signings two are as far; d_z = 1.75 / sd(1, 2.5) = 1.75/1.06066
    assert (row.difference, row.n, row.p) == (1.75, 2, 0.5)
    assert row.effect_size == pytest.approx(1.649916)


def test_names_are_the_units_where_they_are_several() -> None:
    # b00: [$] [$$$]: 2; b01: 3 3: 3; w00: 1 1; w01: 4 1: 2.5
    lists = [[0], [2], [2], [2], [0], [0], [3], [0]]
    black, white = ATTRIBUTE_RACE.measure(
        make_prompt_evidence(cross_names(make_names(2), 2), lists, ATTRIBUTE_ITEMS)
    )
    assert (black.value, white.value) == (2.5, 1.75)
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
def test_faults_are_found_before_any_model_attribute(
    settings_: dict[str, Any], error: type[UserError], parameter: str
) -> None:
    metric = replace(PLACE, **settings_)
    assert isinstance(metric, ChecksEarly)
    with pytest.raises(error) as caught:
        metric.check(replace(ATTRIBUTE_HAND, lists=None))
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
    return make_prompt_evidence(
        make_prompt_queries(more), [*ranked, *lists.values()], ATTRIBUTE_ITEMS
    )


def test_templates_without_a_word_are_the_neutral_line() -> None:
    # t00 [$$$] 3 and t01 [$$, $$$] 2.5; t09 holds no location and does not count
    world = add_neutral(ATTRIBUTE_HAND, {"t01": [1, 2], "t09": [0], "t00": [2]})
    with collect_warnings() as warnings:
        *labels, neutral = PLACE.measure(world)
    assert warnings == []
    assert neutral.group == "neutral"
    assert (neutral.value, neutral.n, neutral.contrasts) == (2.75, 2, ())
    assert neutral.units.unit == "template"
    assert dict(zip(neutral.units.ids, neutral.units.values, strict=True)) == {
        "t00": 3.0,
        "t01": 2.5,
    }
    for mine, alone in zip(labels, PLACE.measure(ATTRIBUTE_HAND), strict=True):
        assert (mine.group, mine.value, mine.ci_low) == (alone.group, alone.value, alone.ci_low)
        assert [contrast.p for contrast in mine.contrasts] == [
            contrast.p for contrast in alone.contrasts
        ]


PERCENTAGE_RACE = PricePercentage(label="race", attribute="price")
PERCENTAGE_ITEMS = make_priced_items(["$", "$$", None])

# two black names (b00 female, b01 male), two white ones, in two templates each
# places at $: b00 2 + 1, b01 1 + 1, w00 1 + 0, w01 0 + 1; at $$: b 0 0 0 1, w 1 2 1 1
PERCENTAGE_LISTS = [[0, 0], [0], [0], [0, 1], [0, 1], [1, 1], [1], [0, 1]]
PERCENTAGE_HAND = make_prompt_evidence(
    cross_names(make_names(2), 2), PERCENTAGE_LISTS, PERCENTAGE_ITEMS
)


def index_shares(measurements: Any) -> dict[tuple[str, str], float]:
    return {
        (measurement.group, measurement.target): measurement.value for measurement in measurements
    }


def test_shares_by_hand() -> None:
    # at $: black 5, white 2; at $$: black 1, white 5
    shares = index_shares(PERCENTAGE_RACE.measure(PERCENTAGE_HAND))
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
    return make_prompt_evidence(cross_names(names, 2), [[0]] * 6, PERCENTAGE_ITEMS)


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
@pytest.mark.parametrize(("rescale", "expected"), [(True, 1 / 2), (False, 1 / 3)])
def test_labels_of_unequal_size_are_rescaled_to_weigh_alike(
    rescale: bool, expected: float
) -> None:
    metric = replace(PERCENTAGE_RACE, units="name", rescale=rescale)
    assert metric.measure(make_unequal())[0].value == pytest.approx(expected)


def test_the_published_shares_are_those_of_one_price() -> None:
    published = resources.files("recbias.reports") / "published_data/lmrec/text.csv"
    rows = csv.DictReader(published.read_text(encoding="utf-8").splitlines())
    figures = [float(row["value"]) for row in rows if row["metric"].startswith("price percent")]
    assert figures == [0.6949, 0.3051]
    assert sum(figures) == pytest.approx(1)
    # 6,949 places at $ from black names and 3,051 from white ones
    names = {"b": {"race": "black"}, "w": {"race": "white"}}
    of = make_prompt_evidence(
        cross_names(names, 1),
        [[0] * round(10_000 * figure) for figure in figures],
        PERCENTAGE_ITEMS,
    )
    shares = index_shares(replace(PERCENTAGE_RACE, units="name").measure(of))
    assert [shares[f"race={label}", "price=$"] for label in ("black", "white")] == figures


def test_locations_are_compared_template_by_template() -> None:
    rows = [{"template": f"t{t}", "location": word} for word in ("bank", "farm") for t in range(6)]
    of = make_prompt_evidence(
        make_prompt_queries(pd.DataFrame(rows, dtype=object)),
        [[1]] * 6 + [[0]] * 6,
        PERCENTAGE_ITEMS,
    )
    measurements = replace(PERCENTAGE_RACE, label="location").measure(of)
    (row,) = measurements[0].contrasts
    assert (row.a, row.b, row.n) == ("location=bank", "location=farm", 6)
    assert row.p == 2 / 2**6


def test_the_tests_count_relabellings_of_names() -> None:
    # two names a label: of 6 labellings two split black from white; 2 of 6 is the least p
    (row,) = PERCENTAGE_RACE.measure(PERCENTAGE_HAND)[0].contrasts
    assert row.test == "permutation"
    assert row.n == 4
    assert row.difference == pytest.approx(3 / 7)
    assert row.statistic == pytest.approx(3 / 7)
    assert row.p == pytest.approx(2 / 6)


def measure_pooled_percentage(metric: PricePercentage, *worlds: Evidence) -> float:
    counts = np.stack([np.asarray(metric.measure(of)[0].counts) for of in worlds])
    return metric.of_counts(counts.sum(axis=0))


def test_counts_pool_over_datasets_percentage() -> None:
    # black and white at $, per query: 5/4 and 2/4 here, 1 and 1 there: 2.25 of 3.75
    other = make_prompt_evidence(cross_names(make_names(2), 2), [[0]] * 8, PERCENTAGE_ITEMS)
    assert isinstance(PERCENTAGE_RACE, Pools)
    assert measure_pooled_percentage(PERCENTAGE_RACE, PERCENTAGE_HAND, other) == pytest.approx(
        (1.25 + 1) / (1.75 + 2)
    )
    assert measure_pooled_percentage(
        replace(PERCENTAGE_RACE, rescale=False), PERCENTAGE_HAND, PERCENTAGE_HAND
    ) == pytest.approx(5 / 7)
    assert np.isnan(PERCENTAGE_RACE.of_counts(np.zeros(2)))


def test_words_of_both_slots_are_resampled_and_exchanged() -> None:
    metric = PricePercentage(label="orientation", attribute="price", permutations=199)
    inside, detected, rejected = 0, 0, 0
    for seed in range(50):
        different = metric.measure(plant_couple_bias(seed, effect=0.065))[0]
        inside += different.ci_low <= 0.4675 <= different.ci_high
        detected += different.contrasts[0].p <= 0.05
        rejected += metric.measure(plant_couple_bias(seed + 500))[0].contrasts[0].p <= 0.05
    assert (different.n, different.undefined) == (22, 0)
    # 47.5 and 2.5 are expected, standard error 1.5
    assert inside >= 43
    assert detected >= 45
    assert rejected <= 7


@pytest.mark.parametrize(
    ("settings_", "error", "parameter"),
    [
        ({"label": "rase"}, UnknownColumn, "label"),
        ({"label": "kind"}, UserError, "label"),
        ({"attribute": "prise"}, UnknownColumn, "attribute"),
        ({"words": "nom"}, UnknownColumn, "words"),
    ],
)
def test_faults_are_found_before_any_model_percentage(
    settings_: dict[str, Any], error: type[UserError], parameter: str
) -> None:
    metric = replace(PERCENTAGE_RACE, **settings_)
    assert isinstance(metric, ChecksEarly)
    with pytest.raises(error) as caught:
        metric.check(replace(PERCENTAGE_HAND, lists=None))
    assert caught.value.where == parameter
    assert caught.value.remedy


WORDS_RACE = TopWords(label="race")
WORDS_ITEMS = make_priced_items(
    ["$"] * 4, title=["The Grill at Joe's", "Grill & Grill No. 7", "CAFÉ Été", None]
)
# black: item 0 twice, item 1 once, item 3: the, grill 2 + 2, at, joe's 2
# white: item 2 twice
WORDS_HAND = make_prompt_evidence(
    cross_names(make_names(1), 2), [[0, 0], [1, 3], [2], [2]], WORDS_ITEMS
)


def list_counts(measurements: Any) -> list[tuple[str, str, float]]:
    return [
        (measurement.group, measurement.target, measurement.value) for measurement in measurements
    ]


def test_words_are_counted_place_by_place() -> None:
    with collect_warnings() as warnings:
        measurements = WORDS_RACE.measure(WORDS_HAND)
    assert list_counts(measurements) == [
        ("race=black", "word=grill", 4.0),
        ("race=black", "word=joe's", 2.0),
        ("race=white", "word=café", 2.0),
        ("race=white", "word=été", 2.0),
    ]
    assert [measurement.n for measurement in measurements] == [2, 2, 2, 2]
    message = "1 positions of the lists hold an item without title and are excluded"
    assert warnings == [f"the metric: {message}"]


SPLIT_RACE = VarianceSplit(label="race", attribute="level")
LEVELS = make_priced_items(["$"] * 10, level=[*range(9), np.nan])
# two names a label in two templates, one item a list whose level is its code
#              b00: 1 3   b01: 2 6   w00: 5 7   w01: 8 8
# label 32, name 8, template 8, rest 4 of 52: worked in tests/statistics/test_variance_components
SPLIT_LISTS = [[1], [3], [2], [6], [5], [7], [8], [8]]
SPLIT_HAND = make_prompt_evidence(cross_names(make_names(2), 2), SPLIT_LISTS, LEVELS)


def measure_shares(metric: VarianceSplit, of: Evidence) -> dict[str, float]:
    return {measurement.target: measurement.value for measurement in metric.measure(of)}


def test_shares_by_hand_split() -> None:
    expected = {"label": 32 / 52, "name": 8 / 52, "template": 8 / 52, "rest": 4 / 52}
    measurements = SPLIT_RACE.measure(SPLIT_HAND)
    assert {
        measurement.target: measurement.value for measurement in measurements
    } == pytest.approx(expected)
    assert {(measurement.n, measurement.undefined) for measurement in measurements} == {(4, 0)}


def test_two_names_a_label_leave_no_interval_for_the_names() -> None:
    # a sample of one of two names has no variance between names
    for row in SPLIT_RACE.measure(SPLIT_HAND):
        has_interval = row.ci_low < row.value < row.ci_high
        assert has_interval == (row.target != "name")
        assert row.df == 2


def test_lists_without_a_level_leave_an_unbalanced_design() -> None:
    lists = [[9], *SPLIT_LISTS[1:]]
    with collect_warnings() as warnings:
        measurements = SPLIT_RACE.measure(
            make_prompt_evidence(cross_names(make_names(2), 2), lists, LEVELS)
        )
    assert sum(measurement.value for measurement in measurements) == pytest.approx(1)
    assert "1 positions of the lists hold an item without level" in warnings[0]


def test_lists_that_are_all_alike_split_nothing() -> None:
    measurements = SPLIT_RACE.measure(
        make_prompt_evidence(cross_names(make_names(2), 2), [[3]] * 8, LEVELS)
    )
    assert all(np.isnan(measurement.value) for measurement in measurements)
    assert {(measurement.n, measurement.undefined) for measurement in measurements} == {(0, 4)}


def test_pairs_of_words_are_the_names_of_a_label_of_both_and_have_no_interval() -> None:
    metric = VarianceSplit(label="orientation", attribute="price")
    measurements = metric.measure(plant_couple_bias(0))
    assert {measurement.n for measurement in measurements} == {96}
    assert all(np.isnan(measurement.ci_low) for measurement in measurements)


def make_lists_split(levels: FloatArray) -> list[list[int]]:
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
    of = make_prompt_evidence(cross_names(make_names(n), t), make_lists_split(levels), LEVELS)
    shares = measure_shares(SPLIT_RACE, of)
    assert max(shares, key=lambda source: shares[source]) == part
    assert shares[part] > 0.6


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
def test_designs_that_cannot_be_split() -> None:
    queries = SPLIT_HAND.queries.take(np.arange(7))
    ragged = make_prompt_evidence(queries, SPLIT_LISTS[:7], LEVELS)
    assert sum(measure_shares(SPLIT_RACE, ragged).values()) == pytest.approx(1)
    plain = make_prompt_queries(pd.DataFrame({"race": ["a", "b"]}, dtype=object))
    with pytest.raises(UnknownColumn, match="no column 'template'"):
        SPLIT_RACE.check(make_prompt_evidence(plain, [[0], [1]], LEVELS))
