from __future__ import annotations

from dataclasses import replace

import pytest

from recbias.config.specs import Choice, Range
from recbias.core.errors import BrokenContract
from recbias.runner.tuning import (
    find_choice,
    is_exhaustive,
    select_combination,
)
from support.models.searches import SPACE, make_search


def test_values_of_a_choice_are_found_by_value_and_type() -> None:
    choice = Choice("x", (1, True, 1.0, "1"), (1, True, 1.0, "1"))
    assert [find_choice(choice, value) for value in choice.values] == [0, 1, 2, 3]
    with pytest.raises(BrokenContract, match="2 is not among the values of x"):
        find_choice(choice, 2)


GRID = (
    Choice("dropout", (0.0, 0.2, 0.4, 0.6)),
    Choice("learning_rate", (9.0e-6, 1.0e-5, 3.0e-5, 5.0e-5, 7.0e-5, 9.0e-5, 1.0e-4)),
)
"""The search space of LMRec, Shen et al. 2022."""


@pytest.mark.parametrize("seed", [0, 42, 2**63])
def test_every_combination_is_selected_once(seed: int) -> None:
    settings = [select_combination(GRID, number, seed) for number in range(1, 29)]
    combinations = {(dropout, rate) for dropout in GRID[0].values for rate in GRID[1].values}
    assert {(row["dropout"], row["learning_rate"]) for row in settings} == combinations
    assert settings == [select_combination(GRID, number, seed) for number in range(1, 29)]
    assert settings == [select_combination(GRID[::-1], number, seed) for number in range(1, 29)]
    # the first ones come from all of the space
    assert len({row["dropout"] for row in settings[:10]}) > 2
    assert settings != [select_combination(GRID, number, seed + 1) for number in range(1, 29)]


@pytest.mark.parametrize(
    ("trials", "space", "exhaustive"),
    [
        (28, GRID, True),
        (29, GRID, True),
        (27, GRID, False),
        (10**9, SPACE, False),  # a range of real numbers has no finite number of values
        (20, SPACE[:1], True),
        (19, SPACE[:1], False),
        (30, (Range("wide", 0, 10**400, log=False, integer=True), *GRID), False),
        (30, (Range("wide", 0, 10**400, log=False, integer=True), *SPACE), False),
    ],
)
def test_a_search_is_exhaustive_if_it_has_a_trial_per_combination(
    trials: int, space: tuple[Choice | Range, ...], exhaustive: bool
) -> None:
    assert is_exhaustive(replace(make_search(space), trials=trials)) == exhaustive
