from __future__ import annotations

import numpy as np
import pytest
import torch

from recbias.models.training import (
    Dense,
    apply_dropout,
    collect_parameters,
    initialize_layers,
    restore_layers,
    store_layers,
)

CPU = torch.device("cpu")


def test_layer_matches_a_hand_computation() -> None:
    layer = Dense(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0]))
    # (1, 1): 1 + 3 + 10, 2 + 4 + 20
    np.testing.assert_array_equal(layer(np.array([[1.0, 1.0]])), [[14.0, 26.0]])


def test_restored_layers_match_the_tensors(rng: np.random.Generator) -> None:
    layers = initialize_layers([3, 5, 2], CPU, rng)
    restored = restore_layers("deep", store_layers("deep", layers))
    x = rng.standard_normal((4, 3)).astype(np.float32)
    tensors, arrays = torch.from_numpy(x), x
    for layer, restored_layer in zip(layers, restored, strict=True):
        tensors, arrays = layer(tensors), restored_layer(arrays)
    np.testing.assert_allclose(tensors.detach().numpy(), arrays, rtol=1e-5)
    assert [tuple(tensor.shape) for tensor in collect_parameters(layers)] == [
        (3, 5),
        (5,),
        (5, 2),
        (2,),
    ]


def test_other_layers_of_a_state_are_ignored() -> None:
    assert (
        restore_layers("deep", {"wide.0.weight": np.ones((1, 1)), "wide.0.bias": np.ones(1)}) == []
    )


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_dropout_keeps_the_mean(rate: float) -> None:
    x = torch.ones(100, 100)
    output = apply_dropout(x, rate, torch.Generator().manual_seed(3))
    assert output.mean().item() == pytest.approx(1, abs=0.02)
    assert (output == 0).float().mean().item() == pytest.approx(rate, abs=0.02)
