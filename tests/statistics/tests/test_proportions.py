from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from recbias.core.arrays import AnyArray
from recbias.statistics.tests.proportions import ChiSquared


def compare_pairs(values: Any) -> Mapping[str, AnyArray]:
    return ChiSquared().pairs(np.asarray(values, dtype=float), np.random.default_rng(0))


def test_by_hand() -> None:
    # table 3 1 / 1 3: expected 2 everywhere: X2 = 4 x 1/2 = 2, phi = sqrt(2 / 8)
    columns = compare_pairs([[1, 1, 1, 0], [1, 0, 0, 0]])
    assert columns["statistic"].tolist() == [2.0]
    assert columns["df"].tolist() == [1.0]
    assert columns["p"][0] == pytest.approx(0.157299, abs=1e-6)
    assert columns["effect_size"].tolist() == [0.5]
    assert (columns["mean_a"].tolist(), columns["mean_b"].tolist()) == ([0.75], [0.25])
    assert columns["n"].tolist() == [4]


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60).filter(
        lambda pairs: 0 < sum(map(sum, pairs)) < 2 * len(pairs)
    )
)
def test_it_is_that_of_scipy(pairs: list[tuple[bool, bool]]) -> None:
    values = np.array(pairs, dtype=float).T
    columns = compare_pairs(values)
    ones = values.sum(axis=1)
    table = np.stack([ones, values.shape[1] - ones], axis=1)
    expected = chi2_contingency(table, correction=False)
    assert columns["statistic"][0] == pytest.approx(expected.statistic, abs=1e-9)
    assert columns["p"][0] == pytest.approx(expected.pvalue)
    swapped = compare_pairs(values[::-1])
    assert swapped["p"][0] == pytest.approx(columns["p"][0])
    assert swapped["effect_size"][0] == pytest.approx(-columns["effect_size"][0])


def test_units_that_one_model_does_not_define_are_excluded() -> None:
    columns = compare_pairs([[1, 1, 1, 0, np.nan], [1, 0, 0, 0, 1]])
    assert (columns["n"].tolist(), columns["statistic"].tolist()) == ([4], [2.0])


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_values_are_equal(value: float) -> None:
    columns = compare_pairs(np.full((2, 5), value))
    assert columns["p"].tolist() == [1.0]
    assert np.isnan(columns["statistic"]).all()
    assert np.isnan(columns["effect_size"]).all()


@pytest.mark.parametrize("values", [[[0.2, 1.0, 0.0], [1.0, 1.0, 0.0]], [[1.0], [0.0]]])
def test_other_values_and_single_units_have_no_p(values: list[list[float]]) -> None:
    columns = compare_pairs(np.array(values))
    assert np.isnan(columns["p"]).all()
    assert np.isnan(columns["statistic"]).all()
