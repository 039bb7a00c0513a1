from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from recbias.statistics import bootstrap
from recbias.statistics.bootstrap import add_in_sets, join_rows, resample_sums


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(6, 40), n_sets=st.integers(1, 5))
def test_each_row_is_in_one_set_and_sets_have_the_same_size(
    seed: int, n: int, n_sets: int
) -> None:
    rows = np.column_stack([np.ones(n), 2.0 ** np.arange(n)])
    sums = join_rows(rows, np.random.default_rng(seed), large=5, n_sets=n_sets)
    assert sums[:, 0].max() - sums[:, 0].min() <= 1
    assert sums.sum(axis=0).tolist() == rows.sum(axis=0).tolist()
    sparse = join_rows(csr_array(rows), np.random.default_rng(seed), large=5, n_sets=n_sets)
    assert sparse.tolist() == sums.tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_sums_of_sets_are_those_of_a_product(
    dtype: type, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = csr_array((rng.random((30, 7)) * 5).astype(dtype) * (rng.random((30, 7)) < 0.4))
    sets = rng.integers(-1, 4, 30)
    members = (sets[None, :] == np.arange(4)[:, None]).astype(dtype)
    sums = add_in_sets(rows, sets, 4)
    assert sums.dtype == dtype
    np.testing.assert_array_equal(sums, members @ rows.toarray())
    np.testing.assert_array_equal(
        add_in_sets(rows, sets, 4, are_full=False).toarray(), members @ rows.toarray()
    )
    monkeypatch.setattr(bootstrap, "DENSE_CELLS", 27)
    assert add_in_sets(rows, sets, 4).toarray().tolist() == sums.tolist()


@pytest.fixture
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "LARGE", 500)
    monkeypatch.setattr(bootstrap, "N_SETS", 100)


@pytest.mark.usefixtures("small_sets")
@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_sums_of_sets_spread_as_sums_of_rows_do(dtype: Any, rng: np.random.Generator) -> None:
    rows = rng.binomial(1, [0.5, 0.1, 0.02], size=(2_000, 3)).astype(dtype)
    samples = np.concatenate(list(resample_sums(csr_array(rows), 2_000, 4)))
    assert samples.dtype == dtype
    # the standard deviation of a sum of 2,000 rows; that of 100 sets is estimated within 7%
    expected = np.sqrt(2_000) * rows.std(axis=0)
    assert samples.std(axis=0) == pytest.approx(expected, rel=0.3)
    assert samples.mean(axis=0) == pytest.approx(rows.sum(axis=0), rel=0.02)
    again = np.concatenate(list(resample_sums(csr_array(rows[:, ::-1]), 2_000, 4)))
    assert (again[:, ::-1] == samples).all()
