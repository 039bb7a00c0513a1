from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from recbias.kernels.sparse import (
    cover_without_rows,
    entropy_without_rows,
    gini_without_rows,
    jain_without_rows,
)
from recbias.statistics.inequality import cover, entropy, gini, jain

PAIRS = (
    (cover, cover_without_rows),
    (jain, jain_without_rows),
    (entropy, entropy_without_rows),
    (gini, gini_without_rows),
)


@pytest.mark.parametrize(("measure", "measure_without"), PAIRS)
@given(seed=st.integers(0, 2**32 - 1))
def test_values_equal_those_of_the_other_rows(
    measure: Any, measure_without: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    q, n = rng.integers(1, 9), rng.integers(1, 7)
    rows = (rng.random((q, n)) < rng.random()).astype(np.int32)
    expected = [float(measure(np.delete(rows, row, axis=0).sum(axis=0))) for row in range(q)]
    assert measure_without(csr_array(rows)) == pytest.approx(expected, nan_ok=True, abs=1e-12)
