"""Measures of impression logs: values worked by hand, of obp, and of worlds with a known truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Queries, TrainingData, Vocabulary
from recbias.core.errors import MalformedLine, MissingEvidence, UnknownColumn, UserError
from recbias.core.evidence import Evidence
from recbias.core.grouping import group_by
from recbias.core.measures import Measurement
from recbias.data.filters_queries import Users
from recbias.data.impressions import ImpressionTable
from recbias.metrics.logged import (
    ClickThroughRate,
    EffectiveSampleSize,
    PolicyValue,
    ShownNDCG,
    ShownShare,
)
from recbias.models.policies import GivenPolicy, Shown
from recbias.statistics.groups import summarize_groups


def _load(log: Path | pd.DataFrame, folder: Path, **settings: Any) -> Evidence:
    """Return the evidence of a log: a file, or a table that is written to one."""
    if isinstance(log, pd.DataFrame):
        path = folder / "log.csv"
        log.to_csv(path, index=False)
        log = path
    source = ImpressionTable(path=log, **settings)
    dataset = source.load(folder, np.random.default_rng(0))
    labels = dataset.users
    frame = pd.DataFrame(index=range(len(dataset.user_ids))) if labels is None else labels.frame
    ids = dataset.user_ids
    users = np.arange(len(ids), dtype=np.int32)
    queries = Queries(ids, Attributes(ids, frame, "query"), users)
    return Evidence(
        queries,
        dataset.item_ids,
        items=dataset.items,
        log=source.open_log(dataset),
        users=labels,
        metric="m",
        train=dataset.interactions,
    )


def _measure(metric: Any, evidence: Evidence, model: Any) -> list[Measurement]:
    train: Any = evidence.train
    data = TrainingData(train, users=evidence.users)
    policy = model.fit(data, np.random.default_rng(0)).policy(evidence.queries)
    shown = policy if policy.is_shown else None
    return list(metric.measure(replace(evidence, policy=policy, shown=shown)))


# python studies/off_policy/obp_values.py ../shared/data/open-bandit
_OBP = {
    "men": {
        "ips": 0.0056562667,
        "ips clip 2": 0.0034937928,
        "snips": 0.0057398647,
        "direct": 0.0056818586,
        "dr": 0.0055931431,
        "sips": 0.0381166399,
        "iips": 0.0171634071,
        "rips": 0.0270607743,
    },
    "women": {
        "ips": 0.0058056918,
        "ips clip 2": 0.0045310124,
        "snips": 0.0058330361,
        "direct": 0.0059234657,
        "dr": 0.0058607853,
        "sips": 0.0258113595,
        "iips": 0.0171397919,
        "rips": 0.0127181393,
    },
}


@pytest.mark.parametrize("campaign", _OBP)
def test_estimators_equal_those_of_obp_on_open_bandit(
    real_data: Path, tmp_path: Path, stage_warnings: list[str], campaign: str
) -> None:
    folder = real_data / "open-bandit"
    path = folder / "random" / campaign / f"{campaign}.csv.gz"
    rows = pd.read_csv(folder / "bts" / campaign / f"{campaign}.csv.gz")
    share = rows.groupby("position")["item_id"].value_counts(normalize=True)
    share.rename("probability").reset_index().to_csv(tmp_path / "bts.csv", index=False)
    log = pd.read_csv(path)
    log = log.assign(request_id=log.groupby("position").cumcount())
    log = log.rename(columns={"click": "reward", "propensity_score": "propensity"})
    names = ["request_id", "item_id", "position", "reward", "propensity"]
    slates = log[log.groupby("request_id")["item_id"].transform("size") == 3]
    by_row = _load(path, tmp_path, layout="open_bandit")
    by_slate = _load(slates[names].sort_values(["request_id", "position"]), tmp_path)
    candidate = GivenPolicy(path=tmp_path / "bts.csv")
    for name, value in _OBP[campaign].items():
        estimator: Any
        estimator, _, clip = name.partition(" clip ")
        metric = PolicyValue(estimator=estimator, clip=float(clip) if clip else None)
        evidence = by_slate if estimator in {"sips", "iips", "rips"} else by_row
        (row,) = _measure(metric, evidence, candidate)
        assert row.value == pytest.approx(value, abs=1e-9), name


@pytest.mark.parametrize("campaign", _OBP)
@pytest.mark.parametrize("estimator", ["ips", "snips", "dr", "direct"])
def test_value_of_the_other_policy_lies_in_the_interval(
    real_data: Path, tmp_path: Path, campaign: str, estimator: Any
) -> None:
    folder = real_data / "open-bandit"
    bts = pd.read_csv(folder / "bts" / campaign / f"{campaign}.csv.gz")
    share = bts.groupby("position")["item_id"].value_counts(normalize=True)
    share.rename("probability").reset_index().to_csv(tmp_path / "bts.csv", index=False)
    log = folder / "random" / campaign / f"{campaign}.csv.gz"
    evidence = _load(log, tmp_path, layout="open_bandit")
    (row,) = rows = _measure(
        PolicyValue(estimator=estimator), evidence, GivenPolicy(path=tmp_path / "bts.csv")
    )
    assert row.ci_low < bts["click"].mean() < row.ci_high
    large = group_by(evidence.queries.labels, "user_feature_0")
    clicks = bts.groupby("user_feature_0")["click"].mean()
    for group in summarize_groups(rows[0], large):
        if group.n > 1000:
            assert group.ci_low < clicks[group.group.partition("=")[2]] < group.ci_high


_LOG = pd.DataFrame(
    {
        "request_id": [1, 1, 2, 2, 3, 3],
        "user_id": ["u", "u", "u", "u", "v", "v"],
        "item_id": ["a", "b", "b", "a", "a", "c"],
        "position": [1, 2, 1, 2, 1, 2],
        "reward": [1, 0, 0, 1, 0, 1],
        "propensity": [0.5, 0.25, 0.5, 0.5, 0.25, 0.5],
    }
)


def test_what_was_shown_by_hand(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item_id,kind\na,x\nb,y\nc,y\n")
    evidence = _load(_LOG, tmp_path, items=tmp_path / "items.csv")
    (rate,) = _measure(ClickThroughRate(), evidence, Shown())
    assert (rate.value, rate.n) == (0.5, 2)
    (ndcg,) = _measure(ShownNDCG(), evidence, Shown())
    assert ndcg.value == pytest.approx((1 + 2 / np.log2(3)) / 3)
    shares = _measure(ShownShare(attribute="kind", discount=True), evidence, Shown())
    x = (2 + 1 / np.log2(3)) / (3 + 3 / np.log2(3))
    assert {row.target: row.value for row in shares} == pytest.approx(
        {"kind=x": x, "kind=y": 1 - x}
    )
    (size,) = _measure(EffectiveSampleSize(), evidence, Shown())
    assert size.value == 6


@pytest.mark.parametrize(
    ("estimator", "value"),
    [
        # weights of the rows: 0.5/0.5, 0.5/0.25, 0.5/0.5, 0.25/0.5, 0.5/0.25, 0.25/0.5
        ("ips", (1 + 0.5 + 0.5) / 6),
        ("snips", 2 / 7),
        ("iips", 2 / 3),
        ("rips", (1 + 0.5 + 2 * 0.5) / 3),
        ("sips", (2 + 0.5 + 1) / 3),
        ("slate_pi", (2 + 0.5 + 1.5) / 3),
    ],
)
def test_value_of_a_candidate_by_hand(tmp_path: Path, estimator: Any, value: float) -> None:
    table = "item_id,position,probability\na,1,0.5\nb,1,0.5\na,2,0.25\nb,2,0.5\nc,2,0.25\n"
    (tmp_path / "p.csv").write_text(table)
    candidate = GivenPolicy(path=tmp_path / "p.csv")
    (row,) = _measure(PolicyValue(estimator=estimator), _load(_LOG, tmp_path), candidate)
    assert row.value == pytest.approx(value)


def test_direct_method_in_a_group(tmp_path: Path) -> None:
    """q(a) is 2/10 whoever saw a, so the candidate that shows only a has this value everywhere."""
    rows = {
        "user_id": range(14),
        "sex": [*"FF", *"M" * 12],
        "item_id": [*"aaaaaaaaaa", *"bbbb"],
        "reward": [1, 1, *[0] * 8, 1, 1, 1, 1],
    }
    (tmp_path / "p.csv").write_text("item_id,probability\na,1\nb,0\n")
    evidence = _load(pd.DataFrame(rows), tmp_path, user_columns=("sex",))
    metric = PolicyValue(estimator="direct")
    (row,) = _measure(metric, evidence, GivenPolicy(path=tmp_path / "p.csv"))
    groups = summarize_groups(row, group_by(evidence.queries.labels, "sex"))
    assert [group.value for group in (row, *groups)] == pytest.approx([0.2, 0.2, 0.2])
    # each of the 10 rows with a counts 14/10 (r - q) for the error of q: 1.12 and -0.28
    assert row.std == pytest.approx(np.sqrt((2 * 1.12**2 + 8 * 0.28**2) / 13))
    assert (groups[0].std, groups[1].std) == pytest.approx((0, 0.28 * np.sqrt(8 * 4 / 12 / 11)))


def test_direct_method_with_the_rewards_of_each_group(
    tmp_path: Path, stage_warnings: list[str]
) -> None:
    """F clicks 9 of 10 times on a, M 2 of 20; F saw b 4 times only, and has all users' 1/8."""
    shown = [("F", "a", 9, 10), ("F", "b", 1, 4), ("M", "a", 2, 20), ("M", "b", 1, 12)]
    rows = [(sex, item, at < n) for sex, item, n, of in shown for at in range(of)]
    log = pd.DataFrame(rows, columns=["sex", "item_id", "reward"]).astype({"reward": int})
    (tmp_path / "p.csv").write_text("item_id,probability\na,0.5\nb,0.5\n")
    evidence = _load(log.assign(user_id=range(46)), tmp_path, user_columns=("sex",))
    metric = PolicyValue(estimator="direct", **PolicyValue(estimator="direct").fit_by("sex"))
    (row,) = _measure(metric, evidence, GivenPolicy(path=tmp_path / "p.csv"))
    groups = summarize_groups(row, group_by(evidence.queries.labels, "sex"))
    values = (0.9 + 1 / 8) / 2, (2 / 20 + 1 / 12) / 2
    assert [group.value for group in groups] == pytest.approx(values)
    assert row.value == pytest.approx((14 * values[0] + 32 * values[1]) / 46)
    # 16 (r - q) / 20 of the rows with a, 16 (r - q) / 12 of those with b
    squares = 0.8**2 * 20 * 0.1 * 0.9 + (16 / 12) ** 2 * 12 * (1 / 12) * (11 / 12)
    assert groups[1].std == pytest.approx(np.sqrt(squares / 31))
    assert any("15.2% of what the candidate shows" in text for text in stage_warnings)  # 7 of 46


