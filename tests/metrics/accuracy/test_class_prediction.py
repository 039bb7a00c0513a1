from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    label_ranking_average_precision_score,
    precision_recall_fscore_support,
    top_k_accuracy_score,
)

from recbias import api
from recbias.core.errors import Faults, MissingEvidence, OutOfRange
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import collect_warnings
from recbias.metrics.accuracy.class_prediction import (
    ClassAccuracy,
    ClassF1,
    ClassHitRate,
    ClassMRR,
    ClassPrecision,
    ClassRecall,
)
from support.review_worlds import make_review_evidence, rank_items, sample_reviews
from support.specs import make_small_spec

METRICS = (ClassAccuracy, ClassPrecision, ClassRecall, ClassF1, ClassMRR, ClassHitRate)
SETS = (ClassPrecision, ClassF1)


def only(metric: Any, of: Evidence) -> Measurement:
    (found,) = metric.measure(of)
    assert isinstance(found, Measurement)
    return found


WORKED = make_review_evidence(
    [0, 0, 1, 2, 2],
    [
        [0, 1, 2, 3, 4],  # right
        [1, 2, 0, 3, 4],  # third
        [1, 0, 2, 3, 4],  # right
        [2, 0, 1, 3, 4],  # right
        [0, 4, 3, 1, 2],  # fifth
    ],
)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (ClassAccuracy(), 3 / 5),
        (ClassRecall(), 3 / 5),
        # 0, 1, 2 have 2, 1, 2 reviews, are named 2, 2, 1 times and 1, 1, 1 rightly:
        # (2 x 1/2 + 1 x 1/2 + 2 x 1/1) / 5
        (ClassPrecision(), 0.7),
        # F1 of each is 2/4, 2/3, 2/3: (2 x 1/2 + 1 x 2/3 + 2 x 2/3) / 5
        (ClassF1(), 0.6),
        # (1 + 1/3 + 1 + 1 + 1/5) / 5
        (ClassMRR(), 53 / 75),
        (ClassHitRate(k=1), 3 / 5),
        (ClassHitRate(k=2), 3 / 5),
        (ClassHitRate(k=3), 4 / 5),
        (ClassHitRate(k=5), 1.0),
    ],
)
def test_worked_example(metric: Any, expected: float) -> None:
    found = only(metric, WORKED)
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert (found.n, found.undefined) == (5, 0)


@pytest.mark.parametrize(("metric", "expected"), [(ClassPrecision(), 1 / 4), (ClassF1(), 1 / 3)])
def test_an_item_that_is_never_named_has_precision_0(metric: Any, expected: float) -> None:
    # both reviews are told to be of 0: precisions 1/2 and 0, F1 2/3 and 0
    assert only(metric, make_review_evidence([0, 1], [[0, 1], [0, 1]])).value == pytest.approx(
        expected
    )


@pytest.mark.parametrize("seed", range(4))
def test_scikit_learn_says_the_same(seed: int) -> None:
    items, scores = sample_reviews(seed, 300, 30)
    ranked = rank_items(scores)
    world = make_review_evidence(items, ranked, n_items=30)
    precision, recall, f1, _ = precision_recall_fscore_support(
        items, ranked[:, 0], average="weighted", zero_division=0
    )
    one_hot = np.eye(30)[items]
    others: list[tuple[Any, float]] = [
        (ClassPrecision(), precision),
        (ClassRecall(), recall),
        (ClassF1(), f1),
        (ClassAccuracy(), accuracy_score(items, ranked[:, 0])),
        (ClassMRR(), label_ranking_average_precision_score(one_hot, scores)),
        *(
            (ClassHitRate(k=k), top_k_accuracy_score(items, scores, k=k, labels=range(30)))
            for k in (5, 10, 20)
        ),
    ]
    for metric, expected in others:
        assert only(metric, world).value == pytest.approx(expected, rel=1e-12), metric


worlds = st.tuples(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 12))


