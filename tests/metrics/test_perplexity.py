from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recbias.core.dataset import AnyArray
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    NothingLeft,
    UnknownColumn,
    UnknownIdentifier,
    WrongType,
)
from recbias.core.evidence import Evidence, SentenceScores
from recbias.core.measures import Measurement
from recbias.metrics.perplexity import (
    TRIMMED,
    PerplexityGap,
    build_pairs,
    group_sentences,
    resolve_groups,
    split_pairs,
)
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary


def make_evidence(scores: SentenceScores | None) -> Evidence:
    return Evidence(
        make_user_queries(0), make_vocabulary("i", 0), sentence_scores=scores, metric="gap"
    )


def make_pairs(a: AnyArray, b: AnyArray, **labels: AnyArray) -> Evidence:
    """Pairs of copies about T1 and T2 with these perplexities; NaN is a copy that is not there."""
    n = len(a)
    frame = pd.DataFrame(
        {
            "pair": [f"p{row}" for row in range(n)] * 2,
            "group": ["T1"] * n + ["T2"] * n,
            "value": np.concatenate([a, b]).astype(np.float64),
            **{name: np.tile(column, 2) for name, column in labels.items()},
        }
    )
    frame = frame[frame["value"].notna()].reset_index(drop=True)
    ids = np.array([f"s{row}" for row in range(len(frame))], dtype=object)
    pair, group = (frame[name].to_numpy(dtype=object) for name in ("pair", "group"))
    return make_evidence(
        SentenceScores(ids, pair, group, frame["value"].to_numpy(), frame[[*labels]])
    )


def measure(metric: PerplexityGap, of: Evidence) -> dict[tuple[str, str], Measurement]:
    return {
        (measurement.group, measurement.target): measurement for measurement in metric.measure(of)
    }


def test_gap_and_test_equal_those_worked_by_hand() -> None:
    # differences 3 - 1, 5 - 4, 7 - 4 = 2, 1, 3: mean 2, sd 1, t = 2 / (1 / sqrt 3) = 3.4641, df 2
    # Welch: means 5 and 3, variances 4 and 3: t = 2 / sqrt((4 + 3) / 3) = 1.3093
    measurement = measure(PerplexityGap(), make_pairs(np.array([3, 5, 7]), np.array([1, 4, 4])))[
        "", ""
    ]
    assert (measurement.value, measurement.std, measurement.n, measurement.undefined) == (
        2.0,
        1.0,
        3,
        0,
    )
    assert measurement.units.unit == "sentence_pair"
    assert dict(zip(measurement.units.ids, measurement.units.values, strict=True)) == {
        "p0": 2,
        "p1": 1,
        "p2": 3,
    }
    paired, welch = measurement.contrasts
    assert (paired.test, paired.between, paired.a, paired.b) == (
        *("paired_t", "groups"),
        *("group=T1", "group=T2"),
    )
    assert (paired.n, paired.mean_a, paired.mean_b, paired.difference) == (3, 5.0, 3.0, 2.0)
    assert paired.statistic == pytest.approx(3.4641, abs=1e-4)
    assert (paired.df, paired.effect_size) == (2.0, 2.0)
    assert (welch.test, welch.n) == ("welch_t", 6)
    assert welch.statistic == pytest.approx(1.3093, abs=1e-4)


@pytest.mark.parametrize("scale", ["perplexity", "log"])
def test_both_tests_are_those_of_scipy(rng: np.random.Generator, scale: str) -> None:
    a, b = np.exp(rng.normal(4, 1, (2, 200)))
    measurement = PerplexityGap(scale=scale).measure(make_pairs(a, b))[0]  # type: ignore[arg-type]
    values = (np.log(a), np.log(b)) if scale == "log" else (a, b)
    for contrast, second in zip(
        measurement.contrasts,
        (stats.ttest_rel(*values), stats.ttest_ind(*values, equal_var=False)),
        strict=True,
    ):
        low, high = second.confidence_interval()
        statistics = (
            contrast.statistic,
            contrast.p,
            contrast.df,
            contrast.ci_low,
            contrast.ci_high,
        )
        assert statistics == pytest.approx((second.statistic, second.pvalue, second.df, low, high))


