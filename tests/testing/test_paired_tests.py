from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.errors import BrokenContract
from recbias.registry import REGISTRIES
from recbias.statistics.paired import PairedT
from recbias.testing import check_test

Columns = dict[str, AnyArray]
TESTS = REGISTRIES["tests"]


def keep(columns: Columns) -> Columns:
    return columns


@dataclass(frozen=True, kw_only=True)
class ChangedTest:
    """A paired t-test with changed columns."""

    alpha: float = 0.05
    correction: Any = "holm"
    family: Any = "metric"
    change: Callable[[Columns], Columns] = keep

    def pairs(self, values: FloatArray, rng: np.random.Generator) -> Mapping[str, AnyArray]:
        return self.change(dict(PairedT().pairs(values, rng)))


def set_column(name: str, value: float) -> Callable[[Columns], Columns]:
    return lambda columns: {**columns, name: np.full(3, value)}


def drop_statistic(columns: Columns) -> Columns:
    return {name: values for name, values in columns.items() if name != "statistic"}


def drop_pair(columns: Columns) -> Columns:
    return {name: values[1:] for name, values in columns.items()}


def negate_difference(columns: Columns) -> Columns:
    return {**columns, "difference": -columns["difference"]}


CALLS = iter(range(10_000))


def count_calls(columns: Columns) -> Columns:
    return {**columns, "statistic": np.full(3, float(next(CALLS)))}


@pytest.mark.parametrize("name", TESTS.names())
def test_every_registered_test_passes(name: str) -> None:
    check_test(TESTS.load(name)())


@pytest.mark.parametrize(
    ("test", "violation"),
    [
        (ChangedTest(alpha=1.5), "has the level 1.5"),
        (ChangedTest(correction="some"), "has the correction some"),
        (ChangedTest(family="all"), "has the family all"),
        (ChangedTest(family=0), "has the family 0"),
        (ChangedTest(change=drop_statistic), "returns no column statistic"),
        (ChangedTest(change=drop_pair), "returns 2 values of n for 3 pairs"),
        (ChangedTest(change=set_column("p", 1.5)), "returns p-values outside 0 to 1"),
        (ChangedTest(change=set_column("p", 1.0)), "does not detect a difference"),
        (ChangedTest(change=set_column("p", 0.01)), "detects a difference between equal systems"),
        (ChangedTest(change=negate_difference), "does not return mean_a - mean_b"),
        (ChangedTest(change=count_calls), "returns other values the second time"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_violation_is_named(test: ChangedTest, violation: str) -> None:
    with pytest.raises(BrokenContract, match=violation):
        check_test(test)
