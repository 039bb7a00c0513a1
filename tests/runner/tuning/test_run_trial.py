from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from recbias.config.specs import Choice, Grouping, Range
from recbias.core import context as context_module
from recbias.core.context import collect_warnings, stage_context
from recbias.metrics.accuracy import HitRate
from recbias.metrics.labels import HitBad
from recbias.models.factorization import MF
from recbias.models.knn import ItemKNN
from recbias.runner.tuning import RunTrial, Trial, can_prune
from support.models.searches import (
    Stepwise,
    make_directed_metric,
    make_metric_spec,
    make_search,
    make_split,
)


def test_a_trial_does_not_depend_on_the_test_set() -> None:
    dataset, split = make_split()
    trial = RunTrial(ItemKNN(), "ItemKNN", make_search(), 4, 1, 1)
    with_test = trial(dataset, split)
    without_test = trial(replace(dataset, interactions=split.train), replace(split, test=None))
    assert (with_test.value, with_test.settings) == (without_test.value, without_test.settings)
    assert with_test.value > 0.3


def test_settings_of_an_earlier_trial_are_not_fitted_again() -> None:
    space = (Choice("similarity", ("cosine",), ("cosine",)),)
    earlier = Trial(1, {"similarity": "cosine"}, 0.123, 9.0)
    trial = RunTrial(ItemKNN(), "ItemKNN", make_search(space), 4, 1, 1, number=2)
    repeated = trial(*make_split(), earlier)
    assert repeated == Trial(2, {"similarity": "cosine"}, 0.123, 0.0)


def test_a_failing_model_is_a_failed_trial() -> None:
    space = (Range("place", 0.0, 0.05, log=False, integer=False),)
    with collect_warnings() as warnings:
        result = RunTrial(Stepwise(), "Stepwise", make_search(space), 4, 1, 1)(*make_split())
    assert result.state == "failed"
    assert math.isnan(result.value)
    assert result.failure is not None
    assert "the loss is NaN" in result.failure.message
    assert "the loss is NaN" in warnings[0]


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


def test_only_searches_by_accuracy_are_pruned() -> None:
    assert can_prune(make_search())
    assert can_prune(make_search(plugin=HitRate(k=4)))
    assert not can_prune(make_search(pruning="none"))
    assert not can_prune(make_search(plugin=HitBad(label="x", k=4)))  # it also needs the items
    assert not can_prune(make_search(plugin=make_accuracy_metric("lower")))
    grouped = replace(make_metric_spec(), grouping=Grouping("gender", "ratio"))
    assert not can_prune(replace(make_search(), metric=grouped))


def make_accuracy_metric(direction: str) -> Any:
    plugin = make_directed_metric(direction)
    type(plugin).needs = frozenset({"lists", "test"})
    return plugin


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
