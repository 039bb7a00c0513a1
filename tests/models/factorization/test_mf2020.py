from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import OutOfRange
from recbias.models.factorization.factor_tables import FactorTables
from recbias.models.factorization.mf2020 import MF2020
from recbias.models.training import loop as torch_fit
from support import recommending
from support.worlds import rows

SMALL = MF2020(
    embedding_size=8, epochs=60, batch_size=64, learning_rate=0.05, negatives=4, device="cpu"
)


def as_on_a_gpu(patch: pytest.MonkeyPatch) -> None:
    """No learner makes single steps."""
    patch.setattr(torch_fit, "SingleSteps", ())


def double(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def test_gradients_are_finite_differences(rng: np.random.Generator) -> None:
    pairs = [
        torch.tensor([0, 0, 2]),
        torch.tensor([1, 3, 1]),
        torch.tensor([1.0, 0.0, 1.0]).double(),
    ]

    def loss(*tables: Any) -> Any:
        return MF2020(reg=0.3)._loss(FactorTables(*tables), *pairs)

    shapes = [(3, 2), (4, 2), (3, 1), (4, 1), (1,)]
    assert torch.autograd.gradcheck(loss, tuple(double(*each, rng=rng) for each in shapes))


def test_a_step_goes_down_the_gradient(rng: np.random.Generator) -> None:
    model = MF2020(reg=0.3)
    pairs = [
        torch.tensor([0, 0, 2]),
        torch.tensor([1, 3, 1]),
        torch.tensor([1.0, 0.0, 1.0]).double(),
    ]
    shapes = [(3, 2), (4, 2), (3, 1), (4, 1), (1,)]
    tables = FactorTables(*(double(*each, rng=rng) for each in shapes))
    loss = model._loss(tables, *pairs)
    loss.backward()
    expected = [(each - 0.1 * each.grad).detach() for each in tables.parameters()]
    assert model._step(tables, 0.1, *pairs).item() == pytest.approx(loss.item())
    for found, each in zip(tables.parameters(), expected, strict=True):
        torch.testing.assert_close(found.detach(), each)


def test_the_loss_of_a_pair_by_hand() -> None:
    # s = 0.1 + 0.2 + 0.3 + 2 · 0.5 = 1.6: -ln σ(-1.6) = 1.783900 for a drawn pair
    # squares 0.01 + 0.04 + 0.09 + 4 + 0.25 = 4.39
    values = ([[2.0]], [[0.5]], [[0.2]], [[0.3]], [0.1])
    tables = FactorTables(*(torch.tensor(each) for each in values))
    pair = (torch.tensor([0]), torch.tensor([0]), torch.tensor([0.0]))
    found = MF2020(reg=0.2)._loss(tables, *pair)
    assert found.item() == pytest.approx(1.783900 + 0.1 * 4.39, abs=1e-5)


def test_one_step_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    # one user with the only item, drawn as a negative as well: both pairs are (0, 0), y = 1 and 0.
    # on a GPU they are one step: biases start at 0, s = p q; each moves by
    # lr Σ (y - σ(s)) = 0.5 (1 - 2 σ(s))
    as_on_a_gpu(monkeypatch)
    data = TrainingData(rows([(0, 0)]))
    model = MF2020(embedding_size=1, epochs=1, negatives=1, reg=0.1, device="cpu")
    first, found = (
        replace(model, learning_rate=rate).fit(data, np.random.default_rng(3))
        for rate in (1e-12, 0.5)
    )
    p, q = float(first.user_factors[0, 0]), float(first.item_factors[0, 0])
    pull = 1 - 2 / (1 + np.exp(-p * q))
    assert found.item_bias is not None
    assert found.item_bias[0] == pytest.approx(0.5 * pull, rel=1e-4)
    expected = p + 0.5 * (pull * q - 2 * 0.1 * p)
    assert found.user_factors[0, 0] == pytest.approx(expected, rel=1e-5)


def test_two_single_steps_by_hand() -> None:
    # the same pairs, one after the other, with two biases and an offset of 0 at first:
    # b = b_u = b_i = 0.5 (1 - σ(p q)) after the first, and s = 3 b + p' q' in the second
    data = TrainingData(rows([(0, 0)]))
    model = MF2020(embedding_size=1, epochs=1, negatives=1, reg=0.0, device="cpu")
    first, found = (
        replace(model, learning_rate=rate).fit(data, np.random.default_rng(3))
        for rate in (1e-12, 0.5)
    )
    p, q, b = float(first.user_factors[0, 0]), float(first.item_factors[0, 0]), 0.0
    for label in (1, 0):
        pull = 0.5 * (label - 1 / (1 + np.exp(-3 * b - p * q)))
        p, q, b = p + pull * q, q + pull * p, b + pull
    assert found.item_bias is not None
    assert found.item_bias[0] == pytest.approx(b, rel=1e-4)
    assert found.user_factors[0, 0] == pytest.approx(p, rel=1e-4)
    assert found.item_factors[0, 0] == pytest.approx(q, rel=1e-4)


def test_it_learns_the_checkerboard() -> None:
    data, wanted = recommending.checkerboard(20)
    found = SMALL.fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.everybody(data), 1, data)
    assert (lists.items[:, 0] == wanted).mean() > 0.8


def test_one_seed_one_result_another_another() -> None:
    data, _ = recommending.checkerboard(12)
    first, again, other = (
        replace(SMALL, epochs=2).fit(data, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.item_factors, again.item_factors)
    assert not np.array_equal(first.item_factors, other.item_factors)


def test_a_learning_rate_that_diverges_is_named() -> None:
    data, _ = recommending.checkerboard(12)
    with pytest.raises(OutOfRange, match="MF2020 diverged in epoch"):
        replace(SMALL, learning_rate=1e30).fit(data, np.random.default_rng(0))


@pytest.mark.parametrize(
    "data",
    [
        TrainingData(rows([(0, 0), (1, 0)])),
        TrainingData(rows([(0, 0), (0, 1)], values=[1, 2])),
        TrainingData(rows([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one user", "no row"],
)
def test_the_smallest_worlds_are_learned(data: TrainingData) -> None:
    found = replace(SMALL, epochs=2).fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.everybody(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)


def test_with_large_batches_the_offset_settles_too() -> None:
    # 4 of 5 pairs are drawn: whoever always says 0.2 has the cross-entropy 0.5004 a pair
    rng = np.random.default_rng(3)
    pairs = {
        (int(u), int(i))
        for u, i in zip(rng.integers(99, size=3000), rng.integers(60, size=3000), strict=True)
    }
    data = TrainingData(rows(sorted(pairs), n_users=99, n_items=60))
    heard: list[float] = []

    def spied(losses: list[float], schedule: object) -> None:
        heard.extend(losses)

    with pytest.MonkeyPatch.context() as patch:
        as_on_a_gpu(patch)
        patch.setattr(torch_fit, "warn_of_no_progress", spied)
        MF2020(epochs=20, negatives=4, batch_size=100_000, learning_rate=0.01, device="cpu").fit(
            data, rng
        )
    assert heard[-1] < 0.52
    assert max(heard) < 0.8
