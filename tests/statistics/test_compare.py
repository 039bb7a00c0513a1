from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from recbias.core.arrays import FloatArray
from recbias.core.measurements.columns import SIGNIFICANCE
from recbias.statistics.compare import Figure, compare
from recbias.statistics.corrections import Correction, adjust
from recbias.statistics.tests.paired import PairedT, Wilcoxon
from recbias.statistics.tests.sign_flip import SignFlip


def keys(metric: str = "nDCG", **others: object) -> dict[str, object]:
    found: dict[str, object] = {"dataset": "demo", "seed": 42, "fold": 1, "metric": metric}
    return {**found, "k": 10, "group": "", "target": "", **others}


def figure(values: FloatArray, systems: str = "ABCDEFG", **others: Any) -> Figure:
    names = tuple(systems[: len(values)])
    return Figure(names, values, np.nanmean(values, axis=1), None, keys(**others))


def sets(replicates: FloatArray, **others: Any) -> Figure:
    names = tuple("ABCDEFG"[: len(replicates)])
    return Figure(names, None, replicates.mean(axis=1), replicates, keys("Gini", **others))


def table(*figures: Figure, test: Any = None, name: str = "paired_t", seed: int = 42) -> Any:
    return compare(figures, test or PairedT(), name=name, seed=seed)


@pytest.fixture
def values(rng: np.random.Generator) -> FloatArray:
    return rng.normal(size=(4, 30)) + 0.3 * np.arange(4)[:, None]


def test_columns_are_those_of_the_contract(values: FloatArray) -> None:
    found = table(figure(values))
    assert ",".join(found.columns) == (
        "dataset,model,seed,fold,metric,k,group,target,test,between,a,b,n,mean_a,mean_b,"
        "difference,ci_low,ci_high,statistic,df,p,p_adjusted,correction,family,family_size,"
        "alpha,significant,effect_size"
    )


def test_every_pair_once_in_order(values: FloatArray) -> None:
    found = table(figure(values))
    assert (found["a"] + found["b"]).tolist() == ["AB", "AC", "AD", "BC", "BD", "CD"]
    assert set(found["between"]) == {"models"}
    assert set(found["model"]) == {""}
    assert set(found["test"]) == {"paired_t"}
    assert found["n"].tolist() == [30] * 6


def test_a_row_says_which_figure_it_is_of(values: FloatArray) -> None:
    found = table(
        figure(values[:2], group="gender=F", target="price=$", fold="all", k=None),
        figure(values[:2], metric="HR", k=5),
    )
    first, second = found.to_dict("records")
    assert (first["group"], first["target"], first["fold"]) == ("gender=F", "price=$", "all")
    assert found["k"].isna().tolist() == [True, False]
    assert (second["metric"], second["k"], second["fold"]) == ("HR", 5, 1)
    assert (second["dataset"], second["seed"]) == ("demo", 42)


def test_numbers_are_those_of_scipy(values: FloatArray) -> None:
    found = table(figure(values))
    expected = stats.ttest_rel(values[0], values[3])
    row = found.iloc[2]
    assert row["p"] == pytest.approx(expected.pvalue, rel=1e-10)
    assert row["p_adjusted"] == pytest.approx(6 * expected.pvalue, rel=1e-10)
    assert row["difference"] == pytest.approx(values[0].mean() - values[3].mean())


@pytest.mark.parametrize("correction", ["none", "bonferroni", "holm", "bh"])
def test_the_family_metric_is_each_figure_by_itself(correction: Any, values: FloatArray) -> None:
    found = table(
        figure(values), figure(values[:3], metric="HR"), test=PairedT(correction=correction)
    )
    assert found["family_size"].tolist() == [6] * 6 + [3] * 3
    assert set(found["family"]) == {"metric"}
    assert set(found["correction"]) == {correction}
    for part in (found[:6], found[6:]):
        expected = adjust(part["p"].to_numpy(), correction)
        assert part["p_adjusted"].tolist() == expected.tolist()


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "bh"])
def test_the_family_report_is_everything(correction: Any, values: FloatArray) -> None:
    test = PairedT(correction=correction, family="report")
    found = table(figure(values), figure(values[:3], metric="HR"), test=test)
    assert found["family_size"].tolist() == [9] * 9
    expected = adjust(found["p"].to_numpy(), correction)
    assert found["p_adjusted"].tolist() == expected.tolist()


def test_a_family_of_the_users_own(values: FloatArray) -> None:
    found = table(figure(values), test=PairedT(family=19))
    assert set(found["family_size"]) == {19}
    assert set(found["family"]) == {"19"}
    np.testing.assert_allclose(found["p_adjusted"], np.minimum(19 * found["p"], 1))


