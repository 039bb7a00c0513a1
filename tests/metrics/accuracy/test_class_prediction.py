from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    label_ranking_average_precision_score,
    precision_recall_fscore_support,
    top_k_accuracy_score,
)

from recbias import api
from recbias.core.errors import Faults
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.metrics.accuracy import (
    ClassAccuracy,
    ClassF1,
    ClassHitRate,
    ClassMRR,
    ClassPrecision,
    ClassRecall,
)
from support.specs import make_small_spec
from support.worlds.texts.review_worlds import make_review_evidence, rank_items, sample_reviews


def measure(metric: Any, evidence: Evidence) -> Measurement:
    (measurement,) = metric.measure(evidence)
    assert isinstance(measurement, Measurement)
    return measurement


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
        # 0, 1, 2 have 2, 1, 2 reviews, are predicted 2, 2, 1 times and 1, 1, 1 correctly:
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
def test_values_equal_those_worked_by_hand(metric: Any, expected: float) -> None:
    measurement = measure(metric, WORKED)
    assert measurement.value == pytest.approx(expected, rel=1e-12)
    assert (measurement.n, measurement.undefined) == (5, 0)


@pytest.mark.parametrize(("metric", "expected"), [(ClassPrecision(), 1 / 4), (ClassF1(), 1 / 3)])
def test_an_item_that_is_never_predicted_has_precision_0(metric: Any, expected: float) -> None:
    # both reviews are predicted as 0: precisions 1/2 and 0, F1 2/3 and 0
    assert measure(metric, make_review_evidence([0, 1], [[0, 1], [0, 1]])).value == pytest.approx(
        expected
    )


@pytest.mark.parametrize("seed", range(4))
def test_values_equal_scikit_learn(seed: int) -> None:
    items, scores = sample_reviews(seed, 300, 30)
    ranked = rank_items(scores)
    world = make_review_evidence(items, ranked, n_items=30)
    precision, recall, f1, _ = precision_recall_fscore_support(
        items, ranked[:, 0], average="weighted", zero_division=0
    )
    one_hot = np.eye(30)[items]
    references: list[tuple[Any, float]] = [
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
    for metric, expected in references:
        assert measure(metric, world).value == pytest.approx(expected, rel=1e-12), metric


worlds = st.tuples(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 12))


def test_a_model_that_knows_only_the_kind_has_the_expected_accuracy() -> None:
    """The model knows the kind of the item and guesses among the 4 items of the kind."""
    rng = np.random.default_rng(5)
    items = rng.integers(20, size=40_000)
    scores = rng.random((40_000, 20)) + (np.arange(20) // 4 == items[:, None] // 4)
    evidence = make_review_evidence(items, rank_items(scores), n_items=20, n_bootstrap=200)
    # 1/4; (1 + 1/2 + 1/3 + 1/4) / 4; 3/4; precision and F1 as accuracy, all items being alike
    expected = [(ClassAccuracy(), 1 / 4), (ClassMRR(), 25 / 48), (ClassHitRate(k=3), 3 / 4)]
    for metric, value in [*expected, (ClassPrecision(), 1 / 4), (ClassF1(), 1 / 4)]:
        measurement = measure(metric, evidence)
        assert measurement.value == pytest.approx(value, abs=0.01)
        assert measurement.ci_low - 0.005 < value < measurement.ci_high + 0.005


MODEL = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Shuffled:
    """Ranks items in an order that depends on the length of the text."""

    provides: ClassVar[frozenset] = frozenset({"predictions"})
    needs: ClassVar[frozenset] = frozenset({"train", "reviews"})
    libraries: ClassVar[tuple] = ()

    by: int = 1

    def fit(self, data, rng):
        return self

    def named(self, texts, data):
        known = np.flatnonzero(data.candidates).astype(np.int32)
        return np.stack([np.roll(known, self.by * len(text)) for text in texts])
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


def test_a_run_has_a_value_per_review_and_compares_models_on_them(folder: Path) -> None:
    run = api.run(SPEC, out=folder)
    rows = run.metrics.set_index(["model", "metric"])
    assert rows.loc[("one", "class_HR"), "k"] == 20  # beyond the lists' 5
    n = rows["n"].to_dict()["one", "class_MRR"]
    assert run.per_unit is not None
    units = run.per_unit[run.per_unit["metric"] == "class_MRR"]
    assert set(units["unit"]) == {"review"}
    assert len(units) == 2 * n
    assert units["unit_id"].str.fullmatch(r"[^:]+:[^:]+:\d+").all()
    tests = run.significance.set_index("metric")
    assert tests.loc["class_MRR", "n"] == n
    assert tests.loc["class_MRR", "test"] == "paired_t"
    assert tests.loc["class_F1", "test"] == "paired_bootstrap"


def test_a_run_refuses_a_cutoff_that_is_too_large_before_any_training(folder: Path) -> None:
    with pytest.raises(Faults, match="k is 60, but a model can predict only"):
        api.run({**SPEC, "metrics": ["class_HR@60"]}, out=folder)
