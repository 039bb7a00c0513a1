from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.metrics.embeddings.classification import AttributeClassification
from support.worlds.small_worlds import make_interactions
from support.worlds.vector_worlds import (
    GENDER,
    GENRES,
    make_vectors,
    plant_association,
)

METRIC = AttributeClassification(groups=GENDER, targets=GENRES)

WOMEN, MEN = [[5.0, 0.0]] * 4, [[-5.0, 0.0]] * 4
FILMS = [[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 2.0]]
KINDS = ["Romance", "Romance", "Romance", "Action", "Action", None]


def make_world(**fields: Any) -> Evidence:
    """Four women at (5, 0) and four men at (-5, 0): the plane is x = 0."""
    # item 0: F, F; item 1: F, M; item 2: M, M; item 3: M; item 4: F; item 5: nobody
    pairs = [(0, 0), (1, 0), (2, 1), (4, 1), (5, 2), (6, 2), (7, 3), (3, 4)]
    facts: dict[str, Any] = {
        "gender": ["F"] * 4 + ["M"] * 4,
        "genres": KINDS,
        "train": make_interactions(pairs, n_users=8, n_items=6),
    }
    return make_vectors([*WOMEN, *MEN], FILMS, **(facts | fields))


def measure(metric: Any, facts: Evidence) -> dict[tuple[str, str], Measurement]:
    return {
        (measurement.group, measurement.target): measurement
        for measurement in metric.measure(facts)
    }


def test_precision_recall_and_f1_by_hand() -> None:
    # said F: both Romance at x = 1, one Action; said M: one Romance, one Action
    measurements = measure(METRIC, make_world())
    expected = {
        ("gender=F", "precision of genres=Romance"): 2 / 3,
        ("gender=F", "recall of genres=Romance"): 2 / 3,
        ("gender=F", "F1 of genres=Romance"): 2 / 3,
        ("gender=M", "precision of genres=Action"): 1 / 2,
        ("gender=M", "recall of genres=Action"): 1 / 2,
        ("gender=M", "F1 of genres=Action"): 1 / 2,
    }
    assert {key: measurements[key].value for key in expected} == pytest.approx(expected)
    recall = measurements["gender=F", "recall of genres=Romance"].units
    assert recall is not None
    assert recall.values.tolist() == [1.0, 1.0, 0.0]
    assert measurements["gender=F", "F1 of genres=Romance"].replicates is not None


@pytest.mark.usefixtures("stage_warnings")
def test_they_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import precision_recall_fscore_support

    facts = plant_association(
        np.random.default_rng(1),
        shift=0.7,
        train=make_interactions([(0, 0)], n_users=120, n_items=120),
    )
    measurements = measure(METRIC, facts)
    hits = [
        measurements["gender=F", "recall of genres=Romance"],
        measurements["gender=M", "recall of genres=Action"],
    ]
    right = np.concatenate([measurement.units.values for measurement in hits if measurement.units])
    truth = np.repeat([1, 0], 60)
    predicted = np.where(right == 1, truth, 1 - truth)
    precision, recall, f1, _ = precision_recall_fscore_support(truth, predicted, labels=[1, 0])
    for index, (group, kind) in enumerate((("F", "Romance"), ("M", "Action"))):
        for name, expected in (("precision", precision), ("recall", recall), ("F1", f1)):
            figure = measurements[f"gender={group}", f"{name} of genres={kind}"]
            assert figure.value == pytest.approx(expected[index])
            assert figure.ci_low < figure.value < figure.ci_high


def test_the_deciles_by_hand() -> None:
    # audiences: item 0 and 4 all F, item 1 half, items 2 and 3 none; said F: 0, 1 and 4
    measurements = measure(METRIC, make_world())
    deciles = {
        target: (figure.value, figure.n)
        for (group, target), figure in measurements.items()
        if target.startswith("predicted") and group == "gender=F" and figure.n
    }
    assert deciles == {
        "predicted at 0-10% gender=F": (0.0, 2),
        "predicted at 50-60% gender=F": (1.0, 1),
        "predicted at 90-100% gender=F": (1.0, 2),
    }
    empty = measurements["gender=F", "predicted at 20-30% gender=F"]
    assert math.isnan(empty.value)
    assert (empty.n, empty.undefined) == (0, 0)


def test_the_favourites_tell_users_apart() -> None:
    # women have items 0, 0, 1, 4: all at x = 1; men 1, 2, 2, 3: one of them at x = 1
    figure = measure(METRIC, make_world())["", "accuracy from top 3 items"]
    assert figure.n == 2
    assert figure.value >= 0.5
    assert figure.units is not None
    assert figure.units.unit == "user"


