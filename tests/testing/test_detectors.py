from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, FloatArray, Vocabulary
from recbias.core.errors import BrokenContract
from recbias.detectors.groups import Column
from recbias.testing import check_detector

Labels = Mapping[str, FloatArray]


def label_cheap(items: Attributes, rng: np.random.Generator) -> Labels:
    price = items.numbers("price")
    return {"cheap": (price < 3).astype(np.float64), "cheap_score": 1 / price}


@dataclass(frozen=True, kw_only=True)
class Detector:
    """Labels cheap items, changed."""

    libraries: ClassVar[tuple[str, ...]] = ()

    kinds: tuple[str, ...] = ("cheap",)
    change: Callable[[Attributes, np.random.Generator], Labels] = label_cheap

    def label(self, items: Attributes, rng: np.random.Generator) -> Labels:
        return self.change(items, rng)


def add_column(items: Attributes, rng: np.random.Generator) -> Labels:
    return {**label_cheap(items, rng), "dear": np.zeros(len(items.ids))}


def shorten(items: Attributes, rng: np.random.Generator) -> Labels:
    return {"cheap": np.zeros(3)}


def grade(items: Attributes, rng: np.random.Generator) -> Labels:
    return {"cheap": items.numbers("price")}


def label_even_rows(items: Attributes, rng: np.random.Generator) -> Labels:
    return {"cheap": np.arange(len(items.ids)) % 2 == 0}


def label_half(items: Attributes, rng: np.random.Generator) -> Labels:
    return {"cheap": (np.arange(len(items.ids)) < 9).astype(np.float64)}


CALLS = iter(range(10_000))


def alternate(items: Attributes, rng: np.random.Generator) -> Labels:
    return {"cheap": np.full(len(items.ids), float(next(CALLS) % 2))}


def test_a_correct_detector_passes() -> None:
    check_detector(Detector())
    check_detector(Column(from_="flag"))


def test_items_can_be_chosen() -> None:
    ids = Vocabulary.of(["1", "2", "3"])
    items = Attributes(ids, pd.DataFrame({"votes": [3.0, 8.0, np.nan]}))
    check_detector(Column(from_="votes", threshold=5), items=items)


@pytest.mark.parametrize(
    ("detector", "violation"),
    [
        (Detector(kinds=()), "has no kinds"),
        (Detector(kinds=("cheap", "cheap")), "has no kinds, or one of them twice"),
        (Detector(kinds=("cheap", "race")), "returns no column race"),
        (Detector(change=add_column), "returns the column dear of no kind"),
        (Detector(change=shorten), r"returns cheap as float64\[3\]"),
        (Detector(change=label_even_rows), r"returns cheap as bool\[25\]"),
        (Detector(change=grade), "returns labels cheap other than 0, 1 and NaN"),
        (Detector(change=alternate), "returns other labels the second time"),
        (Detector(change=label_half), "depends on the order of the items"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_violation_is_named(detector: Detector, violation: str) -> None:
    with pytest.raises(BrokenContract, match=violation):
        check_detector(detector)
