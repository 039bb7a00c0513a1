"""Agreement of rankings over orders of presentation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, ttest_rel

from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray
from recbias.core.errors import Contradiction, NothingLeft, UnknownColumn, UserError
from recbias.core.evidence import Evidence, RankedLists, Responses
from recbias.core.measures import Measurement
from recbias.metrics.identity import IdentityEffect, ListOverlap, OverlapSpread
from recbias.metrics.labels import FirstSlotShare, OrderAgreement, Unmatched, compute_agreement
from support.worlds.evidence_worlds import make_evidence, make_lists
from support.worlds.query_sets import make_queries
from support.worlds.template_worlds import (
    make_priced_items,
    make_prompt_evidence,
    make_prompt_queries,
)

N_ITEMS = 40


Row = tuple[str, str | None, int, int, list[int]]
"""Template, gender, neutral, sample, and the list."""


PAIRED: tuple[Row, ...] = (
    ("t1", "f", 0, 0, [0, 1]),
    ("t1", "m", 0, 0, [0, 2]),
    ("t1", None, 1, 0, [0, 1]),
    ("t1", None, 1, 1, [0, 3]),
    ("t2", "f", 0, 0, [4, 5]),
    ("t2", "m", 0, 0, [7, 8]),
    ("t2", None, 1, 0, [4, 6]),
    ("t2", None, 1, 1, [4, 6]),
)
"""Overlaps: f 1 and 1/3, m 1/3 and 0, neutral again 1/3 and 1."""


def make_evidence_list_overlap(rows: Sequence[Row], **fields: Any) -> Evidence:
    columns = ["template", "gender", "neutral", "sample"]
    table = pd.DataFrame([row[:4] for row in rows], columns=columns)
    table = table.astype({"template": object, "gender": object, "neutral": float, "sample": float})
    items = make_priced_items(["$"] * N_ITEMS)
    queries = make_prompt_queries(table.where(table.notna(), None))
    return make_prompt_evidence(queries, [row[4] for row in rows], items, **fields)


def index_measurements(measurements: Sequence[Measurement]) -> dict[str, Measurement]:
    return {measurement.group or measurement.target: measurement for measurement in measurements}


def test_means_by_hand() -> None:
    overlap = index_measurements(
        ListOverlap(label="gender").measure(make_evidence_list_overlap(PAIRED))
    )
    assert overlap["gender=f"].value == pytest.approx((1 + 1 / 3) / 2)
    assert overlap["gender=m"].value == pytest.approx((1 / 3 + 0) / 2)
    assert overlap[""].value == pytest.approx((1 + 1 / 3 + 1 / 3 + 0) / 4)
    assert overlap["control"].value == pytest.approx((1 / 3 + 1) / 2)
    units = overlap["gender=f"].units
    assert units.ids.tolist() == ["template=t1", "template=t2"]


def test_effect_by_hand() -> None:
    effect = index_measurements(
        IdentityEffect(label="gender").measure(make_evidence_list_overlap(PAIRED))
    )
    # gaps of f 0 and 2/3, of m 2/3 and 1, of the control 2/3 and 0
    assert effect["gender=f"].value == pytest.approx(((0 - 2 / 3) + (2 / 3 - 0)) / 2)
    assert effect["gender=m"].value == pytest.approx(((2 / 3 - 2 / 3) + (1 - 0)) / 2)
    # both genders of a template together: (0 + 2/3) / 2 - 2/3 and (2/3 + 1) / 2 - 0
    assert effect[""].value == pytest.approx((-1 / 3 + 5 / 6) / 2)
    units = effect[""].units
    assert units.ids.tolist() == ["template=t1", "template=t2"]
    (test,) = effect["gender=m"].contrasts
    theirs = ttest_rel([2 / 3, 1], [2 / 3, 0])
    assert (test.statistic, test.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert (test.a, test.b) == ("gender=m", "neutral sampled again")


def test_a_control_without_a_common_item_is_a_warning() -> None:
    rows = [(*row[:4], [20 + n, 30]) if row[3] else row for n, row in enumerate(PAIRED)]
    with collect_warnings() as warnings:
        IdentityEffect(label="gender").measure(make_evidence_list_overlap(PAIRED))
    assert warnings == []
    with collect_warnings() as warnings:
        effect = index_measurements(
            IdentityEffect(label="gender").measure(make_evidence_list_overlap(rows))
        )
    assert effect["gender=m"].value <= 0
    assert "no effect of an identity could be seen" in warnings[0]


def test_spread_by_hand() -> None:
    evidence = make_evidence_list_overlap(PAIRED)
    (spread,) = OverlapSpread(label="gender").measure(evidence)
    assert spread.value == pytest.approx(2 / 3 - 1 / 6)
    (test,) = spread.contrasts
    assert (test.a, test.b, test.n) == ("gender=f", "gender=m", 4)
    # swapping the labels in t1, t2 or both: means differ by 1/6, 1/6 and 1/2
    assert test.p == pytest.approx(2 / 4)
    (std,) = OverlapSpread(label="gender", spread="std").measure(evidence)
    assert std.value == pytest.approx(1 / 4)


def test_items_outside_the_catalogue_keep_their_rank_and_overlap_with_nothing() -> None:
    lists = {"f": [0, N_ITEMS], "m": [0, 1], None: [0, N_ITEMS]}
    rows: list[Row] = [
        (template, label, int(label is None), 0, listed)
        for template in ("t1", "t2")
        for label, listed in lists.items()
    ]
    outside = np.array(["(unknown, rank 2) A"], dtype=object)
    evidence = make_evidence_list_overlap(rows)
    ranked = RankedLists(evidence.ranked.items, evidence.ranked.scores, outside)
    overlap = ListOverlap(label="gender").measure(replace(evidence, lists=ranked))
    assert index_measurements(overlap)["gender=f"].value == pytest.approx(1 / 3)


def test_a_group_of_one_prompt_has_no_interval_and_a_warning() -> None:
    rows = [*PAIRED, ("t1", "x", 0, 0, [0, 9])]
    with collect_warnings() as warnings:
        overlap = index_measurements(
            ListOverlap(label="gender").measure(make_evidence_list_overlap(rows))
        )
    assert "the metric: gender=x has one neutral prompt: no interval" in warnings
    assert math.isnan(overlap["gender=x"].ci_low)


@pytest.mark.parametrize(
    ("metric", "rows", "error", "where"),
    [
        (ListOverlap(label="age"), PAIRED, UnknownColumn, "label"),
        (ListOverlap(label="gender", neutral="plain == 1"), PAIRED, UnknownColumn, "neutral"),
        (ListOverlap(label="gender", neutral="neutral == 2"), PAIRED, NothingLeft, "neutral"),
        (ListOverlap(label="gender", pair="city"), PAIRED, UnknownColumn, "pair"),
        (ListOverlap(label="gender"), [*PAIRED, PAIRED[2]], Contradiction, "pair"),
        (ListOverlap(label="gender"), [PAIRED[0], PAIRED[6]], NothingLeft, "pair"),
        (ListOverlap(label="gender"), [PAIRED[0], PAIRED[2]], NothingLeft, "label"),
        (IdentityEffect(label="gender"), [*PAIRED[:3], *PAIRED[4:7]], NothingLeft, "neutral"),
    ],
)
def test_faults_name_the_setting(
    metric: Any, rows: Sequence[Row], error: type[UserError], where: str
) -> None:
    with pytest.raises(error) as caught:
        metric.check(make_evidence_list_overlap(rows))
    assert caught.value.where == where
    assert caught.value.remedy


def sample_world(seed: int, *, n_templates: int = 12, n_values: int = 3) -> Evidence:
    """Return lists that depend on the template only, as on a model that ignores identities."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for template in range(n_templates):
        weights = rng.dirichlet(np.full(N_ITEMS, 0.3))
        scores = np.log(weights + 1e-9)
        identities = [(f"v{value}", 0, 0) for value in range(n_values)]
        for label, neutral, sample in [*identities, (None, 1, 0), (None, 1, 1)]:
            listed = np.argsort(-scores - rng.gumbel(size=N_ITEMS))[:5].tolist()
            rows.append((f"t{template}", label, neutral, sample, listed))
    return make_evidence_list_overlap(rows, bootstrap_seed=seed)