def test_precision_of_what_is_said_of_none() -> None:
    items = [[1.0, 0.0]] * 6
    with collect_warnings() as notes:
        measurements = measure(
            METRIC,
            replace(
                make_world(),
                embeddings=make_vectors(
                    [*WOMEN, *MEN], items, gender=["F"] * 8, genres=KINDS
                ).embeddings,
            ),
        )
    figure = measurements["gender=M", "precision of genres=Action"]
    assert math.isnan(figure.value)
    assert (figure.n, figure.undefined) == (0, 5)
    assert measurements["gender=M", "F1 of genres=Action"].value == 0.0
    assert "is classified as one group" in notes[0]


@pytest.mark.usefixtures("stage_warnings")
def test_lengths_can_be_taken_away() -> None:
    # an intercept learned on users 100 long hides what items 1 long are
    rng = np.random.default_rng(5)
    users = np.concatenate([[[100.0, 90.0]] * 50, [[100.0, 110.0]] * 50]) + rng.normal(
        0, 5, (100, 2)
    )
    facts = make_vectors(
        users,
        [[0.8, 0.6], [0.9, 0.7], [0.6, 0.8], [0.7, 0.9]],
        gender=["F"] * 50 + ["M"] * 50,
        genres=["Romance", "Romance", "Action", "Action"],
        train=make_interactions([(0, 0)], n_users=100, n_items=4),
    )
    measurements = measure(replace(METRIC, lengths="unit"), facts)
    assert measurements["gender=F", "recall of genres=Romance"].value == 1.0
    assert measurements["gender=M", "recall of genres=Action"].value == 1.0


@pytest.mark.usefixtures("stage_warnings")
def test_a_planted_shift_has_its_accuracy() -> None:
    # Φ(1) = 0.841 is what the best plane reaches
    facts = plant_association(
        np.random.default_rng(1),
        shift=1.0,
        n=2000,
        train=make_interactions([(0, 0)], n_users=4000, n_items=4000),
    )
    measurements = measure(METRIC, facts)
    assert measurements["", "accuracy"].value == pytest.approx(0.841, abs=0.03)
    assert measurements["gender=F", "recall of genres=Romance"].value == pytest.approx(
        0.841, abs=0.03
    )
    few = measure(replace(METRIC, direction_="csvc", top_n=200), facts)
    assert few["", "training accuracy"].n == 400
    assert few["", "accuracy"].value == pytest.approx(0.841, abs=0.03)
    assert few["", "training accuracy"].value > 0.95


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.real_data
def test_gender_on_movielens(real_data: Path) -> None:
    from support.worlds.real_vectors import load_movielens_vectors

    metric = replace(METRIC, sample=1600, lengths="unit")
    measurements = measure(metric, load_movielens_vectors(real_data, "ALS"))
    assert measurements["", "accuracy"].value > 0.7
    assert measurements["gender=F", "F1 of genres=Romance"].value > 0.8
    shares = [
        measurements["gender=F", f"predicted at {10 * decile}-{10 * decile + 10}% gender=F"].value
        for decile in range(6)
    ]
    assert shares[0] < 0.2
    assert shares[-1] > 0.9


def test_predictions_of_both_sets_and_their_test_by_hand() -> None:
    # Romance at x = 1, 1, -1: said F, F, M; Action at x = -1, 1: said M, F
    measurements = measure(METRIC, make_world())
    predictions = measurements["gender=F", "predictions for genres=Romance and genres=Action"]
    assert (predictions.value, predictions.n) == (3 / 5, 5)
    assert predictions.units is not None
    units = dict(zip(predictions.units.ids, predictions.units.values, strict=True))
    assert units == {"i0": 1.0, "i1": 1.0, "i2": 0.0, "i3": 0.0, "i4": 1.0}
    accuracy = measurements["", "accuracy of genres=Romance and genres=Action"]
    assert (accuracy.value, accuracy.n) == (3 / 5, 5)
    (test,) = accuracy.contrasts
    assert (test.between, test.a, test.b) == ("targets", "genres=Romance", "genres=Action")
    # correct: 1, 1, 0 against 1, 0: U = 2 x (1/2 + 1) + (0 + 1/2) = 3.5 of 6
    assert (test.test, test.statistic) == ("rank_sum", 3.5)
    assert test.effect_size == pytest.approx(2 * 3.5 / 6 - 1)
