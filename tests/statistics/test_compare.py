from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from recbias.core.dataset import FloatArray
from recbias.core.measures import SIGNIFICANCE, Contrast
from recbias.statistics.compare import ModelContrasts, SystemEstimates, compare, correct_contrasts
from recbias.statistics.paired import PairedT, SignFlip, adjust


def make_keys(metric: str = "nDCG", **changes: object) -> dict[str, object]:
    columns: dict[str, object] = {"dataset": "demo", "seed": 42, "fold": 1, "metric": metric}
    return {**columns, "k": 10, "group": "", "target": "", **changes}


def estimate(values: FloatArray, systems: str = "ABCDEFG", **changes: Any) -> SystemEstimates:
    names = tuple(systems[: len(values)])
    return SystemEstimates(names, values, np.nanmean(values, axis=1), None, make_keys(**changes))


def estimate_units(values: FloatArray, ids: str, **changes: Any) -> SystemEstimates:
    return replace(estimate(values, **changes), ids=np.array([*ids], dtype=object))


def estimate_set(replicates: FloatArray, **changes: Any) -> SystemEstimates:
    names = tuple("ABCDEFG"[: len(replicates)])
    return SystemEstimates(
        names, None, replicates.mean(axis=1), replicates, make_keys("Gini", **changes)
    )


def tabulate(
    *figures: SystemEstimates, test: Any = None, name: str = "paired_t", seed: int = 42
) -> Any:
    return compare(figures, test or PairedT(), name=name, seed=seed)


@pytest.fixture
def values(rng: np.random.Generator) -> FloatArray:
    return rng.normal(size=(4, 30)) + 0.3 * np.arange(4)[:, None]


def test_columns_are_those_of_the_contract(values: FloatArray) -> None:
    assert tuple(tabulate(estimate(values)).columns) == SIGNIFICANCE.names


def test_a_row_says_which_figure_it_is_of(values: FloatArray) -> None:
    comparison = tabulate(
        estimate(values[:2], group="gender=F", target="price=$", fold="all", k=None),
        estimate(values[:2], metric="HR", k=5),
    )
    first, second = comparison.to_dict("records")
    assert (first["group"], first["target"], first["fold"]) == ("gender=F", "price=$", "all")
    assert comparison["k"].isna().tolist() == [True, False]
    assert (second["metric"], second["k"], second["fold"]) == ("HR", 5, 1)
    assert (second["dataset"], second["seed"]) == ("demo", 42)


def test_numbers_are_those_of_scipy(values: FloatArray) -> None:
    comparison = tabulate(estimate(values))
    expected = stats.ttest_rel(values[0], values[3])
    row = comparison.iloc[2]
    assert row["p"] == pytest.approx(expected.pvalue, rel=1e-10)
    assert row["p_adjusted"] == pytest.approx(6 * expected.pvalue, rel=1e-10)
    assert row["difference"] == pytest.approx(values[0].mean() - values[3].mean())


@pytest.mark.parametrize("correction", ["none", "bonferroni", "holm", "bh"])
def test_the_family_metric_is_each_figure_by_itself(correction: Any, values: FloatArray) -> None:
    comparison = tabulate(
        estimate(values), estimate(values[:3], metric="HR"), test=PairedT(correction=correction)
    )
    assert comparison["family_size"].tolist() == [6] * 6 + [3] * 3
    assert set(comparison["family"]) == {"metric"}
    assert set(comparison["correction"]) == {correction}
    for part in (comparison[:6], comparison[6:]):
        expected = adjust(part["p"].to_numpy(), correction)
        assert part["p_adjusted"].tolist() == expected.tolist()


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "bh"])
def test_the_family_report_is_everything(correction: Any, values: FloatArray) -> None:
    test = PairedT(correction=correction, family="report")
    comparison = tabulate(estimate(values), estimate(values[:3], metric="HR"), test=test)
    assert comparison["family_size"].tolist() == [9] * 9
    expected = adjust(comparison["p"].to_numpy(), correction)
    assert comparison["p_adjusted"].tolist() == expected.tolist()


def test_a_family_of_the_users_own(values: FloatArray) -> None:
    comparison = tabulate(estimate(values), test=PairedT(family=19))
    assert set(comparison["family_size"]) == {19}
    assert set(comparison["family"]) == {"19"}
    np.testing.assert_allclose(comparison["p_adjusted"], np.minimum(19 * comparison["p"], 1))


def test_significant_is_held_against_alpha(values: FloatArray) -> None:
    strict, loose = (
        tabulate(estimate(values), test=PairedT(alpha=comparison)) for comparison in (0.001, 0.2)
    )
    for comparison, alpha in ((strict, 0.001), (loose, 0.2)):
        assert comparison["significant"].tolist() == (comparison["p_adjusted"] <= alpha).tolist()
        assert set(comparison["alpha"]) == {alpha}
    assert loose["significant"].sum() > strict["significant"].sum()
    # the interval is of level 1 - alpha: wider where alpha is smaller
    wide, narrow = (comparison["ci_high"] - comparison["ci_low"] for comparison in (strict, loose))
    assert (wide > narrow).all()


