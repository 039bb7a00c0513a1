from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from recbias.config.specs import Choice, Range
from recbias.core import context as context_module
from recbias.core.context import Pruned, stage_context
from recbias.core.dataset import Dataset, Reviews, Split, TrainingData
from recbias.models.baselines import MostPop
from recbias.models.factorization import MF
from recbias.models.knn import ItemKNN
from recbias.runner.stages import AnswerQueries
from recbias.runner.tuning import (
    MedianPruner,
    RunTrial,
    Trial,
    ValidationScorer,
    estimate_importances,
    find_choice,
    is_exhaustive,
    sample_settings,
)
from support.models.searches import (
    SPACE,
    Stepwise,
    make_metric_spec,
    make_search,
    make_split,
)
from support.worlds.small_worlds import make_interactions


def test_a_trial_does_not_depend_on_the_test_set() -> None:
    dataset, split = make_split()
    trial = RunTrial(ItemKNN(), "ItemKNN", make_search(), 4, 1, 1)
    with_test = trial(dataset, split)
    without_test = trial(replace(dataset, interactions=split.train), replace(split, test=None))
    assert (with_test.value, with_test.settings) == (without_test.value, without_test.settings)
    assert with_test.value > 0.3


def test_a_trial_depends_on_its_number_and_its_earlier_trials_only() -> None:
    trial = RunTrial(ItemKNN(), "ItemKNN", make_search(), 4, 1, 1)
    settings = [replace(trial, number=number)(*make_split()).settings for number in (1, 2, 3)]
    assert len({str(sample) for sample in settings}) == 3
    # in a batch of three, a sample does not depend on whether the others are done
    assert replace(trial, number=3)(*make_split()).settings == settings[2]


BEFORE = [Trial(n, {"place": n / 10}, n / 10, curve=(n / 10,) * 13) for n in range(1, 10)]
"""Their median at each epoch is 0.5."""

LOW = (Range("place", 0.1, 0.4, log=False, integer=False),)


def test_a_training_below_the_median_is_pruned() -> None:
    trial = RunTrial(Stepwise(), "Stepwise", make_search(LOW), 4, 1, 1, number=10)
    before = [replace(row, settings={"place": 0.1 + row.number / 30}) for row in BEFORE]
    result = trial(*make_split(), *before)
    # pruned after the tenth epoch; the score of each epoch is the sampled place
    assert (result.number, result.state, result.failure) == (10, "pruned", None)
    assert result.curve == (result.settings["place"],) * 10
    assert result.value == result.settings["place"]
    assert replace(trial(*make_split(), *before), seconds=result.seconds) == result


@dataclass
class InterruptingStore:
    """Stores a checkpoint of every epoch, and interrupts the training at one of them."""

    at: int
    arrays: Mapping[str, Any] | None = None
    saved: int = 0

    def load(self) -> Mapping[str, Any] | None:
        return self.arrays

    def save(self, arrays: Mapping[str, Any]) -> None:
        self.arrays, self.saved = arrays, self.saved + 1
        if self.saved == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("score", [0.0, 0.9], ids=["complete", "pruned"])
@pytest.mark.parametrize("at", [4, 9])
def test_an_interrupted_trial_resumes_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch, at: int, score: float
) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", math.inf)
    space = (Range("learning_rate", 0.01, 0.02, log=False, integer=False),)
    before = [
        Trial(n, {"learning_rate": 0.01 + n / 1000}, score, curve=(score,) * 13)
        for n in range(1, 6)
    ]
    model = MF(embedding_size=2, epochs=13, patience=0, device="cpu")
    trial = RunTrial(model, "MF", make_search(space), 4, 1, 1, number=6)
    complete = trial(*make_split(), *before)
    assert (complete.state, len(complete.curve)) == (("pruned", 10) if score else ("done", 13))
    store = InterruptingStore(at)
    with stage_context(checkpoint_store=store):
        with pytest.raises(KeyboardInterrupt):
            trial(*make_split(), *before)
        resumed = trial(*make_split(), *before)
    assert replace(resumed, seconds=complete.seconds) == complete
    assert store.saved < at + len(complete.curve)  # it did not start again


def test_values_of_a_choice_are_found_by_value_and_type() -> None:
    choice = Choice("x", (1, True, 1.0, "1"), (1, True, 1.0, "1"))
    assert [find_choice(choice, value) for value in choice.values] == [0, 1, 2, 3]


GRID = (
    Choice("dropout", (0.0, 0.2, 0.4, 0.6)),
    Choice("learning_rate", (9.0e-6, 1.0e-5, 3.0e-5, 5.0e-5, 7.0e-5, 9.0e-5, 1.0e-4)),
)
"""The search space of LMRec, Shen et al. 2022."""


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


def make_trials(values: list[float], samples: list[dict[str, float | str | int]]) -> list[Trial]:
    pairs = zip(samples, values, strict=True)
    return [Trial(n, settings, value) for n, (settings, value) in enumerate(pairs, 1)]


def test_the_only_setting_with_an_effect_has_nearly_all_importance() -> None:
    samples = [sample_settings(make_search(), (), seed) for seed in range(30)]
    trials = make_trials([settings["neighbors"] / 20 for settings in samples], samples)
    importances = estimate_importances(SPACE, trials, "higher", 1)
    assert list(importances) == ["neighbors", "shrink", "similarity"]
    assert sum(importances.values()) == pytest.approx(1.0)
    assert importances["neighbors"] > 0.9
    assert estimate_importances(SPACE, trials, "higher", 1) == importances
    assert estimate_importances(SPACE, trials, "lower", 1)["neighbors"] > 0.9


def make_flat_trial(number: int, score: float, *, pruned: bool = False, epochs: int = 13) -> Trial:
    """Return a trial with the same validation score after each epoch."""
    return Trial(number, {"place": 0.5}, score, curve=(score,) * epochs, pruned=pruned)


FIVE = [make_flat_trial(number, number / 10) for number in range(1, 6)]
"""The median of their scores is 0.3 at each epoch."""


def count_epochs(trials: list[Trial], scores: list[float]) -> int:
    """Return the number of epochs, negative if the training is pruned."""
    pruner = MedianPruner(trials)
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
        (FIVE, [0.0] * 10 + [0.9], -10),
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
    ],
)
def test_a_training_is_pruned_by_the_median_rule(
    trials: list[Trial], scores: list[float], n_epochs: int
) -> None:
    assert count_epochs(trials, scores) == n_epochs


def test_a_model_receives_training_and_validation_reviews() -> None:
    train, validation = (
        make_interactions([(0, 0), (1, 1)], n_items=3),
        make_interactions([(0, 2)], n_users=2),
    )
    dataset = Dataset(
        train,
        reviews=Reviews(
            np.array([0, 0, 1], dtype=np.int32),
            np.array([2, 0, 1], dtype=np.int32),
            np.array(["held out", "good", "bad"], dtype=object),
        ),
    )

    @dataclass(frozen=True)
    class Reader(MostPop):
        def fit(self, data: TrainingData, rng: np.random.Generator) -> Any:
            assert data.reviews is not None
            assert data.validation_reviews is not None
            assert data.reviews.texts.tolist() == ["good", "bad"]
            assert data.validation_reviews.texts.tolist() == ["held out"]
            return super().fit(data, rng)

    split = Split(train, None, validation)
    scorer = ValidationScorer(split.training_data(reviews=dataset.reviews), make_metric_spec())
    # i2 has no training row, so it is no candidate
    answer = AnswerQueries(Reader(), "Reader", 2, 1, 1)
    assert scorer.measure(answer(*scorer.inputs)) == 0.0
