from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.statistics.intervals import compute_running_means

VALUES = st.lists(st.one_of(st.floats(-1e3, 1e3), st.just(float("nan"))), min_size=1, max_size=30)


def test_running_means_equal_the_hand_calculation() -> None:
    # means 2, 3, 4; squares around them 0, 2, 8; variances -, 2, 4; errors -, 1, sqrt(4 / 3)
    running = compute_running_means(np.array([[2.0], [4.0], [6.0]]))
    assert running.mean.ravel().tolist() == [2.0, 3.0, 4.0]
    assert running.error.ravel().tolist() == pytest.approx(
        [np.nan, 1.0, np.sqrt(4 / 3)], nan_ok=True
    )


@given(VALUES)
def test_running_means_equal_those_of_pandas(values: list[float]) -> None:
    expanding = pd.Series(values, dtype=float).expanding()
    running = compute_running_means(np.array(values)[:, None])
    np.testing.assert_allclose(running.mean[:, 0], expanding.mean(), atol=1e-9)
    errors = expanding.std(ddof=1) / np.sqrt(expanding.count())
    np.testing.assert_allclose(running.error[:, 0], errors, atol=1e-5)


@given(VALUES)
def test_the_last_running_mean_is_the_mean_in_any_order(values: list[float]) -> None:
    order = np.random.default_rng(len(values)).permutation(len(values))
    last = [
        compute_running_means(np.array(values)[rows, None]).mean[-1, 0]
        for rows in (order, slice(None))
    ]
    assert last[0] == pytest.approx(last[1], abs=1e-9, nan_ok=True)


def test_columns_do_not_affect_each_other_and_undefined_ones_stay_undefined() -> None:
    values = np.array([[1.0, np.nan], [2.0, np.nan]])
    running = compute_running_means(values)
    assert running.mean[:, 0].tolist() == [1.0, 1.5]
    assert np.isnan(running.mean[:, 1]).all()
    assert np.isnan(running.error[:, 1]).all()


def test_large_values_keep_their_spread() -> None:
    values = 1e9 + np.array([[0.0], [1.0], [2.0]])
    assert compute_running_means(values).error[-1, 0] == pytest.approx(np.sqrt(1 / 3))
