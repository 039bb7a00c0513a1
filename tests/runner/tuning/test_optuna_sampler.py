from __future__ import annotations

import numpy as np
import pytest

from recbias.core.context import Pruned
from recbias.runner.tuning import MedianPruner, Trial, sample_settings
from support.models.searches import PLACE, make_directed_metric, make_search


def test_settings_are_sampled_from_the_space_by_seed() -> None:
    samples = [sample_settings(make_search(), (), seed) for seed in range(20)]
    assert samples == [sample_settings(make_search(), (), seed) for seed in range(20)]
    assert {type(settings["neighbors"]) for settings in samples} == {int}
    assert all(1 <= settings["neighbors"] <= 20 for settings in samples)
    assert all(0.1 <= settings["shrink"] <= 10 for settings in samples)
    assert {settings["similarity"] for settings in samples} == {"cosine", "dice"}
    # uniform on the log scale: about half of the samples are below 1, a tenth of the range
    assert 5 <= sum(settings["shrink"] < 1 for settings in samples) <= 15


@pytest.mark.parametrize("direction", ["higher", "lower", "zero"])
def test_later_samples_are_near_the_optimum(direction: str) -> None:
    """The optimum of ±(place - 0.3)² is 0.3; of random samples 1 in 10 is within 0.05."""
    search, trials = make_search(PLACE, make_directed_metric(direction)), list[Trial]()
    for number in range(1, 41):
        settings = sample_settings(search, trials, number)
        loss = (settings["place"] - 0.3) ** 2
        trials.append(Trial(number, settings, -loss if direction == "higher" else loss))
    late = [abs(trial.settings["place"] - 0.3) < 0.05 for trial in trials[20:]]
    assert np.mean(late) > 0.25


def test_pruned_trials_rank_below_complete_trials() -> None:
    """Places above 0.5 were pruned and those below complete: samples avoid pruned places."""
    rng = np.random.default_rng(5)
    trials = []
    for number in range(1, 41):
        score = float(rng.random())
        curve, pruned = (score,), score > 0.5
        trials.append(Trial(number, {"place": score}, score, curve=curve, pruned=pruned))
    places = [sample_settings(make_search(PLACE), trials, seed)["place"] for seed in range(20)]
    # by the values alone, places near 1 would be best
    assert np.mean([0.35 < place < 0.6 for place in places]) > 0.8


def make_flat_trial(number: int, score: float, *, pruned: bool = False, epochs: int = 13) -> Trial:
    """Return a trial with the same validation score after each epoch."""
    return Trial(number, {"place": 0.5}, score, curve=(score,) * epochs, pruned=pruned)


FIVE = [make_flat_trial(number, number / 10) for number in range(1, 6)]
"""The median of their scores is 0.3 at each epoch."""


def count_epochs(trials: list[Trial], scores: list[float]) -> int:
    """Return the number of epochs, negative if the training is pruned."""
    pruner = MedianPruner(make_search(PLACE), trials)
    try:
        for epoch, score in enumerate(scores, start=1):
            pruner(epoch, score)
    except Pruned:
        return -len(pruner.curve)
    return len(pruner.curve)


@pytest.mark.parametrize(
    ("trials", "scores", "n_epochs"),
    [
        (FIVE, [0.29] * 13, -10),  # below the median, but not pruned in the first nine epochs
        (FIVE, [0.30] * 13, 13),  # at the median
        (FIVE, [0.5] + [0.1] * 12, 13),  # the best score counts, not the last
        (FIVE, [0.0] * 10 + [0.9], -10),
        (FIVE, [0.0] * 9 + [0.3] * 4, 13),
        (FIVE[:4], [0.0] * 13, 13),  # four trials are too few
        (FIVE, [0.0] * 9, 9),
        ([*FIVE, *(make_flat_trial(n, 0.1) for n in (6, 7, 8))], [0.2] * 13, 13),  # median 0.15
        # pruned trials do not count: the median is still 0.3
        ([*FIVE, *(make_flat_trial(n, 0.1, pruned=True) for n in (6, 7, 8))], [0.2] * 13, -10),
        # no other trial has as many epochs
        ([make_flat_trial(n, 0.9, epochs=9) for n in range(1, 6)], [0.0] * 13, 13),
        # four that stopped early after 9 epochs count with 0.1: the median is 0.1
        ([*(make_flat_trial(n, 0.1, epochs=9) for n in range(1, 5)), FIVE[4]], [0.2] * 13, 13),
        ([*(make_flat_trial(n, 0.3, epochs=9) for n in range(1, 5)), FIVE[4]], [0.2] * 13, -10),
        ([], [0.0] * 13, 13),
    ],
)
def test_a_training_is_pruned_by_the_median_rule(
    trials: list[Trial], scores: list[float], n_epochs: int
) -> None:
    assert count_epochs(trials, scores) == n_epochs
