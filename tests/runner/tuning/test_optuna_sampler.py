from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from recbias.config.plugin_spec import Choice, Range
from recbias.core.errors import BrokenContract
from recbias.core.records import Failure
from recbias.core.stage_context import Pruned
from recbias.runner.tuning.optuna_sampler import (
    Watch,
    combination,
    combinations,
    covers,
    draw,
    importances,
    place_of,
)
from recbias.runner.tuning.trial import Trial
from support.searches import PLACE, SPACE, make_directed_metric, make_search


def test_what_is_drawn_is_in_the_space_and_follows_from_the_seed() -> None:
    drawn = [draw(make_search(), (), seed) for seed in range(20)]
    assert drawn == [draw(make_search(), (), seed) for seed in range(20)]
    assert {type(each["neighbors"]) for each in drawn} == {int}
    assert all(1 <= each["neighbors"] <= 20 for each in drawn)
    assert all(0.1 <= each["shrink"] <= 10 for each in drawn)
    assert {each["similarity"] for each in drawn} == {"cosine", "dice"}
    # the logarithm is drawn evenly: about half of the draws are below 1, a tenth of the range
    assert 5 <= sum(each["shrink"] < 1 for each in drawn) <= 15


def test_the_order_of_the_settings_in_the_spec_changes_nothing() -> None:
    assert draw(make_search(SPACE[::-1]), (), 7) == draw(make_search(), (), 7)


@pytest.mark.parametrize("direction", ["higher", "lower", "zero"])
def test_later_draws_come_near_the_best(direction: str) -> None:
    """With value = ±(place - 0.3)² the best place is 0.3; at random 1 of 10 is within 0.05."""
    searched, trials = make_search(PLACE, make_directed_metric(direction)), list[Trial]()
    for number in range(1, 41):
        drawn = draw(searched, trials, number)
        away = (drawn["place"] - 0.3) ** 2
        trials.append(Trial(number, drawn, -away if direction == "higher" else away))
    late = [abs(each.settings["place"] - 0.3) < 0.05 for each in trials[20:]]
    assert np.mean(late) > 0.25


def test_of_a_trial_that_failed_nothing_is_learned() -> None:
    done = [Trial(n, draw(make_search(), (), n), float(n)) for n in range(1, 15)]
    failed = Trial(15, draw(make_search(), (), 15), math.nan, failure=Failure("no"))
    assert draw(make_search(), [*done, failed], 99) == draw(make_search(), done, 99)


def test_a_pruned_trial_is_told_from_one_that_was_done() -> None:
    """Places above 0.5 were pruned and those below were done: no draw goes where it was pruned."""
    rng = np.random.default_rng(5)
    trials = []
    for number in range(1, 41):
        place = float(rng.random())
        curve, pruned = (place,), place > 0.5
        trials.append(Trial(number, {"place": place}, place, curve=curve, pruned=pruned))
    drawn = [draw(make_search(PLACE), trials, seed)["place"] for seed in range(20)]
    # by the value alone places near 1 would be the best of all
    assert np.mean([0.35 < each < 0.6 for each in drawn]) > 0.8


def flat(number: int, figure: float, *, pruned: bool = False, epochs: int = 13) -> Trial:
    """A trial of the place 0.5 that was as good after each of its epochs."""
    return Trial(number, {"place": 0.5}, figure, curve=(figure,) * epochs, pruned=pruned)


FIVE = [flat(number, number / 10) for number in range(1, 6)]
"""Their median is 0.3 after each epoch."""


def watched(earlier: list[Trial], figures: list[float]) -> int:
    """Return after how many epochs the training is ended, or all of them."""
    watch = Watch(make_search(PLACE), earlier)
    try:
        for epoch, figure in enumerate(figures, start=1):
            watch(epoch, figure)
    except Pruned:
        return -len(watch.curve)
    return len(watch.curve)


