from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from recbias.core.dataset import AnyArray
from recbias.kernels import topk
from recbias.models.gpu import top_k

LEVELS = st.sampled_from([-np.inf, np.nan, np.inf, -1.5, -0.0, 0.0, 0.25, 1.0, 2.0])


def compute_top_k(scores: AnyArray, k: int) -> tuple[list[list[int]], AnyArray]:
    columns, values = top_k(torch.tensor(scores), k)
    assert (columns.dtype, values.dtype) == (torch.int32, torch.float32)
    return columns.tolist(), values.numpy()


def assert_same_as_arrays(scores: AnyArray, k: int) -> None:
    columns, values = compute_top_k(scores, k)
    expected, expected_values = topk.top_k(scores, k)
    assert columns == expected.tolist()
    np.testing.assert_array_equal(values, expected_values)


@given(
    scores=arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=60), elements=LEVELS),
    k=st.integers(1, 70),
)
def test_result_equals_the_top_k_of_arrays(scores: AnyArray, k: int) -> None:
    assert_same_as_arrays(scores, k)
