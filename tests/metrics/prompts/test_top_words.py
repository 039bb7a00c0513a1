from __future__ import annotations

from typing import Any

from recbias.core.context import collect_warnings
from recbias.metrics.templates.metrics import TopWords
from support.worlds.template_worlds import (
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
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