def test_a_comparison_without_p_is_not_significant_and_not_counted() -> None:
    values = np.array([[1.0, 2, 3, 4], [0.0, 1, 1, 1], [np.nan, np.nan, np.nan, 5]])
    comparison = tabulate(estimate(values))
    assert comparison["p"].isna().tolist() == [False, True, True]
    assert comparison["p_adjusted"].isna().tolist() == [False, True, True]
    assert comparison["family_size"].tolist() == [1, 1, 1]
    assert comparison["significant"].tolist()[1:] == [False, False]
    assert comparison["n"].tolist() == [4, 1, 1]


def test_figures_of_the_whole_set_are_bootstrapped(rng: np.random.Generator) -> None:
    replicates = rng.normal(size=(3, 200)) + np.array([[0.0], [9.0], [0.0]])
    error = float(np.std(replicates[0] - replicates[1], ddof=1))
    of_sets = tabulate(estimate_set(replicates), test=PairedT(alpha=0.1))
    assert set(of_sets["test"]) == {"paired_bootstrap"}
    z = float(of_sets["difference"].iloc[0]) / error
    assert of_sets["statistic"].iloc[0] == pytest.approx(z)
    assert of_sets["p"].iloc[0] == pytest.approx(2 * stats.norm.sf(abs(z)))
    assert of_sets["p_adjusted"].iloc[0] == pytest.approx(6 * stats.norm.sf(abs(z)))
    assert of_sets["significant"].tolist() == [True, False, True]
    for name in ("n", "df", "effect_size"):
        assert of_sets[name].isna().all()


def test_the_same_lists_are_not_significant_whatever_order_they_are_added_up_in(
    rng: np.random.Generator,
) -> None:
    shares = np.full((200, 7), 0.5) + 0.1 * rng.random((200, 7))
    replicates = np.stack([shares.sum(axis=1), shares[:, ::-1].cumsum(axis=1)[:, -1]]) / 7
    assert (replicates[0] != replicates[1]).any()
    estimates = estimate_set(replicates)
    points = np.array([0.5, 0.5 - 1.1e-16])
    comparison = tabulate(
        SystemEstimates(estimates.systems, None, points, replicates, estimates.keys)
    )
    assert (comparison["p"].tolist(), comparison["p_adjusted"].tolist()) == ([1], [1])
    assert comparison["significant"].tolist() == [False]


@pytest.mark.parametrize("which", ["one system", "nothing to compare by", "no figure"])
def test_what_cannot_be_compared_has_no_row(which: str, values: FloatArray) -> None:
    figures = {
        "one system": [estimate(values[:1])],
        "nothing to compare by": [
            SystemEstimates(("A", "B"), None, np.zeros(2), None, make_keys())
        ],
        "no figure": [],
    }[which]
    comparison = tabulate(*figures)
    assert comparison.empty
    assert tuple(comparison.columns) == SIGNIFICANCE.names


def test_chance_belongs_to_the_figure_and_the_seed(values: FloatArray) -> None:
    test = SignFlip(permutations=500)
    alone = tabulate(estimate(values, metric="HR"), test=test)["p"]
    beside = tabulate(estimate(values), estimate(values, metric="HR"), test=test)["p"][6:]
    other = tabulate(estimate(values, metric="HR"), test=test, seed=43)["p"]
    assert alone.tolist() == beside.tolist()
    assert alone.tolist() != other.tolist()


@pytest.mark.parametrize("correction", ["bonferroni", "holm"])
@pytest.mark.slow
def test_in_null_worlds_any_finding_is_as_rare_as_promised(
    correction: Any, rng: np.random.Generator
) -> None:
    # 400 runs of five equal systems on two metrics, all 20 comparisons one family
    test = PairedT(correction=correction, family="report")
    worlds = 400
    wrong = 0
    for _ in range(worlds):
        figures = (estimate(rng.normal(size=(5, 25)), metric=name) for name in ("nDCG", "HR"))
        wrong += bool(tabulate(*figures, test=test)["significant"].any())
    assert wrong / worlds < 0.05 + 4 * math.sqrt(0.05 * 0.95 / worlds)


