"""Accuracy against hand-worked numbers, and against ir-measures, scikit-learn and LensKit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, Measure, P, Qrel, R, Rprec, ScoredDoc, Success, iter_calc, nDCG
from scipy.sparse import csr_array

from recbias.core.errors import MissingEvidence
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.accuracy.ranking import (
    F1,
    MAP,
    MRR,
    NDCG,
    HitRate,
    MeanPrecision,
    Precision,
    Recall,
    RPrecision,
)
from support.evidence_worlds import make_evidence, make_lists

METRICS = (NDCG, HitRate, MRR, MAP, MeanPrecision, Precision, Recall, RPrecision, F1)


def values(metric: Any, facts: Evidence) -> Any:
    (found,) = metric.measure(facts)
    return found.units.values


def test_ndcg_of_a_list_with_a_gap() -> None:
    # relevant {7, 9}; list 7, 3, 9
    # DCG   = 1/log2(2) + 0 + 1/log2(4) = 1.5
    # ideal = 1/log2(2) + 1/log2(3)     = 1.630930
    facts = make_evidence(make_lists([[7, 3, 9]]), [[7, 9]])
    (found,) = NDCG(k=3).measure(facts)
    assert found.value == pytest.approx(1.5 / 1.630930, abs=1e-6)


@pytest.mark.parametrize("metric", METRICS)
def test_queries_without_test_items_are_counted_and_left_out(metric: Any) -> None:
    # the first query hits at once, the second has no test item, the third has an empty list
    facts = make_evidence(make_lists([[0], [1], []]), [[0], [], [5]])
    (found,) = metric(k=1).measure(facts)
    assert found.units.values[0] == 1
    assert math.isnan(found.units.values[1])
    assert found.units.values[2] == 0
    assert (found.value, found.n, found.undefined) == (0.5, 2, 1)
    assert found.units.unit == "user"
    assert found.units.ids.tolist() == ["u0", "u1", "u2"]


@pytest.mark.parametrize("metric", METRICS)
def test_nobody_with_test_items_is_nan(metric: Any) -> None:
    (found,) = metric().measure(make_evidence(make_lists([[0], [1]]), [[], []]))
    assert math.isnan(found.value)
    assert (found.n, found.undefined) == (0, 2)


@pytest.mark.parametrize("metric", METRICS)
def test_without_k_the_whole_list_is_measured(metric: Any) -> None:
    facts = make_evidence(make_lists([[0, 1, 2, 3]]), [[1, 3]])
    assert values(metric(), facts) == values(metric(k=4), facts)


@pytest.mark.parametrize("metric", METRICS)
def test_without_a_single_place_all_is_zero(metric: Any) -> None:
    assert values(metric(), make_evidence(make_lists([[], []]), [[1], [2]])).tolist() == [0, 0]


@pytest.mark.parametrize("metric", METRICS)
def test_a_test_part_is_needed(metric: Any) -> None:
    assert metric.needs == {"lists", "test"}
    with pytest.raises(MissingEvidence, match="needs test"):
        metric().measure(make_evidence(make_lists([[0]])))


@pytest.mark.parametrize("metric", METRICS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_names_of_items_do_not_matter(metric: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists, relevant = random_answers(rng, n_queries=4, n_items=12, k=5)
    renamed = rng.permutation(12)
    other = make_evidence(
        make_lists([renamed[each].tolist() for each in lists]),
        [renamed[each].tolist() for each in relevant],
        n_items=12,
    )
    same = make_evidence(make_lists(lists), relevant, n_items=12)
    np.testing.assert_array_equal(values(metric(k=5), other), values(metric(k=5), same))


def random_answers(
    rng: np.random.Generator, *, n_queries: int, n_items: int, k: int, full: bool = False
) -> tuple[list[list[int]], list[list[int]]]:
    """Lists of up to k items, and 1 to 9 test items a query."""
    lists, relevant = [], []
    for _ in range(n_queries):
        length = k if full else int(rng.integers(0, k + 1))
        lists.append(rng.permutation(n_items)[:length].tolist())
        relevant.append(rng.permutation(n_items)[: int(rng.integers(1, 10))].tolist())
    return lists, relevant


def as_ir(lists: list[list[int]], relevant: list[list[int]]) -> tuple[list[Qrel], list[ScoredDoc]]:
    qrels = [Qrel(f"u{q}", f"i{item}", 1) for q, held in enumerate(relevant) for item in held]
    run = [
        ScoredDoc(f"u{q}", f"i{item}", float(-rank))
        for q, row in enumerate(lists)
        for rank, item in enumerate(row)
    ]
    return qrels, run


def by_ir(measures: list[Measure], qrels: list[Qrel], run: list[ScoredDoc], n: int) -> Any:
    """``(measures, queries)``."""
    found = np.full((len(measures), n), np.nan)
    for each in iter_calc(measures, qrels, run):
        found[measures.index(each.measure), int(each.query_id[1:])] = each.value
    return found


def assert_equal_to_ir_measures(lists: list[list[int]], relevant: list[list[int]], k: int) -> None:
    facts = make_evidence(
        make_lists(lists), relevant, n_items=1 + max(map(max, relevant), default=0) + 99
    )
    sizes = np.array([len(each) for each in relevant])
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
    found = by_ir(at, *as_ir([each[:k] for each in lists], relevant), len(lists))
    ndcg, success, rr, ap, p, r, rprec, *others = found
    np.testing.assert_array_equal(values(NDCG(k=k), facts), ndcg)
    np.testing.assert_array_equal(values(HitRate(k=k), facts), success)
    np.testing.assert_array_equal(values(MRR(k=k), facts), rr)
    np.testing.assert_array_equal(values(Precision(k=k), facts), p)
    np.testing.assert_array_equal(values(Recall(k=k), facts), r)
    np.testing.assert_array_equal(values(RPrecision(k=k), facts), rprec)
    # TREC's AP@k divides by all test items, ours by as many as fit a list of k: the same number
    # where all fit, else equal after undoing that, which costs a rounding
    ours = values(MAP(k=k), facts)
    fits = sizes <= k
    np.testing.assert_array_equal(ours[fits], ap[fits])
    np.testing.assert_allclose(ours, ap * sizes / np.minimum(sizes, k), rtol=1e-14)
    # what Elliot calls MAP is the mean of P@1 ... P@k
    mean = np.mean([*others, p], axis=0)
    np.testing.assert_allclose(values(MeanPrecision(k=k), facts), mean, rtol=1e-14)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(
            values(F1(k=k), facts), np.nan_to_num(2 * p * r / (p + r)), rtol=1e-14
        )


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_random_lists_equal_ir_measures_to_the_last_digit(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    lists, relevant = random_answers(rng, n_queries=8, n_items=20, k=12)
    if not any(lists):
        lists[0] = [0]
    assert_equal_to_ir_measures(lists, relevant, k)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 10))
@settings(max_examples=25, deadline=None)
def test_full_lists_agree_with_scikit_learn(seed: int, k: int) -> None:
    from sklearn.metrics import f1_score, ndcg_score, precision_score, recall_score

    rng = np.random.default_rng(seed)
    lists, relevant = random_answers(rng, n_queries=5, n_items=20, k=10, full=True)
    facts = make_evidence(make_lists(lists), relevant, n_items=20)
    truth, scores, chosen = np.zeros((3, 5, 20))
    for row, (given_, held) in enumerate(zip(lists, relevant, strict=True)):
        truth[row, held] = 1
        scores[row, given_] = np.arange(10, 0, -1)
        chosen[row, given_[:k]] = 1
    for row in range(5):
        ndcg = ndcg_score(truth[[row]], scores[[row]], k=k, ignore_ties=True)
        assert values(NDCG(k=k), facts)[row] == pytest.approx(ndcg, rel=1e-12)
        for metric, score in (
            (Precision, precision_score),
            (Recall, recall_score),
            (F1, f1_score),
        ):
            expected = score(truth[row], chosen[row], zero_division=0)
            assert values(metric(k=k), facts)[row] == pytest.approx(expected, rel=1e-12)


@pytest.fixture(scope="module")
def popular_lists(real_data: Path) -> tuple[list[list[int]], list[list[int]]]:
    """MovieLens 1M, ratings of 4 and 5, a random fifth held out; the 10 most popular unseen."""
    raw = pd.read_csv(
        real_data / "ml-1m" / "ratings.dat", sep=":", header=None, usecols=[0, 2, 4]
    ).to_numpy()
    raw = raw[raw[:, 2] >= 4]
    users, items = (np.unique(raw[:, place], return_inverse=True)[1] for place in (0, 1))
    held = np.random.default_rng(7).random(users.size) < 0.2
    shape = (int(users.max()) + 1, int(items.max()) + 1)
    parts = [
        csr_array((np.ones(part.sum()), (users[part], items[part])), shape=shape)
        for part in (~held, held)
    ]
    train, test = (part[:600].toarray() for part in parts)
    kept = test.any(axis=1)
    scores = np.where(train[kept] > 0, -1, parts[0].sum(axis=0))
    lists = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    return lists.tolist(), [np.flatnonzero(row).tolist() for row in test[kept]]


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

    lists, relevant = [each[:150] for each in popular_lists]
    facts = make_evidence(make_lists(lists), relevant, n_items=4000)
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
            metric.measure_list(given_, held)
            for given_, held in zip(recommended, tested, strict=True)
        ]
        np.testing.assert_allclose(values(ours(k=10), facts), expected, rtol=1e-12)
