from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn
from recbias.detectors.groups import Column
from support.worlds.evidence_worlds import make_vocabulary

NAN = math.nan


def label(detector: Column, column: list[Any]) -> list[float]:
    items = Attributes(make_vocabulary("i", len(column)), pd.DataFrame({"votes": column}))
    (labels,) = detector.label(items, np.random.default_rng(0)).values()
    return labels.tolist()  # type: ignore[no-any-return]


def test_a_column_of_0_and_1_is_used_unchanged() -> None:
    assert label(Column(from_="votes"), [1.0, 0.0]) == [1.0, 0.0]
    assert label(Column(from_="votes"), ["1", "0"]) == [1.0, 0.0]


def test_values_from_the_threshold_on_are_labelled() -> None:
    assert label(Column(from_="votes", threshold=3), [2.9, 3.0, 4.0]) == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("threshold", [None, 1.0])
def test_a_missing_value_has_no_label(threshold: float | None) -> None:
    labels = label(Column(from_="votes", threshold=threshold), [1.0, NAN, 0.0])
    assert labels == pytest.approx([1.0, NAN, 0.0], nan_ok=True)


@pytest.mark.parametrize(
    ("detector", "column", "error", "message"),
    [
        (Column(from_="vote"), [1.0], UnknownColumn, "no column 'vote'"),
        (Column(from_="votes"), ["yes", "no"], UnknownColumn, "not numeric: 'yes'"),
        (Column(from_="votes"), [1.0, 0.5], OutOfRange, "of item 'i1' is 0.5, neither 0 nor 1"),
        (Column(from_="votes", threshold=1), [NAN, NAN], NothingLeft, "'votes' .* is empty"),
    ],
)
def test_unusable_columns_are_errors(
    detector: Column, column: list[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        label(detector, column)
    assert caught.value.where == "from"  # type: ignore[attr-defined]
    assert caught.value.remedy or error is not OutOfRange  # type: ignore[attr-defined]
