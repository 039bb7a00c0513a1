from __future__ import annotations

import math

import numpy as np

from recbias.core.evidence import normalize_gain, rank_discounts


def test_discounts_are_one_over_the_logarithm_of_rank_plus_one() -> None:
    # ranks 1, 2, 3: 1 / log2(2), 1 / log2(3), 1 / log2(4)
    np.testing.assert_allclose(rank_discounts(3), [1, 1 / math.log2(3), 1 / 2], rtol=1e-15)
    assert rank_discounts(0).size == 0


def test_ideal_list_has_gain_one_for_any_number_of_relevant_items() -> None:
    discounts = rank_discounts(3)
    gains = np.array([discounts[0], discounts[:2].sum(), discounts.sum(), discounts.sum()])
    # with 7 relevant items the ideal list of length 3 still has 3 hits
    np.testing.assert_allclose(normalize_gain(gains, np.array([1, 2, 3, 7]), 3), 1, rtol=1e-15)


def test_gain_is_undefined_without_relevant_items() -> None:
    assert np.isnan(normalize_gain(np.zeros(1), np.zeros(1, dtype=np.int64), 3)).all()
