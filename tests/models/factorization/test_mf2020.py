from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset import TrainingData
from recbias.models import training
from recbias.models.factorization import MF2020, FactorTables
from support.worlds.small_worlds import make_interactions


def disable_sample_steps(patch: pytest.MonkeyPatch) -> None:
    """Make all learners use batch steps, as on a GPU."""
    patch.setattr(training, "SampleSteps", ())


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
