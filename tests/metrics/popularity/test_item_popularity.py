from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.metrics.popularity import item_popularity as popularity_values
from recbias.metrics.popularity.item_popularity import (
    gini,
    herfindahl,
    histories_of,
    in_histories,
    in_lists,
    list_rows,
    means,
    of_sets,
    popularity_of,
    sums,
)
from recbias.numerics.inequality import gini as gini_of_counts
from support.evidence_worlds import make_csr, make_user_queries
from support.popularity_worlds import make_item_counts, make_popularity_evidence

ROWS = make_csr([[0, 1, 2], [3], [], [1, 4]], 5)
WORTH = np.array([4.0, 2.0, 0.0, 0.0, np.nan])


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        # the rows are 4 2 0 | 0 | nothing | 2, as the worth of item 4 is unknown
        (means, [2, 0, np.nan, 2]),
        (sums, [6, 0, np.nan, 2]),
        # (4/6)² + (2/6)² = 20/36
        (herfindahl, [20 / 36, np.nan, np.nan, 1]),
        # ascending 0 2 4: (-2 x 0 + 0 x 2 + 2 x 4) / (3 x 6)
        (gini, [8 / 18, np.nan, np.nan, 0]),
    ],
)
def test_levels_by_hand(level: popularity_values.Level, expected: list[float]) -> None:
    assert level(ROWS, WORTH) == pytest.approx(np.array(expected), nan_ok=True)


@given(seed=st.integers(0, 2**32 - 1))
def test_gini_is_that_of_each_row_whatever_the_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    worth = rng.integers(1, 9, 20).astype(np.float64)
    held = [rng.permutation(20)[: rng.integers(1, 20)].tolist() for _ in range(7)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(popularity_values, "BLOCK_PAIRS", int(rng.integers(1, 40)))
        found = gini(make_csr(held, 20), worth)
    assert found == pytest.approx(np.array([float(gini_of_counts(worth[each])) for each in held]))


def test_no_rows_have_no_level() -> None:
    assert gini(make_csr([], 5), WORTH).tolist() == []


def test_sets_have_the_level_of_rows() -> None:
    sets = np.array([[[1.0, 3.0], [2.0, 2.0]], [[0.0, 4.0], [5.0, 1.0]]])
    assert of_sets(sets, means).tolist() == [[2, 2], [2, 3]]
    # of two values a ≤ b Gini is (b - a) / (2 (a + b))
    assert of_sets(sets, gini) == pytest.approx(np.array([[1 / 4, 0], [1 / 2, 4 / 12]]))


def test_what_is_held_and_by_whom() -> None:
    of = make_popularity_evidence([[0, 5], [3, 4]], queries=make_user_queries(2, users=[2, -1]))
    assert list_rows(of, None).toarray().tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 1, 1]]
    assert list_rows(of, 1).toarray().tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 1, 0]]
    assert histories_of(of).toarray().tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert in_lists(of, None).tolist() == [True, False, False, True, True]
    assert in_histories(of).tolist() == [True, False, False, False, False]


def test_popularity_is_counted_or_read() -> None:
    of = make_popularity_evidence([[0]], items=make_item_counts([9, None, -1, 0, 2]))
    assert popularity_of(of, None).tolist() == [4, 2, 1, 1, 0]
    assert popularity_of(of, "n_ratings") == pytest.approx(
        np.array([9, np.nan, np.nan, 0, 2]), nan_ok=True
    )
