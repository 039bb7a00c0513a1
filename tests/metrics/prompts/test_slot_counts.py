from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.metrics.templates.design import (
    build_design,
    count_attribute_values,
    read_item_levels,
)
from support.worlds.template_worlds import (
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
)

ITEMS = make_priced_items(["$", "$$", None, "$"], categories=["A|B", "B", "A", None])


def make_world(lists: list[list[int]], **fields: Any) -> Any:
    return make_prompt_evidence(cross_names(make_names(1), 2), lists, ITEMS, **fields)


def test_every_place_counts_and_repeats_count() -> None:
    # b00: [0, 0, 1] and [3]; w00: [1] and [1]
    of = make_world([[0, 0, 1], [3], [1], [1]])
    slot_counts = count_attribute_values(of, build_design(of, "race", "name"), "price", k=None)
    assert slot_counts.values == ("$", "$$")
    assert slot_counts.counts.tolist() == [[3, 1], [0, 2]]
    assert slot_counts.positions.tolist() == [4, 2]
    cut = count_attribute_values(of, build_design(of, "race", "name"), "price", k=1)
    assert cut.counts.tolist() == [[2, 0], [0, 2]]


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
