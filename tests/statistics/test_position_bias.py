from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import AnyArray, FloatArray
from recbias.statistics.logs import fit_position_bias, tally_positions

EXAMINED = np.array([1.0, 0.6, 0.4, 0.25])


def estimate_position_bias(
    strata: AnyArray, positions: AnyArray, rewards: AnyArray, users: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray]:
    shape = int(strata.max()) + 1, int(positions.max()) + 1
    fit = fit_position_bias(*tally_positions(strata, positions, rewards, shape))
    scores = fit.score_users(strata, positions, rewards, users, int(users.max()) + 1)
    return (fit.values, *fit.find_intervals(scores))


def test_harvested_ratios_of_two_items() -> None:
    # item 0: 10 rows at the first position, 30 at the second; item 1: 20 and 20
    # a_12 = 6 * 30/40 + 4 * 20/40 = 6.5, a_21 = 9 * 10/40 + 2 * 20/40 = 3.25; 3.25/6.5
    shown = np.array([[10.0, 30.0], [20.0, 20.0]])
    clicks = np.array([[6.0, 9.0], [4.0, 2.0]])
    assert fit_position_bias(shown, clicks).values == pytest.approx([1.0, 0.5])


def test_a_chain_of_pairs_connects_positions() -> None:
    # item 0 at positions 1 and 2 (4 : 2), item 1 at 2 and 3 (3 : 1), item 2 at 4 and 5 only
    shown = np.array([[9.0, 9, 0, 0, 0], [0, 9, 9, 0, 0], [0, 0, 0, 9, 9]])
    clicks = np.array([[4.0, 2, 0, 0, 0], [0, 3, 1, 0, 0], [0, 0, 0, 5, 5]])
    values = fit_position_bias(shown, clicks).values
    assert values == pytest.approx([1, 1 / 2, 1 / 6, np.nan, np.nan], nan_ok=True)


def test_position_bias_does_not_depend_on_relevance_or_traffic() -> None:
    shown = np.random.default_rng(0).integers(1, 500, (40, 4)).astype(float)
    relevance = np.random.default_rng(1).random((40, 1))
    fit = fit_position_bias(shown, shown * relevance * EXAMINED)
    assert fit.values == pytest.approx(EXAMINED)


def draw_clicks(kind: str, rng: np.random.Generator) -> tuple[AnyArray, AnyArray, Any, AnyArray]:
    """Return strata, positions, clicks and users of a log of users who click differently often."""
    n_users, n_items, k = 300, 30, EXAMINED.size
    users = np.repeat(np.arange(n_users), rng.integers(1, 12, n_users))
    activity = np.clip(rng.beta(2, 2, n_users), 0.05, 1)[users]
    relevance = rng.beta(1, 2, n_items)
    if kind == "random":
        items = np.argsort(rng.random((users.size, n_items)), axis=1)[:, :k]
    else:  # three variants that order the six best items differently
        orders = np.array([np.argsort(-relevance)[:6][rng.permutation(6)] for _ in range(3)])
        of_users = rng.integers(0, 3, n_users)[users]
        items = orders[of_users if kind == "items" else rng.integers(0, 3, users.size)][:, :k]
    clicks = rng.random(items.shape) < EXAMINED * relevance[items] * activity[:, None]
    rows, listed = np.repeat(users, k), items.ravel()
    strata = {
        "items": listed,
        "users": np.unique(rows * n_items + listed, return_inverse=True)[1],
    }.get(kind, np.zeros(rows.size, dtype=np.int64))
    positions = np.tile(np.arange(k), users.size)
    return strata, positions, clicks.ravel().astype(float), rows


def cover(kind: str, n_worlds: int) -> FloatArray:
    """Return how often the interval of each position but the first holds the truth."""
    rng = np.random.default_rng(1)
    hits, n = np.zeros(EXAMINED.size), np.zeros(EXAMINED.size)
    for _ in range(n_worlds):
        values, low, high = estimate_position_bias(*draw_clicks(kind, rng))
        hits += (low <= EXAMINED) & (high >= EXAMINED)
        n += ~np.isnan(values)
    return np.asarray(hits / n)[1:]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "items", "users"])
def test_intervals_hold_the_truth_in_95_percent_of_the_worlds(kind: str) -> None:
    assert cover(kind, 2000) == pytest.approx(0.95, abs=0.02)


def test_intervals_fail_where_positions_are_not_random() -> None:
    assert (cover("one stratum, but better items higher", 60) < 0.85).all()
