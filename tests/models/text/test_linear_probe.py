from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from recbias.core.dataset import AnyArray
from recbias.models.text_probes import fit_probe


def blocks(states: AnyArray, order: AnyArray, size: int) -> Iterator[tuple[AnyArray, AnyArray]]:
    for start in range(0, order.size, size):
        rows = order[start : start + size]
        yield rows, states[rows]


def test_the_probe_equals_a_regression_on_standardized_states_in_any_order(
    rng: np.random.Generator,
) -> None:
    classes = rng.integers(0, 3, 60)
    states = rng.normal(classes[:, None] * [1.0, 0.1, 0.0, 0.0], [1, 0.1, 9, 0], (60, 4))
    states[:, 3] = 7.0  # a column that changes in its last digits alone says nothing
    states[::2, 3] += 1e-6
    order = rng.permutation(60)
    probe = fit_probe(
        blocks(states.astype(np.float32), order, 7), classes, 4, strength=0.5, iterations=500
    )
    std = states.std(axis=0)
    z = (states - states.mean(axis=0)) / np.where(std < 1e-5, 1, std)
    reference = LogisticRegression(C=0.5, max_iter=500).fit(z, classes)
    expected = log_softmax(z @ reference.coef_.T + reference.intercept_, axis=1)
    log_probabilities = probe.log_probabilities(states.astype(np.float32))
    np.testing.assert_allclose(log_probabilities[:, :3], expected, atol=2e-3)
    assert np.isneginf(log_probabilities[:, 3]).all()  # nothing is of the last class
    assert np.abs(probe.weights).max() < 100
