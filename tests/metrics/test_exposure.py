from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

import recbias
from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes
from recbias.core.errors import (
    Contradiction,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    UnknownName,
    UserError,
)
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement
from recbias.metrics import exposure as exposures
from recbias.metrics.exposure import (
    AWRF,
    AmortizedAttention,
    AttentionRatio,
    ClicksToRelevance,
    ExpectedExposureDisparity,
    ExpectedExposureLoss,
    ExpectedExposureRelevance,
    ExposureGap,
    ExposureParity,
    ExposureToRelevance,
    ProviderGap,
    ProviderGini,
)
from support.worlds.evidence_worlds import (
    make_evidence,
    make_lists,
    make_user_queries,
    measure_one,
    measure_queries,
)
from support.worlds.exposure_worlds import (
    average_ideal_rankings,
    list_candidates,
    list_exposures,
    list_items,
    list_relevant,
    make_exposure_evidence,
    make_makers,
    make_random_world,
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
        monkeypatch.setattr(exposures, "DENSE_GROUPS", 0)
        of_sparse = measure_queries(metric(attribute="maker"), evidence)
    np.testing.assert_allclose(of_sparse, of_arrays, rtol=1e-12)


HALF: dict[str, Any] = {"attribute": "maker", "browsing": "rbp", "gamma": 0.5}
EXPOSURE_RATIOS_METRICS = (ExposureParity, AttentionRatio, ExposureToRelevance, ClicksToRelevance)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # lists 0 2 3 and 3 1 with 1, 1/2, 1/4: exposure of a 1 + 1/8 + 1/2 + 1/2 = 17/8,
        # of b 1/2 + 1/8 + 1/2 = 9/8; candidates of a 5/2, of b 3/2: means 17/20 and 15/20
        (ExposureParity(**HALF), 15 / 17),
        (AttentionRatio(**HALF), 15 / 17),
        # relevant 2 4 and 0 3: of a 3/2, of b 3/2
        (ExposureToRelevance(**HALF), 9 / 17),
        # clicks: u0 on 2 at rank 2, u1 on 3 at rank 1: a 1/2, b 1/2 + 1/2
        (ClicksToRelevance(**HALF), 1 / 2),
        # cut to one rank: items 0 and 3: a 3/2 of 5/2, b 1/2 of 3/2
        (ExposureParity(**HALF, k=1), (1 / 3) / (3 / 5)),
        # item 3 in full to both: a 1 + 1/4 + 1 + 1/2 of 3, b 1/2 + 1/4 + 1 of 2
        (ExposureParity(**HALF, multiple="full"), (7 / 8) / (11 / 12)),
        # item 4 is never shown
        (ExposureParity(**HALF, ungrouped="group"), 0.0),
    ],
)
def test_values_equal_those_worked_by_hand_of_exposure_ratios(
    metric: Any, expected: float
) -> None:
    measurement = measure_one(metric, make_exposure_evidence())
    assert measurement.value == pytest.approx(expected, abs=1e-12)
    assert (measurement.n, measurement.undefined) == (2, 0)
    assert measurement.units is None


@given(seed=st.integers(0, 2**32 - 1))
def test_values_equal_plain_loops_and_stay_in_range(seed: int) -> None:
    evidence = make_random_world(seed)
    with collect_warnings():
        parity, attention, treatment, impact = (
            measure_one(metric(attribute="maker"), evidence) for metric in EXPOSURE_RATIOS_METRICS
        )
    dcg, rbp = (
        [list_exposures(list_items(evidence, query), browsing) for query in range(5)]
        for browsing in ("dcg", "rbp")
    )
    relevant = [list_relevant(evidence, query) for query in range(5)]
    candidates: Any = evidence.candidates
    ones = dict.fromkeys(np.flatnonzero(candidates).tolist(), 1.0)
    sizes = sum_makers(ones, evidence)
    judged = [query for query in range(5) if relevant[query]]
    relevance = add_makers([dict.fromkeys(relevant[query], 1.0) for query in judged], evidence)
    clicks = [
        {item: exposure for item, exposure in dcg[query].items() if item in relevant[query]}
        for query in judged
    ]
    expected = (
        compare(add_makers(dcg, evidence), sizes),
        compare(add_makers(rbp, evidence), sizes),
        compare(add_makers([dcg[query] for query in judged], evidence), relevance),
        compare(add_makers(clicks, evidence), relevance),
    )
    values = [measurement.value for measurement in (parity, attention, treatment, impact)]
    assert values == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert all(math.isnan(value) or 0 <= value <= 1 for value in values)
    assert treatment.undefined == 5 - (0 if math.isnan(treatment.value) else len(judged))


