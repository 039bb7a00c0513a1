from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, Measure, P, Qrel, R, Rprec, ScoredDoc, Success, iter_calc, nDCG
from scipy.sparse import csr_array
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    label_ranking_average_precision_score,
    ndcg_score,
    precision_recall_fscore_support,
    top_k_accuracy_score,
)

from recbias import api
from recbias.core.dataset import FloatArray
from recbias.core.errors import Faults, UnknownColumn
from recbias.metrics import accuracy
from recbias.metrics.accuracy import (
    F1,
    MAP,
    MRR,
    NDCG,
    CategoryMAP,
    CategoryMRR,
    CategoryNDCG,
    CategoryPrecision,
    CategoryRPrecision,
    ClassAccuracy,
    ClassF1,
    ClassHitRate,
    ClassMRR,
    ClassPrecision,
    ClassRecall,
    HitRate,
    MeanPrecision,
    Precision,
    Recall,
    RPrecision,
)
from support.specs import make_small_spec
from support.worlds.evidence_worlds import make_evidence, make_lists, measure_one, measure_queries
from support.worlds.texts.review_worlds import make_review_evidence, rank_items, sample_reviews

METRICS = (NDCG, HitRate, MRR, MAP, MeanPrecision, Precision, Recall, RPrecision, F1)

pytestmark = pytest.mark.usefixtures("stage_warnings")


def test_ndcg_of_a_list_with_a_miss() -> None:
    # relevant {7, 9}; list 7, 3, 9
    # DCG   = 1/log2(2) + 0 + 1/log2(4) = 1.5
    # ideal = 1/log2(2) + 1/log2(3)     = 1.630930
    evidence = make_evidence(make_lists([[7, 3, 9]]), [[7, 9]])
    (measurement,) = NDCG(k=3).measure(evidence)
    assert measurement.value == pytest.approx(1.5 / 1.630930, abs=1e-6)


@pytest.mark.parametrize("metric", METRICS)
def test_queries_without_test_items_are_counted_and_excluded(metric: Any) -> None:
    # the first query hits at once, the second has no test item, the third has an empty list
    evidence = make_evidence(make_lists([[0], [1], []]), [[0], [], [5]])
    (measurement,) = metric(k=1).measure(evidence)
    assert measurement.units.values[0] == 1
    assert math.isnan(measurement.units.values[1])
    assert measurement.units.values[2] == 0
    assert (measurement.value, measurement.n, measurement.undefined) == (0.5, 2, 1)
    assert measurement.units.unit == "user"
    assert measurement.units.ids.tolist() == ["u0", "u1", "u2"]


@pytest.mark.parametrize("metric", METRICS)
def test_without_k_the_whole_list_counts(metric: Any) -> None:
    evidence = make_evidence(make_lists([[0, 1, 2, 3]]), [[1, 3]])
    assert measure_queries(metric(), evidence) == measure_queries(metric(k=4), evidence)


def sample_lists(
    rng: np.random.Generator, *, n_queries: int, n_items: int, k: int, full: bool = False
) -> tuple[list[list[int]], list[list[int]]]:
    """Sample lists of up to k items, and 1 to 9 test items per query."""
    lists, relevant = [], []
    for _ in range(n_queries):
        length = k if full else int(rng.integers(0, k + 1))
        lists.append(rng.permutation(n_items)[:length].tolist())
        relevant.append(rng.permutation(n_items)[: int(rng.integers(1, 10))].tolist())
    return lists, relevant


def to_ir_measures(
    lists: list[list[int]], relevant: list[list[int]]
) -> tuple[list[Qrel], list[ScoredDoc]]:
    qrels = [Qrel(f"u{q}", f"i{item}", 1) for q, row in enumerate(relevant) for item in row]
    run = [
        ScoredDoc(f"u{q}", f"i{item}", float(-rank))
        for q, row in enumerate(lists)
        for rank, item in enumerate(row)
    ]
    return qrels, run


