from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset import Split, TrainingData
from recbias.models.factorization import (
    AMF,
    FactorTables,
    _AdversarialLearner,
    compute_worst_perturbation,
    perturb,
)
from recbias.models.sgd import Sampler
from support.models import recommending
from support.worlds.small_worlds import make_interactions

SMALL = AMF(
    embedding_size=8,
    epochs=30,
    adversarial_epochs=15,
    batch_size=32,
    learning_rate=0.02,
    device="cpu",
)

TINY = TrainingData(
    make_interactions([(0, 1), (0, 3), (1, 0), (2, 0), (2, 4)], n_users=3, n_items=5)
)
TRIPLES = [torch.tensor(codes) for codes in ([0, 0, 2], [1, 3, 0], [2, 1, 4])]
"""User 0 and item 1 occur twice, item 1 as a positive and as a negative; user 1 does not occur."""


def sample_tensor(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def create_tables(rng: np.random.Generator) -> FactorTables:
    users, items, bias = (sample_tensor(*shape, rng=rng) for shape in ((3, 2), (5, 2), (5, 1)))
    return FactorTables(users, items, item_bias=bias)


def create_learner(model: AMF, tables: FactorTables, *, epoch: int = 1) -> _AdversarialLearner:
    previous = (torch.zeros_like(tables.users.data), torch.zeros_like(tables.items.data))
    epochs = torch.full((1,), float(epoch))
    return _AdversarialLearner(
        model, tables, Sampler.from_interactions(TINY.train), epochs, previous
    )


def sum_bpr_losses(
    tables: FactorTables, change: Any = None, *, by_dimension: bool = False
) -> float:
    """Sum the BPR losses of TRIPLES, of the dot products or of each dimension."""
    p, q = (table.detach().numpy() for table in (tables.users, tables.items))
    if change is not None:
        p, q = p + change[0].detach().numpy(), q + change[1].detach().numpy()
    b = tables.item_bias.detach().numpy()[:, 0]
    total = 0.0
    for u, i, j in zip(*(codes.tolist() for codes in TRIPLES), strict=True):
        groups = [[d] for d in range(2)] if by_dimension else [[0, 1]]
        for dimensions in groups:
            margin = b[i] - b[j] + sum(p[u, d] * (q[i, d] - q[j, d]) for d in dimensions)
            total += math.log1p(math.exp(-margin))
    return total


def compute_penalty(model: AMF, tables: FactorTables, share: float) -> float:
    p, q = (table.detach().numpy() for table in (tables.users, tables.items))
    b = tables.item_bias.detach().numpy()[:, 0]
    total = 0.0
    for u, i, j in zip(*(codes.tolist() for codes in TRIPLES), strict=True):
        squares = float((p[u] ** 2).sum() + (q[i] ** 2).sum() + (q[j] ** 2).sum())
        biases = float(b[i] ** 2 + share * b[j] ** 2)
        total += (model.reg * squares + model.reg_bias * biases) / 2
    return total


def test_gradients_match_finite_differences(rng: np.random.Generator) -> None:
    # the perturbation is a constant: its derivative is not part of the paper's step
    fixed = create_tables(rng)
    learner = create_learner(AMF(reg=0.1, reg_bias=0.2, adversarial_weight=0.7), fixed)
    change = compute_worst_perturbation(
        learner._sum_bpr_losses(fixed.look_up_triples(*TRIPLES)), fixed, 0.5
    )

    def loss(users: Any, items: Any, bias: Any) -> Any:
        tables = FactorTables(users, items, item_bias=bias)
        trained = replace(learner, tables=tables)
        clean = trained._sum_bpr_losses(tables.look_up_triples(*TRIPLES))
        perturbed = trained._sum_bpr_losses(perturb(tables, change).look_up_triples(*TRIPLES))
        return clean + 0.7 * perturbed + trained._compute_penalty(tables.look_up_triples(*TRIPLES))

    assert torch.autograd.gradcheck(loss, (fixed.users, fixed.items, fixed.item_bias))


def test_adversarial_epochs_add_the_perturbed_loss(rng: np.random.Generator) -> None:
    model = AMF(epochs=4, adversarial_epochs=2, reg=0.1, reg_bias=0.2, adversarial_weight=0.7)
    tables = create_tables(rng)
    plain, penalty = sum_bpr_losses(tables), compute_penalty(model, tables, 1.0)
    for epoch in (1, 2):
        fitted = create_learner(model, tables, epoch=epoch).loss(*TRIPLES)
        assert fitted.item() == pytest.approx(plain + penalty)
    learner = create_learner(model, tables, epoch=3)
    change = compute_worst_perturbation(
        learner._sum_bpr_losses(tables.look_up_triples(*TRIPLES)), tables, model.eps
    )
    expected = plain + 0.7 * sum_bpr_losses(tables, change) + penalty
    assert learner.loss(*TRIPLES).item() == pytest.approx(expected)


def test_elliot_variant_trains_by_dimension_with_the_previous_perturbation(
    rng: np.random.Generator,
) -> None:
    model = AMF(
        epochs=4,
        adversarial_epochs=2,
        reg=0.1,
        reg_bias=0.2,
        adversarial_weight=0.7,
        variant="elliot",
    )
    tables = create_tables(rng)
    plain, penalty = sum_bpr_losses(tables, by_dimension=True), compute_penalty(model, tables, 0.1)
    early = create_learner(model, tables, epoch=2)
    assert early.loss(*TRIPLES).item() == pytest.approx(plain + penalty)
    assert not any(table.any() for table in early.previous)
    learner = create_learner(model, tables, epoch=3)
    # the first step has no previous perturbation: both terms are of the same vectors
    assert learner.loss(*TRIPLES).item() == pytest.approx(1.7 * plain + penalty)
    change = [table.clone() for table in learner.previous]
    np.testing.assert_allclose(change[1].norm(dim=1), [model.eps] * 5, rtol=1e-6)
    expected = sum_bpr_losses(tables, change, by_dimension=True) + 0.7 * plain + penalty
    assert learner.loss(*TRIPLES).item() == pytest.approx(expected)


def test_variants_agree_for_one_dimension(rng: np.random.Generator) -> None:
    tables = FactorTables(
        sample_tensor(3, 1, rng=rng),
        sample_tensor(5, 1, rng=rng),
        item_bias=sample_tensor(5, 1, rng=rng),
    )
    fitted = [
        create_learner(AMF(variant=variant), tables)
        ._sum_bpr_losses(tables.look_up_triples(*TRIPLES))
        .item()
        for variant in ("paper", "elliot")
    ]
    assert fitted[0] == pytest.approx(fitted[1])


def test_adversarial_training_lowers_the_loss_under_perturbation() -> None:
    # with the same number of epochs, adversarial training has the lower perturbed loss
    data, _ = recommending.make_checkerboard(20)
    triples = [
        torch.from_numpy(codes)
        for codes in Sampler.from_interactions(data.train).sample_triples(
            2000, np.random.default_rng(5)
        )
    ]
    losses = []
    for adversarial in (0, 30):
        model = replace(SMALL, epochs=40, adversarial_epochs=adversarial, eps=1.0)
        fitted = model.fit(data, np.random.default_rng(0))
        assert fitted.item_bias is not None
        tables = FactorTables(
            torch.tensor(fitted.user_factors, requires_grad=True),
            torch.tensor(fitted.item_factors, requires_grad=True),
            item_bias=torch.tensor(fitted.item_bias[:, None]),
        )
        learner = create_learner(model, tables)
        change = compute_worst_perturbation(
            learner._sum_bpr_losses(tables.look_up_triples(*triples)), tables, 1.0
        )
        losses.append(
            learner._sum_bpr_losses(perturb(tables, change).look_up_triples(*triples)).item()
        )
    assert losses[1] < losses[0]


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.slow
@pytest.mark.real_data
def test_ndcg_on_movielens_exceeds_a_minimum(movielens: Split) -> None:
    # fewer epochs than the default, in large batches
    data = movielens.training_data()
    model = AMF(epochs=4, adversarial_epochs=2, batch_size=8192, learning_rate=0.01, device="cpu")
    fitted = model.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.15