def add_makers(exposures: list[Any], evidence: Any) -> dict[str, float]:
    totals: dict[str, float] = {}
    for exposure in exposures:
        for maker, part in sum_makers(exposure, evidence).items():
            totals[maker] = totals.get(maker, 0.0) + part
    return totals


def compare(gains: dict[str, float], sizes: Any) -> float:
    values = [gains.get(maker, 0.0) / size for maker, size in sizes.items()]
    if len(values) < 2 or not max(values):
        return math.nan
    return float(min(values) / max(values))


@pytest.mark.parametrize("metric", EXPOSURE_RATIOS_METRICS)
def test_replicates_equal_the_estimates_of_resampled_queries(metric: Any) -> None:
    rng = np.random.default_rng(5)
    lists = [rng.permutation(5)[:3].tolist() for _ in range(12)]
    relevant = [rng.permutation(5)[:2].tolist() for _ in range(12)]
    items = make_makers([*"aabbbb"])

    def measure(queries: Any, n_bootstrap: int) -> Any:
        evidence = make_exposure_evidence(
            [lists[query] for query in queries],
            [relevant[query] for query in queries],
            items=items,
            n_bootstrap=n_bootstrap,
            bootstrap_seed=7,
        )
        return measure_one(metric(attribute="maker"), evidence)

    measurement = measure(range(12), 20)
    draws = np.random.default_rng(7)
    expected = [measure(draws.integers(12, size=12), 1).value for _ in range(20)]
    assert measurement.replicates == pytest.approx(np.array(expected), rel=1e-12)
    factor = math.exp(1.959963984540054 * float(np.std(np.log(expected), ddof=1)))
    ends = (measurement.value / factor, measurement.value * factor)
    assert (measurement.ci_low, measurement.ci_high) == pytest.approx(ends, rel=1e-9)


def test_value_equals_that_worked_by_hand() -> None:
    # u0: attention 4/7, 2/7, 1/7 to 0, 2, 3; relevant 2 and 4, half each
    # u1: attention 2/3, 1/3 to 3, 1; relevant 0 and 3, half each
    # sums of the differences: 1/14, 1/3, -3/14, 13/42, -1/2 of the items 0 to 4
    measurement = measure_one(AmortizedAttention(gamma=0.5), make_exposure_evidence())
    assert measurement.value == pytest.approx(
        (1 / 14 + 1 / 3 + 3 / 14 + 13 / 42 + 1 / 2) / 2 / 5, abs=1e-12
    )
    assert (measurement.n, measurement.undefined) == (2, 0)


