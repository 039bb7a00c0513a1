"""Agreement of rankings over orders of presentation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from recbias.core.dataset import FloatArray
from recbias.core.evidence import Evidence, Responses
from recbias.metrics.labels import FirstSlotShare, OrderAgreement, compute_agreement
from support.worlds.query_sets import make_queries

NAN = np.nan


def make_evidence(labels: pd.DataFrame, ids: list[str]) -> Evidence:
    queries = make_queries(["u0", "u1", "u2"], [0, 1, 2])
    empty = np.full(len(ids), None, dtype=object)
    responses = Responses(np.array(ids, dtype=object), empty, empty, labels)
    return Evidence(queries, queries.ids, responses=responses)


def make_labels(rows: list[list[float]], orders: list[int], first: list[float]) -> pd.DataFrame:
    ranks = {f"rank.{n}": values for n, values in enumerate(np.array(rows).T, 1)}
    return pd.DataFrame({"order": orders, **ranks, "first_slot": first})


def test_agreement_is_the_mean_tau_over_pairs_of_rankings() -> None:
    # u0: 123, 132, 321. Pairs of candidates (1,2), (1,3), (2,3) agree as follows:
    # 123 and 132: + + -  -> 1/3; 123 and 321: - - -  -> -1; 132 and 321: - - +  -> -1/3
    # mean: (1/3 - 1 - 1/3) / 3 = -1/3. u2: 213 twice: 1. u1 has no reply: undefined
    rows = [[1.0, 2, 3], [1.0, 3, 2], [3.0, 2, 1], [2.0, 1, 3], [2.0, 1, 3]]
    labels = make_labels(rows, [1, 2, 3, 1, 2], [1, 0, 0, 1, 0])
    (measured,) = OrderAgreement().measure(make_evidence(labels, ["u0"] * 3 + ["u2"] * 2))
    assert measured.units is not None
    assert measured.units.values == pytest.approx([-1 / 3, NAN, 1], nan_ok=True)
    assert measured.value == pytest.approx(1 / 3)


def test_first_slot_share_is_over_the_orders_with_a_ranking() -> None:
    # u0: 1 of 2 orders, the third has no ranking; u1: none; u2: 1 of 1
    rows = [[1.0, 2.0], [2.0, 1.0], [NAN, NAN], [1.0, 2.0]]
    labels = make_labels(rows, [1, 2, 3, 1], [1, 0, NAN, 1])
    (measured,) = FirstSlotShare().measure(make_evidence(labels, ["u0"] * 3 + ["u2"]))
    assert measured.units is not None
    np.testing.assert_array_equal(measured.units.values, [0.5, NAN, 1])


@pytest.mark.parametrize("metric", [OrderAgreement(), FirstSlotShare()])
@pytest.mark.parametrize("labels", [pd.DataFrame(index=range(2)), pd.DataFrame({"order": [1, 2]})])
def test_responses_without_ranks_are_undefined(
    metric: OrderAgreement | FirstSlotShare, labels: pd.DataFrame
) -> None:
    (measured,) = metric.measure(make_evidence(labels, ["u0", "u1"]))
    assert measured.units is not None
    assert np.isnan(measured.units.values).all()
    assert np.isnan(measured.value)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(2, 7))
def test_agreement_equals_the_mean_of_scipy(seed: int, n_orders: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    ranks = rng.permuted(np.tile(np.arange(1.0, n + 1), (3, n_orders, 1)), axis=2)
    expected = [
        np.mean([kendalltau(a, b).statistic for j, a in enumerate(rows) for b in rows[:j]])
        for rows in ranks
    ]
    agreement = compute_agreement(ranks)
    assert agreement == pytest.approx(expected)
    assert (agreement >= -1 / (n_orders - 1) - 1e-12).all()
    assert compute_agreement(ranks[:, ::-1]) == pytest.approx(agreement)


def test_fewer_candidates_and_missing_rankings_are_left_out() -> None:
    full = np.array([[1.0, 2, 3], [3, 1, 2], [2, 1, 3]])
    padded: FloatArray = np.full((5, 4), NAN)
    padded[[0, 2, 3], :3] = full
    assert compute_agreement(padded[None]) == pytest.approx(compute_agreement(full[None]))