def test_outliers_leave_with_their_pair_and_from_their_own_set(rng: np.random.Generator) -> None:
    a, b = rng.normal(50, 5, (2, 100))
    a[3], b[7], b[8] = 900, 800, 700
    metric = PerplexityGap(without_outliers="plain")
    measurement = measure(metric, make_pairs(a, b))["", TRIMMED]
    # what the authors' scripts do, by numpy's population standard deviation
    far_a, far_b = (abs(values - values.mean()) > 3 * values.std() for values in (a, b))
    near = ~(far_a | far_b)
    assert near.sum() == 97
    assert (measurement.n, measurement.undefined) == (97, 3)
    assert measurement.value == pytest.approx((a - b)[near].mean())
    paired, welch = measurement.contrasts
    assert paired.statistic == pytest.approx(stats.ttest_rel(a[near], b[near]).statistic)
    alone = stats.ttest_ind(a[~far_a], b[~far_b], equal_var=False)
    assert (welch.statistic, welch.p) == pytest.approx((alone.statistic, alone.pvalue))
    assert welch.n == 99 + 98
    # by default the estimates are the same, over all pairs and sentences
    linear = measure(PerplexityGap(), make_pairs(a, b))["", TRIMMED]
    assert linear.value == pytest.approx(measurement.value)
    assert (linear.n, linear.undefined) == (100, 0)
    for test, plain in zip(linear.contrasts, measurement.contrasts, strict=True):
        assert (test.mean_a, test.mean_b) == pytest.approx((plain.mean_a, plain.mean_b))
    assert [test.n for test in linear.contrasts] == [100, 200]


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize("scale", ["perplexity", "log"])
def test_without_outliers_both_settings_have_the_same_estimates(
    rng: np.random.Generator, scale: Literal["perplexity", "log"]
) -> None:
    a, b = np.exp(rng.normal(3, 0.6, (2, 300)))
    a[5], b[6], b[7] = np.nan, np.nan, 5000.0
    linear, plain = (
        measure(PerplexityGap(scale=scale, without_outliers=setting), make_pairs(a, b))
        for setting in ("linearised", "plain")
    )
    assert linear["", ""].contrasts == plain["", ""].contrasts
    for_all, kept = linear["", TRIMMED], plain["", TRIMMED]
    assert for_all.value == pytest.approx(kept.value)
    assert (for_all.n, for_all.undefined) == (298, 2)
    assert kept.n < 298
    assert for_all.contrasts[1].difference == pytest.approx(kept.contrasts[1].difference)
    paired = for_all.contrasts[0]
    assert (paired.ci_low, paired.ci_high) == pytest.approx((for_all.ci_low, for_all.ci_high))
    if scale == "perplexity":  # limits that vary with the sample cost precision
        assert for_all.ci_high - for_all.ci_low > kept.ci_high - kept.ci_low


def test_without_a_whole_pair_there_is_nothing_to_measure() -> None:
    lonely = make_pairs(np.array([3, np.nan]), np.array([np.nan, 9]))
    with pytest.raises(
        NothingLeft, match="none of the 2 sentences of the groups 'T1' and"
    ) as caught:
        PerplexityGap().measure(lonely)
    assert "the first is " in str(caught.value)
    assert "pair_id" in caught.value.remedy


def test_each_category_has_its_own_figures(rng: np.random.Generator) -> None:
    a, b = rng.normal(50, 5, (2, 60))
    kind = np.array(["age", "gender", "age"] * 20)
    measurements = measure(PerplexityGap(by="category"), make_pairs(a, b, category=kind))
    assert [*measurements] == [
        *(("", ""), ("", TRIMMED)),
        *(("category=age", ""), ("category=age", TRIMMED)),
        *(("category=gender", ""), ("category=gender", TRIMMED)),
    ]
    of_gender = kind == "gender"
    gender = measurements["category=gender", ""]
    assert gender.value == pytest.approx((a - b)[of_gender].mean())
    assert gender.n == 20
    assert gender.contrasts[0].a == "category=gender&group=T1"
    assert gender.contrasts[0].p == pytest.approx(
        stats.ttest_rel(a[of_gender], b[of_gender]).pvalue
    )
    welch = stats.ttest_ind(a[of_gender], b[of_gender], equal_var=False)
    assert gender.contrasts[1].p == pytest.approx(welch.pvalue)


