from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes
from recbias.core.errors import NothingLeft, UnknownColumn
from recbias.core.evidence import Evidence
from recbias.metrics import item_groups
from recbias.metrics.exposure import (
    ExpectedExposureDisparity,
    ExpectedExposureLoss,
    ExpectedExposureRelevance,
)
from support.worlds.evidence_worlds import make_evidence, make_lists, make_user_queries
from support.worlds.exposure_worlds import (
    average_ideal_rankings,
    list_candidates,
    list_exposures,
    list_items,
    list_relevant,
    make_exposure_evidence,
    make_makers,
    make_random_world,
    measure_one,
    measure_queries,
    sum_makers,
)

METRICS = (ExpectedExposureDisparity, ExpectedExposureRelevance, ExpectedExposureLoss)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # u0: list 0 2 3 with exposures 1, 1/2, 1/4; candidates 0 2 3 4, of which 2 and 4 relevant:
        # target (1 + 1/2) / 2 = 3/4 of 2 and 4, (1/4 + 1/8) / 2 = 3/16 of 0 and 3
        (ExpectedExposureDisparity(gamma=0.5), 1 + 1 / 4 + 1 / 16),
        (ExpectedExposureRelevance(gamma=0.5), 1 / 2 * 3 / 4 + (1 + 1 / 4) * 3 / 16),
        (
            ExpectedExposureLoss(gamma=0.5),
            (13 / 16) ** 2 + (1 / 4) ** 2 + (1 / 16) ** 2 + (3 / 4) ** 2,
        ),
        # makers: exposure a 1 + 1/8, b 1/2 + 1/8; target a 3/16 + 3/32, b 3/4 + 3/32
        (ExpectedExposureDisparity(gamma=0.5, attribute="maker"), (81 + 25) / 64),
        (
            ExpectedExposureRelevance(gamma=0.5, attribute="maker"),
            9 / 8 * 9 / 32 + 5 / 8 * 27 / 32,
        ),
        (ExpectedExposureLoss(gamma=0.5, attribute="maker"), (27 / 32) ** 2 + (7 / 32) ** 2),
        # item 3 in full to both: exposure a 5/4, b 3/4; target a 3/8, b 15/16
        (
            ExpectedExposureLoss(gamma=0.5, attribute="maker", multiple="full"),
            (7 / 8) ** 2 + (3 / 16) ** 2,
        ),
        # item 4 is a group of its own: exposure 0, target 3/4
        (
            ExpectedExposureLoss(gamma=0.5, attribute="maker", ungrouped="group"),
            (27 / 32) ** 2 + (7 / 32) ** 2 + (3 / 4) ** 2,
        ),
    ],
)
def test_values_equal_those_worked_by_hand(metric: Any, expected: float) -> None:
    assert measure_queries(metric, make_exposure_evidence())[0] == pytest.approx(
        expected, abs=1e-12
    )


def test_a_query_without_a_relevant_item_is_undefined_and_counted() -> None:
    evidence = make_exposure_evidence([[0], [1], [2]], [[0], [], [5]])  # 5 is no candidate
    for metric in METRICS:
        with collect_warnings() as warnings:
            measurement = measure_one(metric(attribute="maker"), evidence)
        assert (measurement.n, measurement.undefined) == (1, 2)
        assert warnings == ["the metric: 1 test items cannot be recommended and are not relevant"]


@given(seed=st.integers(0, 2**32 - 1), browsing=st.sampled_from(["rbp", "dcg"]))
def test_values_equal_a_loop_over_all_ideal_rankings(seed: int, browsing: Any) -> None:
    evidence = make_random_world(seed)
    with collect_warnings():
        by_item, by_maker = (
            [
                measure_queries(metric(browsing=browsing, attribute=attribute), evidence)
                for metric in METRICS
            ]
            for attribute in (None, "maker")
        )
    for query in range(len(evidence.queries)):
        relevant = list_relevant(evidence, query)
        if not relevant:
            assert all(np.isnan(values[query]) for values in (*by_item, *by_maker))
            continue
        exposure = list_exposures(list_items(evidence, query), browsing)
        target = average_ideal_rankings(list_candidates(evidence, query), relevant, browsing, 0.8)
        check_terms([values[query] for values in by_item], exposure, target)
        sums = sum_makers(exposure, evidence), sum_makers(target, evidence)
        check_terms([values[query] for values in by_maker], *sums)


