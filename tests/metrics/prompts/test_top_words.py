from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.metrics.templates.metrics import TopWords
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