def test_lists_that_are_unfair_alone_can_be_fair_together() -> None:
    # both items are relevant to both users, and each is first once
    evidence = make_evidence(make_lists([[0, 1], [1, 0]]), [[0, 1], [0, 1]], n_items=3)
    assert measure_one(AmortizedAttention(), evidence).value == pytest.approx(0.0, abs=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_value_equals_a_plain_loop(seed: int) -> None:
    evidence = make_random_world(seed)
    sums = np.zeros(9)
    judged = 0
    for query in range(5):
        relevant = list_relevant(evidence, query)
        if not relevant:
            continue
        judged += 1
        exposure = list_exposures(list_items(evidence, query))
        for item, share in exposure.items():
            sums[item] += share / sum(exposure.values())
        sums[relevant] -= 1 / len(relevant)
    candidates: Any = evidence.candidates
    value = measure_one(AmortizedAttention(), evidence).value
    if not judged:
        assert math.isnan(value)
        return
    assert value == pytest.approx(np.abs(sums[candidates] / judged).mean(), abs=1e-12)
    assert 0 <= value <= 2 / np.count_nonzero(candidates) + 1e-12


def measure_awrf(lists: list[list[int]], **settings: Any) -> list[float]:
    metric = AWRF(attribute="maker", gamma=0.5, **settings)
    return measure_queries(metric, make_exposure_evidence(lists, [[2, 4], [0, 3]]))


def test_values_equal_those_worked_by_hand_of_attention() -> None:
    # only a is shown, and each has half of the target: the mean of (1, 0) and (1/2, 1/2) is
    # (3/4, 1/4), and the divergence 1/2 (log2(4/3)) + 1/2 (1/2 log2(2/3) + 1/2 log2(2))
    divergence = 0.5 * math.log2(4 / 3) + 0.25 * math.log2(2 / 3) + 0.25
    only_a, both = measure_awrf([[0, 1], [3]], target="equal")
    assert only_a == pytest.approx(1 - divergence, abs=1e-12)
    assert both == 1.0  # item 3 is half of each


def test_targets_are_read_as_documented() -> None:
    shares = np.array([9 / 14, 5 / 14])  # the list 0 2 3: a 1 + 1/8, b 1/2 + 1/8
    targets: dict[Any, list[float]] = {
        "catalogue": [5 / 8, 3 / 8],  # candidates 0 1 3/2 and 2 3/2
        "interactions": [1 / 2, 1 / 2],  # of item 1 and of item 2
        "relevant": [0.0, 1.0],  # of u0: 2, and 4 without a maker
        "equal": [1 / 2, 1 / 2],
    }
    for target, due in targets.items():
        expected = 1 - jensenshannon(shares, due, base=2) ** 2
        value = measure_awrf([[0, 2, 3], [0]], target=target)[0]
        assert value == pytest.approx(expected, abs=1e-12), target
    given_shares = measure_awrf([[0, 2, 3], [0]], target={"a": 9 / 14, "b": 5 / 14})
    assert given_shares[0] == pytest.approx(1.0, abs=1e-12)
    # (1, 0) and (0, 1) have nothing in common
    assert measure_awrf([[0], [0]], target={"b": 1.0}) == [0.0, 0.0]


@given(seed=st.integers(0, 2**32 - 1), multiple=st.sampled_from(["split", "full"]))
def test_values_equal_scipy_and_stay_in_range(seed: int, multiple: Any) -> None:
    evidence = make_random_world(seed)
    with collect_warnings():
        values = measure_queries(
            AWRF(attribute="maker", target="relevant", multiple=multiple), evidence
        )
    for query, value in enumerate(values):
        exposure = list_exposures(list_items(evidence, query))
        relevance = dict.fromkeys(list_relevant(evidence, query), 1.0)
        shares, due = (sum_makers(of, evidence, multiple) for of in (exposure, relevance))
        if not shares or not due:
            assert math.isnan(value)
            continue
        names = sorted({*shares, *due})
        pair = ([of.get(name, 0.0) for name in names] for of in (shares, due))
        assert value == pytest.approx(1 - jensenshannon(*pair, base=2) ** 2, abs=1e-9)
        assert 0 <= value <= 1


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"a": 0.5, "b": 0.4}, "sum to 0.9, not to 1"),
        ({"a": 1.5, "b": -0.5}, "the share of 'b' is -0.5"),
        ({"a": math.nan, "b": 1.0}, "the share of 'a' is nan"),
        ({}, "sum to 0, not to 1"),
    ],
)
def test_a_target_that_is_no_distribution_is_an_error(target: Any, message: str) -> None:
    with pytest.raises(OutOfRange, match=message) as error:
        AWRF(attribute="maker", target=target)
    assert error.value.where == "target"
    assert error.value.remedy


def test_groups_that_cannot_be_compared_are_an_error() -> None:
    metric = AWRF(attribute="maker")
    for makers, message in (
        (["a"] * 5 + ["b"], "only the group 'a' has an item that may be recommended"),
        ([None] * 5 + ["b"], "no group has an item that may be recommended"),
    ):
        with pytest.raises(NothingLeft, match=message) as error:
            metric.check(make_exposure_evidence(items=make_makers(makers)))
        assert error.value.where == "attribute"
    # a group of one item is compared
    one = make_exposure_evidence(items=make_makers(["a"] * 4 + ["b", None]))
    assert measure_one(metric, one).n == 2


def make_spec(*metrics: Any) -> dict[str, Any]:
    return {
        "name": "exposure",
        "dataset": {"name": "demo", "n_users": 60, "n_items": 60},
        "split": {"name": "random", "test": 0.3},
        "k": 5,
        "models": ["Random", "MostPop"],
        "metrics": [*metrics],
        "tests": ["paired_t"],
    }


