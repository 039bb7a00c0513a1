from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import AnyArray, Dataset, FloatArray
from recbias.data.demo import GENRES, PREFERRED, Demo, encode_favourites, encode_genres


def sample_demo(**settings: Any) -> Dataset:
    return Demo(**settings).load(Path(), np.random.default_rng(1))


def count_single_picks(world: Dataset, cohorts: str = "AB") -> tuple[AnyArray, FloatArray]:
    """Count the users of some cohorts who picked only one item, and return their terms.

    Returns:
        Counts ``[n_types, n_items]`` of the 12 user types (gender, favourite) and the five terms
        ``[n_types, n_items, 5]`` of popularity, taste, preference, prominence and provider.
    """
    users, items, rows = world.users, world.items, world.interactions
    assert users is not None
    assert items is not None
    woman = (users.frame["gender"] == "F").to_numpy()
    types = encode_favourites(users) + 6 * woman
    is_member = users.frame["cohort"].isin(list(cohorts)).to_numpy()
    single = ((rows.user_counts() == 1) & is_member)[rows.users]
    counts = np.zeros((12, rows.n_items))
    np.add.at(counts, (types[rows.users[single]], rows.items[single]), 1)
    terms = np.zeros((2, 6, rows.n_items, 5))
    terms[..., 0] = -np.log(items.numbers("popularity_rank"))
    terms[..., 1] = encode_genres(items)
    terms[1, ..., 2] = encode_genres(items)[GENRES.index(PREFERRED)]
    terms[..., 3] = items.numbers("stereotype")
    terms[..., 4] = items.frame["studio_group"] == "major"
    return counts, terms.reshape(12, -1, 5)


def fit_conditional_logit(counts: AnyArray, terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fit the weights of the terms by maximum likelihood with Newton's method, steps of 1 at most.

    Returns:
        The weights and their standard errors.
    """
    weights = np.zeros(terms.shape[2])
    information = np.eye(weights.size)
    total = counts.sum(axis=1)
    for _ in range(25):
        odds = terms @ weights
        probability = np.exp(odds - odds.max(axis=1, keepdims=True))
        probability /= probability.sum(axis=1, keepdims=True)
        mean = np.einsum("ki,kit->kt", probability, terms)
        gradient = np.einsum("ki,kit->t", counts - total[:, None] * probability, terms)
        second_moment = np.einsum("k,ki,kit,kis->ts", total, probability, terms, terms)
        information = second_moment - np.einsum("k,kt,ks->ts", total, mean, mean)
        step = np.linalg.solve(information, gradient)
        weights = weights + step / max(1.0, np.abs(step).max())
    return weights, np.sqrt(np.diag(np.linalg.inv(information)))


@pytest.mark.parametrize(
    "effects",
    [
        {"popularity": 0.8, "taste": 3.5, "preference": 1.0, "prominence": 0.7, "provider": 0.9},
        {"popularity": 0.0, "taste": 0.0, "preference": 0.0, "prominence": 0.0, "provider": 0.0},
        {
            "popularity": 1.2,
            "taste": 1.0,
            "preference": -1.5,
            "prominence": -0.5,
            "provider": -1.0,
        },
    ],
)
def test_a_fitted_model_recovers_the_planted_effects(effects: dict[str, Any]) -> None:
    # A user's only pick has the probability of the docstring: a conditional logit model of the
    # users with one pick must recover the five effects within its standard errors.
    world = sample_demo(n_users=30_000, n_items=60, per_user=1, **effects)
    weights, errors = fit_conditional_logit(*count_single_picks(world))
    assert (errors < 0.05).all()
    assert (np.abs(weights - list(effects.values())) < 4 * errors).all()


def test_the_odds_ratio_of_a_preferred_pick_is_the_planted_preference() -> None:
    # the odds ratio of women to men within each favourite genre, pooled by inverse variance
    counts, _ = count_single_picks(
        sample_demo(n_users=30_000, n_items=60, per_user=1, preference=1.0)
    )
    items = sample_demo(n_users=30_000, n_items=60, per_user=1, preference=1.0).items
    assert items is not None
    preferred = encode_genres(items)[0]
    inside = counts[:, preferred].sum(axis=1).reshape(2, 6)
    outside = counts[:, ~preferred].sum(axis=1).reshape(2, 6)
    ratio = np.log(inside[1] / outside[1]) - np.log(inside[0] / outside[0])
    variance = (1 / inside + 1 / outside).sum(axis=0)
    pooled = (ratio / variance).sum() / (1 / variance).sum()
    assert abs(pooled - 1.0) < 4 * np.sqrt(1 / (1 / variance).sum())


def test_the_odds_of_a_pick_by_a_major_studio_are_the_planted_ones() -> None:
    # without other effects, 30 of 60 items are by major studios, so the share of first picks is
    # e^p / (e^p + 1): 0.731 for p = 1, a half for p = 0
    for provider, share in ((1.0, np.e / (np.e + 1)), (0.0, 0.5)):
        zeros = dict.fromkeys(("popularity", "taste", "preference", "prominence"), 0.0)
        world = sample_demo(n_users=30_000, n_items=60, per_user=1, provider=provider, **zeros)
        counts, terms = count_single_picks(world)
        by_major = (counts * terms[..., 4]).sum() / counts.sum()
        assert abs(by_major - share) < 4 * np.sqrt(share * (1 - share) / counts.sum())
