from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core import context as context_module
from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import AnyArray, Split, TrainingData
from recbias.core.errors import OutOfRange
from recbias.data.demo import Demo
from recbias.data.splits import RandomHoldout
from recbias.models.baselines import MostPop
from recbias.models.factorization import (
    AMF,
    FactorTables,
    _AdversarialLearner,
    compute_worst_perturbation,
    perturb,
    perturb_rows,
)
from recbias.models.sgd import Sampler
from recbias.models.training import Schedule, warn_about_stalled_loss
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
MODELS = [SMALL, replace(SMALL, variant="elliot", reg=0.0)]
all_variants = pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.variant))

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


def test_perturbation_of_each_vector_has_length_eps(rng: np.random.Generator) -> None:
    tables = create_tables(rng)
    learner = create_learner(AMF(), tables)
    users, items = compute_worst_perturbation(
        learner._sum_bpr_losses(tables.look_up_triples(*TRIPLES)), tables, 0.3
    )
    # user 1 is in no triple
    np.testing.assert_allclose(users.norm(dim=1), [0.3, 0, 0.3], rtol=1e-6)
    np.testing.assert_allclose(items.norm(dim=1), [0.3] * 5, rtol=1e-6)


def test_perturbation_increases_the_loss_more_than_random_ones(rng: np.random.Generator) -> None:
    tables = create_tables(rng)
    learner = create_learner(AMF(), tables)
    clean = learner._sum_bpr_losses(tables.look_up_triples(*TRIPLES))
    worst = compute_worst_perturbation(clean, tables, 1e-4)
    loss = learner._sum_bpr_losses(perturb(tables, worst).look_up_triples(*TRIPLES))
    assert loss > clean
    for _ in range(50):
        directions = [torch.tensor(rng.normal(size=tuple(table.shape))) for table in worst]
        users, items = (
            1e-4 * direction / direction.norm(dim=1, keepdim=True) for direction in directions
        )
        assert (
            learner._sum_bpr_losses(perturb(tables, (users, items)).look_up_triples(*TRIPLES))
            < loss
        )


@pytest.mark.parametrize("triples", [TRIPLES, [codes[[0, 1, 0, 2]] for codes in TRIPLES]])
def test_rows_of_a_batch_are_perturbed_as_their_tables(
    rng: np.random.Generator, triples: list[Any]
) -> None:
    tables = create_tables(rng)
    rows = tables.look_up_triples(*triples)
    loss = create_learner(AMF(), tables)._sum_bpr_losses(rows)
    expected = perturb(tables, compute_worst_perturbation(loss, tables, 0.3))
    perturbed = perturb_rows(loss, rows, triples, 0.3)
    for row, table in zip(perturbed, expected.look_up_triples(*triples), strict=True):
        torch.testing.assert_close(row, table)


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


@pytest.mark.usefixtures("stage_warnings")
def test_eps_has_no_effect_without_adversarial_epochs() -> None:
    data, _ = recommending.make_checkerboard(12)
    plain = replace(SMALL, epochs=3, adversarial_epochs=0)
    first, second = (
        replace(plain, eps=eps).fit(data, np.random.default_rng(0)) for eps in (0.1, 9.0)
    )
    np.testing.assert_array_equal(first.item_factors, second.item_factors)
    adversarial = replace(plain, adversarial_epochs=1).fit(data, np.random.default_rng(0))
    assert not np.array_equal(first.item_factors, adversarial.item_factors)


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


@pytest.mark.parametrize(
    ("losses", "note"),
    [
        ([0.7, 0.6, 1.3, 1.2], []),  # the term of the adversarial epochs comes on top
        ([0.7, 0.6, 1.3, 1.3], ["1.3 after epoch 4 and was 1.3 after epoch 3"]),
        ([0.7, 0.6, 1.3], []),
        ([0.7, 0.7], ["0.7 after epoch 2 and was 0.7 after epoch 1"]),
    ],
)
def test_losses_with_and_without_the_adversarial_term_are_not_compared(
    losses: list[float], note: list[str]
) -> None:
    schedule = Schedule.from_model(replace(SMALL, epochs=4, adversarial_epochs=2), "AMF")
    with collect_warnings() as notes:
        warn_about_stalled_loss(losses, schedule)
    assert [text in found for text, found in zip(note, notes, strict=True)] == [True] * len(note)