@pytest.mark.parametrize(
    ("earlier", "figures", "ended"),
    [
        (FIVE, [0.29] * 13, -10),  # below the median, and nine epochs are let be
        (FIVE, [0.30] * 13, 13),  # at the median
        (FIVE, [0.5] + [0.1] * 12, 13),  # its best counts, not its last
        (FIVE, [0.0] * 10 + [0.9], -10),
        (FIVE, [0.0] * 9 + [0.3] * 4, 13),
        (FIVE[:4], [0.0] * 13, 13),  # four trials are too few to judge by
        (FIVE, [0.0] * 9, 9),
        ([*FIVE, *(flat(n, 0.1) for n in (6, 7, 8))], [0.2] * 13, 13),  # median 0.15
        # pruned ones are not asked: without them the median is still 0.3
        ([*FIVE, *(flat(n, 0.1, pruned=True) for n in (6, 7, 8))], [0.2] * 13, -10),
        # behind the last epoch of the others there is nobody to be compared with
        ([flat(n, 0.9, epochs=9) for n in range(1, 6)], [0.0] * 13, 13),
        # four that stopped by themselves after 9 epochs are still at 0.1: the median is 0.1
        ([*(flat(n, 0.1, epochs=9) for n in range(1, 5)), FIVE[4]], [0.2] * 13, 13),
        ([*(flat(n, 0.3, epochs=9) for n in range(1, 5)), FIVE[4]], [0.2] * 13, -10),
        ([], [0.0] * 13, 13),
    ],
)
def test_a_training_is_ended_by_the_median_rule(
    earlier: list[Trial], figures: list[float], ended: int
) -> None:
    assert watched(earlier, figures) == ended


def test_a_training_in_rounds_goes_on_counting() -> None:
    watch = Watch(make_search(PLACE), FIVE)
    for epoch in (1, 2, 3, 4, 5, 1, 2, 3, 4):
        watch(epoch, 0.1)
    with pytest.raises(Pruned):
        watch(5, 0.1)
    assert watch.curve == [0.1] * 10


def tried(figures: list[float], drawn: list[dict[str, float | str | int]]) -> list[Trial]:
    pairs = zip(drawn, figures, strict=True)
    return [Trial(n, settings, figure) for n, (settings, figure) in enumerate(pairs, 1)]


def test_the_setting_that_decides_has_nearly_all_of_the_importance() -> None:
    drawn = [draw(make_search(), (), seed) for seed in range(30)]
    trials = tried([each["neighbors"] / 20 for each in drawn], drawn)
    found = importances(SPACE, trials, "higher", 1)
    assert list(found) == ["neighbors", "shrink", "similarity"]
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["neighbors"] > 0.9
    assert importances(SPACE, trials, "higher", 1) == found
    assert importances(SPACE, trials, "lower", 1)["neighbors"] > 0.9


def test_a_setting_on_a_log_scale_is_weighed_on_that_scale() -> None:
    """A step at 0.01, the middle of 0.0001 to 1 by logarithm, is 1 % of the way by value."""
    space = (
        Range("rate", 1e-4, 1.0, log=True, integer=False),
        Range("other", 0.0, 1.0, log=False, integer=False),
    )
    drawn = [draw(make_search(space), (), seed) for seed in range(40)]
    # the step is 1, the slope of the other at most 0.2: variances 1/4 and 0.04 / 12 = 0.0033
    trials = tried([(each["rate"] > 0.01) + 0.2 * each["other"] for each in drawn], drawn)
    assert importances(space, trials, "higher", 1)["rate"] > 0.9


def test_of_a_metric_that_is_best_at_zero_the_distance_counts() -> None:
    drawn = [draw(make_search(PLACE), (), seed) for seed in range(10)]
    trials = tried([0.5 if n % 2 else -0.5 for n in range(10)], drawn)
    assert math.isnan(importances(PLACE, trials, "zero", 1)["place"])
    assert importances(PLACE, trials, "higher", 1) == {"place": 1.0}


@pytest.mark.parametrize(
    "figures", [[0.1 * n for n in range(7)], [0.25] * 20], ids=["too few", "all alike"]
)
def test_importances_are_undefined_where_they_cannot_be_told(figures: list[float]) -> None:
    drawn = [draw(make_search(), (), seed) for seed in range(len(figures))]
    found = importances(SPACE, tried(figures, drawn), "higher", 1)
    assert list(found) == ["neighbors", "shrink", "similarity"]
    assert all(math.isnan(each) for each in found.values())


