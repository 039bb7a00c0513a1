from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbias.models import gpu
from recbias.models.gpu import (
    LARGE_TABLE,
    PAGE,
    create_parameter,
    create_torch_generator,
    top_k,
)

CPU = torch.device("cpu")


def test_torch_generator_is_seeded_by_the_numpy_generator() -> None:
    first, second = (
        torch.rand(4, generator=create_torch_generator(np.random.default_rng(seed), CPU))
        for seed in (5, 5)
    )
    assert torch.equal(first, second)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 300),
    k=st.integers(1, 12),
    n_values=st.sampled_from([2, 20, 10**6]),
    special=st.sampled_from([0.0, 0.3, 0.97]),
)
def test_groups_of_columns_select_the_same_scores(
    seed: int, n: int, k: int, n_values: int, special: float
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(-n_values, n_values, (5, n)).astype(np.float32)
    is_special = rng.random(scores.shape) < special
    scores[is_special] = rng.choice([-np.inf, np.inf, np.nan], is_special.sum(), p=[0.8, 0.1, 0.1])
    expected = top_k(torch.tensor(scores), k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu, "GROUP", 8)
        grouped = torch.tensor(scores)
        size = min(k, n)
        columns = gpu._select_by_groups(grouped, size).sort(dim=1).values
        others = gpu._select_largest(gpu._replace_special(torch.tensor(scores)), size)
    others = others.sort(dim=1).values
    is_infinite = torch.isneginf(gpu._replace_special(torch.tensor(scores)))
    for row in range(5):
        found, right = (
            [int(column) for column in part[row] if not is_infinite[row, column]]
            for part in (columns, others)
        )
        assert found == right
        assert len(found) == int((expected[0][row] >= 0).sum())


@pytest.mark.parametrize("shape", [(LARGE_TABLE // 64, 64), (LARGE_TABLE + 3,), (3, 5)])
def test_parameters_of_every_size_are_trainable_copies(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).random(shape)
    table = create_parameter(values, CPU)
    assert table.is_leaf
    assert table.requires_grad
    assert table.dtype == torch.float32
    np.testing.assert_array_equal(table.detach().numpy(), values.astype(np.float32))
    if values.size >= LARGE_TABLE:
        assert table.data_ptr() % PAGE == 0
    with torch.no_grad():
        table += 1
    assert values.max() < 1
    table.square().sum().backward()
    assert table.grad.shape == shape