@all_variants
def test_checkerboard_pattern_is_learned(model: AMF) -> None:
    data, missing = recommending.make_checkerboard(20)
    fitted = model.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == missing).mean() > 0.8


@pytest.mark.usefixtures("stage_warnings")
def test_model_beats_popularity_on_the_demo_dataset(rng: np.random.Generator) -> None:
    split = RandomHoldout(test=0.2).split(Demo(n_users=200, n_items=120).load(Path(), rng), 0, rng)
    data = split.training_data()
    queries = recommending.query_all_users(data)
    ndcg, popular_ndcg = (
        recommending.compute_mean_ndcg(
            model.fit(data, np.random.default_rng(0)).recommend(queries, 10, data), split
        )
        for model in (replace(SMALL, batch_size=256), MostPop())
    )
    assert ndcg > 1.2 * popular_ndcg


@pytest.mark.usefixtures("stage_warnings")
@all_variants
def test_result_depends_on_the_seed_only(model: AMF) -> None:
    data, _ = recommending.make_checkerboard(12)
    model = replace(model, epochs=3, adversarial_epochs=2)
    first, repeated, reseeded = (
        model.fit(data, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.item_factors, repeated.item_factors)
    assert not np.array_equal(first.item_factors, reseeded.item_factors)


def test_divergence_error_names_the_model() -> None:
    data, _ = recommending.make_checkerboard(12)
    with pytest.raises(OutOfRange, match="AMF diverged in epoch"):
        replace(SMALL, learning_rate=1e30).fit(data, np.random.default_rng(0))


@pytest.mark.usefixtures("stage_warnings")
@all_variants
@pytest.mark.parametrize(
    "data",
    [
        TrainingData(make_interactions([(0, 0), (1, 0)])),
        TrainingData(make_interactions([(0, 0), (1, 1), (2, 2)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (2, 2)])),
        TrainingData(make_interactions([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one row per user", "a user without rows", "no row"],
)
def test_smallest_datasets_give_lists_of_length_k(model: AMF, data: TrainingData) -> None:
    model = replace(model, epochs=2, adversarial_epochs=1)
    fitted = model.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)
    assert (lists.items[data.train.user_counts() == 0] == -1).all()


class Interrupted(Exception):
    """Simulates the end of the process."""


class CheckpointStore:
    """Stores checkpoints and interrupts the training after ``interrupt_at`` of them."""

    def __init__(self, interrupt_at: int) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None
        self.n_left = interrupt_at

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays = {name: array.copy() for name, array in arrays.items()}
        self.n_left -= 1
        if self.n_left == 0:
            raise Interrupted


@pytest.mark.usefixtures("stage_warnings")
@all_variants
@pytest.mark.parametrize("interrupt_at", [1, 2, 4])
def test_resumed_training_gives_the_same_factors(
    interrupt_at: int, model: AMF, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", np.inf)
    data, _ = recommending.make_checkerboard(12)
    model = replace(model, epochs=5, adversarial_epochs=3)
    uninterrupted = model.fit(data, np.random.default_rng(3))
    with stage_context(checkpoint_store=CheckpointStore(interrupt_at)):
        with pytest.raises(Interrupted):
            model.fit(data, np.random.default_rng(3))
        fitted = model.fit(data, np.random.default_rng(99))
    np.testing.assert_array_equal(uninterrupted.item_factors, fitted.item_factors)
    np.testing.assert_array_equal(uninterrupted.user_factors, fitted.user_factors)


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
