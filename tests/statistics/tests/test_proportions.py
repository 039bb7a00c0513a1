from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, fisher_exact

from recbias.core.dataset import AnyArray
from recbias.statistics.paired import ChiSquared


def compare_pairs(values: Any) -> Mapping[str, AnyArray]:
    return ChiSquared().pairs(np.asarray(values, dtype=float), np.random.default_rng(0))


def test_by_hand() -> None:
    # table 15 5 / 5 15: expected 10 everywhere: X2 = 4 x 25/10 = 10, phi = sqrt(10 / 40)
    columns = compare_pairs(np.repeat([[1, 1, 1, 0], [1, 0, 0, 0]], 5, axis=1))
    assert columns["statistic"].tolist() == [10.0]
    assert columns["df"].tolist() == [1.0]
    assert columns["p"][0] == pytest.approx(0.001565, abs=1e-6)
    assert columns["test"].tolist() == [""]
    assert columns["effect_size"].tolist() == [0.5]
    assert (columns["mean_a"].tolist(), columns["mean_b"].tolist()) == ([0.75], [0.25])
    assert columns["n"].tolist() == [20]


def test_small_tables_have_the_exact_test() -> None:
    # table 2 0 / 0 2: of the 6 tables with these margins, 2 are as extreme: p = 1/3
    columns = compare_pairs([[1, 1], [0, 0]])
    assert columns["test"].tolist() == ["fisher_exact"]
    assert columns["p"][0] == pytest.approx(1 / 3)
    assert np.isnan([columns["statistic"][0], columns["df"][0]]).all()
    assert columns["effect_size"].tolist() == [1.0]


def test_the_limit_is_an_expected_count_of_5() -> None:
    # ones 10 and 0 of 20: expected 5; ones 9 and 0 of 20: expected 4.5
    tens, nines, zeros = (np.arange(20) < ones for ones in (10, 9, 0))
    columns = compare_pairs([tens, zeros, nines])
    assert columns["test"].tolist() == ["", "", "fisher_exact"]
    assert columns["p"][2] == pytest.approx(fisher_exact([[0, 20], [9, 11]]).pvalue)


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60).filter(
        lambda pairs: 0 < sum(map(sum, pairs)) < 2 * len(pairs)
    )
)
def test_both_tests_are_those_of_scipy(pairs: list[tuple[bool, bool]]) -> None:
    values = np.array(pairs, dtype=float).T
    columns = compare_pairs(values)
    ones = values.sum(axis=1)
    table = np.stack([ones, values.shape[1] - ones], axis=1)
    expected = chi2_contingency(table, correction=False)
    if expected.expected_freq.min() >= 5:
        assert columns["statistic"][0] == pytest.approx(expected.statistic, abs=1e-9)
        assert columns["p"][0] == pytest.approx(expected.pvalue)
    else:
        assert np.isnan(columns["statistic"][0])
        assert columns["p"][0] == pytest.approx(fisher_exact(table).pvalue)
    phi = np.sqrt(expected.statistic / (2 * len(pairs)))
    assert abs(columns["effect_size"][0]) == pytest.approx(phi, abs=1e-9)
    swapped = compare_pairs(values[::-1])
    assert swapped["p"][0] == pytest.approx(columns["p"][0])
    assert swapped["effect_size"][0] == pytest.approx(-columns["effect_size"][0])


def test_units_that_one_model_does_not_define_are_excluded() -> None:
    values = np.repeat([[1, 1, 1, 0], [1, 0, 0, 0]], 5, axis=1)
    columns = compare_pairs(np.column_stack([values, [np.nan, 1]]))
    assert columns["n"].tolist() == [20]
    assert columns["statistic"][0] == pytest.approx(10.0)


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