def calculate_by_ir_measures(
    measures: list[Measure], qrels: list[Qrel], run: list[ScoredDoc], n: int
) -> Any:
    """``(measures, queries)``."""
    table = np.full((len(measures), n), np.nan)
    for result in iter_calc(measures, qrels, run):
        table[measures.index(result.measure), int(result.query_id[1:])] = result.value
    return table


def assert_equal_to_ir_measures(lists: list[list[int]], relevant: list[list[int]], k: int) -> None:
    evidence = make_evidence(
        make_lists(lists), relevant, n_items=1 + max(map(max, relevant), default=0) + 99
    )
    sizes = np.array([len(row) for row in relevant])
    at = [
        nDCG @ k,
        Success @ k,
        RR @ k,
        AP @ k,
        P @ k,
        R @ k,
        Rprec,
        *(P @ n for n in range(1, k)),
    ]
    reference = calculate_by_ir_measures(
        at, *to_ir_measures([row[:k] for row in lists], relevant), len(lists)
    )
    ndcg, success, rr, ap, p, r, rprec, *precisions = reference
    np.testing.assert_array_equal(measure_queries(NDCG(k=k), evidence), ndcg)
    np.testing.assert_array_equal(measure_queries(HitRate(k=k), evidence), success)
    np.testing.assert_array_equal(measure_queries(MRR(k=k), evidence), rr)
    np.testing.assert_array_equal(measure_queries(Precision(k=k), evidence), p)
    np.testing.assert_array_equal(measure_queries(Recall(k=k), evidence), r)
    np.testing.assert_array_equal(measure_queries(RPrecision(k=k), evidence), rprec)
    # TREC's AP@k divides by all test items, ours by as many as fit a list of k: the same number
    # where all fit, else equal after undoing that, which costs a rounding
    ours = np.array(measure_queries(MAP(k=k), evidence))
    fits = sizes <= k
    np.testing.assert_array_equal(ours[fits], ap[fits])
    np.testing.assert_allclose(ours, ap * sizes / np.minimum(sizes, k), rtol=1e-14)
    # what Elliot calls MAP is the mean of P@1 ... P@k
    mean = np.mean([*precisions, p], axis=0)
    np.testing.assert_allclose(measure_queries(MeanPrecision(k=k), evidence), mean, rtol=1e-14)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(
            measure_queries(F1(k=k), evidence), np.nan_to_num(2 * p * r / (p + r)), rtol=1e-14
        )


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_random_lists_equal_ir_measures_to_the_last_digit(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    lists, relevant = sample_lists(rng, n_queries=8, n_items=20, k=12)
    if not any(lists):
        lists[0] = [0]
    assert_equal_to_ir_measures(lists, relevant, k)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 10))
@settings(max_examples=25, deadline=None)
def test_full_lists_agree_with_scikit_learn(seed: int, k: int) -> None:
    from sklearn.metrics import f1_score, ndcg_score, precision_score, recall_score

    rng = np.random.default_rng(seed)
    lists, relevant = sample_lists(rng, n_queries=5, n_items=20, k=10, full=True)
    evidence = make_evidence(make_lists(lists), relevant, n_items=20)
    truth, scores, chosen = np.zeros((3, 5, 20))
    for row, (given_, test_items) in enumerate(zip(lists, relevant, strict=True)):
        truth[row, test_items] = 1
        scores[row, given_] = np.arange(10, 0, -1)
        chosen[row, given_[:k]] = 1
    for row in range(5):
        ndcg = ndcg_score(truth[[row]], scores[[row]], k=k, ignore_ties=True)
        assert measure_queries(NDCG(k=k), evidence)[row] == pytest.approx(ndcg, rel=1e-12)
        for metric, score in (
            (Precision, precision_score),
            (Recall, recall_score),
            (F1, f1_score),
        ):
            expected = score(truth[row], chosen[row], zero_division=0)
            assert measure_queries(metric(k=k), evidence)[row] == pytest.approx(
                expected, rel=1e-12
            )


