from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from recbias.core.dataset import FloatArray
from recbias.kernels.sparse import gini_without_rows
from recbias.statistics.bootstrap import (
    LARGE,
    N_SETS,
    resample_linear_part,
    resample_sums,
    widen_samples,
)
from recbias.statistics.inequality import gini


def average(sums: Any) -> FloatArray:
    return np.asarray(sums[..., 0] / sums[..., 1])


@given(seed=st.integers(0, 2**32 - 1))
def test_samples_of_a_mean_are_those_of_resampled_rows(seed: int) -> None:
    # without the factor, the part of a row in a mean is (x - mean) / (q - 1)
    values = np.random.default_rng(seed).normal(size=15)
    rows = csr_array(np.stack([values, np.ones(15)], axis=1))
    samples, df = resample_linear_part(rows, average, 30, seed)
    means = np.concatenate([average(sums) for sums in resample_sums(rows, 30, seed)])
    factor = math.sqrt(14 / 15) * 15 / 14
    assert samples - values.mean() == pytest.approx((means - values.mean()) * factor, abs=1e-12)
    assert df == 14


def test_standard_error_of_a_mean_is_that_of_its_formula() -> None:
    values = np.array([1.0, 2.0, 6.0, 11.0])
    rows = csr_array(np.stack([values, np.ones(4)], axis=1))
    samples, _ = resample_linear_part(rows, average, 40_000, 0)
    assert float(samples.std()) == pytest.approx(values.std(ddof=1) / 2, rel=0.02)


def test_the_faster_computation_gives_the_same_samples() -> None:
    rows = csr_array((np.random.default_rng(0).random((50, 20)) < 0.3).astype(np.int32))
    slow, _ = resample_linear_part(rows, gini, 20, 3)
    fast, _ = resample_linear_part(rows, gini, 20, 3, leave_out=gini_without_rows)
    assert fast == pytest.approx(slow, rel=1e-12)


def test_many_rows_are_left_out_in_sets() -> None:
    values = np.random.default_rng(0).normal(size=LARGE + 1)
    rows = csr_array(np.stack([values, np.ones(values.size)], axis=1))
    samples, df = resample_linear_part(rows, average, 400, 0)
    assert df == N_SETS - 1
    expected = values.std(ddof=1) / math.sqrt(values.size)
    assert float(samples.std(ddof=1)) == pytest.approx(expected, rel=0.15)


def test_a_single_row_and_an_undefined_estimate_have_no_samples() -> None:
    one, df = resample_linear_part(csr_array([[1, 0]]), gini, 5, 0)
    assert np.isnan(one).all()
    assert math.isnan(df)
    nothing_left, _ = resample_linear_part(csr_array([[1, 0], [0, 0]]), gini, 5, 0)
    assert np.isnan(nothing_left).all()


def test_samples_are_widened_to_the_wider_ones() -> None:
    linear, wide = np.array([0.0, 1.0, 2.0]), np.array([-1.0, 1.0, 5.0])
    widened = widen_samples(1.0, linear, wide)
    assert float(widened.std()) == pytest.approx(float(wide.std()))
    assert np.corrcoef(widened, linear)[0, 1] == pytest.approx(1)
    assert widen_samples(1.0, wide, linear) is wide
    assert widen_samples(1.0, np.ones(3), wide) is wide
    assert widen_samples(1.0, np.ones(3), np.ones(3)).tolist() == [1, 1, 1]