def check_terms(terms: list[float], exposure: Any, target: Any) -> None:
    keys = {*exposure, *target}
    given_, due = (np.array([of.get(key, 0.0) for key in keys]) for of in (exposure, target))
    assert terms == pytest.approx(
        [given_ @ given_, given_ @ due, (given_ - due) @ (given_ - due)], abs=1e-9
    )


@given(seed=st.integers(0, 2**32 - 1))
def test_items_of_one_maker_may_be_exchanged_if_they_are_equally_relevant(seed: int) -> None:
    """Groups do not see which of their members is shown."""
    rng = np.random.default_rng(seed)
    makers = ["a", "a", "a", "b", "b", "b"]
    order = rng.permutation(6)
    exchanged = np.concatenate([rng.permutation(3), 3 + rng.permutation(3)])
    relevant = [0, 1, 2] if rng.random() < 0.5 else [3, 4, 5]
    lists = make_lists([order[:4].tolist(), exchanged[order[:4]].tolist()])
    evidence = make_evidence(lists, [relevant, relevant], n_items=6, items=make_makers(makers))
    for metric in METRICS:
        before, after = measure_queries(metric(attribute="maker"), evidence)
        assert after == pytest.approx(before, abs=1e-12)


def make_samples(lists: list[list[int]], names: list[str | None], relevant: Any) -> Evidence:
    """Return several lists a query; only the first of each is a user of the dataset."""
    queries = make_user_queries(len(lists), users=[-1] * len(lists))
    labels = pd.DataFrame({"person": np.array(names, dtype=object)})
    queries = replace(queries, labels=Attributes(queries.ids, labels, "query"))
    every = np.ones(4, dtype=bool)
    return make_evidence(make_lists(lists), relevant, n_items=4, queries=queries, candidates=every)


def test_exposure_is_the_mean_over_the_lists_of_a_query() -> None:
    # both orders of the two relevant items, half each: the target itself, but for the other items
    evidence = make_samples([[0, 1], [1, 0], [2]], ["p", "p", "q"], [[0, 1], [], [2]])
    disparity, loss = (
        measure_one(metric(gamma=0.5, samples_of="person"), evidence)
        for metric in (ExpectedExposureDisparity, ExpectedExposureLoss)
    )
    assert disparity.units is not None
    assert loss.units is not None
    assert disparity.units.ids.tolist() == ["p", "q"]
    assert disparity.units.values == pytest.approx([2 * (3 / 4) ** 2, 1.0])
    # others of p: (1/4 + 1/8) / 2 each of 2 and 3; of q: (1/2 + 1/4 + 1/8) / 3 each of 0, 1 and 3
    assert loss.units.values == pytest.approx([2 * (3 / 16) ** 2, 3 * (7 / 24) ** 2])


def test_lists_without_the_label_of_their_query_are_excluded_with_a_warning() -> None:
    evidence = make_samples([[0], [1], [2]], ["p", None, "q"], [[0], [1], [2]])
    with collect_warnings() as warnings:
        measurement = measure_one(ExpectedExposureLoss(samples_of="person"), evidence)
    assert measurement.n == 2
    assert warnings == ["the metric: 1 lists without person are excluded"]
    with pytest.raises(UnknownColumn) as unknown:
        ExpectedExposureLoss(samples_of="persons").check(evidence)
    assert unknown.value.where == "samples_of"
    nobody = make_samples([[0]], [None], [[0]])
    with pytest.raises(NothingLeft, match="no query has a value of 'person'"):
        ExpectedExposureLoss(samples_of="person").check(nobody)


@pytest.mark.parametrize("metric", METRICS)
def test_sparse_sums_of_many_groups_give_the_same_values(
    metric: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = make_random_world(3)
    with collect_warnings():
        of_arrays = measure_queries(metric(attribute="maker"), evidence)
        monkeypatch.setattr(item_groups, "DENSE_GROUPS", 0)
        of_sparse = measure_queries(metric(attribute="maker"), evidence)
    np.testing.assert_allclose(of_sparse, of_arrays, rtol=1e-12)