def test_groups_of_a_numeric_label_are_named_by_its_numbers(tmp_path: Path) -> None:
    """Detectors give labels of 0 and 1."""
    metrics = [
        {"name": "AWRF", "attribute": "stereotype", "target": {1: 0.5, 0: 0.5}, "label": "shares"},
        {"name": "AWRF", "attribute": "stereotype", "target": "equal", "label": "equal"},
        {"name": "exposure_gap", "attribute": "stereotype", "target": "equal"},
        {"name": "EXP", "attribute": "stereotype"},
    ]
    run = recbias.run(make_spec(*metrics), out=tmp_path)
    values = run.metrics.set_index(["model", "metric", "target"])["value"]
    for model in ("Random", "MostPop"):
        equal, shares = (values[model, name, ""] for name in ("equal", "shares"))
        assert shares == pytest.approx(equal, abs=1e-12)
    assert {"stereotype=0", "stereotype=1"} < {*run.metrics["target"]}
    tested = run.significance.groupby("metric")["test"].agg(set).to_dict()
    assert "paired_t" in tested["equal"]
    assert [tests for name, tests in tested.items() if str(name).startswith("EXP(")] == [
        {"paired_bootstrap"}
    ]


PROVIDER_GAPS_HALF: dict[str, Any] = {"attribute": "maker", "browsing": "rbp", "gamma": 0.5}


def test_gaps_of_groups_equal_those_worked_by_hand() -> None:
    # lists 0 2 3 and 3 1: shares of a 9/14 and 1 / (3/2) = 2/3; of the candidates 5/8
    gap_a, gap_b = ExposureGap(**PROVIDER_GAPS_HALF).measure(make_exposure_evidence())
    assert (gap_a.target, gap_b.target) == ("maker=a", "maker=b")
    assert gap_a.units.values.tolist() == pytest.approx([1 / 56, 1 / 24], abs=1e-12)
    assert gap_b.value == pytest.approx(-gap_a.value, abs=1e-12)
    assert (gap_a.n, gap_a.undefined) == (2, 0)


def test_gaps_from_the_relevant_items_of_each_query() -> None:
    # relevant of u0: 2 of b (4 has no maker); of u1: 0 of a and 3 of both, so a 3/4
    (gap,) = ExposureGap(**PROVIDER_GAPS_HALF, target="relevant", only=("a",)).measure(
        make_exposure_evidence()
    )
    assert gap.units.values.tolist() == pytest.approx([9 / 14, 2 / 3 - 3 / 4], abs=1e-12)


def test_many_groups_need_names() -> None:
    n = 101
    evidence = make_evidence(
        make_lists([[0, 1]]), n_items=n, items=make_makers([f"m{code}" for code in range(n)])
    )
    with pytest.raises(OutOfRange, match="'maker' has 101 groups, more than 100") as many:
        ExposureGap(attribute="maker").check(evidence)
    assert many.value.where == "only"
    with pytest.raises(UnknownName, match="has the maker 'm101'"):
        ExposureGap(attribute="maker", only=("m101",)).check(evidence)
    named = ExposureGap(attribute="maker", only=("m1", "m0"))
    assert [gap.target for gap in named.measure(evidence)] == ["maker=m1", "maker=m0"]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # exposure of a 17/8 and of b 9/8, so shares 17/26 and 9/26; of the candidates 5/8 and 3/8
        (ProviderGap(**PROVIDER_GAPS_HALF), 17 / 26 - 5 / 8),
        (ProviderGap(**PROVIDER_GAPS_HALF, target="equal"), 17 / 26 - 1 / 2),
        (ProviderGap(**PROVIDER_GAPS_HALF, target="interactions"), 17 / 26 - 1 / 2),
        (ProviderGap(**PROVIDER_GAPS_HALF, target="relevant"), 17 / 26 - 1 / 2),  # 3/2 of each
        (ProviderGap(**PROVIDER_GAPS_HALF, target={"a": 0.25, "b": 0.75}), 17 / 26 - 1 / 4),
        # (-1 x 9/8 + 1 x 17/8) / (2 x 26/8)
        (ProviderGini(**PROVIDER_GAPS_HALF), 2 / 13),
        # a third group that is never shown: (-2 x 0 + 0 x 9/8 + 2 x 17/8) / (3 x 26/8)
        (ProviderGini(**PROVIDER_GAPS_HALF, ungrouped="group"), 17 / 39),
    ],
)
def test_summaries_equal_those_worked_by_hand(metric: Any, expected: float) -> None:
    measurement = measure_one(metric, make_exposure_evidence())
    assert measurement.value == pytest.approx(expected, abs=1e-12)
    assert (measurement.n, measurement.undefined) == (2, 0)


