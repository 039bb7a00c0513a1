from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes
from recbias.core.queries import group_by
from recbias.metrics.templates.design import (
    encode_column,
    encode_unit_words,
    encode_words,
    find_slot_columns,
    find_word_columns,
    has_shared_words,
    is_crossed,
    join_words,
)
from support.worlds.template_worlds import cross_couples, make_prompt_queries

COUPLES = pd.DataFrame(
    [
        {
            "template": template,
            "kind": "sexual_orientation",
            "first": first,
            "second": second,
            "first_gender": first_gender,
            "second_gender": second_gender,
            "orientation": "same" if first_gender == second_gender else "different",
        }
        for template in ("t0", "t1")
        for first, first_gender in (("mom", "F"), ("aunt", "F"), ("dad", "M"), ("uncle", "M"))
        for second, second_gender in (("wife", "F"), ("girl", "F"), ("husband", "M"))
    ],
    dtype=object,
)


def find_carriers(table: pd.DataFrame, by: str) -> list[str]:
    labels = make_prompt_queries(table).labels
    groups = group_by(labels, by)
    return find_word_columns(labels, groups, groups.codes >= 0)


@pytest.mark.parametrize(
    ("label", "columns"), [("first_gender", ["first"]), ("second_gender", ["second"])]
)
def test_a_label_is_carried_by_the_words_that_stand_with_one_value_each(
    label: str, columns: list[str]
) -> None:
    assert find_carriers(COUPLES, label) == columns


def test_a_label_of_two_words_is_carried_by_all_together() -> None:
    columns = find_carriers(COUPLES, "orientation")
    assert {"first", "second"} <= set(columns)
    labels = make_prompt_queries(COUPLES).labels
    groups = group_by(labels, "orientation")
    codes = encode_words(labels, columns, groups, groups.codes >= 0)
    assert np.unique(codes).size == 12  # 4 first words by 3 second ones


def test_missing_cells_and_texts_of_one_query_carry_nothing() -> None:
    warnings = np.array([None, *["x"] * 23], dtype=object)
    table = COUPLES.assign(note=warnings, text=[f"sentence {n}" for n in range(24)])
    assert find_carriers(table, "first_gender") == ["first"]


def test_codes_are_in_the_order_of_the_words_and_apart_for_each_label_value() -> None:
    rows: list[tuple[Any, ...]] = [("b", "y"), ("a", "x"), ("b", "x"), (None, "z")]
    table = pd.DataFrame(rows, columns=["race", "name"], dtype=object)
    labels: Attributes = make_prompt_queries(table).labels
    groups = group_by(labels, "race")
    codes = encode_words(labels, ["name"], groups, groups.codes >= 0)
    assert codes[3] == -1
    assert codes[1] < codes[2] < codes[0]
    assert encode_column(labels, "race").tolist() == [1, 0, 1, -1]
    assert join_words(labels, ["name", "race"], np.array([0, 3])).tolist() == ["y|b", "z"]


def find_slots(table: pd.DataFrame, by: str) -> list[str]:
    labels = make_prompt_queries(table).labels
    groups = group_by(labels, by)
    return find_slot_columns(labels, groups, groups.codes >= 0)


CROSSED = cross_couples(2).labels.frame


@pytest.mark.parametrize("by", ["orientation", "first_gender&second_gender"])
def test_words_give_a_label_together(by: str) -> None:
    assert find_slots(CROSSED, by) == ["first", "second"]


def test_a_third_slot_that_has_no_part_in_it_is_no_carrier() -> None:
    places = [CROSSED.assign(location=location) for location in ("bank", "farm")]
    assert find_slots(pd.concat(places), "orientation") == ["first", "second"]


def test_columns_that_follow_from_words_and_texts_are_no_words() -> None:
    texts = [f"sentence {number}" for number in range(len(CROSSED))]
    table = CROSSED.assign(text=texts, again=CROSSED["first"].str.upper(), none=None)
    assert find_slots(table.astype(object), "orientation") == ["first", "second"]


def test_where_nothing_gives_the_label_all_words_are_looked_at() -> None:
    labels = np.arange(len(CROSSED)) % 5 % 2
    table = CROSSED.assign(mood=labels.astype(str)).drop(columns="orientation")
    assert find_slots(table.astype(object), "mood") == ["first", "second"]


def test_combinations_of_words() -> None:
    labels = cross_couples(1).labels
    words = encode_unit_words(labels, ["first", "second"], np.arange(len(labels.frame)))
    assert words.shape == (2, 96)
    assert is_crossed(words)
    assert not is_crossed(words[:, 1:])
    assert not is_crossed(words[:, ::-1])
    assert has_shared_words(words)
    assert not has_shared_words(np.array([[0, 1], [1, 0]]))
