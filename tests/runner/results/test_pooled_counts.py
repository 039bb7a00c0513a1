from __future__ import annotations

import numpy as np

from recbias.runner.results.pooled_counts import total_counts


def test_counts_of_one_row_add_up() -> None:
    counts = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}
    assert total_counts(counts, counts).tolist() == [4.0, 6.0]


def test_a_dataset_without_the_target_still_has_its_places() -> None:
    # Bars: 3 of 10 places in city a; city b has no bar among its 20 places: 3 of 30 together
    bars = {"a": np.array([[3.0], [10.0]])}
    every = {"a": np.array([[3.0], [10.0]]), "b": np.array([[7.0], [20.0]])}
    assert total_counts(bars, every).tolist() == [[3.0], [30.0]]