@pytest.fixture(scope="module")
def popular_lists(real_data: Path) -> tuple[list[list[int]], list[list[int]]]:
    """MovieLens 1M, ratings of 4 and 5, a random fifth held out; the 10 most popular unseen."""
    raw = pd.read_csv(
        real_data / "ml-1m" / "ratings.dat", sep=":", header=None, usecols=[0, 2, 4]
    ).to_numpy()
    raw = raw[raw[:, 2] >= 4]
    users, items = (np.unique(raw[:, column], return_inverse=True)[1] for column in (0, 1))
    is_test = np.random.default_rng(7).random(users.size) < 0.2
    shape = (int(users.max()) + 1, int(items.max()) + 1)
    parts = [
        csr_array((np.ones(part.sum()), (users[part], items[part])), shape=shape)
        for part in (~is_test, is_test)
    ]
    train, test = (part[:600].toarray() for part in parts)
    has_test = test.any(axis=1)
    scores = np.where(train[has_test] > 0, -1, parts[0].sum(axis=0))
    lists = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    return lists.tolist(), [np.flatnonzero(row).tolist() for row in test[has_test]]


@pytest.mark.real_data
def test_real_lists_equal_ir_measures_to_the_last_digit(
    popular_lists: tuple[list[list[int]], list[list[int]]],
) -> None:
    lists, relevant = popular_lists
    assert len(lists) > 500
    assert_equal_to_ir_measures(lists, relevant, 10)


@pytest.mark.real_data
def test_real_lists_agree_with_lenskit(
    popular_lists: tuple[list[list[int]], list[list[int]]],
) -> None:
    from lenskit.data import ItemList
    from lenskit.metrics import ranking
    from lenskit.metrics.ranking import LogRankWeight

    lists, relevant = [rows[:150] for rows in popular_lists]
    evidence = make_evidence(make_lists(lists), relevant, n_items=4000)
    theirs = {
        # LensKit's own default does not discount rank 2; the usual discount is log2(rank + 1)
        NDCG: ranking.NDCG(10, weight=LogRankWeight(offset=1)),
        HitRate: ranking.Hit(10),
        MRR: ranking.RecipRank(10),
        MAP: ranking.AveragePrecision(10),
        Precision: ranking.Precision(10),
    }  # not Recall: LensKit divides by min(R, k)
    recommended = [ItemList(item_ids=row, ordered=True) for row in lists]
    tested = [ItemList(item_ids=row) for row in relevant]
    for ours, metric in theirs.items():
        expected = [
            metric.measure_list(given_, test_items)
            for given_, test_items in zip(recommended, tested, strict=True)
        ]
        np.testing.assert_allclose(measure_queries(ours(k=10), evidence), expected, rtol=1e-12)


SCORES: dict[str, Callable[..., FloatArray]] = {
    name.removeprefix("_"): getattr(accuracy, name)
    for name in (
        *("_ndcg", "_hit_rate", "_reciprocal_rank", "average_precision", "_mean_precision"),
        *("_precision", "_recall", "_r_precision", "_f1"),
    )
}


