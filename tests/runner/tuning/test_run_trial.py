from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd
import pytest

from recbias.config.plugin_spec import Choice, Grouping, PluginSpec, Range
from recbias.core import stage_context as context_module
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import UserError
from recbias.core.stage_context import collect_warnings, stage_context
from recbias.metrics.accuracy.ranking import HitRate
from recbias.metrics.stereotype import HitBad
from recbias.models.factorization.funk_svd import MF
from recbias.models.neighbours.knn import ItemKNN
from recbias.runner.tuning.run_trial import RunTrial, prunes, with_settings
from recbias.runner.tuning.trial import Trial
from support.searches import (
    PLACE,
    SPACE,
    Stepwise,
    make_directed_metric,
    make_metric_spec,
    make_search,
    make_split,
)


def test_settings_are_put_in_the_model_as_its_types_are() -> None:
    space = (*SPACE[:1], Choice("similarity", ([1], "dice"), ((1,), "dice")))
    model = with_settings(ItemKNN(shrink=3.0), space, {"neighbors": 7, "similarity": "dice"})
    assert model == ItemKNN(neighbors=7, similarity="dice", shrink=3.0)
    built = with_settings(ItemKNN(), space, {"neighbors": 7, "similarity": [1]})
    assert built.similarity == (1,)


def test_the_test_part_changes_nothing() -> None:
    dataset, split = make_split()
    trial = RunTrial(ItemKNN(), "ItemKNN", make_search(), 4, 1, 1)
    first = trial(dataset, split)
    without = trial(replace(dataset, interactions=split.train), replace(split, test=None))
    assert (first.value, first.settings) == (without.value, without.settings)
    assert first.value > 0.3


def test_settings_that_were_tried_before_are_not_fitted_again() -> None:
    space = (Choice("similarity", ("cosine",), ("cosine",)),)
    earlier = Trial(1, {"similarity": "cosine"}, 0.123, 9.0)
    trial = RunTrial(ItemKNN(), "ItemKNN", make_search(space), 4, 1, 1, number=2)
    again = trial(*make_split(), earlier)
    assert again == Trial(2, {"similarity": "cosine"}, 0.123, 0.0)


def test_a_model_that_fails_is_a_trial_that_failed() -> None:
    space = (Range("place", 0.0, 0.05, log=False, integer=False),)
    with collect_warnings() as notes:
        found = RunTrial(Stepwise(), "Stepwise", make_search(space), 4, 1, 1)(*make_split())
    assert found.state == "failed"
    assert math.isnan(found.value)
    assert found.failure is not None
    assert "the loss is NaN" in found.failure.message
    assert "the loss is NaN" in notes[0]


def test_a_metric_that_cannot_be_measured_fails_the_search_before_anything_is_fitted() -> None:
    @dataclass(frozen=True)
    class Early:
        direction: ClassVar[str] = "higher"
        needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})

        def measure(self, evidence: Any) -> Any:
            raise NotImplementedError

        def check(self, evidence: Any) -> None:
            assert evidence.relevant is not None
            raise UserError("the items have no column 'race'")

    with pytest.raises(UserError, match="no column 'race'"):
        RunTrial(Stepwise(), "Stepwise", make_search(PLACE, Early()), 4, 1, 1)(*make_split())


def test_a_trial_depends_on_its_number_and_the_trials_that_it_is_told_of() -> None:
    first = RunTrial(ItemKNN(), "ItemKNN", make_search(), 4, 1, 1)
    drawn = [replace(first, number=number)(*make_split()).settings for number in (1, 2, 3)]
    assert len({str(each) for each in drawn}) == 3
    # of a batch of three each is drawn alike whether or not the others are done
    assert replace(first, number=3)(*make_split()).settings == drawn[2]


BEFORE = [Trial(n, {"place": n / 10}, n / 10, curve=(n / 10,) * 13) for n in range(1, 10)]
"""The median after each epoch is 0.5."""

LOW = (Range("place", 0.1, 0.4, log=False, integer=False),)


def test_a_training_that_is_behind_is_pruned() -> None:
    trial = RunTrial(Stepwise(), "Stepwise", make_search(LOW), 4, 1, 1, number=10)
    before = [replace(each, settings={"place": 0.1 + each.number / 30}) for each in BEFORE]
    found = trial(*make_split(), *before)
    # nine epochs are let be, and each says how good the drawn place is
    assert (found.number, found.state, found.failure) == (10, "pruned", None)
    assert found.curve == (found.settings["place"],) * 10
    assert found.value == found.settings["place"]
    assert replace(trial(*make_split(), *before), seconds=found.seconds) == found


