from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import collect_facts
from recbias.core.dataset import AnyArray, Split, TrainingData
from recbias.kernels.sparse import compile_loop
from recbias.models import sgd
from recbias.models.factorization import (
    AMF,
    BPRMF,
    MF,
    MF2020,
    PMF,
    FactorTables,
    FunkSVD,
    _AdversarialLearner,
    _sum_penalized_errors,
    compute_worst_perturbation,
    count_pairs,
    weigh_penalties,
)
from recbias.models.lightgcn import Graph, LightGCN, normalize_adjacency
from recbias.models.sgd import Sampler, create_rating_sampler
from support.models import recommending
from support.worlds.small_worlds import make_interactions


def test_two_sample_steps_match_a_hand_computation() -> None:
    # the same pairs, one after the other, with two biases and an offset of 0 initially:
    # b = b_u = b_i = 0.5 (1 - σ(p q)) after the first, and s = 3 b + p' q' in the second
    data = TrainingData(make_interactions([(0, 0)]))
    model = MF2020(embedding_size=1, epochs=1, negatives=1, reg=0.0, device="cpu")
    first, fitted = (
        replace(model, learning_rate=rate).fit(data, np.random.default_rng(3))
        for rate in (1e-12, 0.5)
    )
    p, q, b = float(first.user_factors[0, 0]), float(first.item_factors[0, 0]), 0.0
    for label in (1, 0):
        pull = 0.5 * (label - 1 / (1 + np.exp(-3 * b - p * q)))
        p, q, b = p + pull * q, q + pull * p, b + pull
    assert fitted.item_bias[0] == pytest.approx(b, rel=1e-4)
    assert fitted.user_factors[0, 0] == pytest.approx(p, rel=1e-4)
    assert fitted.item_factors[0, 0] == pytest.approx(q, rel=1e-4)


SMALL = PMF(embedding_size=8, epochs=60, batch_size=64, learning_rate=0.05, reg=0.5, device="cpu")


def sample_tensor_of_pmf(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def test_loss_of_pairs_matches_a_hand_computation() -> None:
    # σ(2 · 0.5) = 0.731059; errors 1 - 0.731059 and 0 - 0.731059; the user has two pairs, so that
    # each weighs 2² by 0.3 / 2, and the item four, two of them in other batches: 0.5² by 0.3 / 4
    tables = FactorTables(torch.tensor([[2.0]]), torch.tensor([[0.5]]))
    penalties = weigh_penalties(tables, (np.array([2]), np.array([4])), 0.3)
    pairs = (torch.tensor([0, 0]), torch.tensor([0, 0]), torch.tensor([1.0, 0.0]))
    expected = 0.268941**2 + 0.731059**2 + 2 * 0.15 * 4 + 2 * 0.075 * 0.25
    loss = _sum_penalized_errors(tables, *pairs, penalties=penalties).item()
    assert loss == pytest.approx(expected, rel=1e-5)


def test_gradients_of_the_batches_of_an_epoch_add_up_to_that_of_the_objective(
    rng: np.random.Generator,
) -> None:
    pairs = [(u, i) for u in range(6) for i in range(7) if rng.random() < 0.5 or i == u]
    train = make_interactions(pairs, values=rng.integers(1, 6, len(pairs)).tolist())
    tables = FactorTables(sample_tensor_of_pmf(6, 3, rng=rng), sample_tensor_of_pmf(7, 3, rng=rng))
    of_users, of_items = weigh_penalties(tables, count_pairs(train, 4), 0.7)
    weights = of_users.double(), of_items.double()
    users, items, values = map(torch.tensor, create_rating_sampler(train, SMALL, unit=True)(rng))
    errors = values - (tables.users[users] * tables.items[items]).sum(1).sigmoid()
    squares = tables.users.square().sum() + tables.items.square().sum()
    vectors = tables.parameters()
    expected = torch.autograd.grad(errors.square().sum() + 0.7 * squares, vectors)
    sums = [torch.zeros_like(table) for table in vectors]
    for start in range(0, len(pairs), 4):
        batch = [column[start : start + 4] for column in (users, items, values)]
        loss = _sum_penalized_errors(tables, *batch, penalties=weights)
        for index, gradient in enumerate(torch.autograd.grad(loss, vectors)):
            sums[index] += gradient
    torch.testing.assert_close(sums, list(expected), rtol=1e-6, atol=1e-7)


def test_counts_are_those_of_sampled_epochs_on_average(rng: np.random.Generator) -> None:
    # user 0 has every item and is left out; every user has item 3, which is never unseen
    pairs = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 3), (2, 1), (2, 3), (3, 0), (3, 2), (3, 3)]
    train = make_interactions(pairs, n_users=5)
    sampler = create_rating_sampler(train, replace(SMALL, negatives=2))
    epochs = [sampler(rng) for _ in range(2_000)]
    for code, (counts, n_rows) in enumerate(zip(count_pairs(train, 2), (5, 4), strict=True)):
        drawn = [np.bincount(epoch[code], minlength=n_rows) for epoch in epochs]
        spread = np.std(drawn, axis=0) / np.sqrt(len(drawn))
        assert (np.abs(np.mean(drawn, axis=0) - counts) <= 4.5 * spread + 1e-12).all()
    assert count_pairs(train, 2)[0].tolist() == [0, 3, 6, 9, 0]