@pytest.mark.slow
def test_false_alarms_without_an_effect_are_as_many_as_alpha_says() -> None:
    spread, effect = (
        OverlapSpread(label="gender", permutations=199),
        IdentityEffect(label="gender"),
    )
    n_worlds, p_spread, p_effect = 200, [], []
    for seed in range(n_worlds):
        evidence = sample_world(seed)
        p_spread.append(spread.measure(evidence)[0].contrasts[0].p)
        p_effect.append(effect.measure(evidence)[0].contrasts[0].p)
    # binomial(200, 0.05): 99.9 % of the counts are from 2 to 21
    for p_values in (p_spread, p_effect):
        assert 2 <= np.count_nonzero(np.array(p_values) <= 0.05) <= 21


NAN = np.nan


def make_evidence_order_dependence(labels: pd.DataFrame, ids: list[str]) -> Evidence:
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
    (measured,) = OrderAgreement().measure(
        make_evidence_order_dependence(labels, ["u0"] * 3 + ["u2"] * 2)
    )
    assert measured.units.values == pytest.approx([-1 / 3, NAN, 1], nan_ok=True)
    assert measured.value == pytest.approx(1 / 3)


def test_first_slot_share_is_over_the_orders_with_a_ranking() -> None:
    # u0: 1 of 2 orders, the third has no ranking; u1: none; u2: 1 of 1
    rows = [[1.0, 2.0], [2.0, 1.0], [NAN, NAN], [1.0, 2.0]]
    labels = make_labels(rows, [1, 2, 3, 1], [1, 0, NAN, 1])
    (measured,) = FirstSlotShare().measure(
        make_evidence_order_dependence(labels, ["u0"] * 3 + ["u2"])
    )
    np.testing.assert_array_equal(measured.units.values, [0.5, NAN, 1])


