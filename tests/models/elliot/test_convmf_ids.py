from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import conv1d, max_pool1d

from recbias.models.convmf import IdLearner, IdNetwork
from recbias.models.sgd import create_coin_sampler
from recbias.models.training import Dense
from support.worlds.small_worlds import make_interactions

CPU = torch.device("cpu")
WORLD = make_interactions([(0, 0), (1, 2), (2, 1), (2, 3)])


def create_network(rng: np.random.Generator, size: int = 32) -> IdNetwork:
    network = IdNetwork.initialize(WORLD, size, device=CPU, rng=rng)
    for parameter in network.parameters():
        noise = torch.from_numpy(rng.standard_normal(parameter.shape)).float()
        parameter.data += 0.05 * noise
    return network


def score_by_torch(network: IdNetwork, pairs: Any) -> Any:
    """Compute the scores of concatenated vectors by torch's convolutions and poolings."""
    hidden = pairs.unsqueeze(1)
    for layer in network.convolutions:
        channels = len(layer.weight) // 2
        weight = layer.weight.reshape(2, channels, 32).permute(2, 1, 0)
        hidden = max_pool1d(conv1d(hidden, weight, layer.bias, stride=2).relu(), 2)
    features = hidden.sum(2)
    for layer in network.dense:
        features = layer(features)
    return features.squeeze(1)


@pytest.mark.parametrize("size", [16, 32, 64])
def test_network_equals_torch_convolutions_and_poolings(
    size: int, rng: np.random.Generator
) -> None:
    network = create_network(rng, size)
    users, items = network.users[[0, 1, 2]], network.items[[3, 0, 2]]
    pairs = torch.cat([users, items], 1)
    scores = network.score(network.features(pairs))
    torch.testing.assert_close(scores, score_by_torch(network, pairs), rtol=1e-4, atol=1e-5)


def test_gradients_match_finite_differences(rng: np.random.Generator) -> None:
    shapes = [(3, 16), (4, 16), (2, 32), (32,), (64, 32), (32,), (32, 2), (2,), (2, 1), (1,)]
    values = [torch.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]
    batch = [torch.tensor([0, 2, 2]), torch.tensor([1, 3, 1]), torch.tensor([1.0, 0.0, 1.0])]

    def loss(users: Any, items: Any, *weights: Any) -> Any:
        layers = [Dense(*weights[index : index + 2]) for index in (0, 2, 4, 6)]
        network = IdNetwork(users, items, layers[:2], layers[2:])
        return IdLearner(network, create_coin_sampler(WORLD), 0.0).loss(*batch)

    assert torch.autograd.gradcheck(loss, tuple(values), eps=1e-7, atol=1e-4, fast_mode=True)