def test_ratings_are_learned_in_their_range(rng: np.random.Generator) -> None:
    # users rate items of their own colour 5 and the others 1
    pairs = [(u, i) for u in range(20) for i in range(20) if rng.random() < 0.7]
    values = [5.0 if (u + i) % 2 == 0 else 1.0 for u, i in pairs]
    fitted = replace(SMALL, reg=0.05).fit(
        TrainingData(make_interactions(pairs, values=values)), np.random.default_rng(0)
    )
    scores = 1 / (1 + np.exp(-fitted.scores(np.arange(20, dtype=np.int32))))
    colours = np.add.outer(np.arange(20), np.arange(20)) % 2 == 0
    assert scores[colours].mean() > 0.8
    assert scores[~colours].mean() < 0.2


TINY = TrainingData(
    make_interactions([(0, 1), (0, 3), (1, 0), (2, 0), (2, 4)], n_users=3, n_items=5)
)


TRIPLES = [torch.tensor(codes) for codes in ([0, 0, 2], [1, 3, 0], [2, 1, 4])]
"""User 0 and item 1 occur twice, item 1 as a positive and as a negative; user 1 does not occur."""


def sample_tensor_of_amf(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def create_tables(rng: np.random.Generator) -> FactorTables:
    users, items, bias = (
        sample_tensor_of_amf(*shape, rng=rng) for shape in ((3, 2), (5, 2), (5, 1))
    )
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


SHAPES = ((3, 4), (5, 4), (3, 1), (5, 1), (1,))
"""Vectors of users and items, their biases, the offset."""


CODES = tuple(np.array(codes, dtype=np.int32) for codes in ([0, 0, 2], [1, 3, 1]))


SGD_KERNELS_TRIPLES = (*CODES, np.array([2, 1, 4], dtype=np.int32))
"""User 0 and item 1 occur twice, item 1 as a positive and as a negative."""


CHOICES = (*CODES, np.array([1, 0, 1], dtype=np.float32))


RATINGS = (*CODES, np.array([4, 1, 3], dtype=np.float32))


Tables = Sequence[AnyArray]


def sample_tables(rng: np.random.Generator) -> list[AnyArray]:
    return [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]


def as_floats(*values: float) -> tuple[Any, ...]:
    return tuple(np.array(values, dtype=np.float32))


def compute_triple_loss(tables: Tables, u: int, i: int, j: int) -> tuple[float, float]:
    """Return the loss of a triple, and its penalty with the weights 0.1, 0.2, 0.3 and 0.4."""
    p, q, _, bias, _ = tables
    margin = p[u] @ (q[i] - q[j]) + bias[i, 0] - bias[j, 0]
    squares = 0.1 * p[u] @ p[u] + 0.2 * q[i] @ q[i] + 0.3 * q[j] @ q[j]
    return math.log1p(math.exp(-margin)), (squares + 0.4 * (bias[[i, j]] ** 2).sum()) / 2


def compute_logistic_loss(tables: Tables, u: int, i: int, label: float) -> tuple[float, float]:
    p, q, user_bias, item_bias, offset = tables
    score = p[u] @ q[i] + user_bias[u, 0] + item_bias[i, 0] + offset[0]
    rows = [p[u], q[i], user_bias[u], item_bias[i], offset]
    loss = math.log1p(math.exp(score)) - label * score
    return loss, 0.3 * sum(row @ row for row in rows) / 2


def compute_squared_loss(
    tables: Tables, u: int, i: int, rating: float, *, biased: bool
) -> tuple[float, float]:
    p, q, user_bias, item_bias, _ = tables
    rows = [p[u], q[i], *([user_bias[u], item_bias[i]] if biased else [])]
    score = 2 + p[u] @ q[i] + (user_bias[u, 0] + item_bias[i, 0] if biased else 0)
    return (rating - score) ** 2 / 2, 0.3 * sum(row @ row for row in rows) / 2


def estimate_gradients(loss: Callable[..., Any], tables: Tables, *sample: Any) -> list[AnyArray]:
    """Return central differences of the loss with penalty, by every entry of the tables."""
    gradients = [np.zeros_like(table) for table in tables]
    for table, slopes in zip(tables, gradients, strict=True):
        for index in np.ndindex(table.shape):
            before = table[index]
            losses = []
            for change in (1e-5, -1e-5):
                table[index] = before + change
                losses.append(sum(loss(tables, *sample)))
            table[index] = before
            slopes[index] = (losses[0] - losses[1]) / 2e-5
    return gradients


CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "pairwise": (
        sgd.step_bpr,
        compute_triple_loss,
        SGD_KERNELS_TRIPLES,
        as_floats(0.5, 0.1, 0.2, 0.3, 0.4),
    ),
    "logistic": (sgd.step_logistic, compute_logistic_loss, CHOICES, as_floats(0.5, 0.3)),
    "squared": (
        sgd.step_squared,
        partial(compute_squared_loss, biased=True),
        RATINGS,
        as_floats(0.05, 0.3, 2),
    ),
}


