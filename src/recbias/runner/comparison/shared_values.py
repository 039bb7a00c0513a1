"""The values of units and bootstrap samples that two runs share, and their tests."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.statistics.bootstrap.query_bootstrap import compare_replicates
from recbias.statistics.tests.paired import PairedT

Key: TypeAlias = tuple[Hashable, ...]
"""What identifies a value or a test."""

_TEST_COLUMNS = ("n", "ci_low", "ci_high", "p")


@dataclass(frozen=True, eq=False)
class SharedUnits:
    """The units of a metric value that two runs share, with both values, ``float64[2, u]``."""

    ids: tuple[Any, ...]
    values: FloatArray

    def test(self) -> dict[str, Any]:
        """Return Student's paired t-test of the second run minus the first: ``_TEST_COLUMNS``."""
        columns = PairedT().pairs(self.values[::-1], np.random.default_rng(0))
        return {name: float(columns[name][0]) for name in _TEST_COLUMNS} | {"test": "paired_t"}

    @cached_property
    def content(self) -> Key:
        """What equals that of other units with the same values."""
        return (self.ids, self.values.tobytes())


@dataclass(frozen=True, eq=False)
class SharedReplicates:
    """The values of two runs on the same bootstrap samples, ``float64[2, b]``."""

    values: FloatArray
    df: float

    def test(self, row: Mapping[Hashable, Any]) -> dict[str, Any]:
        """Return the paired bootstrap of the second run minus the first, as in ``run``."""
        points = np.array([row["value_b"], row["value_a"]])
        columns = compare_replicates(points, self.values[::-1], 0.05, df=self.df)
        test = {name: float(columns[name][0]) for name in _TEST_COLUMNS}
        return test | {"n": row.get("n_b", 0), "test": "paired_bootstrap"}

    @cached_property
    def content(self) -> Key:
        """What equals that of other samples with the same values."""
        return (self.values.tobytes(), self.df)


NO_TEST: dict[str, Any] = {
    **dict.fromkeys(("ci_low", "ci_high", "p"), math.nan),
    "n": 0,
    "test": "",
}
"""The columns of a value without a test."""