def test_doubly_robust_with_the_rewards_of_each_group(tmp_path: Path) -> None:
    """q of user 0 is that of user 1, drawn to that of users 1 and 3, drawn to their mean."""
    log = pd.DataFrame({"user_id": range(4), "sex": [*"FFMM"], "item_id": "a", "reward": range(4)})
    (tmp_path / "p.csv").write_text("item_id,probability\na,1\n")
    evidence = _load(log.assign(propensity=0.5), tmp_path, user_columns=("sex",))
    policy = GivenPolicy(path=tmp_path / "p.csv")
    value = _measure(PolicyValue(estimator="dr", rewards_by="sex"), evidence, policy)[0].value
    # users 0 and 2 (F, M) have 1 and 3 of the others, those the mean 1 of 0 and 2
    q = [(1 + 10 * 2) / 11, (0 + 10 * 1) / 11, (3 + 10 * 2) / 11, (2 + 10 * 1) / 11]
    assert value == pytest.approx(np.mean([each + 2 * (at - each) for at, each in enumerate(q)]))


def test_lists_of_users_are_a_candidate(tmp_path: Path) -> None:
    (tmp_path / "lists.csv").write_text("user_id,item_id,rank\nu,a,1\nu,b,2\nv,a,1\nv,c,2\n")
    evidence, lists = _load(_LOG, tmp_path), GivenPolicy(path=tmp_path / "lists.csv")
    (row,) = _measure(PolicyValue(estimator="ips"), evidence, lists)
    assert row.value == pytest.approx((1 / 0.5 + 1 / 0.5) / 6)
    (size,) = _measure(EffectiveSampleSize(), evidence, lists)
    assert size.value == pytest.approx((2 + 4 + 4 + 2) ** 2 / (4 + 16 + 16 + 4))