all_kernels = pytest.mark.parametrize("name", CASES)


@all_kernels
def test_each_step_follows_the_gradient_after_the_previous_step(
    name: str, rng: np.random.Generator
) -> None:
    kernel, loss, samples, settings = CASES[name]
    tables = sample_tables(rng)
    exact, total = [table.astype(np.float64) for table in tables], 0.0
    for sample in zip(*samples, strict=True):
        total += loss(exact, *sample)[0]
        slopes = estimate_gradients(loss, exact, *sample)
        for table, slope in zip(exact, slopes, strict=True):
            np.subtract(table, float(settings[0]) * slope, out=table)
    assert compile_loop(kernel)(samples, tuple(tables), settings) == pytest.approx(total, rel=1e-5)
    for table, expected in zip(tables, exact, strict=True):
        np.testing.assert_allclose(table, expected, rtol=1e-4, atol=1e-5)


def test_elliot_variant_learns_the_checkerboard() -> None:
    data, missing = recommending.make_checkerboard(20)
    fitted = replace(SMALL, variant="elliot", epochs=150).fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == missing).mean() > 0.8


def test_elliot_variant_samples_users_uniformly() -> None:
    # user 0 has one of 40 pairs: about one triple of 40 in an epoch, with the variant about 20
    data = TrainingData(
        make_interactions([(0, 0), *((1, item) for item in range(39))], n_items=41)
    )

    def move(variant: str) -> float:
        model = BPRMF(variant=variant, epochs=10, learning_rate=0.01, reg_user=0)  # type: ignore[arg-type]
        start = replace(model, epochs=1, learning_rate=1e-12)
        first, last = (part.fit(data, np.random.default_rng(3)) for part in (start, model))
        return float(np.linalg.norm((last.user_factors - first.user_factors)[0]))

    assert 10 < move("elliot") / move("paper") < 40


