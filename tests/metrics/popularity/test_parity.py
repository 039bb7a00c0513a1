from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.metrics.popularity import PopREO, PopRSP
from support.worlds.evidence_worlds import make_evidence, make_lists
from support.worlds.popularity_worlds import TRAIN, make_item_counts
from support.worlds.small_worlds import make_interactions

METRICS = (PopREO, PopRSP)


def make_lists_evidence(
    lists: list[list[int]], relevant: list[list[int]] | None = None, **fields: Any
) -> Evidence:
    """Return lists over five items; the last has no interaction and is not a candidate."""
    defaults = {"train": TRAIN, "n_items": 5, "candidates": TRAIN.item_counts() > 0, **fields}
    return make_evidence(make_lists(lists, outside=["new"]), relevant, **defaults)


def measure(metric: Any, evidence: Evidence) -> Measurement:
    (measurement,) = metric.measure(evidence)
    assert isinstance(measurement, Measurement)
    return measurement


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # head 0.75 of 8 interactions: items 0 and 1; tail: 2 and 3
        # lists 0 2 | 2 3 | 1 | 1 2 of users with {0 1 2} {0 1} {0} {0 3}
        # REO: test items 3 | 2 | 1 2 | 1:
        # of the head 2 (recommended 1 1), of the tail 3 (recommended 2)
        # P_head = 2/2, P_tail = 1/3: (1 - 1/3) / (1 + 1/3) = 1/2
        (PopREO(head=0.75), 1 / 2),
        # RSP: of the head recommended 0 | | 1 | 1, 3 in all; could be 0 + 0 + 1 + 1 = 2 of items
        # that users do not have; of the tail 2 | 2 3 | | 2, 4; could be 1 + 2 + 2 + 1 = 6
        # P_head = 3/2 (a list that holds what the user has), P_tail = 4/6:
        # (3/2 - 2/3) / (3/2 + 2/3) = 5/13
        (PopRSP(head=0.75), 5 / 13),
        # cut to one rank 0 | 2 | 1 | 1: REO finds 2 of 2 and 1 of 3
        (PopREO(head=0.75, k=1), 1 / 2),
        # RSP: 3/2 of the head, 1/6 of the tail: (9/6 - 1/6) / (10/6)
        (PopRSP(head=0.75, k=1), 4 / 5),
    ],
)
def test_values_equal_those_worked_by_hand(metric: Any, expected: float) -> None:
    measurement = measure(
        metric, make_lists_evidence([[0, 2], [2, 3], [1], [1, 2]], [[3], [2], [1, 2], [1]])
    )
    assert measurement.value == pytest.approx(expected)
    assert (measurement.n, measurement.undefined) == (4, 0)
    assert measurement.units is None


def test_recommending_every_possible_item_is_parity() -> None:
    # everybody is recommended every candidate that they do not have: both chances are 1
    measurement = measure(PopRSP(head=0.75), make_lists_evidence([[3], [2, 3], [1, 2, 3], [1, 2]]))
    assert measurement.value == pytest.approx(0.0)


@pytest.mark.parametrize("metric", METRICS)
def test_replicates_equal_the_estimates_of_resampled_queries(metric: Any) -> None:
    rng = np.random.default_rng(3)
    pairs = [(user, int(item)) for user in range(30) for item in rng.permutation(12)[:4]]
    pairs += [(user, 0) for user in range(30) if (user, 0) not in pairs]

    def build_world(users: Any, n_bootstrap: int) -> Evidence:
        resampled = [
            (new, item) for new, old in enumerate(users) for user, item in pairs if user == old
        ]
        lists = [np.random.default_rng(user).permutation(12)[:3].tolist() for user in users]
        test = [np.random.default_rng(99 + user).permutation(12)[:5].tolist() for user in users]
        popular = make_item_counts([float(24 - user) for user in range(12)])
        return make_evidence(
            make_lists(lists),
            test,
            n_items=12,
            train=make_interactions(resampled, n_items=12),
            items=popular,
            candidates=np.ones(12, dtype=bool),
            n_bootstrap=n_bootstrap,
            bootstrap_seed=11,
        )

    of = metric(head=0.4, head_of="items", popularity="n_ratings")
    measurement = measure(of, build_world(range(30), 25))
    draws = np.random.default_rng(11)
    samples = [draws.integers(30, size=30) for _ in range(25)]
    expected = [measure(of, build_world(sample.tolist(), 1)).value for sample in samples]
    # a sample in which the other group is the favoured one is negative
    assert measurement.replicates is not None
    assert np.abs(measurement.replicates) == pytest.approx(np.array(expected), rel=1e-12)
    half = 1.959963984540054 * float(np.std(measurement.replicates, ddof=1))
    assert measurement.ci_low == pytest.approx(measurement.value - half, rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*not candidates")
def test_candidates_default_to_items_with_training_interactions() -> None:
    lists = [[0, 2], [2, 3], [1, 4], [1, 2]]
    bare, named = (
        measure(PopRSP(), make_lists_evidence(lists, **fields))
        for fields in ({"candidates": None}, {})
    )
    assert bare.value == named.value