def test_what_the_log_never_shows_has_bounds(tmp_path: Path, stage_warnings: list[str]) -> None:
    (tmp_path / "p.csv").write_text("item_id,probability\na,0.5\nz,0.5\n")
    candidate = GivenPolicy(path=tmp_path / "p.csv")
    value, low, high = _measure(PolicyValue(estimator="ips"), _load(_LOG, tmp_path), candidate)
    assert np.isnan(value.value)
    assert (low.target, high.target) == ("bound=lowest", "bound=highest")
    assert low.value == pytest.approx((1 + 1) / 6)
    assert high.value == pytest.approx(low.value + 0.5)
    assert any(
        "50.0% of what the candidate shows was never shown" in text for text in stage_warnings
    )


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr", "iips", "rips", "sips", "slate_pi"])
def test_bounds_hold(tmp_path: Path, stage_warnings: list[str], estimator: Any) -> None:
    (tmp_path / "p.csv").write_text("item_id,probability\n0,0.3\n1,0.3\n2,0.4\n")
    candidate, rates = GivenPolicy(path=tmp_path / "p.csv"), np.array([0.2, 0.5, 0.7])
    truth = rates @ [0.3, 0.3, 0.4] * (1 if estimator in {"ips", "snips", "dr"} else 2)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        items = rng.integers(2, size=400)
        columns = {
            "request_id": np.repeat(np.arange(200), 2),
            "item_id": items,
            "position": np.tile([1, 2], 200),
            "reward": (rng.random(400) < rates[items]).astype(int),
            "propensity": 0.5,
        }
        evidence = _load(pd.DataFrame(columns), tmp_path)
        _, low, high = _measure(PolicyValue(estimator=estimator), evidence, candidate)
        assert low.ci_low <= truth <= high.ci_high