def test_significant_is_held_against_alpha(values: FloatArray) -> None:
    strict, loose = (table(figure(values), test=PairedT(alpha=each)) for each in (0.001, 0.2))
    for found, alpha in ((strict, 0.001), (loose, 0.2)):
        assert found["significant"].tolist() == (found["p_adjusted"] <= alpha).tolist()
        assert set(found["alpha"]) == {alpha}
    assert loose["significant"].sum() > strict["significant"].sum()
    # the interval is of level 1 - alpha: wider where alpha is smaller
    wide, narrow = (each["ci_high"] - each["ci_low"] for each in (strict, loose))
    assert (wide > narrow).all()


def test_a_comparison_without_p_is_not_significant_and_not_counted() -> None:
    values = np.array([[1.0, 2, 3, 4], [0.0, 1, 1, 1], [np.nan, np.nan, np.nan, 5]])
    found = table(figure(values))
    assert found["p"].isna().tolist() == [False, True, True]
    assert found["p_adjusted"].isna().tolist() == [False, True, True]
    assert found["family_size"].tolist() == [1, 1, 1]
    assert found["significant"].tolist()[1:] == [False, False]
    assert found["n"].tolist() == [4, 1, 1]


def test_figures_of_the_whole_set_are_bootstrapped(rng: np.random.Generator) -> None:
    replicates = rng.normal(size=(3, 200)) + np.array([[0.0], [9.0], [0.0]])
    error = float(np.std(replicates[0] - replicates[1], ddof=1))
    of_sets = table(sets(replicates), test=PairedT(alpha=0.1))
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
    own = sets(replicates)
    points = np.array([0.5, 0.5 - 1.1e-16])
    found = table(Figure(own.systems, None, points, replicates, own.keys))
    assert (found["p"].tolist(), found["p_adjusted"].tolist()) == ([1], [1])
    assert found["significant"].tolist() == [False]


def test_both_kinds_of_figures_in_one_table(values: FloatArray, rng: np.random.Generator) -> None:
    found = table(figure(values), sets(rng.normal(size=(4, 50))))
    assert found["test"].tolist() == ["paired_t"] * 6 + ["paired_bootstrap"] * 6
    assert found["n"].isna().tolist() == [False] * 6 + [True] * 6
    assert found["n"].iloc[0] == 30
    assert str(found["n"].dtype) == "Int64"


@pytest.mark.parametrize("which", ["one system", "nothing to compare by", "no figure"])
def test_what_cannot_be_compared_has_no_row(which: str, values: FloatArray) -> None:
    figures = {
        "one system": [figure(values[:1])],
        "nothing to compare by": [Figure(("A", "B"), None, np.zeros(2), None, keys())],
        "no figure": [],
    }[which]
    found = table(*figures)
    assert found.empty
    assert tuple(found.columns) == SIGNIFICANCE


def test_it_does_not_stop_what_can(values: FloatArray) -> None:
    assert len(table(figure(values[:1]), figure(values, metric="HR"))) == 6


@pytest.mark.parametrize(
    ("test", "name"),
    [(PairedT(), "paired_t"), (Wilcoxon(), "wilcoxon"), (SignFlip(permutations=500), "sign_flip")],
)
def test_every_test_fills_every_row(test: Any, name: str, values: FloatArray) -> None:
    found = table(figure(values), test=test, name=name)
    assert found[["p", "p_adjusted", "difference", "ci_low", "effect_size"]].notna().all(axis=None)
    assert set(found["test"]) == {name}
    assert math.isclose(found["alpha"].iloc[0], 0.05)


def test_chance_belongs_to_the_figure_and_the_seed(values: FloatArray) -> None:
    test = SignFlip(permutations=500)
    alone = table(figure(values, metric="HR"), test=test)["p"]
    beside = table(figure(values), figure(values, metric="HR"), test=test)["p"][6:]
    other = table(figure(values, metric="HR"), test=test, seed=43)["p"]
    assert alone.tolist() == beside.tolist()
    assert alone.tolist() != other.tolist()


@pytest.mark.parametrize("correction", ["bonferroni", "holm"])
def test_in_null_worlds_any_finding_is_as_rare_as_promised(
    correction: Any, rng: np.random.Generator
) -> None:
    # 400 runs of five equal systems on two metrics, all 20 comparisons one family
    test = PairedT(correction=correction, family="report")
    worlds = 400
    wrong = 0
    for _ in range(worlds):
        figures = (figure(rng.normal(size=(5, 25)), metric=name) for name in ("nDCG", "HR"))
        wrong += bool(table(*figures, test=test)["significant"].any())
    assert wrong / worlds < 0.05 + 4 * math.sqrt(0.05 * 0.95 / worlds)


def test_a_planted_bias_is_found_under_every_correction(rng: np.random.Generator) -> None:
    values = rng.normal(size=(3, 400))
    values[1] += 0.5
    corrections: tuple[Correction, ...] = ("none", "bonferroni", "holm", "bh")
    for correction in corrections:
        found = table(figure(values), test=PairedT(correction=correction, alpha=0.01))
        assert found["significant"].tolist() == [True, False, True]
