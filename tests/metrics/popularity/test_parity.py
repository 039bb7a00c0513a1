from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import collect_warnings
from recbias.metrics.popularity.parity import PopREO, PopRSP
from support.evidence_worlds import make_evidence, make_lists
from support.popularity_worlds import TRAIN, make_item_counts
from support.worlds import make_interactions

METRICS = (PopREO, PopRSP)


def facts(
    lists: list[list[int]], relevant: list[list[int]] | None = None, **others: Any
) -> Evidence:
    """Lists over the five items, of which the last, never chosen, is no candidate."""
    known = {"train": TRAIN, "n_items": 5, "candidates": TRAIN.item_counts() > 0, **others}
    return make_evidence(make_lists(lists, outside=["new"]), relevant, **known)


def only(metric: Any, of: Evidence) -> Measurement:
    (found,) = metric.measure(of)
    assert isinstance(found, Measurement)
    return found


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # head 0.75 of 8 interactions: items 0 and 1; tail: 2 and 3
        # lists 0 2 | 2 3 | 1 | 1 2 of users with {0 1 2} {0 1} {0} {0 3}
        # REO: test items 3 | 2 | 1 2 | 1: of the head 2 (found 1 1), of the tail 3 (found 2)
        # P_head = 2/2, P_tail = 1/3: (1 - 1/3) / (1 + 1/3) = 1/2
        (PopREO(head=0.75), 1 / 2),
        # RSP: of the head recommended 0 | | 1 | 1, 3 in all; could be 0 + 0 + 1 + 1 = 2 of items
        # that users do not have; of the tail 2 | 2 3 | | 2, 4; could be 1 + 2 + 2 + 1 = 6
        # P_head = 3/2 (a list that holds what the user has), P_tail = 4/6:
        # (3/2 - 2/3) / (3/2 + 2/3) = 5/13
        (PopRSP(head=0.75), 5 / 13),
        # cut to one place 0 | 2 | 1 | 1: REO finds 2 of 2 and 1 of 3
        (PopREO(head=0.75, k=1), 1 / 2),
        # RSP: 3/2 of the head, 1/6 of the tail: (9/6 - 1/6) / (10/6)
        (PopRSP(head=0.75, k=1), 4 / 5),
    ],
)
def test_worked_example(metric: Any, expected: float) -> None:
    found = only(metric, facts([[0, 2], [2, 3], [1], [1, 2]], [[3], [2], [1, 2], [1]]))
    assert found.value == pytest.approx(expected)
    assert (found.n, found.undefined) == (4, 0)
    assert found.units is None


def test_the_head_may_be_a_share_of_the_items() -> None:
    lists, relevant = [[0], [2]], [[0, 1], [2, 3]]
    # 0.2 of five items is item 0: found 1 of 1, of 1 2 3 found 1
    found = only(PopREO(head=0.2, head_of="items"), facts(lists, relevant))
    assert found.value == pytest.approx((1 - 1 / 3) / (1 + 1 / 3))
    # 0.4 are items 0 and 1: 1 of 2 and 1 of 2
    assert only(PopREO(head=0.4, head_of="items"), facts(lists, relevant)).value == 0.0


def test_all_that_could_be_recommended_is_parity() -> None:
    # everybody is recommended every candidate that they do not have: both chances are 1
    found = only(PopRSP(head=0.75), facts([[3], [2, 3], [1, 2, 3], [1, 2]]))
    assert found.value == pytest.approx(0.0)


def test_one_group_that_is_never_recommended_is_the_worst() -> None:
    assert only(PopRSP(head=0.75), facts([[3], [2], [2], [2]])).value == 1.0
    assert only(PopREO(head=0.75), facts([[1]], [[1, 2]])).value == 1.0


@pytest.mark.parametrize(
    ("metric", "relevant"),
    [
        (PopREO(head=0.75), [[0], [1]]),  # no relevant item of the tail
        (PopREO(head=0.75), [[1], [3]]),  # neither is found
        (PopREO(head=0.0), [[0], [2]]),  # nothing is in the head
        (PopRSP(head=1.0), [[0], [2]]),  # no candidate is in the tail
    ],
)
def test_what_cannot_be_compared_is_nan_and_counted(
    metric: Any, relevant: list[list[int]]
) -> None:
    found = only(metric, facts([[0], [2]], relevant, n_bootstrap=5))
    assert math.isnan(found.value)
    assert (found.n, found.undefined) == (0, 2)
    assert found.replicates is not None
    assert found.replicates.shape == (5,)


@pytest.mark.parametrize("metric", METRICS)
def test_no_query_is_nan(metric: Any) -> None:
    found = only(metric(), facts([], [], n_bootstrap=5))
    assert math.isnan(found.value)
    assert found.replicates is not None
    assert np.isnan(found.replicates).all()


