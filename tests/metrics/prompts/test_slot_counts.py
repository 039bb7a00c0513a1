from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import MissingEvidence, NothingLeft, UnknownColumn
from recbias.metrics.templates.design import (
    build_design,
    check_attribute,
    count_attribute_values,
    count_items,
    read_item_levels,
    require_items,
    warn_missing_attribute,
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


def test_what_is_left_out_is_said() -> None:
    of = make_world([[0, 2], [4, 4], [1], []])
    with collect_warnings() as warnings:
        slot_counts = count_attribute_values(of, build_design(of, "race", "name"), "price", k=None)
    assert slot_counts.positions.tolist() == [1, 1]
    assert warnings == [
        "the metric: 2 positions of the lists hold an item outside the catalogue and are excluded",
        "the metric: 1 positions of the lists hold an item without price and are excluded",
    ]


def test_items_of_queries_without_a_unit_are_no_ones() -> None:
    of = make_world([[0], [1], [1], [3]])
    item_counts = count_items(of, np.array([0, -1, 0, 1]), 2, k=None)
    assert item_counts.toarray().tolist() == [[1, 1, 0, 0], [0, 0, 0, 1]]
    with collect_warnings() as warnings:
        warn_missing_attribute(of, item_counts, np.ones(4, dtype=bool), "price")
    assert warnings == []


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


@pytest.mark.parametrize("cells", [["cheap", "dear"], ["$", "££"], ["$$", "3"]])
def test_other_text_has_no_level(cells: list[Any]) -> None:
    of = make_prompt_evidence(cross_names(make_names(1), 1), [[0], [0]], make_priced_items(cells))
    with pytest.raises(UnknownColumn, match="not numeric") as caught:
        read_item_levels(of, "price")
    assert caught.value.where == "attribute"


def test_attributes_that_cannot_be_measured() -> None:
    of = make_prompt_evidence(
        cross_names(make_names(1), 1), [[0], [0]], make_priced_items([None, None])
    )
    with pytest.raises(NothingLeft, match="no item has a value of 'price'") as empty:
        check_attribute(of, "price")
    with pytest.raises(UnknownColumn, match="no column 'prise'") as unknown:
        check_attribute(of, "prise")
    assert empty.value.where == unknown.value.where == "attribute"
    assert unknown.value.remedy == "did you mean price?"
    with pytest.raises(MissingEvidence, match="needs items"):
        require_items(replace(of, items=None))
