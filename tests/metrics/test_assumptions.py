"""What conclusions from a log assume: worked cases, and worlds with a known truth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Queries
from recbias.core.errors import Contradiction, UnknownName
from recbias.core.evidence import Evidence, Impressions, Policy
from recbias.metrics.assumptions import (
    ExaminationSensitivity,
    PositionBias,
    PropensitySensitivity,
    Sides,
)
from support.worlds.evidence_worlds import make_vocabulary

EXAMINED = np.array([1.0, 0.5, 0.25])


@dataclass(frozen=True)
class Log:
    """A log in blocks of some rows."""

    rows: Impressions
    size: int = 10**6
    has_positions: bool = True
    has_propensities: bool = True

    def read_blocks(self) -> Iterator[Impressions]:
        for start in range(0, self.rows.users.size, self.size):
            yield self.rows.take(np.arange(start, min(start + self.size, self.rows.users.size)))

    read_lists = read_blocks


def make_evidence(log: Log, probabilities: Any = None, others: Any = None) -> Evidence:
    """Return a log whose even users are ``g=a``, whose even items are ``kind=a``."""
    n_users, n_items = (int(codes.max()) + 1 for codes in (log.rows.users, log.rows.items))
    users, items = make_vocabulary("u", n_users), make_vocabulary("i", n_items)
    labels = Attributes(users, pd.DataFrame({"g": np.resize(["a", "b"], n_users)}), "query")
    kinds = Attributes(items, pd.DataFrame({"kind": np.resize(["a", "b"], n_items)}), "item")
    codes, none = np.arange(n_users, dtype=np.int32), np.zeros(n_items, dtype=np.int32)
    policy = Policy.of_shown()
    if probabilities is not None:
        of_items = np.arange(n_items, dtype=np.int32)
        group_of = np.zeros(n_users, dtype=np.int32)
        policy = Policy(of_items, none[:0], none, np.asarray(probabilities), group_of)
    return Evidence(
        Queries(users, labels, codes),
        items,
        items=kinds,
        log=log,
        policy=policy,
        other_policy=None if others is None else replace(policy, probabilities=np.array(others)),
        shown=Policy.of_shown(),
        metric="m",
    )


def make_log(rows: Any, **settings: Any) -> Log:
    """Return a log of rows (user, item, position, reward, propensity), a request for each."""
    users, items, positions, rewards, propensities = np.array(rows, dtype=float).T
    n = users.size
    columns = (users, items, positions)
    u, i, p = (column.astype(np.int32) for column in columns)
    variants = np.full(n, "", dtype=object)
    return Log(Impressions(u, np.arange(n), i, p, rewards, propensities, variants), **settings)


def draw_log(seed: int = 0, n: int = 6000, **settings: Any) -> Log:
    """Return rows of 60 users, 6 random items of relevance 0.1 to 0.6 at 3 random positions."""
    rng = np.random.default_rng(seed)
    users, items, at = (
        np.sort(rng.integers(60, size=n)),
        rng.integers(6, size=n),
        rng.integers(3, size=n),
    )
    clicks = rng.random(n) < EXAMINED[at] * (items + 1) / 10
    return make_log(np.stack([users, items, at + 1, clicks, np.full(n, 1 / 6)], 1), **settings)


def read_rows(metric: Any, evidence: Evidence) -> dict[str, float]:
    return {row.target: row.value for row in metric.measure(evidence)}


@pytest.mark.parametrize("within", ["random", "items", "users"])
def test_position_bias_of_a_log_in_blocks(within: Any) -> None:
    whole, blocks = make_evidence(draw_log()), make_evidence(draw_log(size=997))
    rows = PositionBias(within=within).measure(whole)
    assert [row.target for row in rows] == ["position=1", "position=2", "position=3"]
    for row, other, truth in zip(
        rows, PositionBias(within=within).measure(blocks), EXAMINED, strict=True
    ):
        assert row.value == pytest.approx(other.value)
        assert (row.ci_low, row.ci_high) == pytest.approx((other.ci_low, other.ci_high))
        assert row.ci_low <= truth <= row.ci_high
        assert row.ci_high - row.ci_low < 0.2


def test_position_bias_of_each_group_is_that_of_its_users_alone() -> None:
    log = draw_log()
    rows = PositionBias(label="g").measure(make_evidence(log))
    assert [row.group for row in rows] == [""] * 3 + ["g=a"] * 3 + ["g=b"] * 3
    for remainder, own in enumerate((rows[3:6], rows[6:])):
        alone = log.rows.take(log.rows.users % 2 == remainder)
        of_users = PositionBias().measure(make_evidence(Log(alone)))
        for row, other, truth in zip(own, of_users, EXAMINED, strict=True):
            assert row.target == other.target
            assert row.value == pytest.approx(other.value)
            assert (row.ci_low, row.ci_high) == pytest.approx((other.ci_low, other.ci_high))
            assert row.ci_low <= truth <= row.ci_high


def test_position_bias_of_one_user_has_no_interval() -> None:
    # 4 clicks of 8 rows at the first position and 6 of 8 at the second: 1.5
    clicks = [(1, 4, 8), (2, 6, 8)]
    rows = [[0, 0, at, i < n, 1] for at, n, of in clicks for i in range(of)]
    _, second = PositionBias().measure(make_evidence(make_log(rows)))
    assert second.value == pytest.approx(1.5)
    assert second.n == 1
    assert math.isnan(second.ci_low)
    assert math.isnan(second.ci_high)


def test_a_position_without_clicks_is_undefined(recwarn: pytest.WarningsRecorder) -> None:
    evidence = make_evidence(make_log([[0, 0, 1, 1, 1], [1, 0, 2, 0, 1], [1, 0, 1, 1, 1]]))
    assert math.isnan(read_rows(PositionBias(), evidence)["position=2"])
    assert "1 positions are undefined" in str(recwarn[0].message)


def test_a_log_of_one_position_has_its_row_only() -> None:
    log = make_log([[0, 0, 1, 1, 1], [1, 0, 1, 0, 1], [1, 1, 1, 1, 1]])
    assert read_rows(PositionBias(), make_evidence(log)) == {"position=1": 1.0}


def test_clicks_and_exposure_over_an_assumed_exponent() -> None:
    # kind a is twice at position 1 with 1 click; b at 1 and 4 with 1 click
    # clicks: 1 / 2 - 1 / (1 + 4^-x) < 0 for x > 0, and 0 at 0; at 1: 1/2 - 4/5
    # exposure: (2 - 1 - 4^-x) / (3 + 4^-x); at 1: 0.75 / 3.25
    log = make_log([[0, 0, 1, 1, 1], [0, 0, 1, 0, 1], [1, 1, 1, 1, 1], [1, 1, 4, 0, 1]])
    sides = Sides(of="items", attribute="kind", a="a", b="b")
    clicks = ExaminationSensitivity(groups=sides, exponents=(0.0, 1.0))
    assert read_rows(clicks, make_evidence(log)) == pytest.approx(
        {"exponent=0": 0, "exponent=1": -0.3, "turns": math.nan}, nan_ok=True
    )
    exposure = ExaminationSensitivity(groups=sides, exponents=(1.0,), count="exposure")
    assert read_rows(exposure, make_evidence(log))["exponent=1"] == pytest.approx(0.75 / 3.25)


def test_the_exponent_at_which_the_gap_of_users_turns() -> None:
    # a: 2 clicks at position 1, 2 rows; b: 3 clicks of 5 rows at 2: 1 - 3/5 * 2^x, 0 at log2(5/3)
    rows = [[0, 0, 1, 1, 1]] * 2 + [[1, 1, 2, 1, 1]] * 3 + [[1, 1, 2, 0, 1]] * 2
    sides = Sides(of="users", attribute="g", a="a", b="b")
    values = read_rows(ExaminationSensitivity(groups=sides), make_evidence(make_log(rows)))
    assert values["exponent=0"] == pytest.approx(0.4)
    assert values["turns"] == pytest.approx(math.log2(5 / 3))


@pytest.mark.parametrize("count", ["clicks", "exposure"])
def test_a_group_that_was_never_shown_has_no_gap(count: Any) -> None:
    # items 0 and 2 are of kind a; item 1, of kind b, is not in the log
    log = make_log([[0, 0, 1, 1, 1], [1, 2, 2, 0, 1]])
    metric = ExaminationSensitivity(
        groups=Sides(of="items", attribute="kind", a="a", b="b"), count=count
    )
    assert math.isnan(read_rows(metric, make_evidence(log))["turns"])


def test_the_factor_at_which_a_candidate_is_no_longer_better() -> None:
    # weights 1.5 with a click, 0.5 without: snips 0.75 against 0.5; the least with factor x is
    # (1.5 / x) / (1.5 / x + 0.5 x) = 3 / (3 + x²), 0.5 at x = √3
    evidence = make_evidence(make_log([[0, 0, 1, 1, 0.5], [1, 1, 1, 0, 0.5]]), [0.75, 0.25])
    values = read_rows(PropensitySensitivity(factors=(1.0, 2.0)), evidence)
    assert values == pytest.approx(
        {"factor=1": 0.25, "factor=2": 3 / 7 - 0.5, "turns": math.sqrt(3)}
    )


@pytest.mark.parametrize("seed", range(5))
def test_intervals_hold_the_truth_if_propensities_are_as_wrong_as_assumed(seed: int) -> None:
    # the log takes 1/6 for what is 1/6 times 0.6 to 1.4 by item, and better items are shown more
    rng, n, relevance = np.random.default_rng(seed), 20000, np.arange(1, 7) / 10
    shares = (0.6 + 0.16 * np.arange(6)) / 6
    users, items = np.sort(rng.integers(60, size=n)), rng.choice(6, n, p=shares / shares.sum())
    rewards = (rng.random(n) < relevance[items]).astype(float)
    rows = np.stack([users, items, np.ones(n), rewards, np.full(n, 1 / 6)], axis=1)
    candidate = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.1])
    truth = candidate @ relevance - (shares / shares.sum()) @ relevance
    naive, assumed, _ = PropensitySensitivity(factors=(1.0, 1.7)).measure(
        make_evidence(make_log(rows), candidate)
    )
    assert not naive.ci_low <= truth <= naive.ci_high
    assert assumed.ci_low <= truth <= assumed.ci_high


def test_the_factor_at_which_one_candidate_is_no_longer_better_than_another() -> None:
    # 2/3 against 1/3; with factor x the rows of the first lose (3 - x) / 3, the others gain x / 3
    rewards = {0: (1, 1, 0), 1: (1, 0, 0)}
    rows = [[user, user, 1, reward, 0.5] for user, own in rewards.items() for reward in own]
    evidence = make_evidence(make_log(rows), [1.0, 0.0], [0.0, 1.0])
    metric = PropensitySensitivity(against="other", factors=(1.0, 1.2, 2.0))
    assert read_rows(metric, evidence) == pytest.approx(
        {"factor=1": 1 / 3, "factor=1.2": (1.8 - 1.2) / 3, "factor=2": -1 / 3, "turns": 1.5}
    )
    same = replace(evidence, other_policy=evidence.policy)
    assert [row.value for row in metric.measure(same)] == pytest.approx(
        [0, 0, 0, math.nan], nan_ok=True
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_of_two_candidates_is_that_of_a_log_in_blocks(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    rows = draw_log(seed).rows
    propensities = rng.uniform(0.1, 0.3, rows.users.size)
    metric, chances = PropensitySensitivity(against="other", factors=(1.0, 1.5)), np.eye(6)[:2]
    log = Log(replace(rows, propensities=propensities))
    first, second, _ = metric.measure(make_evidence(log, *chances))
    value = [
        np.average(rows.rewards[rows.items == item], weights=1 / propensities[rows.items == item])
        for item in (0, 1)
    ]
    assert first.value == pytest.approx(value[0] - value[1])
    assert second.ci_low < first.ci_low < first.value < first.ci_high < second.ci_high
    monkeypatch.setattr("recbias.metrics.assumptions._MOST_CELLS", 200)  # a sample of the rows
    _, sampled, _ = metric.measure(make_evidence(replace(log, size=997), *chances))
    for name in ("ci_low", "ci_high"):
        assert vars(sampled)[name] == pytest.approx(vars(second)[name], abs=0.01)
    assert sampled.ci_high > second.ci_high - 1e-9
    assert sampled.ci_low < second.ci_low + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_two_candidates_hold_the_truth_if_propensities_are_as_wrong_as_assumed(
    seed: int,
) -> None:
    # rows with a click are lost more often of one half of the items, the others of the other half
    rng, n, relevance = np.random.default_rng(seed), 20000, np.arange(1, 7) / 10
    users, items = np.sort(rng.integers(60, size=n)), rng.integers(6, size=n)
    rewards = (rng.random(n) < relevance[items]).astype(float)
    kept = rng.random(n) < np.where((rewards == 1) == (items < 3), 1.0, 0.6)
    columns = (users, items, np.ones(n), rewards, np.full(n, 1 / 6))
    log = make_log(np.stack(columns, axis=1)[kept])
    candidates = [0.4, 0.2, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.2, 0.4]
    truth = (np.array(candidates[0]) - candidates[1]) @ relevance
    naive, assumed, _ = PropensitySensitivity(against="other", factors=(1.0, 1.4)).measure(
        make_evidence(log, *candidates)
    )
    assert not naive.ci_low <= truth <= naive.ci_high
    assert assumed.ci_low <= truth <= assumed.ci_high


def test_clicks_of_two_candidates_over_an_assumed_exponent() -> None:
    # item 0 is at 1 and 4 3 and 1 times with a click, item 1 1 and 4 times with a click:
    # 1 / (3 + y) - 1 / (1 + 4 y) with y = 4^-x, 0 at y = 2 / 3
    shown = [(0, 1, (1, 0, 0)), (0, 4, (0,)), (1, 1, (0,)), (1, 4, (1, 0, 0, 0))]
    rows = [[item, item, at, reward, 0.5] for item, at, own in shown for reward in own]
    evidence = make_evidence(make_log(rows), [1.0, 0.0], [0.0, 1.0])
    metric = ExaminationSensitivity(against="other", exponents=(0.0, 1.0))
    assert read_rows(metric, evidence) == pytest.approx(
        {"exponent=0": 1 / 4 - 1 / 5, "exponent=1": 1 / 3.25 - 1 / 2, "turns": math.log(1.5, 4)}
    )
    of_all = ExaminationSensitivity(exponents=(0.0,))
    assert read_rows(of_all, evidence)["exponent=0"] == pytest.approx(1 / 4 - 2 / 9)


def test_without_clicks_there_is_no_gap() -> None:
    rows = draw_log().rows
    evidence = make_evidence(Log(replace(rows, rewards=0 * rows.rewards)), np.full(6, 1 / 6))
    *rows_of_gaps, turn = ExaminationSensitivity().measure(evidence)
    assert [(row.value, row.std) for row in rows_of_gaps] == [(0.0, 0.0)] * len(rows_of_gaps)
    assert math.isnan(turn.value)


def test_a_candidate_against_a_variant() -> None:
    # weights 2 of item 0: 1 of 2 clicks; the variant b is the last two rows, without a click
    log = make_log([[0, 0, 1, 1, 0.5], [0, 1, 1, 1, 0.5], [1, 0, 1, 0, 0.5], [1, 1, 1, 0, 0.5]])
    variants = np.array([*"aabb"], dtype=object)
    evidence = make_evidence(Log(replace(log.rows, variants=variants)), [1.0, 0.0])
    evidence = replace(evidence, other_policy=Policy.of_shown("b"))
    values = read_rows(PropensitySensitivity(against="b", factors=(1.0, 2.0)), evidence)
    assert values["factor=1"] == pytest.approx(0.5)
    assert values["factor=2"] == pytest.approx(0.5 / 2.5)  # (1 / 2) / (1 / 2 + 2)


def test_without_support_the_gap_is_undefined(recwarn: pytest.WarningsRecorder) -> None:
    log = make_log([[0, 0, 1, 1, 0.5], [1, 1, 2, 0, 0.5], [1, 0, 2, 0, 0.5]])
    values = read_rows(PropensitySensitivity(), make_evidence(log, [0.5, 0.5]))
    assert all(map(math.isnan, values.values()))
    assert "never shown" in str(recwarn[0].message)


@pytest.mark.parametrize(
    ("metric", "of"), [(ExaminationSensitivity, "users"), (PropensitySensitivity, "items")]
)
def test_groups_of_what_has_no_value_are_refused(metric: Any, of: Any) -> None:
    settings = {"count": "exposure"} if metric is ExaminationSensitivity else {}
    with pytest.raises(Contradiction):
        metric(groups=Sides(of=of, attribute="g", a="a", b="b"), **settings)


def test_groups_of_two_models_are_refused() -> None:
    sides = Sides(attribute="g", a="a", b="b")
    for metric in (ExaminationSensitivity, PropensitySensitivity):
        with pytest.raises(Contradiction, match="groups of one model"):
            metric(groups=sides, against="other")


def test_a_group_that_the_log_does_not_have_is_named() -> None:
    sides = Sides(attribute="g", a="a", b="c")
    with pytest.raises(UnknownName, match="g has no value 'c'"):
        ExaminationSensitivity(groups=sides).measure(make_evidence(draw_log(n=60)))