def test_probabilities_by_label_of_users(tmp_path: Path) -> None:
    table = "gender,item_id,probability\nF,a,1\nM,c,0.5\nM,a,0.5\n"
    (tmp_path / "p.csv").write_text(table)
    log = _LOG.assign(gender=np.where(_LOG["user_id"] == "u", "F", "M"), position=1)
    evidence = _load(log, tmp_path, user_columns=("gender",))
    (row,) = _measure(PolicyValue(estimator="ips"), evidence, GivenPolicy(path=tmp_path / "p.csv"))
    assert row.value == pytest.approx((1 / 0.5 + 1 / 0.5 + 0.5 / 0.5) / 6)


def test_positions_from_0_are_said(tmp_path: Path, stage_warnings: list[str]) -> None:
    evidence = _load(_LOG.assign(position=_LOG["position"] - 1), tmp_path)
    (ndcg,) = _measure(ShownNDCG(), evidence, Shown())
    assert ndcg.value == pytest.approx((1 + 2 / np.log2(3)) / 3)
    assert any("begin at 0" in text for text in stage_warnings)
    _load(_LOG.assign(position=_LOG["position"] ** 2), tmp_path)
    assert any("nothing was ever shown at position 2" in text for text in stage_warnings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"propensity": [0.5, 0.0, 1, 1, 1, 1]}, "row 2 has the propensity 0"),
        ({"propensity": [0.5, 1, 1, 1, 1, 1.5]}, "row 6 has the propensity 1.5"),
        ({"position": [1, 2, 1, -2, 1, 2]}, "row 4 has the position -2"),
        ({"reward": [1, 0, None, 0, 0, 0]}, "row 3 has the reward nan"),
        ({"request_id": [1, 1, 2, 2, 1, 1]}, "do not stand together"),
        (
            {"variant": list("aaaabb"), "reward": [1, 0, 0, 0, None, None]},
            "variant 'b' has no reward at all",
        ),
    ],
)
def test_faulty_rows_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedLine, match=message):
        _load(_LOG.assign(**change), tmp_path)