def score_list(name: str, hits: list[int], n_relevant: int, k: int) -> float:
    scores = SCORES[name](np.array([hits], dtype=bool), np.array([n_relevant]), k)
    return float(scores[0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # list: miss, hit, miss, hit; three test items; k = 4
        # DCG 1/log2(3) + 1/log2(5) = 0.630930 + 0.430677 = 1.061606
        # ideal 1 + 0.630930 + 0.5 = 2.130930
        ("ndcg", 1.061606 / 2.130930),
        ("hit_rate", 1.0),
        ("reciprocal_rank", 1 / 2),
        ("average_precision", (1 / 2 + 2 / 4) / 3),
        ("mean_precision", (0 + 1 / 2 + 1 / 3 + 2 / 4) / 4),
        ("precision", 2 / 4),
        ("recall", 2 / 3),
        ("r_precision", 1 / 3),  # one hit among the first three
        ("f1", 2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3)),
    ],
)
def test_score_of_a_list_with_two_hits(name: str, expected: float) -> None:
    assert score_list(name, [0, 1, 0, 1], 3, 4) == pytest.approx(expected, abs=1e-6)


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
    measurement = measure_one(metric, WORKED)
    assert measurement.value == pytest.approx(expected, rel=1e-12)
    assert (measurement.n, measurement.undefined) == (5, 0)


@pytest.mark.parametrize(("metric", "expected"), [(ClassPrecision(), 1 / 4), (ClassF1(), 1 / 3)])
def test_an_item_that_is_never_predicted_has_precision_0(metric: Any, expected: float) -> None:
    # both reviews are predicted as 0: precisions 1/2 and 0, F1 2/3 and 0
    assert measure_one(
        metric, make_review_evidence([0, 1], [[0, 1], [0, 1]])
    ).value == pytest.approx(expected)


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
        assert measure_one(metric, world).value == pytest.approx(expected, rel=1e-12), metric


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
        measurement = measure_one(metric, evidence)
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


METRICS_CATEGORY_PREDICTION = (
    CategoryPrecision,
    CategoryRPrecision,
    CategoryMAP,
    CategoryMRR,
    CategoryNDCG,
)


WHOLE = METRICS_CATEGORY_PREDICTION[1:]


# 0 and 1 share B; the last review is of an item without categories
WORKED_CATEGORY_PREDICTION = make_review_evidence(
    [0, 2, 3], [[2, 1, 0, 3], [2, 0, 1, 3], [0, 1, 2, 3]], categories=("A|B", "B", "C", None)
)


@pytest.mark.parametrize(
    ("metric", "first", "second"),
    [
        # the first ranking is - + + -, R = 2; the second + - - -, R = 1
        (CategoryPrecision(k=1), 0.0, 1.0),
        (CategoryPrecision(k=2), 1 / 2, 1 / 2),
        (CategoryPrecision(k=3), 2 / 3, 1 / 3),
        (CategoryRPrecision(), 1 / 2, 1.0),
        # (1/2 + 2/3) / 2
        (CategoryMAP(), 7 / 12, 1.0),
        (CategoryMRR(), 1 / 2, 1.0),
        # (1/log2(3) + 1/log2(4)) / (1 + 1/log2(3)) = 1.130930 / 1.630930
        (CategoryNDCG(), 0.693426, 1.0),
        # without B only 0 itself is left: - - + -
        (CategoryPrecision(k=3, without=("B",)), 1 / 3, 1 / 3),
        (CategoryRPrecision(without=("B",)), 0.0, 1.0),
        (CategoryMAP(without=("B",)), 1 / 3, 1.0),
        (CategoryMRR(without=("B",)), 1 / 3, 1.0),
        (CategoryNDCG(without=("B",)), 1 / 2, 1.0),
    ],
)
def test_values_equal_those_worked_by_hand_category_prediction(
    metric: Any, first: float, second: float
) -> None:
    measurement = measure_one(metric, WORKED_CATEGORY_PREDICTION)
    assert measurement.units.values == pytest.approx(
        [first, second, math.nan], abs=1e-6, nan_ok=True
    )
    assert measurement.value == pytest.approx((first + second) / 2, abs=1e-6)
    assert (measurement.n, measurement.undefined) == (2, 1)


def sample_categories(seed: int, n_items: int) -> list[str | None]:
    """One to three of five categories for each item, none for about one in six."""
    rng = np.random.default_rng(seed)
    membership = rng.random((n_items, 5)) < 0.3
    names = ["|".join(f"k{kind}" for kind in np.flatnonzero(row)) for row in membership]
    return [names[0] or "k0", *(name or None for name in names[1:])]


