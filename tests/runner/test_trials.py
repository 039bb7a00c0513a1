from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from recbias.config.chosen import Choice, Chosen, Range, Tune
from recbias.core.dataset import Dataset
from recbias.core.errors import MissingEvidence, UserError
from recbias.core.notes import noting
from recbias.core.records import Failure
from recbias.core.split import Split, TrainingData
from recbias.metrics.accuracy import NDCG
from recbias.models.neighbours import ItemKNN
from recbias.runner.trials import Judge, RunTrial, Trial, draw, score, with_settings
from recbias.runner.work import AnswerQueries
from recbias.testing.small_world import checkerboard
from worlds import rows

SPACE = (
    Range("neighbors", 1, 20, log=False, whole=True),
    Range("shrink", 0.1, 10, log=True, whole=False),
    Choice("similarity", ("cosine", "dice"), ("cosine", "dice")),
)


def metric(plugin: Any = None) -> Chosen:
    return Chosen("metrics", "nDCG", "nDCG", plugin or NDCG(k=4), {"k": 4}, ())


def tune(space: tuple[Any, ...] = SPACE, plugin: Any = None) -> Tune:
    return Tune(metric(plugin), 30, space, {})


def a_world() -> tuple[Dataset, Split]:
    """The checkerboard; two of each user's eight rows are validation, one is test."""
    train = checkerboard().train
    place = np.arange(len(train)) % 8
    parts = [train.take(np.flatnonzero(which)) for which in (place < 5, place == 5, place > 5)]
    return Dataset(train), Split(parts[0], parts[1], parts[2])


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A model that is the better the nearer ``place`` is to 0.3; below 0.1 it fails."""

    version: ClassVar[int] = 1
    provides: ClassVar[frozenset[str]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ()
    place: float = 0.5

    def fit(self, data: TrainingData, rng: np.random.Generator) -> Any:
        if self.place < 0.1:
            raise FloatingPointError("the loss is NaN")
        return self


@dataclass(frozen=True)
class Distance:
    """A metric that reads the place of the model: best at zero."""

    direction: ClassVar[str] = "zero"


def test_a_score_is_better_the_higher_it_is() -> None:
    assert score(2.0, "higher") > score(1.0, "higher")
    assert score(1.0, "lower") > score(2.0, "lower")
    assert score(-0.1, "zero") > score(0.2, "zero") > score(-0.3, "zero")


def test_what_is_drawn_is_in_the_space_and_follows_from_the_seed() -> None:
    drawn = [draw(tune(), (), seed) for seed in range(20)]
    assert drawn == [draw(tune(), (), seed) for seed in range(20)]
    assert {type(each["neighbors"]) for each in drawn} == {int}
    assert all(1 <= each["neighbors"] <= 20 for each in drawn)
    assert all(0.1 <= each["shrink"] <= 10 for each in drawn)
    assert {each["similarity"] for each in drawn} == {"cosine", "dice"}
    # the logarithm is drawn evenly: about half of the draws are below 1, a tenth of the range
    assert 5 <= sum(each["shrink"] < 1 for each in drawn) <= 15


def test_the_order_of_the_settings_in_the_spec_changes_nothing() -> None:
    assert draw(tune(SPACE[::-1]), (), 7) == draw(tune(), (), 7)


@pytest.mark.parametrize("direction", ["higher", "lower", "zero"])
def test_later_draws_come_near_the_best(direction: str) -> None:
    """With value = ±(place - 0.3)² the best place is 0.3; at random 1 of 10 is within 0.05."""

    @dataclass(frozen=True)
    class Figure:
        direction: ClassVar[str] = ""

    plugin = type("Figure", (Figure,), {"direction": direction})()
    space = (Range("place", 0.0, 1.0, log=False, whole=False),)
    searched, trials = tune(space, plugin), list[Trial]()
    for number in range(1, 41):
        drawn = draw(searched, trials, number)
        away = (drawn["place"] - 0.3) ** 2
        trials.append(Trial(number, drawn, -away if direction == "higher" else away))
    late = [abs(each.settings["place"] - 0.3) < 0.05 for each in trials[20:]]
    assert np.mean(late) > 0.25


def test_of_a_trial_that_failed_nothing_is_learned() -> None:
    done = [Trial(n, draw(tune(), (), n), float(n)) for n in range(1, 15)]
    failed = Trial(15, draw(tune(), (), 15), math.nan, failure=Failure("no"))
    assert draw(tune(), [*done, failed], 99) == draw(tune(), done, 99)


def test_settings_are_put_in_the_model_as_its_types_are() -> None:
    space = (*SPACE[:1], Choice("similarity", ([1], "dice"), ((1,), "dice")))
    model = with_settings(ItemKNN(shrink=3.0), space, {"neighbors": 7, "similarity": "dice"})
    assert model == ItemKNN(neighbors=7, similarity="dice", shrink=3.0)
    built = with_settings(ItemKNN(), space, {"neighbors": 7, "similarity": [1]})
    assert built.similarity == (1,)


def test_a_model_is_judged_on_the_validation_rows_of_those_who_have_some() -> None:
    # users 0 and 1 have item 0 and 1; u0's validation item is 2, which MostPop-like lists lead
    train = rows([(0, 0), (1, 1), (2, 2), (2, 3), (3, 2)], n_users=4, n_items=4)
    validation = rows([(0, 2), (1, 3)], n_users=4, n_items=4)
    judge = Judge(TrainingData(train, validation), metric(NDCG(k=2)))

    @dataclass(frozen=True)
    class Fixed:
        provides: ClassVar[frozenset[str]] = frozenset({"lists"})

        def fit(self, data: TrainingData, rng: np.random.Generator) -> Any:
            assert data.validation is validation
            return self

        def recommend(self, queries: Any, k: int, data: TrainingData) -> Any:
            from recbias.core.ranked_lists import RankedLists

            assert queries.ids.ids.tolist() == ["u0", "u1"]
            items = np.array([[2, 3]] * 2, dtype=np.int32)
            return RankedLists(items, np.array([[2, 1]] * 2, dtype=np.float32))

    # u0: 1 / log2(2) = 1; u1: 1 / log2(3) = 0.6309
    found = judge.value(AnswerQueries(Fixed(), "Fixed", 2, 1, 1))
    assert found == pytest.approx((1 + 1 / math.log2(3)) / 2)


@pytest.mark.parametrize("validation", [None, []])
def test_without_validation_rows_there_is_nothing_to_judge_by(validation: Any) -> None:
    train = rows([(0, 0)], n_users=1, n_items=2)
    part = None if validation is None else rows([], n_users=1, n_items=2)
    with pytest.raises(MissingEvidence, match="no user has validation rows"):
        Judge(TrainingData(train, part), metric()).check()


def test_the_test_part_changes_nothing() -> None:
    dataset, split = a_world()
    trial = RunTrial(ItemKNN(), "ItemKNN", tune(), 4, 1, 1)
    first = trial(dataset, split)
    without = trial(replace(dataset, interactions=split.train), replace(split, test=None))
    assert (first.value, first.settings) == (without.value, without.settings)
    assert first.value > 0.3


def test_settings_that_were_tried_before_are_not_fitted_again() -> None:
    space = (Choice("similarity", ("cosine",), ("cosine",)),)
    earlier = Trial(1, {"similarity": "cosine"}, 0.123, 9.0)
    trial = RunTrial(ItemKNN(), "ItemKNN", tune(space), 4, 1, 1)
    again = trial(*a_world(), earlier)
    assert again == Trial(2, {"similarity": "cosine"}, 0.123, 0.0)


def test_a_model_that_fails_is_a_trial_that_failed() -> None:
    space = (Range("place", 0.0, 0.05, log=False, whole=False),)
    with noting() as notes:
        found = RunTrial(Planted(), "Planted", tune(space), 4, 1, 1)(*a_world())
    assert found.state == "failed"
    assert math.isnan(found.value)
    assert found.failure is not None
    assert "the loss is NaN" in found.failure.message
    assert "the loss is NaN" in notes[0]


def test_a_metric_that_cannot_be_measured_fails_the_search_before_anything_is_fitted() -> None:
    @dataclass(frozen=True)
    class Early:
        direction: ClassVar[str] = "higher"

        def measure(self, evidence: Any) -> Any:
            raise NotImplementedError

        def check(self, evidence: Any) -> None:
            assert evidence.relevant is not None
            raise UserError("the items have no column 'race'")

    space = (Range("place", 0.0, 0.05, log=False, whole=False),)
    with pytest.raises(UserError, match="no column 'race'"):
        RunTrial(Planted(), "Planted", tune(space, Early()), 4, 1, 1)(*a_world())
