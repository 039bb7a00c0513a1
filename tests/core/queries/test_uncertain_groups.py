from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.errors import (
    Contradiction,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    UserError,
)
from recbias.core.queries import read_uncertain_groups


def make_labels(**columns: list[float | str | None]) -> Attributes:
    n = len(next(iter(columns.values())))
    ids = Vocabulary.of([f"u{row}" for row in range(n)])
    return Attributes(ids, pd.DataFrame(columns), "user")


def test_one_column_has_the_group_and_its_complement() -> None:
    labels = make_labels(p=[1.0, 0.25, None, 0.75, 0.5, 0.5])
    groups = read_uncertain_groups(labels, "probability of p")
    assert groups.names == ("p", "not p")
    assert groups.probabilities[[0, 1, 3]].tolist() == [[1.0, 0.0], [0.25, 0.75], [0.75, 0.25]]
    assert groups.missing == 1
    assert (groups.find_code("not p"), groups.assumption) == (1, "probability")


def test_several_columns_are_divided_by_their_sum() -> None:
    labels = make_labels(a=[0.5, 0.8, 0.6, 0.1, 0.4], b=[0.495, 0.2, 0.4, 0.9, 0.6])
    groups = read_uncertain_groups(labels, "weight of a + b")
    assert groups.probabilities[0].tolist() == pytest.approx([0.5 / 0.995, 0.495 / 0.995])


def test_information_is_the_share_of_the_variance_of_a_label() -> None:
    # mean 0.5, variance 0.09; that of a certain label is 0.25
    groups = read_uncertain_groups(make_labels(p=[0.8, 0.8, 0.2, 0.2]), "probability of p")
    assert groups.information.tolist() == pytest.approx([0.36, 0.36])
    certain = read_uncertain_groups(make_labels(p=[1.0, 1.0, 0.0, 0.0]), "probability of p")
    assert certain.information.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("columns", "by", "kind", "message"),
    [
        (
            {"p": [0.2, 45.0, 0.1]},
            "probability of p",
            OutOfRange,
            "'p' has 1 of 3 values outside 0 to 1, such as 45 of user u1",
        ),
        ({"p": [0.2, -0.1, 0.1]}, "weight of p", OutOfRange, "such as -0.1 of user u1"),
        (
            {"a": [0.5, 0.6, 0.5], "b": [0.5, 0.3, 0.5]},
            "probability of a + b",
            OutOfRange,
            "a + b is not 1 for 1 queries, such as 0.9 for user u1",
        ),
        (
            {"p": [0.4, 0.4, None]},
            "probability of p",
            NothingLeft,
            "every query has the same p, 0.4, which does not tell the groups apart",
        ),
        ({"p": [0.4] * 3}, "weight of p", NothingLeft, "the same p"),
        (
            {"p": [0.1, 0.2, 0.3]},
            "weight of p",
            NothingLeft,
            "0.6 queries are expected in p, fewer",
        ),
        (
            {"a": [0.5, 0.2, 0.4] * 5, "b": [0.25, 0.4, 0.3] * 5, "c": [0.25, 0.4, 0.3] * 5},
            "probability of a + b + c",
            Contradiction,
            "depend on each other",
        ),
        ({"p": [None, None]}, "probability of p", NothingLeft, "no query carries the label"),
        ({"p": ["high", "low"]}, "probability of p", UnknownColumn, "not numeric: 'high'"),
        ({"p": [0.5, 0.6]}, "probability of q", UnknownColumn, "no query carries the label 'q'"),
    ],
)
def test_probabilities_that_cannot_be_used_are_refused(
    columns: dict[str, list[float | str | None]], by: str, kind: type[UserError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        read_uncertain_groups(make_labels(**columns), by)
    assert message in caught.value.message
    assert caught.value.remedy


@given(st.lists(st.floats(0.0, 1.0), min_size=5, max_size=30))
def test_accepted_probabilities_add_up_to_one(values: list[float]) -> None:
    labels = make_labels(p=[*values])
    try:
        groups = read_uncertain_groups(labels, "probability of p")
    except NothingLeft:
        expected = min(np.sum(values), len(values) - np.sum(values))
        assert expected < 2.0 + 1e-9 or np.ptp(values) < 1e-9
    else:
        assert groups.probabilities.sum(axis=1) == pytest.approx(np.ones(len(values)))
        assert ((groups.information >= 0) & (groups.information <= 1 + 1e-9)).all()
