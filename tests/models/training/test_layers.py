from __future__ import annotations

import numpy as np
import pytest
import torch

from recbias.models.training.layers import (
    Dense,
    drawn_layers,
    dropped,
    layers_of,
    parameters_of,
    state_of,
)

CPU = torch.device("cpu")


def test_a_layer_by_hand() -> None:
    layer = Dense(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0]))
    # (1, 1): 1 + 3 + 10, 2 + 4 + 20
    np.testing.assert_array_equal(layer(np.array([[1.0, 1.0]])), [[14.0, 26.0]])


def test_a_stored_layer_gives_what_the_tensors_gave(rng: np.random.Generator) -> None:
    layers = drawn_layers([3, 5, 2], CPU, rng)
    restored = layers_of("deep", state_of("deep", layers))
    x = rng.standard_normal((4, 3)).astype(np.float32)
    tensors, arrays = torch.from_numpy(x), x
    for each, same in zip(layers, restored, strict=True):
        tensors, arrays = each(tensors), same(arrays)
    np.testing.assert_allclose(tensors.detach().numpy(), arrays, rtol=1e-5)
    assert [tuple(each.shape) for each in parameters_of(layers)] == [(3, 5), (5,), (5, 2), (2,)]


def test_a_state_without_such_layers_has_none() -> None:
    assert layers_of("deep", {"wide.0.weight": np.ones((1, 1)), "wide.0.bias": np.ones(1)}) == []


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_dropout_keeps_the_mean(share: float) -> None:
    x = torch.ones(100, 100)
    found = dropped(x, share, torch.Generator().manual_seed(3))
    assert found.mean().item() == pytest.approx(1, abs=0.02)
    assert (found == 0).float().mean().item() == pytest.approx(share, abs=0.02)
