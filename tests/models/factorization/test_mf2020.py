from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset import TrainingData
from recbias.core.errors import OutOfRange
from recbias.models import training
from recbias.models.factorization import MF2020, FactorTables
from support.models import recommending
from support.worlds.small_worlds import make_interactions

SMALL = MF2020(
    embedding_size=8, epochs=60, batch_size=64, learning_rate=0.05, negatives=4, device="cpu"
)


def disable_sample_steps(patch: pytest.MonkeyPatch) -> None:
    """Make all learners use batch steps, as on a GPU."""
    patch.setattr(training, "_steps_by_samples", lambda *_: False)


def sample_tensor(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def test_gradients_match_finite_differences(rng: np.random.Generator) -> None:
    pairs = [
        torch.tensor([0, 0, 2]),
        torch.tensor([1, 3, 1]),
        torch.tensor([1.0, 0.0, 1.0]).double(),
    ]

    def loss(*tables: Any) -> Any:
        return MF2020(reg=0.3)._sum_losses(FactorTables(*tables), *pairs)

    shapes = [(3, 2), (4, 2), (3, 1), (4, 1), (1,)]
    assert torch.autograd.gradcheck(
        loss, tuple(sample_tensor(*shape, rng=rng) for shape in shapes)
    )


def test_batch_step_follows_the_gradient(rng: np.random.Generator) -> None:
    model = MF2020(reg=0.3)
    pairs = [
        torch.tensor([0, 0, 2]),
        torch.tensor([1, 3, 1]),
        torch.tensor([1.0, 0.0, 1.0]).double(),
    ]
    shapes = [(3, 2), (4, 2), (3, 1), (4, 1), (1,)]
    tables = FactorTables(*(sample_tensor(*shape, rng=rng) for shape in shapes))
    loss = model._sum_losses(tables, *pairs)
    loss.backward()
    expected = [(table - 0.1 * table.grad).detach() for table in tables.parameters()]
    assert model._step(tables, 0.1, *pairs).item() == pytest.approx(loss.item())
    for table, values in zip(tables.parameters(), expected, strict=True):
        torch.testing.assert_close(table.detach(), values)


def test_loss_of_a_pair_matches_a_hand_computation() -> None:
    # s = 0.1 + 0.2 + 0.3 + 2 · 0.5 = 1.6: -ln σ(-1.6) = 1.783900 for a negative pair
    # squares 0.01 + 0.04 + 0.09 + 4 + 0.25 = 4.39
    values = ([[2.0]], [[0.5]], [[0.2]], [[0.3]], [0.1])
    tables = FactorTables(*(torch.tensor(value) for value in values))
    pair = (torch.tensor([0]), torch.tensor([0]), torch.tensor([0.0]))
    fitted = MF2020(reg=0.2)._sum_losses(tables, *pair)
    assert fitted.item() == pytest.approx(1.783900 + 0.1 * 4.39, abs=1e-5)


def test_one_step_matches_a_hand_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    # one user with the only item, which is also the negative: both pairs are (0, 0), y = 1 and 0.
    # Biases start at 0, s = p q; a batch step moves each by lr Σ (y - σ(s)) = 0.5 (1 - 2 σ(s))
    disable_sample_steps(monkeypatch)
    data = TrainingData(make_interactions([(0, 0)]))
    model = MF2020(embedding_size=1, epochs=1, negatives=1, reg=0.1, device="cpu")
    first, fitted = (
        replace(model, learning_rate=rate).fit(data, np.random.default_rng(3))
        for rate in (1e-12, 0.5)
    )
    p, q = float(first.user_factors[0, 0]), float(first.item_factors[0, 0])
    pull = 1 - 2 / (1 + np.exp(-p * q))
    assert fitted.item_bias is not None
    assert fitted.item_bias[0] == pytest.approx(0.5 * pull, rel=1e-4)
    expected = p + 0.5 * (pull * q - 2 * 0.1 * p)
    assert fitted.user_factors[0, 0] == pytest.approx(expected, rel=1e-5)


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
    assert fitted.item_bias is not None
    assert fitted.item_bias[0] == pytest.approx(b, rel=1e-4)
    assert fitted.user_factors[0, 0] == pytest.approx(p, rel=1e-4)
    assert fitted.item_factors[0, 0] == pytest.approx(q, rel=1e-4)


def test_checkerboard_pattern_is_learned() -> None:
    data, missing = recommending.make_checkerboard(20)
    fitted = SMALL.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == missing).mean() > 0.8


def test_result_depends_on_the_seed_only() -> None:
    data, _ = recommending.make_checkerboard(12)
    first, repeated, reseeded = (
        replace(SMALL, epochs=2).fit(data, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.item_factors, repeated.item_factors)
    assert not np.array_equal(first.item_factors, reseeded.item_factors)


def test_divergence_error_names_the_model() -> None:
    data, _ = recommending.make_checkerboard(12)
    with pytest.raises(OutOfRange, match="MF2020 diverged in epoch"):
        replace(SMALL, learning_rate=1e30).fit(data, np.random.default_rng(0))


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize(
    "data",
    [
        TrainingData(make_interactions([(0, 0), (1, 0)])),
        TrainingData(make_interactions([(0, 0), (0, 1)], values=[1, 2])),
        TrainingData(make_interactions([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one user", "no row"],
)
def test_smallest_datasets_give_lists_of_length_k(data: TrainingData) -> None:
    fitted = replace(SMALL, epochs=2).fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)


def test_offset_converges_with_large_batches() -> None:
    # 4 of 5 pairs are negatives: the constant prediction 0.2 has cross-entropy 0.5004 per pair
    rng = np.random.default_rng(3)
    pairs = {
        (int(u), int(i))
        for u, i in zip(rng.integers(99, size=3000), rng.integers(60, size=3000), strict=True)
    }
    data = TrainingData(make_interactions(sorted(pairs), n_users=99, n_items=60))
    losses_by_epoch: list[float] = []

    def record_losses(losses: list[float], schedule: object) -> None:
        losses_by_epoch.extend(losses)

    with pytest.MonkeyPatch.context() as patch:
        disable_sample_steps(patch)
        patch.setattr(training, "warn_about_stalled_loss", record_losses)
        MF2020(epochs=20, negatives=4, batch_size=100_000, learning_rate=0.01, device="cpu").fit(
            data, rng
        )
    assert losses_by_epoch[-1] < 0.52
    assert max(losses_by_epoch) < 0.8
