from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core import stage_context as context_module
from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import OutOfRange
from recbias.core.stage_context import stage_context
from recbias.data.datasets.demo import Demo
from recbias.data.splits.random_holdout import RandomHoldout
from recbias.models.factorization.amf import AMF, AdversarialLearner, changed, worst_change
from recbias.models.factorization.factor_tables import FactorTables
from recbias.models.training.samplers import Sampler
from recbias.models.unpersonalised import MostPop
from support import recommending
from support.worlds import rows

SMALL = AMF(
    embedding_size=8,
    epochs=30,
    adversarial_epochs=15,
    batch_size=32,
    learning_rate=0.02,
    device="cpu",
)
MODELS = [SMALL, replace(SMALL, variant="elliot", reg=0.0)]
every = pytest.mark.parametrize("model", MODELS, ids=lambda each: str(each.variant))

TINY = TrainingData(rows([(0, 1), (0, 3), (1, 0), (2, 0), (2, 4)], n_users=3, n_items=5))
TRIPLES = [torch.tensor(each) for each in ([0, 0, 2], [1, 3, 0], [2, 1, 4])]
"""User 0 and item 1 occur twice, item 1 as a positive and as a negative; user 1 is not there."""


def double(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def tables_of(rng: np.random.Generator) -> FactorTables:
    users, items, bias = (double(*each, rng=rng) for each in ((3, 2), (5, 2), (5, 1)))
    return FactorTables(users, items, item_bias=bias)


def learner_of(model: AMF, tables: FactorTables, *, epoch: int = 1) -> AdversarialLearner:
    left = (torch.zeros_like(tables.users.data), torch.zeros_like(tables.items.data))
    epochs = torch.full((1,), float(epoch))
    return AdversarialLearner(model, tables, Sampler.of(TINY.train), epochs, left)


def naive_bpr(tables: FactorTables, change: Any = None, *, by_dimension: bool = False) -> float:
    """BPR's loss of TRIPLES, one triple and, where asked, one dimension at a time."""
    p, q = (each.detach().numpy() for each in (tables.users, tables.items))
    if change is not None:
        p, q = p + change[0].detach().numpy(), q + change[1].detach().numpy()
    b = tables.item_bias.detach().numpy()[:, 0]
    total = 0.0
    for u, i, j in zip(*(each.tolist() for each in TRIPLES), strict=True):
        parts = [[d] for d in range(2)] if by_dimension else [[0, 1]]
        for dimensions in parts:
            margin = b[i] - b[j] + sum(p[u, d] * (q[i, d] - q[j, d]) for d in dimensions)
            total += math.log1p(math.exp(-margin))
    return total


def naive_penalty(model: AMF, tables: FactorTables, share: float) -> float:
    p, q = (each.detach().numpy() for each in (tables.users, tables.items))
    b = tables.item_bias.detach().numpy()[:, 0]
    total = 0.0
    for u, i, j in zip(*(each.tolist() for each in TRIPLES), strict=True):
        squares = float((p[u] ** 2).sum() + (q[i] ** 2).sum() + (q[j] ** 2).sum())
        biases = float(b[i] ** 2 + share * b[j] ** 2)
        total += (model.reg * squares + model.reg_bias * biases) / 2
    return total


def test_gradients_are_finite_differences(rng: np.random.Generator) -> None:
    # the change itself counts as given: its own derivative is no part of the paper's step
    fixed = tables_of(rng)
    learner = learner_of(AMF(reg=0.1, reg_bias=0.2, adversarial_weight=0.7), fixed)
    change = worst_change(learner._missed(fixed, TRIPLES), fixed, 0.5)

    def loss(users: Any, items: Any, bias: Any) -> Any:
        tables = FactorTables(users, items, item_bias=bias)
        own = replace(learner, tables=tables)
        clean, shaken = (own._missed(each, TRIPLES) for each in (tables, changed(tables, change)))
        return clean + 0.7 * shaken + own._penalty(*TRIPLES)

    assert torch.autograd.gradcheck(loss, (fixed.users, fixed.items, fixed.item_bias))


def test_the_change_of_each_vector_has_length_eps(rng: np.random.Generator) -> None:
    tables = tables_of(rng)
    learner = learner_of(AMF(), tables)
    users, items = worst_change(learner._missed(tables, TRIPLES), tables, 0.3)
    # user 1 is in no triple
    np.testing.assert_allclose(users.norm(dim=1), [0.3, 0, 0.3], rtol=1e-6)
    np.testing.assert_allclose(items.norm(dim=1), [0.3] * 5, rtol=1e-6)


def test_the_change_is_the_worst_small_one(rng: np.random.Generator) -> None:
    tables = tables_of(rng)
    learner = learner_of(AMF(), tables)
    clean = learner._missed(tables, TRIPLES)
    worst = worst_change(clean, tables, 1e-4)
    loss = learner._missed(changed(tables, worst), TRIPLES)
    assert loss > clean
    for _ in range(50):
        other = [torch.tensor(rng.normal(size=tuple(each.shape))) for each in worst]
        users, items = (1e-4 * each / each.norm(dim=1, keepdim=True) for each in other)
        assert learner._missed(changed(tables, (users, items)), TRIPLES) < loss


def test_the_loss_is_bpr_twice(rng: np.random.Generator) -> None:
    model = AMF(epochs=4, adversarial_epochs=2, reg=0.1, reg_bias=0.2, adversarial_weight=0.7)
    tables = tables_of(rng)
    plain, penalty = naive_bpr(tables), naive_penalty(model, tables, 1.0)
    for epoch in (1, 2):
        found = learner_of(model, tables, epoch=epoch).loss(*TRIPLES)
        assert found.item() == pytest.approx(plain + penalty)
    learner = learner_of(model, tables, epoch=3)
    change = worst_change(learner._missed(tables, TRIPLES), tables, model.eps)
    expected = plain + 0.7 * naive_bpr(tables, change) + penalty
    assert learner.loss(*TRIPLES).item() == pytest.approx(expected)


def test_elliot_is_bpr_by_dimension_and_a_step_late(rng: np.random.Generator) -> None:
    model = AMF(
        epochs=4,
        adversarial_epochs=2,
        reg=0.1,
        reg_bias=0.2,
        adversarial_weight=0.7,
        variant="elliot",
    )
    tables = tables_of(rng)
    plain, penalty = naive_bpr(tables, by_dimension=True), naive_penalty(model, tables, 0.1)
    early = learner_of(model, tables, epoch=2)
    assert early.loss(*TRIPLES).item() == pytest.approx(plain + penalty)
    assert not any(each.any() for each in early.left)
    learner = learner_of(model, tables, epoch=3)
    # the first step has no step before: both terms are of the vectors as they are
    assert learner.loss(*TRIPLES).item() == pytest.approx(1.7 * plain + penalty)
    change = [each.clone() for each in learner.left]
    np.testing.assert_allclose(change[1].norm(dim=1), [model.eps] * 5, rtol=1e-6)
    expected = naive_bpr(tables, change, by_dimension=True) + 0.7 * plain + penalty
    assert learner.loss(*TRIPLES).item() == pytest.approx(expected)


def test_a_single_dimension_is_bpr_in_both_variants(rng: np.random.Generator) -> None:
    tables = FactorTables(
        double(3, 1, rng=rng), double(5, 1, rng=rng), item_bias=double(5, 1, rng=rng)
    )
    found = [
        learner_of(AMF(variant=each), tables)._missed(tables, TRIPLES).item()
        for each in ("paper", "elliot")
    ]
    assert found[0] == pytest.approx(found[1])


def test_without_the_second_term_eps_is_nothing() -> None:
    data, _ = recommending.checkerboard(12)
    plain = replace(SMALL, epochs=3, adversarial_epochs=0)
    first, second = (
        replace(plain, eps=eps).fit(data, np.random.default_rng(0)) for eps in (0.1, 9.0)
    )
    np.testing.assert_array_equal(first.item_factors, second.item_factors)
    other = replace(plain, adversarial_epochs=1).fit(data, np.random.default_rng(0))
    assert not np.array_equal(first.item_factors, other.item_factors)


def test_what_is_learned_withstands_changes() -> None:
    # of two models of as many epochs, the adversarial one loses less to the worst change
    data, _ = recommending.checkerboard(20)
    triples = [
        torch.from_numpy(each)
        for each in Sampler.of(data.train).triples(2000, np.random.default_rng(5))
    ]
    losses = []
    for adversarial in (0, 30):
        model = replace(SMALL, epochs=40, adversarial_epochs=adversarial, eps=1.0)
        found = model.fit(data, np.random.default_rng(0))
        assert found.item_bias is not None
        tables = FactorTables(
            torch.tensor(found.user_factors, requires_grad=True),
            torch.tensor(found.item_factors, requires_grad=True),
            item_bias=torch.tensor(found.item_bias[:, None]),
        )
        learner = learner_of(model, tables)
        change = worst_change(learner._missed(tables, triples), tables, 1.0)
        losses.append(learner._missed(changed(tables, change), triples).item())
    assert losses[1] < losses[0]


@every
def test_it_learns_the_checkerboard(model: AMF) -> None:
    data, wanted = recommending.checkerboard(20)
    found = model.fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.everybody(data), 1, data)
    assert (lists.items[:, 0] == wanted).mean() > 0.8


