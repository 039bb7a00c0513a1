"""Codes are ordered as by a stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.kernels import sparse
from recbias.kernels.sparse import argsort_codes


@given(st.lists(st.integers(0, 20)))
def test_the_order_is_that_of_a_stable_sort(values: list[int]) -> None:
    codes = np.array(values, dtype=np.int32)
    order = argsort_codes(codes, 21)
    assert order.dtype == np.int32
    assert order.tolist() == np.argsort(codes, kind="stable").tolist()


def test_positions_that_do_not_fit_32_bits_have_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "MAX_INT32", 2)
    order = argsort_codes(np.array([1, 0, 1], dtype=np.int32), 2)
    assert order.dtype == np.int64
    assert order.tolist() == [1, 0, 2]