def test_failed_trials_have_no_part_in_the_importances() -> None:
    drawn = [draw(make_search(), (), seed) for seed in range(20)]
    done = tried([each["neighbors"] / 20 for each in drawn], drawn)
    failed = Trial(21, drawn[0], math.nan, failure=Failure("no"))
    assert importances(SPACE, [*done, failed], "higher", 1) == importances(
        SPACE, done, "higher", 1
    )


def test_what_trials_were_pruned_for_matters() -> None:
    """Below 0.5 a trial is pruned; of those that were done ``place`` explains nothing."""
    space = (*PLACE, Range("other", 0.0, 1.0, log=False, integer=False))
    drawn = [draw(make_search(space), (), seed) for seed in range(40)]
    trials = [
        Trial(n, each, 0.8 + 0.05 * each["other"], curve=(0.8 + 0.05 * each["other"],))
        if each["place"] > 0.5
        else Trial(n, each, 0.1, curve=(0.2, 0.1), pruned=True)
        for n, each in enumerate(drawn, 1)
    ]
    # the step is 0.6 high, the slope 0.05: variances 0.09 and at most 0.0002
    assert importances(space, trials, "higher", 1)["place"] > 0.9


def test_a_choice_is_found_by_its_type_too() -> None:
    choice = Choice("x", (1, True, 1.0, "1"), (1, True, 1.0, "1"))
    assert [place_of(choice, each) for each in choice.values] == [0, 1, 2, 3]
    with pytest.raises(BrokenContract, match="2 is not among the values of x"):
        place_of(choice, 2)


GRID = (
    Choice("dropout", (0.0, 0.2, 0.4, 0.6)),
    Choice("learning_rate", (9.0e-6, 1.0e-5, 3.0e-5, 5.0e-5, 7.0e-5, 9.0e-5, 1.0e-4)),
)
"""What LMRec of Shen et al. 2022 is searched over."""


@pytest.mark.parametrize("seed", [0, 42, 2**63])
def test_every_combination_comes_up_once(seed: int) -> None:
    drawn = [combination(GRID, number, seed) for number in range(1, 29)]
    every = {(one, other) for one in GRID[0].values for other in GRID[1].values}
    assert {(each["dropout"], each["learning_rate"]) for each in drawn} == every
    assert drawn == [combination(GRID, number, seed) for number in range(1, 29)]
    assert drawn == [combination(GRID[::-1], number, seed) for number in range(1, 29)]
    # the first few are not all of one corner
    assert len({each["dropout"] for each in drawn[:10]}) > 2
    assert drawn != [combination(GRID, number, seed + 1) for number in range(1, 29)]


def test_values_that_are_named_twice_count_once_and_keep_their_types() -> None:
    space = (Choice("x", (1, True, 1, 1.0, "1")), Range("y", 3, 5, log=True, integer=True))
    assert combinations(space) == 12
    drawn = [combination(space, number, 5) for number in range(1, 13)]
    assert len({repr(each) for each in drawn}) == 12
    assert {type(each["x"]) for each in drawn} == {int, bool, float, str}
    assert {each["y"] for each in drawn} == {3, 4, 5}
    assert {type(each["y"]) for each in drawn} == {int}


def test_lists_and_nothing_may_be_chosen_too() -> None:
    space = (Choice("x", ([1, 2], None, {"a": 1}, [1, 2])),)
    drawn = [combination(space, number, 5)["x"] for number in (1, 2, 3)]
    assert sorted(map(repr, drawn)) == ["None", "[1, 2]", "{'a': 1}"]


@pytest.mark.parametrize(
    ("trials", "space", "covered"),
    [
        (28, GRID, True),
        (29, GRID, True),
        (27, GRID, False),
        (10**9, SPACE, False),  # of a range of numbers there is no end
        (20, SPACE[:1], True),
        (19, SPACE[:1], False),
        (30, (Range("wide", 0, 10**400, log=False, integer=True), *GRID), False),
        (30, (Range("wide", 0, 10**400, log=False, integer=True), *SPACE), False),
    ],
)
def test_a_search_with_room_for_every_combination_covers_them(
    trials: int, space: tuple[Choice | Range, ...], covered: bool
) -> None:
    assert covers(replace(make_search(space), trials=trials)) == covered
