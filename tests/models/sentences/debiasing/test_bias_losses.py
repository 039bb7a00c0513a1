"""Bias losses: hand-worked cases, gradients, and invariances."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from recbias.models.debias import (
    compute_cosine_gap_loss,
    compute_log_ratio_loss,
    compute_projection_loss,
    compute_released_log_ratio_loss,
    compute_released_projection_loss,
    find_bias_subspace,
)


def draw(*shape: int, seed: int = 0) -> Any:
    """Return random numbers whose gradients are checked."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def test_log_ratio_of_probabilities() -> None:
    # two places: ln(0.5 / 0.25) = ln 2, and |ln(0.1 / 0.4)| = ln 4; three pairs
    first, second = torch.tensor([0.5, 0.1]).log(), torch.tensor([0.25, 0.4]).log()
    loss = float(compute_log_ratio_loss(first, second, 3))
    assert loss == pytest.approx((np.log(2) + np.log(4)) / 3)


def test_released_log_ratio_averages_over_all_tokens_of_a_sentence() -> None:
    states = torch.tensor(
        [[[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]], [[3.0, 1.0], [1.0, 1.0], [2.0, 2.0]]]
    )
    is_token = torch.tensor([[True, True, False], [True, True, True]])
    differences = torch.tensor([[1.0, -1.0], [2.0, 0.0]])
    # sentence 1 has the first pair: (|1| + |-2|) / 2; sentence 2 both: (2 + 0 + 0) / 3 and
    # (6 + 2 + 4) / 3; then divided by two pairs
    occurs = torch.tensor([[True, False], [True, True]])
    loss = float(compute_released_log_ratio_loss(states, is_token, occurs, differences))
    assert loss == pytest.approx((1.5 + 2 / 3 + 4) / 2)


def test_cosine_gap_of_two_pairs() -> None:
    attributes = torch.tensor([[2.0, 0.0], [3.0, 4.0]])
    first, second = torch.tensor([[1.0, 0.0], [0.0, 5.0]]), torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    half = np.sqrt(0.5)
    # a1: |1 - 0| + |0 - half|; a2 = (0.6, 0.8): |0.6 - 0.8| + |0.8 - 1.4 half|
    expected = 1 + half + 0.2 + abs(0.8 - 1.4 * half)
    assert float(compute_cosine_gap_loss(attributes, first, second)) == pytest.approx(expected)


def test_projection_on_a_plane() -> None:
    basis = torch.eye(3)[:2]
    attributes = torch.tensor([[1.0, -2.0, 7.0], [0.0, 3.0, 7.0]])
    assert float(compute_projection_loss(attributes, basis)) == pytest.approx(6)


def test_the_released_projection_is_a_running_total() -> None:
    basis = torch.eye(3)[:2]
    attributes = torch.tensor([[1.0, -2.0, 7.0], [0.0, 3.0, 7.0]])
    # totals (1, -2, 0) and (1, 1, 0): 3 + 2
    assert float(compute_released_projection_loss(attributes, basis)) == pytest.approx(5)


def test_the_subspace_explains_half_of_the_variance_with_the_fewest_directions() -> None:
    # squared lengths of half the differences: 4, 3 and 2 of 9 - two directions are needed
    differences = torch.diag(torch.tensor([4.0, 2 * 3**0.5, 2 * 2**0.5]))
    basis = find_bias_subspace(differences, torch.zeros(3, 3))
    assert torch.allclose(basis.abs(), torch.eye(3)[:2], atol=1e-6)
    assert (
        len(find_bias_subspace(torch.diag(torch.tensor([2.0, 1.0, 1.0])), torch.zeros(3, 3))) == 1
    )


def test_the_subspace_is_that_of_centred_pairs_as_scikit_learn_finds_it() -> None:
    from sklearn.decomposition import PCA

    first, second = draw(6, 5).detach(), draw(6, 5, seed=1).detach()
    basis = find_bias_subspace(first, second)
    middle = (first + second) / 2
    found = PCA().fit(torch.cat([first - middle, second - middle]).numpy())
    k = int(np.searchsorted(found.explained_variance_ratio_.cumsum(), 0.5) + 1)
    assert len(basis) == k
    np.testing.assert_allclose(
        np.abs(basis.numpy() @ found.components_[:k].T), np.eye(k), atol=1e-6
    )