@pytest.mark.parametrize("metric", [OrderAgreement(), FirstSlotShare()])
@pytest.mark.parametrize("labels", [pd.DataFrame(index=range(2)), pd.DataFrame({"order": [1, 2]})])
def test_responses_without_ranks_are_undefined(
    metric: OrderAgreement | FirstSlotShare, labels: pd.DataFrame
) -> None:
    (measured,) = metric.measure(make_evidence_order_dependence(labels, ["u0", "u1"]))
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


LISTS = make_lists([[0, 1, 2], [3, 10, 11], [10], []], outside=["(unknown) A", "(watched) B"])
"""Three, one, no and no item of a catalogue of ten: codes 10 and 11 are outside."""


def make_responses(ids: list[str], **counts: list[int]) -> Responses:
    labels = pd.DataFrame({f"invalid.{name}": column for name, column in counts.items()})
    texts = np.full(len(ids), "text", dtype=object)
    return Responses(np.array(ids, dtype=object), texts, texts, labels.assign(prompt="?"))


def list_values(measurements: list[Measurement]) -> dict[str, list[float]]:
    return {measurement.target: measurement.units.values.tolist() for measurement in measurements}


def assert_equal(values: list[float], expected: list[float]) -> None:
    np.testing.assert_array_equal(values, expected)


def test_ranks_without_an_item_of_the_catalogue_are_counted() -> None:
    (measurement,) = Unmatched().measure(make_evidence(LISTS))
    # the second list has one item in three ranks, the third none; the fourth query has no list
    assert_equal(measurement.units.values.tolist(), [0, 2, 3, math.nan])
    assert (measurement.value, measurement.n, measurement.undefined) == (5 / 3, 3, 1)


def test_reasons_are_read_from_the_replies_by_query() -> None:
    # in another order than the queries, and u0 has no reply
    responses = make_responses(
        ["u3", "u1", "u2"], unknown=[0, 1, 1], watched=[0, 1, 0], missing=[3, 0, 2]
    )
    total, *reasons = Unmatched().measure(make_evidence(LISTS, responses=responses))
    assert_equal(list_values([total])[""], [0, 2, 3, 3])  # the empty reply to u3 is three ranks
    # unknown: 1, 1, 0 of u1, u2, u3; watched: 1, 0, 0; missing: 0, 2, 3
    expected = {"unknown": 2 / 3, "watched": 1 / 3, "missing": 5 / 3}
    assert {row.target: row.value for row in reasons} == {
        f"reason={reason}": pytest.approx(value) for reason, value in expected.items()
    }
    assert all((row.n, row.undefined) == (3, 1) for row in reasons)
