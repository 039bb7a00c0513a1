from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recbias.models.sequential import (
    SampledSoftmax,
    compute_probabilities,
    sum_cross_entropy,
)

N_ITEMS = 40
WEIGHTS = 1 / np.arange(1.0, N_ITEMS + 1)


def make_positions(rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Return vectors and targets of 6 positions, and vectors and a bias of 40 items."""
    vectors, items, bias = (
        torch.tensor(rng.normal(size=shape), requires_grad=True)
        for shape in ((6, 5), (N_ITEMS, 5), (N_ITEMS,))
    )
    return vectors, torch.tensor([0, 3, 39, 3, 17, 8]), items, bias


def test_loss_of_three_items_by_hand() -> None:
    # π = (1, 1/2, 1/2): item 0 and one of the others are drawn. Scores ln 2, ln 3 and ln 5:
    # for the target 0, ln (2 + 3 / (1/2)) - ln 2 or ln (2 + 5 / (1/2)) - ln 2; for the target 1,
    # which counts once where it is drawn, ln (3 + 2) - ln 3 or ln (3 + 2 + 5 / (1/2)) - ln 3
    softmax = SampledSoftmax.from_weights(np.array([2.0, 1.0, 1.0]), 2, "cpu")
    one = torch.ones(1, 1, dtype=torch.float64)
    scores = torch.tensor([[2.0], [3.0], [5.0]], dtype=torch.float64).log()
    losses: dict[int, set[float]] = {0: set(), 1: set()}
    for target, values in losses.items():
        for seed in range(20):
            noise = torch.Generator().manual_seed(seed)
            values.add(softmax.sum_losses(one, torch.tensor([target]), scores, None, noise).item())
    expected = {0: [np.log(8 / 2), np.log(12 / 2)], 1: [np.log(5 / 3), np.log(15 / 3)]}
    for target, values in losses.items():
        assert sorted(values) == pytest.approx(expected[target], abs=1e-9)


@pytest.mark.parametrize("n", [N_ITEMS, 10 * N_ITEMS])
def test_all_items_give_the_cross_entropy_and_its_gradients(
    n: int, rng: np.random.Generator
) -> None:
    vectors, targets, items, bias = make_positions(rng)
    softmax = SampledSoftmax.from_weights(WEIGHTS, n, "cpu")
    sampled = softmax.sum_losses(vectors, targets, items, bias, torch.Generator())
    full = sum_cross_entropy(vectors @ items.T + bias, targets)
    assert sampled.item() == pytest.approx(full.item(), abs=1e-9)
    leaves = [vectors, items, bias]
    pairs = (torch.autograd.grad(loss, leaves) for loss in (sampled, full))
    for ours, theirs in zip(*pairs, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


def test_probabilities_are_those_of_the_draws(rng: np.random.Generator) -> None:
    n, n_draws = 12, 20_000
    probabilities = compute_probabilities(rng.permutation(WEIGHTS), n)
    assert probabilities.sum() == pytest.approx(n, abs=1e-9)
    assert probabilities.max() == 1.0
    softmax, noise = SampledSoftmax(torch.tensor(probabilities), n), torch.Generator()
    noise.manual_seed(1)
    draws = torch.stack([softmax.draw(noise) for _ in range(n_draws)]).numpy()
    assert all(np.unique(draw).size == n for draw in draws[:1000])
    shares = np.bincount(draws.ravel(), minlength=N_ITEMS) / n_draws
    error = np.sqrt(probabilities * (1 - probabilities) / n_draws)
    assert (np.abs(shares - probabilities) <= 4.5 * error + 1e-12).all()


def test_the_estimated_sum_has_the_expected_value_of_that_of_all_items(
    rng: np.random.Generator,
) -> None:
    vectors, targets, items, bias = make_positions(rng)
    softmax, noise = SampledSoftmax.from_weights(WEIGHTS, 12, "cpu"), torch.Generator()
    noise.manual_seed(2)
    scores = (vectors @ items.T + bias).detach()
    for position in (1, 2):
        vector, target = vectors[[position]], targets[[position]]
        own, full = scores[position, target].item(), scores[position].exp().sum().item()
        with torch.no_grad():
            losses = [
                softmax.sum_losses(vector, target, items, bias, noise).item() for _ in range(2000)
            ]
        sums = np.exp(np.array(losses) + own)  # those whose logarithm is in the loss
        error = sums.std(ddof=1) / np.sqrt(sums.size)
        assert abs(sums.mean() - full) < 4 * error
        assert error < 0.02 * full
