from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.errors import NothingLeft, UnknownColumn
from recbias.core.plugins import ChecksEarly
from recbias.metrics.templates.metrics import STOP_WORDS, TopWords
from recbias.testing import check_metric
from support.worlds.template_worlds import (
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
    make_prompt_queries,
    make_random_prompts,
)

RACE = TopWords(label="race")
ITEMS = make_priced_items(
    ["$"] * 4, title=["The Grill at Joe's", "Grill & Grill No. 7", "CAFÉ Été", None]
)
# black: item 0 twice, item 1 once, item 3: the, grill 2 + 2, at, joe's 2
# white: item 2 twice
HAND = make_prompt_evidence(cross_names(make_names(1), 2), [[0, 0], [1, 3], [2], [2]], ITEMS)


def list_counts(measurements: Any) -> list[tuple[str, str, float]]:
    return [
        (measurement.group, measurement.target, measurement.value) for measurement in measurements
    ]


def test_words_are_counted_place_by_place() -> None:
    with collect_warnings() as warnings:
        measurements = RACE.measure(HAND)
    assert list_counts(measurements) == [
        ("race=black", "word=grill", 4.0),
        ("race=black", "word=joe's", 2.0),
        ("race=white", "word=café", 2.0),
        ("race=white", "word=été", 2.0),
    ]
    assert [measurement.n for measurement in measurements] == [2, 2, 2, 2]
    message = "1 positions of the lists hold an item without title and are excluded"
    assert warnings == [f"the metric: {message}"]


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
def test_stop_words_may_stay_and_n_cuts() -> None:
    measurements = replace(RACE, stop_words=False, n=3).measure(HAND)
    assert list_counts(measurements)[:3] == [
        ("race=black", "word=grill", 4.0),
        ("race=black", "word=at", 2.0),
        ("race=black", "word=joe's", 2.0),
    ]
    assert {"the", "and", "at"} <= STOP_WORDS
    assert all(word == word.lower() for word in STOP_WORDS)


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
def test_a_label_without_words_is_undefined_and_counted() -> None:
    of = make_prompt_evidence(cross_names(make_names(1), 2), [[3], [3], [0], [0]], ITEMS)
    first = RACE.measure(of)[0]
    assert np.isnan(first.value)
    assert (first.group, first.n, first.undefined) == ("race=black", 0, 2)


def test_queries_without_the_label_are_left_out_and_said() -> None:
    names = {**make_names(1), "x": {"gender": "male"}}
    of = make_prompt_evidence(cross_names(names, 2), [[0]] * 6, ITEMS)
    with collect_warnings() as warnings:
        measurements = RACE.measure(of)
    assert {measurement.n for measurement in measurements} == {2}
    assert warnings == ["the metric: 2 queries carry no race and are excluded"]


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_counts_double_with_the_lists_and_follow_their_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries, codes, items = make_random_prompts(rng)

    def measure_prompts(queries: Any, codes: Any) -> dict[tuple[str, str], float]:
        of = make_prompt_evidence(queries, codes.tolist(), items)
        return {(group, word): value for group, word, value in list_counts(RACE.measure(of))}

    counts = measure_prompts(queries, codes)
    order = rng.permutation(len(queries))
    assert measure_prompts(queries.take(order), codes[order]) == counts
    doubled = measure_prompts(queries, np.concatenate([codes, codes], axis=1))
    assert doubled == {key: 2 * value for key, value in counts.items()}
    swapped = {"black": "white", "white": "black"}
    table = queries.labels.frame.assign(race=queries.labels.frame["race"].map(swapped))
    turned = measure_prompts(make_prompt_queries(table), codes)
    named = {"race=black": "race=white", "race=white": "race=black"}
    assert turned == {(named[group], word): value for (group, word), value in counts.items()}


def test_faults_are_found_before_any_model() -> None:
    assert isinstance(RACE, ChecksEarly)
    with pytest.raises(UnknownColumn, match="no column 'titel'") as caught:
        replace(RACE, attribute="titel").check(HAND)
    assert (caught.value.where, caught.value.remedy) == ("attribute", "did you mean title?")
    with pytest.raises(NothingLeft, match="one value only"):
        replace(RACE, label="kind").check(HAND)


def test_it_keeps_the_contract_of_metrics() -> None:
    check_metric(RACE, evidence=HAND)
    check_metric(TopWords(label="colour", attribute="genres"))