def test_one_step_matches_a_hand_computation() -> None:
    # one user with item 0 of two: the only triple is (0, 0, 1). With biases of 0 the first step
    # moves them by lr σ(-(s_00 - s_01)), and the vectors by as much times the other's
    data = TrainingData(make_interactions([(0, 0)], n_items=2))
    start = BPRMF(embedding_size=1, epochs=1, learning_rate=1e-12, device="cpu")
    first = start.fit(data, np.random.default_rng(3))
    p, (q0, q1) = first.user_factors[0, 0], first.item_factors[:, 0]
    model = BPRMF(embedding_size=1, epochs=1, learning_rate=0.5, reg_user=0.1, device="cpu")
    fitted = model.fit(data, np.random.default_rng(3))
    pull = 1 / (1 + math.exp(p * (q0 - q1)))
    assert fitted.item_bias is not None
    np.testing.assert_allclose(fitted.item_bias, [0.5 * pull, -0.5 * pull], rtol=1e-5)
    expected = p + 0.5 * (pull * (q0 - q1) - 0.1 * p)
    assert fitted.user_factors[0, 0] == pytest.approx(expected, rel=1e-5)
    expected = q0 + 0.5 * (pull * p - 0.01 * q0)
    assert fitted.item_factors[0, 0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.real_data
def test_ndcg_on_movielens_exceeds_a_minimum_bpr(movielens: Split) -> None:
    # a twentieth of the default epochs, which reach the published 0.2765
    data = movielens.training_data()
    fitted = BPRMF(epochs=5, device="cpu").fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.15


FUNK = FunkSVD(embedding_size=8, epochs=50, batch_size=64, learning_rate=0.02, device="cpu")


MODELS: list[Any] = [
    MF(embedding_size=8, epochs=50, batch_size=64, learning_rate=0.02, device="cpu"),
    FUNK,
    replace(FUNK, variant="elliot", epochs=150),
    MF(variant="elliot", embedding_size=8, epochs=150, batch_size=64, learning_rate=0.02),
]


def sample_low_rank_ratings(rng: np.random.Generator) -> tuple[TrainingData, Any]:
    """Sample ratings of rank 1 with biases: four fifths of them as training data, and all."""
    tastes = np.outer(rng.normal(size=40), rng.normal(size=30))
    ratings = 3 + tastes + rng.normal(size=(40, 1)) / 2 + rng.normal(size=30) / 2
    users, items = np.nonzero(rng.random(ratings.shape) < 0.8)
    pairs = list(zip(users.tolist(), items.tolist(), strict=True))
    return TrainingData(make_interactions(pairs, values=ratings[users, items].tolist())), ratings


@pytest.mark.parametrize("model", MODELS[:2], ids=["MF", "FunkSVD"])
def test_ratings_are_learned(model: Any, rng: np.random.Generator) -> None:
    data, ratings = sample_low_rank_ratings(rng)
    model = replace(model, embedding_size=3, reg=0.001)
    scores = model.fit(data, np.random.default_rng(0)).scores(np.arange(40, dtype=np.int32))
    unseen = data.train.binary.toarray() == 0
    # terms that are the same for all items of a user are not part of the score
    gaps = ratings - scores
    gaps -= gaps.mean(axis=1, keepdims=True)
    centred = ratings - ratings.mean(axis=1, keepdims=True)
    assert gaps[unseen].std() < 0.4 * centred[unseen].std()


@pytest.mark.slow
@pytest.mark.real_data
def test_ndcg_on_movielens_exceeds_a_minimum_funk_svd(movielens: Split) -> None:
    # a quarter of the default epochs, and above the 0.2388 of MF in Table A.3
    data = movielens.training_data()
    fitted = MF(epochs=20, device="cpu").fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.25


all_variants = pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.variant}"
)


@all_variants
def test_checkerboard_pattern_is_learned(model: Any) -> None:
    data, missing = recommending.make_checkerboard(20)
    fitted = model.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == missing).mean() > 0.8


SMALL_LIGHTGCN = LightGCN(
    embedding_size=8, layers=2, epochs=30, batch_size=64, learning_rate=0.02, device="cpu"
)


# User 0 has items 0 and 1, user 1 has item 1
TINY_LIGHTGCN = make_interactions([(0, 0), (0, 1), (1, 1)])