@given(seed=st.integers(0, 2**32 - 1))
def test_values_equal_plain_loops(seed: int) -> None:
    evidence = make_random_world(seed)
    with collect_warnings():
        gaps = ExposureGap(attribute="maker").measure(evidence)
        gap, gini = (
            measure_one(metric(attribute="maker", target="equal"), evidence)
            if metric is ProviderGap
            else measure_one(metric(attribute="maker"), evidence)
            for metric in (ProviderGap, ProviderGini)
        )
    names = [of.target.removeprefix("maker=") for of in gaps]
    totals = dict.fromkeys(names, 0.0)
    shares = []
    for query in range(5):
        exposure = sum_makers(list_exposures(list_items(evidence, query), "dcg"), evidence)
        inside = {name: exposure.get(name, 0.0) for name in names}
        totals = {name: totals[name] + inside[name] for name in names}
        if total := sum(inside.values()):
            shares.append([inside[name] / total for name in names])
    candidates: Any = evidence.candidates
    sizes = sum_makers(dict.fromkeys(np.flatnonzero(candidates).tolist(), 1.0), evidence)
    due = np.array([sizes[name] for name in names]) / sum(sizes.values())
    if not shares:
        assert math.isnan(gap.value)
        assert math.isnan(gini.value)
        return
    expected = np.mean(shares, axis=0) - due
    assert [of.value for of in gaps] == pytest.approx(expected.tolist(), abs=1e-9)
    assert sum(of.value for of in gaps) == pytest.approx(0.0, abs=1e-9)
    parts = np.array([totals[name] for name in names]) / sum(totals.values())
    assert gap.value == pytest.approx(np.abs(parts - 1 / len(names)).mean(), abs=1e-9)
    differences = np.abs(parts[:, None] - parts[None, :])
    assert gini.value == pytest.approx(differences.mean() / (2 * parts.mean()), abs=1e-9)


def test_the_gini_index_of_items_agrees_with_lenskit() -> None:
    from lenskit.data import ItemList
    from lenskit.metrics.ranking import ExposureGini, GeometricRankWeight

    rng = np.random.default_rng(1)
    lists = [rng.permutation(20)[:6].tolist() for _ in range(30)]
    evidence = make_evidence(
        make_lists(lists), n_items=20, items=make_makers([f"i{code}" for code in range(20)])
    )
    theirs = ExposureGini(items=20, weight=GeometricRankWeight(0.7))
    exposures = [
        theirs.compute_list_data(ItemList(row, ordered=True), ItemList([0])) for row in lists
    ]
    ours = measure_one(ProviderGini(attribute="maker", browsing="rbp", gamma=0.7), evidence)
    assert ours.value == pytest.approx(theirs.global_aggregate(exposures), rel=1e-5)


UNCERTAIN_ITEMS_HALF: dict[str, Any] = {"browsing": "rbp", "gamma": 0.5}


def with_columns(evidence: Evidence, **columns: Any) -> Evidence:
    items: Any = evidence.items
    return replace(evidence, items=Attributes(items.ids, pd.DataFrame(columns)))


def test_exposure_is_weighted_by_probabilities() -> None:
    # lists 0 2 3 and 3 1 with 1, 1/2, 1/4: exposure of p 1 + 0.2/2 + 0 + 0 + 0.5/2 = 1.35, of
    # not p 3.25 - 1.35 = 1.9; candidates 0 to 4 of p 1 + 0.5 + 0.2 + 0 + 0.3 = 2, of not p 3
    evidence = with_columns(make_exposure_evidence(), p=[1.0, 0.5, 0.2, 0.0, 0.3, 0.9])
    with collect_warnings():
        measured = measure_one(
            ExposureParity(**UNCERTAIN_ITEMS_HALF, attribute="weight of p"), evidence
        )
    assert measured.value == pytest.approx((1.9 / 3) / (1.35 / 2), abs=1e-12)


