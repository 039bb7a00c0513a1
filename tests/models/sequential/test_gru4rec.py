from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recbias.models.sequential import (
    GRU4Rec,
    sum_binary_cross_entropy,
    sum_cross_entropy,
    sum_sampled_cross_entropy,
)

MODEL = GRU4Rec(embedding_size=3, layers=2, max_length=5, dropout=0.0, device="cpu")
N_ITEMS = 7


def make_parameters(*, double: bool = False) -> dict[str, Any]:
    arrays = MODEL._sample_weights(N_ITEMS, np.random.default_rng(2))
    rng = np.random.default_rng(3)
    kind = torch.float64 if double else torch.float32
    return {
        name: torch.tensor(rng.normal(size=array.shape), dtype=kind, requires_grad=double)
        for name, array in arrays.items()
    }


def test_vectors_equal_those_of_the_recurrence_written_out() -> None:
    parameters = make_parameters()
    codes = [3, 1, 4]
    inputs = [parameters["items.weight"][code] for code in codes]
    for layer in range(2):
        w, u, b, c = (
            parameters[f"gru.{kind}_l{layer}"]
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        state, outputs = torch.zeros(3), []
        for x in inputs:
            (r, z, n), (hr, hz, hn) = (w @ x + b).split(3), (u @ state + c).split(3)
            update = (z + hz).sigmoid()
            new = (n + (r + hr).sigmoid() * hn).tanh()
            state = (1 - update) * new + update * state
            outputs.append(state)
        inputs = outputs
    vectors = MODEL.encode_positions(parameters, torch.tensor([codes]))
    torch.testing.assert_close(vectors[0], torch.stack(inputs))


def test_cross_entropies_by_hand() -> None:
    scores = torch.tensor([[0.0, float(np.log(3.0)), 0.0]])
    target = torch.tensor([1])
    assert sum_cross_entropy(scores, target).item() == pytest.approx(np.log(5 / 3))
    sampled = sum_sampled_cross_entropy(scores[:, 1], scores[:, :1])
    assert sampled.item() == pytest.approx(np.log(4 / 3))
    binary = sum_binary_cross_entropy(scores[:, 1], scores[:, :1])
    assert binary.item() == pytest.approx(np.log(4 / 3) + np.log(2))