@pytest.mark.parametrize("family", ["metric", "report"])
@pytest.mark.parametrize("correction", ["none", "bonferroni", "holm", "bh"])
def test_a_group_with_all_units_is_one_test_with_the_whole(
    correction: Any, family: Any, rng: np.random.Generator
) -> None:
    values = rng.normal(size=(3, 8))
    values[1, 5] = np.nan
    whole, part = (
        estimate_units(values, "abcdefgh"),
        estimate_units(values[:, :4], "abcd", group="g"),
    )
    same = estimate_units(values.copy(), "abcdefgh", group="category=gender")
    test = SignFlip(permutations=500, correction=correction, family=family)
    table = tabulate(whole, same, part, test=test, name="sign_flip")
    alone = tabulate(whole, part, test=test, name="sign_flip")
    assert table["group"].tolist() == [""] * 3 + ["category=gender"] * 3 + ["g"] * 3
    assert table["family_size"].tolist() == [6] * 9
    numbers = ["n", "mean_a", "mean_b", "p", "p_adjusted", "ci_low", "significant"]
    assert table[numbers][3:6].values.tolist() == table[numbers][:3].values.tolist()
    assert table[numbers].drop([3, 4, 5]).values.tolist() == alone[numbers].values.tolist()


def test_equal_values_of_other_units_are_tests_of_their_own(values: FloatArray) -> None:
    values = values[:, :4]
    table = tabulate(
        estimate_units(values, "abcd", group="g"),
        estimate_units(values, "efgh", group="h"),
        estimate(values, group="i"),
        estimate_units(values, "abcd", group="g", target="price=$"),
    )
    assert table["family_size"].tolist() == [24] * 24


def contrast_sides(prefix: str = "", **changes: Any) -> Contrast:
    numbers = {"n": 40, "mean_a": 2.0, "mean_b": 1.5, "difference": 0.5, "statistic": 2.0}
    return Contrast(
        between="groups",
        a=f"{prefix}group=T1",
        b=f"{prefix}group=T2",
        **{"test": "permutation", "p": 0.01, **numbers, **changes},
    )


def test_the_family_of_groups_is_of_all_models(values: FloatArray) -> None:
    families = [
        ModelContrasts(
            {"model": model}
            | {k: v for k, v in make_keys().items() if k not in {"group", "target"}},
            [("", "", contrast_sides(p=p))],
        )
        for model, p in (("A", 0.02), ("B", 0.03))
    ]
    table = compare([estimate(values)], PairedT(), name="t", seed=1, model_contrasts=families)
    of_groups = table[table["between"] == "groups"]
    assert of_groups["family_size"].tolist() == [2, 2]
    assert of_groups["p_adjusted"].tolist() == pytest.approx([0.04, 0.06])
    assert set(table[table["between"] == "models"]["family_size"]) == {6}


def test_against_a_model_the_family_is_the_other_models(values: FloatArray) -> None:
    table = tabulate(estimate(values), test=PairedT(against="B"))
    assert (table["a"] + table["b"]).tolist() == ["AB", "CB", "DB"]
    assert set(table["family_size"]) == {3}
    expected = stats.ttest_rel(values[3], values[1])
    assert table["p"].iloc[-1] == pytest.approx(expected.pvalue)
    assert table["difference"].iloc[-1] == pytest.approx((values[3] - values[1]).mean())
    assert tabulate(estimate(values), test=PairedT(against="Z")).empty


def test_gaps_of_several_groups_are_compared_by_their_parts(rng: np.random.Generator) -> None:
    # 0, 0.5, 1 in A and 0, 0.5, 3 in B: the gap rises by 2, with errors of 0.1 for each mean
    means = np.array([[0.0, 0.5, 1.0], [0.0, 0.5, 3.0]])
    parts = means[..., None] + rng.normal(0.0, 0.1, (2, 3, 1001))
    parts[..., 0] = means
    gaps = SystemEstimates(
        ("A", "B"), None, np.array([1.0, 3.0]), None, make_keys("gap"), df=50.0, parts=parts
    )
    (row,) = tabulate(gaps).to_dict("records")
    assert (row["test"], row["mean_a"], row["mean_b"], row["difference"]) == (
        *("gap_change", 1.0, 3.0),
        -2.0,
    )
    assert row["p"] < 1e-6
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([-2.4, -1.6], abs=0.05)


def test_within_a_model_a_group_with_all_units_is_one_test_with_the_whole() -> None:
    contrasts = [
        ("", "", contrast_sides()),
        ("", "within 3 sd", contrast_sides(n=38)),
        ("category=gender", "", contrast_sides("category=gender&", p=0.012)),
        ("category=gender", "within 3 sd", contrast_sides("category=gender&", n=38)),
        ("kind=a", "", contrast_sides("kind=a&", n=20, p=0.5)),
        ("kind=b", "", contrast_sides("kind=b&", n=20, p=0.5)),
    ]
    keys = make_keys("perplexity_gap", model="A", k=None)
    table = correct_contrasts([ModelContrasts(keys, contrasts)])
    assert table["family_size"].tolist() == [4] * 6
    assert table["p"].tolist() == [0.01, 0.01, 0.01, 0.01, 0.5, 0.5]
    assert table["p_adjusted"].tolist() == [0.04] * 4 + [1.0] * 2
    assert table["a"].tolist()[1:3] == ["group=T1", "category=gender&group=T1"]