@pytest.mark.parametrize("planted", [0.0, 0.05])
def test_intervals_and_tests_keep_their_level_on_planted_gaps(planted: float) -> None:
    """ln PPL of a pair shares a sentence effect; the copies differ by ``planted`` and by noise."""
    seeds, n = 200, 100
    covered, rejected, welch = 0, 0, 0
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        sentence = rng.normal(4, 1, n)
        a, b = np.exp(sentence + rng.normal(0, 0.1, (2, n)))
        a *= np.exp(planted)
        measurement = PerplexityGap(scale="log").measure(make_pairs(a, b))[0]
        covered += measurement.ci_low <= planted <= measurement.ci_high
        rejected += measurement.contrasts[0].p <= 0.05
        welch += measurement.contrasts[1].p <= 0.05
    assert 0.91 <= covered / seeds <= 0.99
    if planted:
        assert rejected / seeds > 0.85  # d_z = 0.05 / (0.1 sqrt 2) = 0.354, power 0.94 with 100
        assert welch < rejected  # what pairing is for
    else:
        assert 0.015 <= rejected / seeds <= 0.09
        assert welch / seeds <= 0.02  # the sets share their sentences, so Welch's is too wide


def test_a_group_is_not_held_against_itself() -> None:
    with pytest.raises(Contradiction, match="both 'T1'") as caught:
        PerplexityGap(a="T1", b="T1")
    assert caught.value.where == "b"
    with pytest.raises(WrongType, match="a part of it is blank"):
        PerplexityGap(by="category&")


@pytest.mark.real_data
def test_the_released_pairs_line_up(real_data: Path) -> None:
    """The 800 test pairs: identical copies have the same perplexity under any model."""
    sides = [("gender", "female", "male"), ("orientation", "lgbt", "straight")]
    sides += [("age", "old", "young"), ("appearance", "fat", "slim")]
    folder = real_data / "chbias"
    if not folder.is_dir():
        pytest.skip("no chbias in the real data")
    frames = []
    for kind, *names in sides:
        for group, name in zip(("T1", "T2"), names, strict=True):
            texts = pd.read_csv(folder / kind / f"{kind}_{name}_test.csv")["replaced_sentence"]
            ids = [f"{kind} {row}" for row in range(len(texts))]
            frames.append(pd.DataFrame({"pair": ids, "group": group, "kind": kind, "text": texts}))
    table = pd.concat(frames, ignore_index=True)
    value: AnyArray = table["text"].str.len().to_numpy(dtype=np.float64)  # a model of a kind
    pair, about = (table[name].to_numpy(dtype=object) for name in ("pair", "group"))
    scores = SentenceScores(pair + about, pair, about, value, table[["kind"]])
    measurements = measure(PerplexityGap(by="kind"), make_evidence(scores))
    assert measurements["", ""].n == 800
    same = table.pivot_table(index="pair", columns="group", values="text", aggfunc="first")
    alike = same.index[same["T1"].str.strip() == same["T2"].str.strip()]
    counts = {kind: sum(pair_id.startswith(kind) for pair_id in alike) for kind, *_ in sides}
    assert counts == {"gender": 5, "orientation": 7, "age": 12, "appearance": 1}
    for kind, *_ in sides:
        assert measurements[f"kind={kind}", ""].n == 200


