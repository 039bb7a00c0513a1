from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import conv1d, max_pool1d

from recbias.core.dataset import TrainingData
from recbias.models.convmf import FittedSums, IdLearner, IdNetwork
from recbias.models.sgd import create_coin_sampler
from recbias.models.training import Dense
from support.models import recommending
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


def test_all_users_have_the_same_ranking(rng: np.random.Generator) -> None:
    network = create_network(rng)
    pairs = torch.cat([network.users.repeat_interleave(4, 0), network.items.repeat(3, 1)], 1)
    scores = score_by_torch(network, pairs).reshape(3, 4).detach().numpy()
    fitted = IdLearner(network, create_coin_sampler(WORLD), 0.0).export()
    np.testing.assert_allclose(
        scores - scores[:1], (scores - scores[:1])[:, :1].repeat(4, 1), atol=1e-5
    )
    expected = fitted.item_scores - fitted.item_scores[0]
    np.testing.assert_allclose(scores - scores[:, :1], np.tile(expected, (3, 1)), atol=1e-5)


def test_gradients_match_finite_differences(rng: np.random.Generator) -> None:
    shapes = [(3, 16), (4, 16), (2, 32), (32,), (64, 32), (32,), (32, 2), (2,), (2, 1), (1,)]
    values = [torch.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]
    batch = [torch.tensor([0, 2, 2]), torch.tensor([1, 3, 1]), torch.tensor([1.0, 0.0, 1.0])]

    def loss(users: Any, items: Any, *weights: Any) -> Any:
        layers = [Dense(*weights[index : index + 2]) for index in (0, 2, 4, 6)]
        network = IdNetwork(users, items, layers[:2], layers[2:])
        return IdLearner(network, create_coin_sampler(WORLD), 0.0).loss(*batch)

    assert torch.autograd.gradcheck(loss, tuple(values), eps=1e-7, atol=1e-4, fast_mode=True)


def test_dropout_depends_on_the_epoch_seed(rng: np.random.Generator) -> None:
    learner = IdLearner(create_network(rng), create_coin_sampler(WORLD), 0.5)
    batch = [torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([1.0, 0.0])]
    losses = []
    for seed in (1, 1, 2):
        learner.sample_epoch(np.random.default_rng(seed))
        losses.append(learner.loss(*batch).item())
    assert losses[0] == losses[1] != losses[2]


def test_lists_are_ordered_by_item_score_and_restored() -> None:
    vectors = np.zeros((2, 16), np.float32), np.zeros((3, 16), np.float32)
    fitted = FittedSums(*vectors, np.array([0.1, 0.3, 0.2], np.float32))
    data = TrainingData(make_interactions([(0, 1), (1, 0), (1, 2)]))
    for recommender in (fitted, FittedSums(**fitted.state())):
        lists = recommender.recommend(recommending.query_all_users(data), 2, data)
        assert lists.items.tolist() == [[2, 0], [1, -1]]
        assert recommender.item_scores.tolist() == fitted.item_scores.tolist()
    assert fitted.embeddings().items is fitted.item_factors