@settings(max_examples=15, deadline=None)
@given(worlds)
def test_what_holds_of_every_model(world: tuple[int, int, int]) -> None:
    seed, n, n_items = world
    items, scores = sample_reviews(seed, n, n_items)
    of = make_review_evidence(items, rank_items(scores), n_items=n_items, n_bootstrap=1)
    accuracy = only(ClassAccuracy(), of).value
    rates = [only(ClassHitRate(k=k), of).value for k in range(1, n_items + 1)]
    assert only(ClassRecall(), of).value == accuracy == rates[0]
    assert rates == sorted(rates)
    assert rates[-1] == 1.0
    assert accuracy <= only(ClassMRR(), of).value <= 1.0
    assert only(ClassMRR(), of).value >= 1 / n_items
    assert only(ClassF1(), of).value <= (1 + accuracy) / 2 + 1e-12


@settings(max_examples=15, deadline=None)
@given(worlds)
def test_a_model_that_is_always_right_is_perfect(world: tuple[int, int, int]) -> None:
    seed, n, n_items = world
    items, scores = sample_reviews(seed, n, n_items, skill=100.0)
    of = make_review_evidence(items, rank_items(scores), n_items=n_items, n_bootstrap=1)
    assert {only(metric(), of).value for metric in METRICS} == {1.0}