@pytest.mark.parametrize("seed", range(3))
def test_values_equal_scikit_learn_category_prediction(seed: int) -> None:
    items, scores = sample_reviews(seed, 60, 25)
    categories = sample_categories(seed, 25)
    world = make_review_evidence(items, rank_items(scores), categories=categories)
    sets = [set((labels or "").split("|")) - {""} for labels in categories]
    relevant = np.array([[bool(sets[item] & other) for other in sets] for item in items])
    precision, gain = (
        measure_one(CategoryMAP(), world).units,
        measure_one(CategoryNDCG(), world).units,
    )
    for review, row in enumerate(relevant):
        if row.any():
            mean = average_precision_score(row, scores[review])
            assert precision.values[review] == pytest.approx(mean, rel=1e-12)
            ideal = ndcg_score([row], [scores[review]])
            assert gain.values[review] == pytest.approx(ideal, rel=1e-12)
        else:
            assert math.isnan(precision.values[review])
            assert math.isnan(gain.values[review])


def test_a_model_that_knows_the_category_but_not_the_item_is_perfect() -> None:
    rng = np.random.default_rng(5)
    items = rng.integers(20, size=2000)
    scores = rng.random((2000, 20)) + (np.arange(20) // 4 == items[:, None] // 4)
    evidence = make_review_evidence(
        items, rank_items(scores), categories=[f"k{item // 4}" for item in range(20)]
    )
    for metric in (*(metric_type() for metric_type in WHOLE), CategoryPrecision(k=4)):
        assert measure_one(metric, evidence).value == pytest.approx(1.0, rel=1e-12)
    # 4 of the first 10 are of the kind
    assert measure_one(CategoryPrecision(k=10), evidence).value == pytest.approx(0.4, rel=1e-12)


def test_a_random_model_has_the_share_of_the_category() -> None:
    items, scores = sample_reviews(6, 20_000, 20, skill=0.0)
    evidence = make_review_evidence(
        items, rank_items(scores), categories=[f"k{item // 4}" for item in range(20)]
    )
    for metric in (CategoryPrecision(k=5), CategoryRPrecision()):
        measurement = measure_one(metric, evidence)
        assert measurement.value == pytest.approx(4 / 20, abs=0.01)
        assert measurement.ci_low - 0.005 < 4 / 20 < measurement.ci_high + 0.005


@pytest.mark.parametrize("metric", METRICS_CATEGORY_PREDICTION)
def test_an_excluded_category_does_not_count(metric: Any) -> None:
    rankings = [[2, 1, 0], [0, 1, 2], [1, 2, 0]]
    expected = make_review_evidence([0, 1, 2], rankings, categories=("Bars", "Bars", None))
    with_food = make_review_evidence(
        [0, 1, 2], rankings, categories=("Food|Bars", "Bars|Food", "Food")
    )
    measurement = measure_one(metric(without=("Food",)), with_food)
    reference = measure_one(metric(), expected).units
    assert measurement.units.values == pytest.approx(reference.values, nan_ok=True)
    assert (measurement.n, measurement.undefined) == (2, 1)


@pytest.mark.parametrize("metric", METRICS_CATEGORY_PREDICTION)
def test_an_unknown_column_or_category_is_an_error_before_training(metric: Any) -> None:
    metric(attribute="categories", without=("B",)).check(WORKED_CATEGORY_PREDICTION)
    with pytest.raises(UnknownColumn) as caught:
        metric(attribute="category").check(WORKED_CATEGORY_PREDICTION)
    assert (caught.value.where, caught.value.remedy) == ("attribute", "did you mean categories?")
    with pytest.raises(UnknownColumn, match="no item has 'D'"):
        metric(without=("B", "D")).check(WORKED_CATEGORY_PREDICTION)
