from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Interactions
from recbias.core.errors import OutOfRange, UnknownColumn
from recbias.core.evidence import Evidence
from recbias.metrics.accuracy import (
    MAP,
    NDCG,
    Propensity,
    PropensityMAP,
    PropensityNDCG,
    PropensityRecall,
    Recall,
)
from support.worlds.evidence_worlds import make_evidence, make_lists, make_vocabulary

SEEN = Propensity(of="seen")


def make_items(propensities: Any) -> Attributes:
    ids = make_vocabulary("i", len(propensities))
    return Attributes(ids, pd.DataFrame({"seen": propensities}), "item")


def measure(metric: Any, evidence: Evidence) -> list[float]:
    values: list[float] = metric.values(evidence).round(6).tolist()
    return values


HALF = 1 / math.log2(3)  # the discount of the second rank


@pytest.mark.parametrize(
    ("metric", "snips", "ips"),
    [
        # weights 1, 2, 4 of the items 0, 1, 2; the queries have the test items {0, 2} and {1},
        # the lists are 0, 3, and 3, 1; the mean weight of the test items is 7/3
        (PropensityRecall, [1 / 5, 1], [3 / 7 / 2, 6 / 7]),
        (PropensityNDCG, [1 / (4 + HALF), HALF], [3 / 7 / (1 + HALF), 6 / 7 * HALF]),
        (PropensityMAP, [1 / 5, 1 / 2], [3 / 7 / 2, 6 / 7 / 2]),
    ],
)
def test_rare_test_items_count_more(metric: Any, snips: Any, ips: Any) -> None:
    evidence = make_evidence(
        make_lists([[0, 3], [3, 1]]), [[0, 2], [1]], items=make_items([1, 0.5, 0.25, 1]), n_items=4
    )
    assert measure(metric(k=2, propensity=SEEN), evidence) == pytest.approx(snips, abs=1e-6)
    corrected = metric(k=2, propensity=SEEN, estimator="ips")
    assert measure(corrected, evidence) == pytest.approx(ips, abs=1e-6)


@pytest.mark.parametrize("estimator", ["snips", "ips"])
@pytest.mark.parametrize(
    ("corrected", "plain"),
    [(PropensityRecall, Recall), (PropensityNDCG, NDCG), (PropensityMAP, MAP)],
)
def test_equal_propensities_correct_nothing(corrected: Any, plain: Any, estimator: str) -> None:
    rng = np.random.default_rng(0)
    lists = [rng.permutation(12)[:5].tolist() for _ in range(20)]
    relevant = [rng.permutation(12)[: rng.integers(0, 9)].tolist() for _ in range(20)]
    evidence = make_evidence(make_lists(lists), relevant, items=make_items([0.2] * 12), n_items=12)
    for k in (3, 5, 8, None):
        np.testing.assert_allclose(
            corrected(k=k, propensity=SEEN, estimator=estimator).values(evidence),
            plain(k=k).values(evidence),
        )


def test_popularity_to_a_power_and_the_clip(recwarn: pytest.WarningsRecorder) -> None:
    # counts 4, 1, 0: propensities 1, 1/2, 0; of 4 test items one has a weight above 3
    users, items = np.array([0, 1, 2, 3, 0]), np.array([0, 0, 0, 0, 1])
    ids = make_vocabulary("u", 4), make_vocabulary("i", 3)
    train = Interactions(
        users.astype(np.int32), items.astype(np.int32), np.ones(5, np.float32), None, *ids
    )
    evidence = make_evidence(make_lists([[0], [1]]), [[0, 1], [1, 2]], n_items=3, train=train)
    assert measure(PropensityRecall(clip=3.0), evidence) == pytest.approx([1 / 3, 2 / 5])
    assert "1 of the test items (25.0%) have a propensity below 0.333" in str(recwarn[0].message)


@pytest.mark.parametrize("wrong", [0.0, 1.5, math.nan])
def test_what_is_no_propensity_is_refused(wrong: float) -> None:
    evidence = make_evidence(make_lists([[0]]), [[1]], items=make_items([1, wrong]), n_items=2)
    with pytest.raises(OutOfRange, match="the item i1 has the propensity"):
        PropensityRecall(propensity=SEEN).values(evidence)


def test_true_recall_is_recovered_under_the_true_propensities_only() -> None:
    # users like 40 of 120 items and see them with p; the list shows ten of those that all see
    # and ten of those that few see, of which it knows twice as many that the users like
    rng = np.random.default_rng(1)
    n, n_items = 600, 120
    p = np.where(np.arange(n_items) < 60, 0.9, 0.25)
    likes = rng.random((n, n_items)) < 1 / 3
    scores = likes * np.where(p > 0.5, 0.1, 0.4) + rng.random((n, n_items))
    lists = np.argsort(-scores, axis=1)[:, :20]
    truth = np.mean(np.take_along_axis(likes, lists, 1).sum(axis=1) / likes.sum(axis=1))
    relevant = [np.flatnonzero(row).tolist() for row in likes & (rng.random(likes.shape) < p)]
    evidence = make_evidence(
        make_lists(lists.tolist()), relevant, items=make_items(p), n_items=n_items
    )
    error = {
        name: float(np.mean(metric.values(evidence)) - truth)
        for name, metric in {
            "snips": PropensityRecall(propensity=SEEN),
            "ips": PropensityRecall(propensity=SEEN, estimator="ips"),
            "none": Recall(),
        }.items()
    }
    assert abs(error["snips"]) < 0.01
    assert abs(error["ips"]) < 0.01
    assert error["none"] < -0.02


def test_the_interval_of_ips_allows_for_the_error_of_the_mean_weight() -> None:
    # lists of popular items, whose weights are small; the jackknife estimates the mean weight anew
    rng = np.random.default_rng(3)
    n, n_items = 400, 20
    p = np.geomspace(1.0, 0.05, n_items)
    likes = rng.random((n, n_items)) < 0.3
    relevant = [np.flatnonzero(row).tolist() for row in likes & (rng.random(likes.shape) < p)]
    lists = [rng.permutation(8)[:5].tolist() for _ in range(n)]

    def weigh(rows: Any) -> Any:
        evidence = make_evidence(
            make_lists([lists[row] for row in rows]),
            [relevant[row] for row in rows],
            items=make_items(p),
            n_items=n_items,
        )
        return PropensityNDCG(propensity=SEEN, estimator="ips").measure(evidence)[0]

    tested = [row for row in range(n) if relevant[row]]
    without = np.array([weigh([row for row in tested if row != at]).value for at in tested])
    error = math.sqrt(((without - without.mean()) ** 2).sum() * (len(tested) - 1) / len(tested))
    row = weigh(range(n))
    assert (row.ci_high - row.ci_low) / 2 / 1.966 == pytest.approx(error, rel=0.02)
    assert error > 1.2 * row.std / math.sqrt(row.n)


def test_an_unknown_column_is_refused_before_training() -> None:
    evidence = make_evidence(make_lists([[0]]), [[1]], items=make_items([1, 1]), n_items=2)
    with pytest.raises(UnknownColumn) as raised:
        PropensityMAP(propensity=Propensity(of="sen")).check(evidence)
    assert raised.value.where == "propensity.of"