def test_items_that_are_no_candidates_are_left_out_and_said() -> None:
    with collect_warnings() as notes:
        # 4 is no candidate and 5 outside the catalogue; 4 is relevant to the second
        found = only(PopREO(head=0.75), facts([[0, 5], [4, 2]], [[0, 1], [2, 4]]))
    assert found.value == pytest.approx((1 - 1 / 2) / (1 + 1 / 2))
    assert notes == [
        "the metric: 1 test items are no candidates of known popularity, and are left out"
    ]
    with collect_warnings() as notes:
        only(PopRSP(head=0.75), facts([[0, 5], [4, 2]]))
    assert notes == [
        "the metric: 1 items of the lists are no candidates of known popularity, and are left out"
    ]


def test_without_candidates_named_they_are_the_items_with_a_training_row() -> None:
    lists = [[0, 2], [2, 3], [1, 4], [1, 2]]
    bare, named = (only(PopRSP(), facts(lists, **each)) for each in ({"candidates": None}, {}))
    assert bare.value == named.value


@pytest.mark.parametrize("metric", METRICS)
def test_what_is_missing_is_said(metric: Any) -> None:
    with pytest.raises(MissingEvidence, match="needs train"):
        metric().measure(facts([[0]], [[0]], train=None))
    with pytest.raises(MissingEvidence, match="needs items"):
        metric(popularity="n_ratings").measure(facts([[0]], [[0]]))
    with pytest.raises(UnknownColumn) as error:
        metric(popularity="n_rating").check(facts([[0]], items=make_item_counts([1, 1, 1, 1, 1])))
    assert error.value.where == "popularity"
    if metric is PopREO:
        with pytest.raises(MissingEvidence, match="needs test"):
            metric().measure(facts([[0]]))


@pytest.mark.parametrize("metric", METRICS)
def test_a_column_of_the_items_can_stand_for_popularity(metric: Any) -> None:
    lists, relevant = [[0, 2], [2, 3], [1], [1, 2]], [[3], [2], [1, 2], [1]]
    items = make_item_counts([40, 20, 10, 10, 0])
    by_column = only(
        metric(head=0.75, popularity="n_ratings"), facts(lists, relevant, items=items)
    )
    assert by_column.value == only(metric(head=0.75), facts(lists, relevant)).value


@pytest.mark.parametrize("metric", METRICS)
def test_samples_are_the_figure_of_resampled_queries(metric: Any) -> None:
    rng = np.random.default_rng(3)
    pairs = [(user, int(item)) for user in range(30) for item in rng.permutation(12)[:4]]
    pairs += [(user, 0) for user in range(30) if (user, 0) not in pairs]

    def world(users: Any, n_bootstrap: int) -> Evidence:
        own = [(new, item) for new, old in enumerate(users) for user, item in pairs if user == old]
        lists = [np.random.default_rng(each).permutation(12)[:3].tolist() for each in users]
        test = [np.random.default_rng(99 + each).permutation(12)[:5].tolist() for each in users]
        popular = make_item_counts([float(24 - each) for each in range(12)])
        return make_evidence(
            make_lists(lists),
            test,
            n_items=12,
            train=make_interactions(own, n_items=12),
            items=popular,
            candidates=np.ones(12, dtype=bool),
            n_bootstrap=n_bootstrap,
            bootstrap_seed=11,
        )

    of = metric(head=0.4, head_of="items", popularity="n_ratings")
    found = only(of, world(range(30), 25))
    draws = np.random.default_rng(11)
    samples = [draws.integers(30, size=30) for _ in range(25)]
    expected = [only(of, world(each.tolist(), 1)).value for each in samples]
    assert found.replicates == pytest.approx(np.array(expected), rel=1e-12)
    half = 1.959963984540054 * float(np.std(expected, ddof=1))
    assert found.ci_low == pytest.approx(found.value - half, rel=1e-9)


@given(seed=st.integers(0, 2**32 - 1))
def test_figures_stay_in_their_range_and_do_not_know_names(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = [(user, int(item)) for user in range(6) for item in rng.permutation(9)[:3]]
    lists = [rng.permutation(9)[: rng.integers(1, 5)].tolist() for _ in range(6)]
    test = [rng.permutation(9)[:3].tolist() for _ in range(6)]
    column = rng.permutation(9) + 1.0
    name = rng.permutation(9)
    other = make_evidence(
        make_lists([name[each].tolist() for each in lists]),
        [name[each].tolist() for each in test],
        n_items=9,
        train=make_interactions([(user, int(name[item])) for user, item in pairs], n_items=9),
        items=make_item_counts(column[np.argsort(name)].tolist()),
        n_bootstrap=2,
    )
    train = make_interactions(pairs, n_items=9)
    items = make_item_counts(column.tolist())
    one = make_evidence(
        make_lists(lists), test, n_items=9, train=train, items=items, n_bootstrap=2
    )
    for metric in METRICS:
        of = metric(popularity="n_ratings")
        found, renamed = only(of, one).value, only(of, other).value
        assert math.isnan(found) or 0 <= found <= 1
        assert renamed == pytest.approx(found, nan_ok=True)
