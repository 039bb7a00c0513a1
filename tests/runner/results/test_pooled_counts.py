from __future__ import annotations

import numpy as np

from recbias.runner.results.pooled_counts import sum_counts


def test_counts_of_one_row_are_added() -> None:
    counts = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}
    assert sum_counts(counts, counts).tolist() == [4.0, 6.0]


def test_a_dataset_without_the_target_adds_its_totals() -> None:
    # Bars: 3 of 10 ranks in city a; city b has no bar among its 20 ranks: 3 of 30 in total
    bars = {"a": np.array([[3.0], [10.0]])}
    group = {"a": np.array([[3.0], [10.0]]), "b": np.array([[7.0], [20.0]])}
    assert sum_counts(bars, group).tolist() == [[3.0], [30.0]]
