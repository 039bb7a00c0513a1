from __future__ import annotations

import numpy as np

from recbias.core.dataset import Odds
from recbias.data.demo import sample_without_replacement


def test_pairs_of_picks_have_the_probabilities_of_the_model(rng: np.random.Generator) -> None:
    # weights 1, 2, 3, two picks: P(1 and 2) = 1/6 * 2/5 + 2/6 * 1/4 = 0.15,
    # P(1 and 3) = 1/6 * 3/5 + 3/6 * 1/3 = 0.26667, P(2 and 3) = 2/6 * 3/4 + 3/6 * 2/3 = 0.58333
    n = 20_000
    odds = Odds(np.log([[1.0, 2.0, 3.0]]), np.zeros(n, dtype=np.int64))
    users, items = sample_without_replacement(odds, np.full(n, 2), rng)
    np.testing.assert_array_equal(users, np.repeat(np.arange(n), 2))
    pairs = items.reshape(n, 2).sum(axis=1)
    expected = n * np.array([0.15, 0.26666667, 0.58333333])
    counts = np.bincount(pairs, minlength=4)[1:]
    # chi-square with 2 degrees of freedom exceeds 13.8 with probability 0.001
    assert ((counts - expected) ** 2 / expected).sum() < 13.8