def test_a_training_that_is_not_behind_has_its_curve_and_its_figure() -> None:
    found = RunTrial(Stepwise(), "Stepwise", make_search(PLACE), 4, 1, 1)(*make_split())
    assert (found.state, len(found.curve)) == ("done", 13)
    assert found.value != found.curve[-1]  # the metric is measured, not what the model says


def test_without_pruning_nobody_looks_at_the_epochs() -> None:
    searched = make_search(LOW, pruning="none")
    before = [replace(each, settings={"place": 0.1 + each.number / 30}) for each in BEFORE]
    found = RunTrial(Stepwise(), "Stepwise", searched, 4, 1, 1, number=10)(*make_split(), *before)
    assert (found.state, found.curve) == ("done", ())


def test_a_model_without_epochs_is_never_pruned() -> None:
    found = RunTrial(ItemKNN(), "ItemKNN", make_search(), 4, 1, 1)(*make_split())
    assert (found.state, found.curve) == ("done", ())


def test_a_pruned_setting_that_comes_up_again_is_pruned_at_once() -> None:
    space = (Choice("place", (0.2,), (0.2,)),)
    before = Trial(1, {"place": 0.2}, 0.2, 3.0, curve=(0.2,) * 5, pruned=True)
    found = RunTrial(Stepwise(), "Stepwise", make_search(space), 4, 1, 1, number=2)(
        *make_split(), before
    )
    assert found == replace(before, number=2, seconds=0.0)


def test_only_a_search_by_accuracy_is_pruned() -> None:
    assert prunes(make_search())
    assert prunes(make_search(plugin=HitRate(k=4)))
    assert not prunes(make_search(pruning="none"))
    assert not prunes(make_search(plugin=HitBad(label="x", k=4)))  # it reads the items too
    assert not prunes(make_search(plugin=with_needs("lower")))
    grouped = replace(make_metric_spec(), grouping=Grouping("gender", "ratio"))
    assert not prunes(replace(make_search(), metric=grouped))


def with_needs(direction: str) -> Any:
    plugin = make_directed_metric(direction)
    type(plugin).needs = frozenset({"lists", "test"})
    return plugin


def test_the_labels_of_the_items_stand_before_the_earlier_trials() -> None:
    dataset, split = make_split()
    n = len(dataset.item_ids)
    table = Attributes(dataset.item_ids, pd.DataFrame({"genre": ["x"] * n}))
    label = pd.DataFrame({"ngim.gender": [1.0] * n})
    chosen = PluginSpec("metrics", "HIT_BAD", "HIT_BAD", HitBad(label="ngim.gender", k=2), {}, ())
    searched = replace(make_search(), metric=chosen)
    trial = RunTrial(ItemKNN(), "ItemKNN", searched, 4, 1, 1, number=2, labels=1)
    earlier = Trial(1, {"neighbors": 1, "shrink": 1.0, "similarity": "dice"}, 0.1)
    found = trial(replace(dataset, items=table), split, label, earlier)
    # every item is labelled, so each list has one that is
    assert (found.state, found.value) == ("done", 1.0)


@dataclass
class Cut:
    """Keeps a checkpoint of every epoch, and cuts the training off at one of them."""

    at: int
    kept: Mapping[str, Any] | None = None
    saved: int = 0

    def load(self) -> Mapping[str, Any] | None:
        return self.kept

    def save(self, arrays: Mapping[str, Any]) -> None:
        self.kept, self.saved = arrays, self.saved + 1
        if self.saved == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("ahead", [0.0, 0.9], ids=["to its end", "pruned"])
@pytest.mark.parametrize("at", [4, 9])
def test_a_trial_that_is_cut_off_goes_on_and_comes_to_the_same(
    monkeypatch: pytest.MonkeyPatch, at: int, ahead: float
) -> None:
    monkeypatch.setattr(context_module, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context_module, "CHECKPOINT_TIME_SHARE", math.inf)
    space = (Range("learning_rate", 0.01, 0.02, log=False, integer=False),)
    before = [
        Trial(n, {"learning_rate": 0.01 + n / 1000}, ahead, curve=(ahead,) * 13)
        for n in range(1, 6)
    ]
    model = MF(embedding_size=2, epochs=13, patience=0, device="cpu")
    trial = RunTrial(model, "MF", make_search(space), 4, 1, 1, number=6)
    whole = trial(*make_split(), *before)
    assert (whole.state, len(whole.curve)) == (("pruned", 10) if ahead else ("done", 13))
    keeper = Cut(at)
    with stage_context(checkpoint_store=keeper):
        with pytest.raises(KeyboardInterrupt):
            trial(*make_split(), *before)
        resumed = trial(*make_split(), *before)
    assert replace(resumed, seconds=whole.seconds) == whole
    assert keeper.saved < at + len(whole.curve)  # it did not start anew