def test_a_planted_model_is_found_out() -> None:
    """The kind of the item is known and the item itself is a guess among the 4 of its kind."""
    rng = np.random.default_rng(5)
    items = rng.integers(20, size=40_000)
    scores = rng.random((40_000, 20)) + (np.arange(20) // 4 == items[:, None] // 4)
    of = make_review_evidence(items, rank_items(scores), n_items=20, n_bootstrap=200)
    # 1/4; (1 + 1/2 + 1/3 + 1/4) / 4; 3/4; precision and F1 as accuracy, all items being alike
    expected = [(ClassAccuracy(), 1 / 4), (ClassMRR(), 25 / 48), (ClassHitRate(k=3), 3 / 4)]
    for metric, value in [*expected, (ClassPrecision(), 1 / 4), (ClassF1(), 1 / 4)]:
        found = only(metric, of)
        assert found.value == pytest.approx(value, abs=0.01)
        assert found.ci_low - 0.005 < value < found.ci_high + 0.005


@pytest.mark.parametrize("metric", SETS)
def test_the_spread_of_the_samples_is_that_of_other_reviews(metric: Any) -> None:
    """In reviews drawn anew the figure spreads as the samples of one set say it does."""

    def measured(seed: int, samples: int) -> Measurement:
        items, scores = sample_reviews(seed, 1500, 15)
        ranked = rank_items(scores)
        return only(metric(), make_review_evidence(items, ranked, n_items=15, n_bootstrap=samples))

    replicates = measured(0, 400).replicates
    assert replicates is not None
    values = [measured(seed, 1).value for seed in range(1, 201)]
    # the error of a standard deviation of 200 is 5%
    assert np.std(replicates, ddof=1) / np.std(values, ddof=1) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("metric", SETS)
def test_two_models_are_resampled_alike(metric: Any) -> None:
    items, scores = sample_reviews(0, 50, 8)
    first = only(
        metric(), make_review_evidence(items, rank_items(scores), n_items=8, bootstrap_seed=3)
    )
    again = only(
        metric(), make_review_evidence(items, rank_items(2 * scores), n_items=8, bootstrap_seed=3)
    )
    assert first.replicates is not None
    assert again.replicates is not None
    assert first.replicates.tolist() == again.replicates.tolist()


@pytest.mark.parametrize(
    ("metric", "share"),
    [
        (ClassAccuracy(), True),
        (ClassRecall(), True),
        (ClassHitRate(k=3), True),
        (ClassMRR(), False),
    ],
)
def test_means_over_reviews_have_the_value_of_each(metric: Any, share: bool) -> None:
    units = only(metric, WORKED).units
    assert metric.unit == "review"
    assert units is not None
    assert (units.unit, units.share) == ("review", share)
    assert units.ids.tolist() == ["r0", "r1", "r2", "r3", "r4"]
    assert units.values[:3].tolist() == [
        1,
        pytest.approx(1 / 3) if not share else units.values[1],
        1,
    ]


@pytest.mark.parametrize("metric", SETS)
def test_figures_of_all_reviews_have_no_value_of_each(metric: Any) -> None:
    found = only(metric(), WORKED)
    assert metric.unit == ""
    assert found.units is None
    assert math.isnan(found.std)


@pytest.mark.parametrize("metric", METRICS)
def test_reviews_of_items_that_no_model_knows_are_misses_and_said(metric: Any) -> None:
    with collect_warnings() as notes:
        found = only(metric(), make_review_evidence([4, 4], [[0, 1], [1, 0]]))
    assert (found.value, found.n, found.undefined) == (0.0, 2, 0)
    assert len(notes) == 1
    assert "2 reviews are of items without a training row" in notes[0]


@pytest.mark.parametrize("metric", METRICS)
def test_no_review_is_undefined(metric: Any) -> None:
    found = only(metric(), make_review_evidence([], np.empty((0, 5))))
    assert math.isnan(found.value)
    assert (found.n, found.undefined) == (0, 0)


@pytest.mark.parametrize("metric", METRICS)
def test_predictions_are_needed(metric: Any) -> None:
    bare = Evidence(queries=WORKED.queries, item_ids=WORKED.item_ids)
    with pytest.raises(MissingEvidence, match="needs predictions"):
        metric().measure(bare)


def test_more_items_than_there_are_cannot_be_named() -> None:
    with pytest.raises(OutOfRange, match="k is 6, but a model can name only 5 items"):
        ClassHitRate(k=6).measure(WORKED)
    early = Evidence(queries=WORKED.queries, item_ids=WORKED.item_ids, candidates=np.ones(5, "?"))
    ClassHitRate(k=5).check(early)
    with pytest.raises(OutOfRange) as caught:
        ClassHitRate(k=6).check(early)
    assert caught.value.where == "k"


def test_one_class_with_one_review() -> None:
    of = make_review_evidence([0], [[0]], n_items=1)
    assert {only(metric(), of).value for metric in METRICS} == {1.0}


MODEL = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """Names items in an order that hangs on the length of the text."""

    provides: ClassVar[frozenset] = frozenset({"predictions"})
    needs: ClassVar[frozenset] = frozenset({"train", "reviews"})
    libraries: ClassVar[tuple] = ()

    by: int = 1

    def fit(self, data, rng):
        return self

    def named(self, texts, data):
        known = np.flatnonzero(data.candidates).astype(np.int32)
        return np.stack([np.roll(known, self.by * len(each)) for each in texts])
'''

SPEC = make_small_spec(
    dataset={"name": "demo", "n_users": 60, "n_items": 50, "reviews": True},
    split={"name": "random", "per": "item", "test": 0.2},
    models=[
        {"name": "./own.py:Shuffled", "label": "one"},
        {"name": "./own.py:Shuffled", "label": "two", "by": 2},
    ],
    metrics=["class_accuracy", "class_MRR", "class_F1", "class_HR@20"],
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_tells_every_review_and_compares_models_on_them(folder: Path) -> None:
    run = api.run(SPEC, out=folder)
    found = run.metrics.set_index(["model", "metric"])
    assert found.loc[("one", "class_HR"), "k"] == 20  # beyond the lists' 5
    n = found["n"].to_dict()["one", "class_MRR"]
    assert run.per_unit is not None
    units = run.per_unit[run.per_unit["metric"] == "class_MRR"]
    assert set(units["unit"]) == {"review"}
    assert len(units) == 2 * n
    assert units["unit_id"].str.fullmatch(r"[^:]+:[^:]+:\d+").all()
    tests = run.significance.set_index("metric")
    assert tests.loc["class_MRR", "n"] == n
    assert tests.loc["class_MRR", "test"] == "paired_t"
    assert tests.loc["class_F1", "test"] == "paired_bootstrap"


def test_a_run_refuses_a_cutoff_behind_the_last_item_before_any_training(folder: Path) -> None:
    with pytest.raises(Faults, match="k is 60, but a model can name only"):
        api.run({**SPEC, "metrics": ["class_HR@60"]}, out=folder)


def test_reviews_are_not_split_by_labels_of_queries(folder: Path) -> None:
    split = {"name": "class_MRR", "by": "gender"}
    with pytest.raises(Faults, match="class_MRR has no value for each query"):
        api.run({**SPEC, "metrics": [split]}, out=folder)
