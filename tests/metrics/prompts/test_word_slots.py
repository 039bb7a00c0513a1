from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.queries.groups import group_by
from recbias.metrics.prompts.word_slots import (
    encode_unit_words,
    find_slot_columns,
    has_shared_words,
    is_crossed,
)
from support.template_worlds import cross_couples, make_prompt_queries


def find_carriers(table: pd.DataFrame, by: str) -> list[str]:
    labels = make_prompt_queries(table).labels
    groups = group_by(labels, by)
    return find_slot_columns(labels, groups, groups.codes >= 0)


COUPLES = cross_couples(2).labels.frame


@pytest.mark.parametrize("by", ["orientation", "first_gender&second_gender"])
def test_words_give_a_label_together(by: str) -> None:
    assert find_carriers(COUPLES, by) == ["first", "second"]


def test_a_third_slot_that_has_no_part_in_it_is_no_carrier() -> None:
    places = [COUPLES.assign(location=location) for location in ("bank", "farm")]
    assert find_carriers(pd.concat(places), "orientation") == ["first", "second"]


def test_columns_that_follow_from_words_and_texts_are_no_words() -> None:
    texts = [f"sentence {number}" for number in range(len(COUPLES))]
    table = COUPLES.assign(text=texts, again=COUPLES["first"].str.upper(), none=None)
    assert find_carriers(table.astype(object), "orientation") == ["first", "second"]


def test_where_nothing_gives_the_label_all_words_are_looked_at() -> None:
    labels = np.arange(len(COUPLES)) % 5 % 2
    table = COUPLES.assign(mood=labels.astype(str)).drop(columns="orientation")
    assert find_carriers(table.astype(object), "mood") == ["first", "second"]


def test_combinations_of_words() -> None:
    labels = cross_couples(1).labels
    words = encode_unit_words(labels, ["first", "second"], np.arange(len(labels.frame)))
    assert words.shape == (2, 96)
    assert is_crossed(words)
    assert not is_crossed(words[:, 1:])
    assert not is_crossed(words[:, ::-1])
    assert has_shared_words(words)
    assert not has_shared_words(np.array([[0, 1], [1, 0]]))
