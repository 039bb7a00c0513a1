from __future__ import annotations

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.models.factorization import MF
from recbias.models.sgd import (
    compute_mean_target,
    create_coin_sampler,
    create_rating_sampler,
    is_implicit,
)
from support.worlds.small_worlds import make_interactions

PAIRS = [(0, 0), (0, 1), (1, 1), (2, 3)]
IMPLICIT = make_interactions(PAIRS, values=[4.0] * 4)
RATINGS = make_interactions(PAIRS, values=[1.0, 5.0, 4.0, 2.0])
NOTHING = make_interactions([], n_users=1, n_items=1)


def test_equal_values_are_implicit_feedback() -> None:
    assert [is_implicit(train) for train in (IMPLICIT, RATINGS, NOTHING)] == [True, False, True]


def test_implicit_feedback_is_sampled_with_negatives(rng: np.random.Generator) -> None:
    users, items, values = create_rating_sampler(IMPLICIT, MF(negatives=2))(rng)
    assert users.size == 12
    is_seen = IMPLICIT.binary.toarray()[users, items]
    np.testing.assert_array_equal(values, is_seen)
    assert compute_mean_target(IMPLICIT, 2) == pytest.approx(values.mean())


@pytest.mark.parametrize(("unit", "expected"), [(False, [1, 5, 4, 2]), (True, [0, 1, 0.75, 0.25])])
def test_each_rating_is_sampled_once(
    unit: bool, expected: list[float], rng: np.random.Generator
) -> None:
    # from 1 to 5: (r - 1) / 4
    users, items, values = create_rating_sampler(RATINGS, MF(), unit=unit)(rng)
    targets = dict(zip(zip(users, items, strict=True), values, strict=True))
    assert targets == dict(zip(PAIRS, expected, strict=True))
    assert values.dtype == np.float32
    assert compute_mean_target(RATINGS, 2) == pytest.approx(3)


def test_a_number_of_negatives_without_effect_on_ratings_has_a_warning() -> None:
    with collect_warnings() as warnings:
        create_rating_sampler(RATINGS, MF(negatives=2))
        create_rating_sampler(IMPLICIT, MF(negatives=2))
    assert [message.partition(":")[0][:33] for message in warnings] == [
        "negatives has no effect on rating"
    ]


def test_coin_sampler_ignores_ratings(rng: np.random.Generator) -> None:
    users, items, values = create_coin_sampler(RATINGS)(rng)
    assert users.size == 4
    np.testing.assert_array_equal(values, RATINGS.binary.toarray()[users, items])


def test_no_rows_give_no_samples(rng: np.random.Generator) -> None:
    assert all(array.size == 0 for array in create_rating_sampler(NOTHING, MF())(rng))
