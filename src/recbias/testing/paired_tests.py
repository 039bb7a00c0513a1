"""The contract of a significance test."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.columns import PAIR_COLUMNS
from recbias.core.stage_context import collect_warnings
from recbias.statistics.corrections import PairedTest
from recbias.testing.declared import check_dataclass, refuse

N_UNITS = 60
"""The number of units of the systems that are compared."""


@collect_warnings()
def check_test(test: PairedTest) -> None:
    """Check that a significance test meets the contract of its kind.

    It is a documented frozen dataclass with a valid level, correction and family. It returns all
    columns for all pairs of systems, and the same values with the same generator. p is small for
    systems that differ by two standard deviations, and not for systems with equal scores.

    Args:
        test: The test with its settings.

    Raises:
        BrokenContract: It violates a rule.

    Example:
        check_test(MyTest(alpha=0.01))
    """
    name = type(test).__name__
    check_dataclass(test, ("alpha", "correction", "family", "pairs"), name)
    _check_settings(test, name)
    base = np.random.default_rng(3).normal(size=N_UNITS)
    noise = np.random.default_rng(4).normal(size=N_UNITS)
    values = np.array([base, base + 2 + noise, base])
    columns, repeated = (test.pairs(values, np.random.default_rng(0)) for _ in range(2))
    _check_columns(columns, values, name)
    refuse(columns["p"][0] > 0.05, name, "does not detect a difference of 2 standard deviations")
    refuse(columns["p"][1] < 0.5, name, "detects a difference between equal systems")
    same = all(np.array_equal(columns[key], repeated[key], equal_nan=True) for key in PAIR_COLUMNS)
    refuse(not same, name, "returns other values the second time")


def _check_settings(test: PairedTest, name: str) -> None:
    refuse(not 0 < test.alpha < 1, name, f"has the level {test.alpha}")
    corrections = {"none", "bonferroni", "holm", "bh"}
    refuse(test.correction not in corrections, name, f"has the correction {test.correction}")
    size = test.family if isinstance(test.family, int) else 1
    unknown = not isinstance(test.family, int) and test.family not in {"metric", "report"}
    refuse(unknown or size < 1, name, f"has the family {test.family}")


def _check_columns(columns: Mapping[str, AnyArray], values: FloatArray, name: str) -> None:
    pairs = list(combinations(range(len(values)), 2))
    for column in PAIR_COLUMNS:
        refuse(column not in columns, name, f"returns no column {column}")
        size = np.size(columns[column])
        refuse(size != len(pairs), name, f"returns {size} values of {column} for 3 pairs")
    p = columns["p"]
    refuse(((p < 0) | (p > 1)).any(), name, "returns p-values outside 0 to 1")
    means = values.mean(axis=1)
    differences = [means[a] - means[b] for a, b in pairs]
    same = np.allclose(columns["difference"], differences)
    refuse(not same, name, "does not return mean_a - mean_b as the difference")
