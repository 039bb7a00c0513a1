from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from recbias.core.arrays import AnyArray
from recbias.models.text.linear_probe import probed


def blocks(states: AnyArray, order: AnyArray, size: int) -> Iterator[tuple[AnyArray, AnyArray]]:
    for start in range(0, order.size, size):
        rows = order[start : start + size]
        yield rows, states[rows]


def test_it_is_the_regression_of_standardised_states_however_they_come(
    rng: np.random.Generator,
) -> None:
    wanted = rng.integers(0, 3, 60)
    states = rng.normal(wanted[:, None] * [1.0, 0.1, 0.0, 0.0], [1, 0.1, 9, 0], (60, 4))
    states[:, 3] = 7.0  # a column that changes in its last digits alone says nothing
    states[::2, 3] += 1e-6
    order = rng.permutation(60)
    found = probed(
        blocks(states.astype(np.float32), order, 7), wanted, 4, strength=0.5, iterations=500
    )
    level = states.std(axis=0)
    z = (states - states.mean(axis=0)) / np.where(level < 1e-5, 1, level)
    peer = LogisticRegression(C=0.5, max_iter=500).fit(z, wanted)
    expected = log_softmax(z @ peer.coef_.T + peer.intercept_, axis=1)
    said = found.log_chances(states.astype(np.float32))
    np.testing.assert_allclose(said[:, :3], expected, atol=2e-3)
    assert np.isneginf(said[:, 3]).all()  # nothing is of the last class
    assert np.abs(found.weights).max() < 100
