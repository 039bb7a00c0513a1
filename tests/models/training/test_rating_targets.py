from __future__ import annotations

import numpy as np
import pytest

from recbias.models.training.rating_targets import (
    are_choices,
    drawn_coins,
    drawn_pairs,
    mean_value,
    n_samples,
)
from support.worlds import rows

PAIRS = [(0, 0), (0, 1), (1, 1), (2, 3)]
CHOICES = rows(PAIRS, values=[4.0] * 4)
RATINGS = rows(PAIRS, values=[1.0, 5.0, 4.0, 2.0])
NOTHING = rows([], n_users=1, n_items=1)


def test_equal_values_are_choices() -> None:
    assert [are_choices(each) for each in (CHOICES, RATINGS, NOTHING)] == [True, False, True]


def test_choices_stand_beside_drawn_pairs(rng: np.random.Generator) -> None:
    users, items, values = drawn_pairs(CHOICES, 2)(rng)
    assert users.size == n_samples(CHOICES, 2) == 12
    owned = CHOICES.binary.toarray()[users, items]
    np.testing.assert_array_equal(values, owned)
    assert mean_value(CHOICES, 2) == pytest.approx(values.mean())


@pytest.mark.parametrize(("unit", "expected"), [(False, [1, 5, 4, 2]), (True, [0, 1, 0.75, 0.25])])
def test_ratings_are_drawn_once_each(
    unit: bool, expected: list[float], rng: np.random.Generator
) -> None:
    # from 1 to 5: (r - 1) / 4
    users, items, values = drawn_pairs(RATINGS, 2, unit=unit)(rng)
    found = dict(zip(zip(users, items, strict=True), values, strict=True))
    assert found == dict(zip(PAIRS, expected, strict=True))
    assert values.dtype == np.float32
    assert n_samples(RATINGS, 2) == 4
    assert mean_value(RATINGS, 2) == pytest.approx(3)


def test_coins_never_look_at_ratings(rng: np.random.Generator) -> None:
    users, items, values = drawn_coins(RATINGS)(rng)
    assert users.size == 4
    np.testing.assert_array_equal(values, RATINGS.binary.toarray()[users, items])


def test_no_rows_draw_nothing(rng: np.random.Generator) -> None:
    assert all(each.size == 0 for each in drawn_pairs(NOTHING, 2)(rng))
    assert n_samples(NOTHING, 2) == 1