ONES = torch.ones(2, 3, dtype=torch.bool)
LOSSES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "LMD": (partial(compute_log_ratio_loss, n_pairs=4), (draw(5), draw(5, seed=1))),
    "LMD released": (
        lambda states: compute_released_log_ratio_loss(
            states, ONES, ONES[:, :2], draw(2, 4, seed=1).detach()
        ),
        (draw(2, 3, 4),),
    ),
    "ADD": (compute_cosine_gap_loss, (draw(3, 4), draw(2, 4, seed=1), draw(2, 4, seed=2))),
    "HD": (
        lambda states: compute_projection_loss(states, draw(2, 4, seed=1).detach()),
        (draw(3, 4),),
    ),
    "HD released": (
        lambda states: compute_released_projection_loss(states, draw(2, 4, seed=1).detach()),
        (draw(3, 4),),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_equal_finite_differences(name: str) -> None:
    loss, inputs = LOSSES[name]
    assert torch.autograd.gradcheck(loss, inputs)


def make_vectors(n: int) -> st.SearchStrategy[Any]:
    """Return vectors of length above 0, so that cosines are defined."""
    values = st.floats(-3, 3, allow_subnormal=False).map(lambda value: round(value, 3))
    drawn = arrays(np.float64, (n, 4), elements=values)
    return drawn.filter(lambda rows: bool((np.abs(rows).sum(1) > 0.1).all())).map(torch.from_numpy)


@given(make_vectors(5), make_vectors(3), make_vectors(3), st.floats(0.01, 100))
def test_losses_are_the_same_for_either_order_of_the_groups(
    attributes: Any, first: Any, second: Any, scale: float
) -> None:
    loss = compute_cosine_gap_loss(attributes, first, second)
    torch.testing.assert_close(compute_cosine_gap_loss(attributes, second, first), loss)
    # of vectors only the directions count; at most 2 for each occurrence and pair
    torch.testing.assert_close(compute_cosine_gap_loss(scale * attributes, first, second), loss)
    assert 0 <= float(loss) <= 2 * len(attributes) * len(first)
    a, b = first[:, 0], second[:, 0]
    torch.testing.assert_close(compute_log_ratio_loss(a, b, 3), compute_log_ratio_loss(b, a, 3))
    torch.testing.assert_close(
        compute_log_ratio_loss(a + scale, b + scale, 3), compute_log_ratio_loss(a, b, 3)
    )


@given(make_vectors(5), make_vectors(3), make_vectors(3), st.floats(-10, 10))
def test_the_projection_is_linear_in_length_and_zero_outside_the_subspace(
    attributes: Any, first: Any, second: Any, shift: float
) -> None:
    assume(float((first - second).abs().max()) > 0.1)
    basis = find_bias_subspace(first, second)
    torch.testing.assert_close(basis @ basis.T, torch.eye(len(basis), dtype=torch.float64))
    loss = compute_projection_loss(attributes, basis)
    torch.testing.assert_close(compute_projection_loss(-3 * attributes, basis), 3 * loss)
    outside = attributes - attributes @ basis.T @ basis
    assert float(compute_projection_loss(outside, basis)) == pytest.approx(0, abs=1e-9)
    # the subspace explains half of the squared differences, also of moved terms
    halves = (first - second) / 2
    share = (halves @ basis.T).square().sum() / halves.square().sum()
    assert float(share) > 0.5 - 1e-5
    assert len(find_bias_subspace(second + shift, first + shift)) == len(basis)


@given(make_vectors(6), make_vectors(3), make_vectors(3))
def test_losses_add_up_over_occurrences(attributes: Any, first: Any, second: Any) -> None:
    losses: tuple[Callable[[Any], Any], ...] = (
        lambda rows: compute_cosine_gap_loss(rows, first, second),
        lambda rows: compute_projection_loss(rows, first),
        lambda rows: compute_log_ratio_loss(rows[:, 0], rows[:, 1], 3),
    )
    for compute in losses:
        parts = compute(attributes[:2]) + compute(attributes[2:])
        torch.testing.assert_close(parts, compute(attributes))
