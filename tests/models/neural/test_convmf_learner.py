from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recbias.models.convmf import ConvLearner, TextCNN
from recbias.models.factorization import FactorTables
from recbias.models.training import Dense


def sample_doubles(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def make_learner(rng: np.random.Generator) -> ConvLearner:
    """Return three users and four items, the last without text, in double precision."""
    words = sample_doubles(6, 2, rng=rng)
    with torch.no_grad():
        words[0] = 0
    shapes = [(4, 3), (3,), (3, 4), (4,), (4, 2), (2,)]
    parameters = [sample_doubles(*shape, rng=rng) for shape in shapes]
    layers = [Dense(*parameters[start : start + 2]) for start in (0, 2, 4)]
    samples = (
        np.array([0, 1, 2, 2], np.int32),
        np.array([0, 1, 2, 3], np.int32),
        np.array([1.0, 3.0, 5.0, 2.0]),
    )
    return ConvLearner(
        reg_user=0.3,
        reg_item=0.7,
        reg_network=0.2,
        dropout=0.0,
        tables=FactorTables(sample_doubles(3, 2, rng=rng), sample_doubles(4, 2, rng=rng)),
        network=TextCNN(words, (2,), layers[:1], layers[1], layers[2]),
        codes=torch.tensor([[1, 2, 3], [4, 0, 0], [5, 5, 1], [0, 0, 0]]),
        items_with_text=np.arange(3),
        sampler=lambda rng: samples,
    )


def compute_objective(learner: ConvLearner, users: Any, items: Any, values: Any) -> Any:
    """Return twice equation 6 of the paper, term by term."""
    p, q = learner.tables.users, learner.tables.items
    errors = sum((r - p[u] @ q[i]) ** 2 for u, i, r in zip(users, items, values, strict=True))
    prior = sum(
        0.7 * (q[i] - learner.network(learner.codes[i : i + 1])[0]).square().sum()
        for i in range(4)
    )
    weights = sum(tensor.square().sum() for tensor in learner.network.parameters())
    return errors + 0.3 * p.square().sum() + prior + 0.2 * weights


def test_gradient_of_an_epoch_equals_that_of_the_papers_objective(
    rng: np.random.Generator,
) -> None:
    learner = make_learner(rng)
    batch = [torch.from_numpy(samples) for samples in learner.sample_epoch(rng)]
    learner.loss(*batch).backward()
    samples = learner.sampler(rng)
    for tensor in learner.parameters():
        gradient = tensor.grad.numpy()
        for index in np.ndindex(tensor.shape):
            if tensor is learner.network.words and index[0] == 0:
                continue  # the padding is always 0
            values = []
            for step in (1e-6, -1e-6):
                with torch.no_grad():
                    tensor[index] += step
                    values.append(float(compute_objective(learner, *samples)))
                    tensor[index] -= step
            assert gradient[index] == pytest.approx(
                (values[0] - values[1]) / 2e-6, rel=1e-4, abs=1e-5
            )
