from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.metrics import popularity as item_popularity
from recbias.metrics.popularity import (
    Aggregate,
    aggregate_sets,
    average_rows,
    build_history_matrix,
    build_list_matrix,
    gini_of_rows,
    herfindahl,
    read_popularity,
    sum_rows,
)
from recbias.statistics.inequality import gini as gini_of_counts
from support.worlds.evidence_worlds import make_csr, make_user_queries
from support.worlds.popularity_worlds import make_item_counts, make_popularity_evidence

ROWS = make_csr([[0, 1, 2], [3], [], [1, 4]], 5)
VALUES = np.array([4.0, 2.0, 0.0, 0.0, np.nan])


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        # the rows are 4 2 0 | 0 | nothing | 2, as the worth of item 4 is unknown
        (average_rows, [2, 0, np.nan, 2]),
        (sum_rows, [6, 0, np.nan, 2]),
        # (4/6)² + (2/6)² = 20/36
        (herfindahl, [20 / 36, np.nan, np.nan, 1]),
        # ascending 0 2 4: (-2 x 0 + 0 x 2 + 2 x 4) / (3 x 6)
        (gini_of_rows, [8 / 18, np.nan, np.nan, 0]),
    ],
)
def test_aggregates_of_a_worked_example(aggregate: Aggregate, expected: list[float]) -> None:
    assert aggregate(ROWS, VALUES) == pytest.approx(np.array(expected), nan_ok=True)


@given(seed=st.integers(0, 2**32 - 1))
def test_gini_of_rows_does_not_depend_on_the_block_size(seed: int) -> None:
    rng = np.random.default_rng(seed)
    popularity = rng.integers(1, 9, 20).astype(np.float64)
    rows = [rng.permutation(20)[: rng.integers(1, 20)].tolist() for _ in range(7)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_popularity, "BLOCK_PAIRS", int(rng.integers(1, 40)))
        values = gini_of_rows(make_csr(rows, 20), popularity)
    expected = np.array([float(gini_of_counts(popularity[row])) for row in rows])
    assert values == pytest.approx(expected)


def test_gini_of_no_rows_is_empty() -> None:
    assert gini_of_rows(make_csr([], 5), VALUES).tolist() == []


def test_aggregates_of_sets_equal_those_of_rows() -> None:
    sets = np.array([[[1.0, 3.0], [2.0, 2.0]], [[0.0, 4.0], [5.0, 1.0]]])
    assert aggregate_sets(sets, average_rows).tolist() == [[2, 2], [2, 3]]
    # of two values a ≤ b Gini is (b - a) / (2 (a + b))
    assert aggregate_sets(sets, gini_of_rows) == pytest.approx(
        np.array([[1 / 4, 0], [1 / 2, 4 / 12]])
    )


def test_list_and_history_matrices_hold_the_items_of_each_query() -> None:
    evidence = make_popularity_evidence(
        [[0, 5], [3, 4]], queries=make_user_queries(2, users=[2, -1])
    )
    lists = build_list_matrix(evidence, None)
    assert lists.toarray().tolist() == [
        [1, 0, 0, 0, 0],
        [0, 0, 0, 1, 1],
    ]
    assert build_list_matrix(evidence, 1).toarray().tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    assert build_history_matrix(evidence).toarray().tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]


def test_popularity_is_counted_in_training_or_read_from_a_column() -> None:
    evidence = make_popularity_evidence([[0]], items=make_item_counts([9, None, -1, 0, 2]))
    assert read_popularity(evidence, None).tolist() == [4, 2, 1, 1, 0]
    assert read_popularity(evidence, "n_ratings") == pytest.approx(
        np.array([9, np.nan, np.nan, 0, 2]), nan_ok=True
    )