def test_a_label_names_the_sides_of_categories_with_other_groups() -> None:
    # gender: 9 - 7 and 9 - 7, age: 4 - 5 and 6 - 5; together (2 + 2 - 1 + 1) / 4 = 1
    rows = [
        *(("g1", "female", "T1", "gender", 9), ("g1", "male", "T2", "gender", 7)),
        *(("g2", "female", "T1", "gender", 9), ("g2", "male", "T2", "gender", 7)),
        *(("a1", "old", "T1", "age", 4), ("a1", "young", "T2", "age", 5)),
        *(("a2", "old", "T1", "age", 6), ("a2", "young", "T2", "age", 5)),
        *((None, "old", None, "age", 99),),
    ]
    frame = pd.DataFrame(rows, columns=["pair", "group", "target_set", "category", "value"])
    frame = frame.astype(object).where(frame.notna(), None)
    ids = np.array([f"s{row}" for row in range(len(frame))], dtype=object)
    pairs, groups = (frame[name].to_numpy(dtype=object) for name in ("pair", "group"))
    values = frame["value"].to_numpy(dtype=np.float64)
    scores = SentenceScores(ids, pairs, groups, values, frame[["target_set", "category"]])
    evidence = make_evidence(scores)
    metric = PerplexityGap(group_label="target_set", a="T1", b="T2", by="category")
    values_by_group = {
        group: measurement.value
        for (group, target), measurement in measure(metric, evidence).items()
        if not target
    }
    assert values_by_group == {"": 1.0, "category=gender": 2.0, "category=age": 0.0}
    contrast = measure(metric, evidence)["category=age", ""].contrasts[0]
    assert (contrast.a, contrast.b) == ("category=age&target_set=T1", "category=age&target_set=T2")
    assert measure(PerplexityGap(group_label="target_set"), evidence)["", ""].value == 1.0
    with pytest.raises(UnknownIdentifier, match="4 groups") as caught:
        measure(PerplexityGap(by="category"), evidence)
    assert "group_label: with two values" in caught.value.remedy
    with pytest.raises(UnknownColumn, match="no column 'targets'") as unknown:
        measure(PerplexityGap(group_label="targets"), evidence)
    assert unknown.value.where == "group_label"


def make_scores(
    rows: Sequence[tuple[str | None, str, float]], **labels: list[str | None]
) -> SentenceScores:
    """Sentences of (pair, group, perplexity)."""
    pairs, groups, values = zip(*rows, strict=True) if rows else ((), (), ())
    return SentenceScores(
        np.array([f"s{row}" for row in range(len(rows))], dtype=object),
        np.array(pairs, dtype=object),
        np.array(groups, dtype=object),
        np.array(values, dtype=np.float64),
        pd.DataFrame(labels, index=range(len(rows)), dtype=object),
    )


TWO = make_scores(
    [("10", "b", 1.0), ("9", "a", 2.0), ("9", "b", 3.0), (None, "a", 4.0), ("8", "a", 5)]
)


@pytest.mark.parametrize(
    ("named", "found"),
    [((None, None), ("a", "b")), (("b", None), ("b", "a")), ((None, "a"), ("b", "a"))],
)
def test_the_group_that_is_not_named_is_the_other_one(
    named: tuple[str | None, str | None], found: tuple[str, str]
) -> None:
    assert resolve_groups(TWO, *named) == found


def test_a_group_that_does_not_occur_is_named() -> None:
    with pytest.raises(UnknownIdentifier, match="b: no sentence is of the group 'c'"):
        resolve_groups(TWO, "a", "c")
    for rows in ([], [("p", "a", 1.0)]):
        with pytest.raises(NothingLeft, match=f"{len(rows)} group"):
            resolve_groups(make_scores(rows), None, None)


def test_two_sentences_of_one_group_are_no_pair() -> None:
    with pytest.raises(BrokenContract, match="pair 'p' has two sentences of the group 'b'"):
        build_pairs(make_scores([("p", "b", 1.0), ("p", "b", 2.0), ("p", "a", 2.0)]), ("a", "b"))


KIND = ["x", "x", "y", "y", None, None]
SIX = [
    ("1", "a", 1.0),
    ("1", "b", 2.0),
    ("2", "a", 3.0),
    ("2", "b", 4.0),
    ("3", "a", 5.0),
    ("3", "b", 6),
]


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize("kind", [["x", "y", "y", "y"], ["x", None, "y", "y"]])
def test_a_label_that_parts_a_pair_is_refused(kind: list[str | None]) -> None:
    scores = make_scores(SIX[:4], kind=kind)
    groups = group_sentences(scores, "kind", "gap")
    with pytest.raises(BrokenContract, match="copies of pair '1' differ in 'kind'"):
        list(split_pairs(build_pairs(scores, ("a", "b")), groups))


def test_a_label_that_no_sentence_carries_is_named() -> None:
    with pytest.raises(UnknownColumn, match="no column 'kinds'") as caught:
        group_sentences(make_scores(SIX, kind=KIND), "kinds", "gap")
    assert caught.value.remedy == "did you mean kind?"
    with pytest.raises(NothingLeft, match="carries the label 'kind'"):
        group_sentences(make_scores(SIX, kind=[None] * 6), "kind", "gap")