def test_a_position_that_a_request_repeats_has_no_order(tmp_path: Path) -> None:
    evidence = _load(_LOG.assign(position=[1, 2, 1, 1, 1, 2]), tmp_path)
    with pytest.raises(MalformedLine, match="request 2 has several items at position 1"):
        _measure(ShownNDCG(), evidence, Shown())
    (rate,) = _measure(ClickThroughRate(), evidence, Shown())
    assert rate.value == 0.5


def test_only_one_item_of_a_position_is_certain(tmp_path: Path, stage_warnings: list[str]) -> None:
    (tmp_path / "p.csv").write_text("item_id,probability\na,0.5\nb,0.25\nc,0.25\n")
    evidence = _load(_LOG.assign(propensity=1), tmp_path)
    _measure(PolicyValue(estimator="ips"), evidence, GivenPolicy(path=tmp_path / "p.csv"))
    assert any("3 items have propensity 1 at one position" in text for text in stage_warnings)


@pytest.mark.parametrize("requests", [["r"] * 2 + ["s", "t"], None])
def test_rows_without_a_user_are_not_one_user(
    tmp_path: Path, stage_warnings: list[str], requests: Any
) -> None:
    log = pd.DataFrame({"user_id": ["u", "u", None, " "], "item_id": "i", "reward": [1, 1, 0, 1]})
    if requests is not None:
        log["request_id"] = requests
    (rate,) = _measure(ClickThroughRate(), _load(log, tmp_path), Shown())
    assert (rate.value, rate.n) == (0.75, 3)
    assert any("2 of 4 rows have no user_id" in text for text in stage_warnings)


@pytest.mark.parametrize(
    ("log", "metric", "message"),
    [
        (_LOG.drop(columns="propensity"), PolicyValue(), "the log has no propensities"),
        (_LOG.assign(propensity=[0.5, np.nan, 1, 1, 1, 1]), PolicyValue(), "have no propensity"),
        (_LOG.drop(columns="position"), ShownNDCG(), "needs the column position"),
        (_LOG.drop(columns="request_id"), ShownNDCG(), "needs the column request_id"),
        (
            _LOG.drop(columns="request_id"),
            PolicyValue(estimator="slate_pi"),
            "needs the column request_id",
        ),
    ],
)
def test_questions_that_a_log_cannot_answer(
    tmp_path: Path, log: pd.DataFrame, metric: Any, message: str
) -> None:
    (tmp_path / "p.csv").write_text("item_id,probability\na,0.5\nb,0.25\nc,0.25\n")
    evidence = _load(log, tmp_path)
    model = Shown() if isinstance(metric, ShownNDCG) else GivenPolicy(path=tmp_path / "p.csv")
    with pytest.raises(MissingEvidence, match=message):
        _measure(metric, evidence, model)


