"""Labels that people gave to some of the items."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn
from recbias.detectors.groups import Column, HumanLabels
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


ITEMS = Attributes(Vocabulary.of(["1", "2", "3", "4"]), pd.DataFrame(index=range(4)))


def label_human_labels(folder: Path, text: str, **settings: Any) -> dict[str, list[float]]:
    path = folder / "labels.csv"
    path.write_text(text, encoding="utf-8")
    detector = HumanLabels(path=path, **{"columns": ("race",), **settings})
    labels = detector.label(ITEMS, np.random.default_rng(0))
    assert {*labels} == {*detector.kinds}
    return {name: values.tolist() for name, values in labels.items()}


RATINGS = "item_id,race\n1,1\n1,1\n1,0\n2,0\n2,1\n4,0\n"


def test_the_mean_of_raters_and_its_variance(tmp_path: Path) -> None:
    """s² = (2/3 + 1/2) / (2 + 1), divided by the number of ratings."""
    with collect_warnings() as messages:
        labels = label_human_labels(tmp_path, RATINGS)
    assert labels["race"] == pytest.approx([2 / 3, 0.5, np.nan, 0.0], nan_ok=True)
    s = (2 / 3 + 1 / 2) / 3
    assert labels["race_variance"][:2] == pytest.approx([s / 3, s / 2])
    assert labels["race_variance"][3] == pytest.approx(s)
    assert "2 items have several ratings of race" in messages[0]
    assert "Krippendorff" in messages[0]


def test_people_may_answer_yes_and_no(tmp_path: Path) -> None:
    labels = label_human_labels(tmp_path, "item_id,race\n1,True\n2,False\n3,\n4,yes\n")
    assert labels["race"] == pytest.approx([1.0, 0.0, np.nan, 1.0], nan_ok=True)


def test_the_majority_of_raters(tmp_path: Path) -> None:
    """Three draws of 2/3 have a majority of ones with q = 20/27; a tie is a half."""
    with collect_warnings():
        labels = label_human_labels(tmp_path, RATINGS, raters="majority")
    assert labels["race"] == pytest.approx([1.0, 0.5, np.nan, 0.0], nan_ok=True)
    q = 20 / 27
    assert labels["race_variance"][0] == pytest.approx(q * (1 - q))
    assert labels["race_variance"][3] == pytest.approx(0.0)


def test_one_kind_may_be_called_label_and_items_have_probabilities(tmp_path: Path) -> None:
    with collect_warnings() as messages:
        labels = label_human_labels(tmp_path, "item_id,label,probability\n2,1,0.25\n9,0,0.5\n")
    assert labels["race"] == pytest.approx([np.nan, 1.0, np.nan, np.nan], nan_ok=True)
    assert labels["probability"][1] == 0.25
    assert messages == ["1 items of labels.csv are not in the dataset"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("item_id,race\n1,2\n", OutOfRange),
        ("item_id,gender\n1,1\n", UnknownColumn),
        ("item_id,race\n9,1\n", NothingLeft),
    ],
)
def test_faults(tmp_path: Path, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        label_human_labels(tmp_path, text)