def test_it_learns_the_planted_tastes_of_the_demo(rng: np.random.Generator) -> None:
    split = RandomHoldout(test=0.2).split(Demo(n_users=200, n_items=120).load(Path(), rng), 0, rng)
    data = split.training_data()
    queries = recommending.everybody(data)
    ours, popular = (
        recommending.mean_ndcg(
            model.fit(data, np.random.default_rng(0)).recommend(queries, 10, data), split
        )
        for model in (replace(SMALL, batch_size=256), MostPop())
    )
    assert ours > 1.2 * popular


@every
def test_one_seed_one_result_another_another(model: AMF) -> None:
    data, _ = recommending.checkerboard(12)
    model = replace(model, epochs=3, adversarial_epochs=2)
    first, again, other = (model.fit(data, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.item_factors, again.item_factors)
    assert not np.array_equal(first.item_factors, other.item_factors)


def test_a_learning_rate_that_diverges_is_named() -> None:
    data, _ = recommending.checkerboard(12)
    with pytest.raises(OutOfRange, match="AMF diverged in epoch"):
        replace(SMALL, learning_rate=1e30).fit(data, np.random.default_rng(0))


@every
@pytest.mark.parametrize(
    "data",
    [
        TrainingData(rows([(0, 0), (1, 0)])),
        TrainingData(rows([(0, 0), (1, 1), (2, 2)])),
        TrainingData(rows([(0, 0), (0, 1), (2, 2)])),
        TrainingData(rows([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one row a user", "a user without rows", "no row"],
)
def test_the_smallest_worlds_are_learned(model: AMF, data: TrainingData) -> None:
    model = replace(model, epochs=2, adversarial_epochs=1)
    found = model.fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.everybody(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)
    assert (lists.items[data.train.user_counts() == 0] == -1).all()


class Killed(Exception):
    """What takes the place of a kill inside a test."""


class Disk:
    """Keeps what survives, and kills once so many states were kept."""

    def __init__(self, dies_at: int) -> None:
        self.arrays: Mapping[str, AnyArray] | None = None
        self.left = dies_at

    def load(self) -> Mapping[str, AnyArray] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        self.arrays = {name: each.copy() for name, each in arrays.items()}
        self.left -= 1
        if self.left == 0:
            raise Killed


@every
@pytest.mark.parametrize("dies_at", [1, 2, 4])
def test_what_was_cut_off_ends_in_the_same_figures(
    dies_at: int, model: AMF, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", np.inf)
    data, _ = recommending.checkerboard(12)
    model = replace(model, epochs=5, adversarial_epochs=3)
    whole = model.fit(data, np.random.default_rng(3))
    with stage_context(checkpoint_store=Disk(dies_at)):
        with pytest.raises(Killed):
            model.fit(data, np.random.default_rng(3))
        found = model.fit(data, np.random.default_rng(99))
    np.testing.assert_array_equal(whole.item_factors, found.item_factors)
    np.testing.assert_array_equal(whole.user_factors, found.user_factors)


@pytest.mark.real_data
def test_quality_on_movielens(movielens: Split) -> None:
    # a few of the epochs of the default, in large batches
    data = movielens.training_data()
    model = AMF(epochs=4, adversarial_epochs=2, batch_size=8192, learning_rate=0.01, device="cpu")
    found = model.fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.everybody(data), 10, data)
    assert recommending.mean_ndcg(lists, movielens) > 0.15