def test_vectors_of_two_users_and_two_items_by_hand() -> None:
    # Degrees: users 2 and 1, items 1 and 2. Edges: (0, 0) 1 / sqrt(2), (0, 1) 1 / 2, (1, 1)
    # 1 / sqrt(2). Vectors 1, 2, 3 and 4:
    # layer 1: 3 / sqrt(2) + 4 / 2, 4 / sqrt(2), 1 / sqrt(2), 1 / 2 + 2 / sqrt(2)
    root = 2**-0.5
    first = [3 * root + 2, 4 * root, root, 0.5 + 2 * root]
    second = [
        root * first[2] + 0.5 * first[3],
        root * first[3],
        root * first[0],
        0.5 * first[0] + root * first[1],
    ]
    start = torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64)
    graph = Graph.from_interactions(TINY_LIGHTGCN, start)
    for layers, totals in ((0, start[:, 0].numpy()), (1, first), (2, second)):
        mean = graph.propagate(start, layers)[:, 0].numpy() * (layers + 1)
        others = {0: 0, 1: start[:, 0].numpy(), 2: start[:, 0].numpy() + np.array(first)}
        np.testing.assert_allclose(mean, others[layers] + np.array(totals), rtol=1e-6)


def test_adjacency_equals_the_formula_on_a_dense_matrix(rng: np.random.Generator) -> None:
    train = recommending.make_random_data(rng).train
    pairs = train.binary.toarray()
    zeros = [np.zeros((n, n)) for n in pairs.shape]
    adjacency = np.block([[zeros[0], pairs], [pairs.T, zeros[1]]])
    degrees = np.maximum(adjacency.sum(axis=1), 1)
    expected = adjacency / np.sqrt(np.outer(degrees, degrees))
    np.testing.assert_allclose(normalize_adjacency(train.binary).toarray(), expected, rtol=1e-6)


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_gradients_equal_finite_differences(layers: int, rng: np.random.Generator) -> None:
    vectors = torch.tensor(rng.normal(size=(4, 2)), requires_grad=True)
    graph = Graph.from_interactions(TINY_LIGHTGCN, vectors)
    model = LightGCN(layers=layers, reg=0.3)
    batch = [torch.tensor(codes) for codes in ([0, 0, 1], [0, 1, 1], [1, 0, 0])]

    def compute_loss(values: Any) -> Any:
        return model.sum_losses(values, graph, *batch)

    assert torch.autograd.gradcheck(compute_loss, [vectors])


def test_loss_by_hand() -> None:
    # No layers: scores 2 · 3 and 2 · (-1) of user 0; squares 4 + 9 + 1
    vectors = torch.tensor([[2.0], [5.0], [3.0], [-1.0]])
    graph, batch = (
        Graph.from_interactions(TINY_LIGHTGCN, vectors),
        [torch.tensor([n]) for n in (0, 0, 1)],
    )
    loss = LightGCN(layers=0, reg=0.1).sum_losses(vectors, graph, *batch)
    assert loss.item() == pytest.approx(np.log1p(np.exp(-8.0)) + 0.05 * 14, rel=1e-5)


def test_the_default_has_the_stated_number_of_triples_and_at_most_512_steps() -> None:
    auto = LightGCN()
    assert auto.batch_size == "auto"
    for n_pairs, size in ((0, 2048), (512 * 2048, 2048), (512 * 2048 + 1, 2049), (10**8, 195_313)):
        assert auto.count_triples(n_pairs) == size
        assert -(-n_pairs // size) <= 512
    assert LightGCN(batch_size=7).count_triples(10**8) == 7


def test_auto_is_the_fit_of_its_number_and_is_recorded() -> None:
    data, _ = recommending.make_checkerboard(20)  # of fewer pairs than 2048
    by_number = (
        replace(SMALL_LIGHTGCN, batch_size=2048).fit(data, np.random.default_rng(1)).state()
    )
    with collect_facts() as facts:
        auto = (
            replace(SMALL_LIGHTGCN, batch_size="auto").fit(data, np.random.default_rng(1)).state()
        )
    for name, array in by_number.items():
        np.testing.assert_array_equal(array, auto[name])
    assert facts == {"triples_a_step": 2048}