@pytest.mark.parametrize(
    ("attribute", "changes", "kind", "message"),
    [
        ("weight of p", {}, OutOfRange, "'p' has 1 of 6 values outside 0 to 1, such as 1.2 of"),
        ("weight of a + b", {}, OutOfRange, "a + b is not 1 for 6 items, such as 0.8 for item"),
        ("weight of q", {}, UnknownColumn, "no item carries the label 'q'"),
        ("probability of a", {}, Contradiction, "is a sum weighted by probabilities"),
        ("weight of a", {"multiple": "full"}, Contradiction, "has no full part in a group"),
    ],
)
def test_unusable_probabilities_are_refused(
    attribute: str, changes: dict[str, Any], kind: type[UserError], message: str
) -> None:
    columns = {"p": [1.2] + [0.5] * 5, "a": [0.1, *[0.4] * 5], "b": [0.7, *[0.4] * 5]}
    evidence = with_columns(make_exposure_evidence(), **columns)
    with pytest.raises(kind) as caught:
        ExposureParity(attribute=attribute, **changes).check(evidence)
    assert message in caught.value.message
    assert caught.value.where == "attribute"
    assert caught.value.remedy


def test_the_interval_of_a_gap_accounts_for_the_hidden_groups_by_hand() -> None:
    # lists 0 2 3 and 3 1 with 1, 1/2, 1/4 are shares 4/7, 2/7, 1/7 of the first list and 2/3, 1/3
    # of the second: s = 2/7, 1/6, 1/7, 1/14 + 1/3, 0; the target gives each of 0 to 4 1/5
    p = np.array([0.9, 0.5, 0.2, 0.7, 0.3])
    evidence = with_columns(make_exposure_evidence(), p=[*p, 0.9])
    gap = ExposureGap(**UNCERTAIN_ITEMS_HALF, attribute="weight of p").measure(evidence)[0]
    shares = np.array([2 / 7, 1 / 6, 1 / 7, 1 / 14 + 1 / 3, 0])
    hidden = 1.959964**2 * np.sum((shares - 1 / 5) ** 2 * p * (1 - p))
    of_lists = [4 / 7 * 0.9 + 2 / 7 * 0.2 + 1 / 7 * 0.7, 2 / 3 * 0.7 + 1 / 3 * 0.5]
    sampled = 12.7062 * np.std(of_lists, ddof=1) / np.sqrt(2)  # t(0.975; 1)
    assert gap.ci_high - gap.value == pytest.approx(np.sqrt(sampled**2 + hidden), rel=1e-5)
    assert gap.own_interval


@pytest.mark.parametrize("target", ["catalogue", "interactions", "relevant"])
def test_the_hidden_variance_is_that_of_drawn_groups(target: Any) -> None:
    evidence = make_random_world(3, n_queries=8, n_items=30)
    items: Any = evidence.items
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, len(items.ids))
    metric = ExposureGap(attribute="weight of p", target=target)
    (gap, _) = metric.measure(with_columns(evidence, p=p))
    known = [
        metric.measure(with_columns(evidence, p=(rng.random(p.size) < p).astype(np.float64)))
        for _ in range(120)
    ]
    gaps = [row.value for rows in known for row in rows if row.target == "weight of p=p"]
    half_width = (gap.ci_high - gap.ci_low) / 2
    units: Any = gap.units
    of_queries = Measurement.from_units(units)
    sampled = (of_queries.ci_high - of_queries.ci_low) / 2
    hidden = np.sqrt(half_width**2 - sampled**2) / 1.959964
    assert np.std(gaps) == pytest.approx(hidden, rel=0.25)


@pytest.mark.parametrize(
    "metric",
    [
        AWRF,
        ExposureParity,
        ExposureToRelevance,
        ProviderGap,
        ProviderGini,
        ExpectedExposureDisparity,
    ],
)
def test_other_measures_of_hidden_groups_have_no_interval_and_say_why(metric: Any) -> None:
    evidence = with_columns(make_exposure_evidence(), p=[1.0, 0.5, 0.2, 0.0, 0.3, 0.9])
    with collect_warnings() as warnings:
        hidden = measure_one(metric(attribute="weight of p"), evidence)
    assert np.isnan([hidden.ci_low, hidden.ci_high]).all()
    assert not np.isnan(hidden.value)
    assert any("no interval, because the groups of the items are unknown" in w for w in warnings)
    certain = with_columns(make_exposure_evidence(), p=[1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    known = measure_one(metric(attribute="weight of p"), certain)
    assert not np.isnan([known.ci_low, known.ci_high]).any()