def test_two_variants_with_other_users_differ_by_the_error_of_both(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    users = rng.integers(80, size=600)
    variants = np.where(users < 20, "b", "a")
    rows = {"user_id": users, "item_id": "i", "variant": variants, "reward": rng.random(600)}
    evidence = _load(pd.DataFrame(rows), tmp_path)
    a, b = (_measure(ClickThroughRate(), evidence, Shown(variant=name))[0] for name in "ab")
    units: Any = (a.units, b.units)
    z = units[0].compared - units[1].compared
    assert z.mean() == pytest.approx(a.value - b.value)
    errors = np.hypot(a.std / np.sqrt(a.n), b.std / np.sqrt(b.n))
    assert z.std(ddof=1) / np.sqrt(z.size) == pytest.approx(errors, rel=0.03)


def test_groups_that_the_log_never_showed(tmp_path: Path, stage_warnings: list[str]) -> None:
    (tmp_path / "items.csv").write_text("item_id,kind\na,x\nb,y\nc,y\nd,z\n")
    (tmp_path / "users.csv").write_text("user_id,age\nu,1\nv,2\nw,3\n")
    tables = {"items": tmp_path / "items.csv", "users": tmp_path / "users.csv"}
    shares = _measure(ShownShare(attribute="kind"), _load(_LOG, tmp_path, **tables), Shown())
    assert [row.value for row in shares] == [0.5, 0.5, 0.0]
    assert any("no item with kind=z was ever shown" in text for text in stage_warnings)
    assert any("users.csv: 1 users are not in the log" in text for text in stage_warnings)


def test_rows_of_users_that_are_not_asked_are_of_no_query(tmp_path: Path) -> None:
    log = pd.DataFrame({"user_id": ["a", "b", "c"], "item_id": ["i"] * 3, "reward": [1, 0, 1]})
    evidence = _load(log, tmp_path)
    ids = Vocabulary.of(["a", "nobody"])
    labels = Attributes(ids, pd.DataFrame(index=range(2)), "query")
    asked = Queries(ids, labels, np.array([0, -1], dtype=np.int32))
    (row,) = _measure(ClickThroughRate(), replace(evidence, queries=asked), Shown())
    assert (row.value, row.n, row.undefined) == (1.0, 1, 1)


def test_a_column_that_no_file_has_is_refused(tmp_path: Path) -> None:
    log = pd.DataFrame({"item_id": ["i"], "reward": [1], "p": [0.5]})
    with pytest.raises(UnknownColumn, match="propensty"):
        _load(log, tmp_path, columns={"propensty": "propensity"})


def test_unknown_variant(tmp_path: Path) -> None:
    evidence = _load(_LOG.assign(variant="a"), tmp_path)
    with pytest.raises(UserError, match="no rows of the variant 'z'"):
        _measure(ClickThroughRate(), evidence, Shown(variant="z"))


def test_rewards_of_true_and_false(tmp_path: Path) -> None:
    log = _LOG.assign(reward=_LOG["reward"] == 1)
    (rate,) = _measure(ClickThroughRate(), _load(log, tmp_path), Shown())
    assert rate.value == 0.5
    with pytest.raises(UserError, match="row 6 has the reward nan"):
        _load(log.assign(reward=[True, False, False, True, False, "maybe"]), tmp_path)


def test_mind_has_a_row_for_each_item(tmp_path: Path) -> None:
    path = tmp_path / "behaviors.tsv"
    path.write_text("1\tU1\t11/11/2019 9:05:58 AM\tN9 N8\tN1-0 N2-1\n2\tU2\tt\t\tN1-1\n")
    evidence = _load(path, tmp_path, layout="mind")
    (rate,) = _measure(ClickThroughRate(), evidence, Shown())
    assert rate.value == pytest.approx(2 / 3)
    assert evidence.item_ids.ids.tolist() == ["N1", "N2"]


def test_blocks_hold_whole_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.parquet"
    _LOG.astype({"request_id": str}).to_parquet(path)
    whole = _measure(ShownNDCG(), _load(path, tmp_path), Shown())[0].value
    monkeypatch.setattr("recbias.data.impressions._BLOCK", 1)
    assert _measure(ShownNDCG(), _load(path, tmp_path), Shown())[0].value == whole


def test_a_blank_label_of_a_log_is_missing(tmp_path: Path) -> None:
    log = pd.DataFrame({"user_id": [*"aabbcc"], "item_id": [*"xyxyxy"], "reward": 1})
    log["sex"] = [None, "F", "M", "M", None, None]
    evidence = _load(log, tmp_path, user_columns=("sex",))
    groups = group_by(evidence.queries.labels, "sex", split_cells=True)
    assert {name: groups.find_rows(code).tolist() for code, name in enumerate(groups.names)} == {
        "sex=F": [0],
        "sex=M": [1],
    }
    requests = _load(log.drop(columns="user_id"), tmp_path, user_columns=("sex",))
    assert requests.queries.labels.frame["sex"].isna().sum() == 3


@pytest.mark.parametrize(
    ("columns", "unit"), [(["user_id"], "user"), (["request_id"], "request"), ([], "row")]
)
def test_the_units_of_a_log_without_users_are_not_called_users(
    columns: list[str], unit: str, tmp_path: Path
) -> None:
    ids = pd.DataFrame({name: [*"aabb"] for name in columns}, index=range(4))
    log = ids.assign(item_id=[*"xyxy"], reward=1, position=[1, 2, 1, 2])
    log.to_csv(tmp_path / "log.csv", index=False)
    source = ImpressionTable(path=tmp_path / "log.csv")
    dataset = source.load(tmp_path, np.random.default_rng(0))
    queries = Users().ask(dataset, np.random.default_rng(0))
    assert (queries.unit, len(queries)) == (unit, 2 if columns else 4)
