from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.reports.run import RunTables, read_run
from recbias.reports.tables import (
    build_fold_table,
    build_group_tables,
    build_summary,
    tabulate_comparisons,
)
from recbias.reports.views import (
    Comparisons,
    Definition,
    collect_estimates,
    describe_methods,
    find_wins,
)
from recbias.reports.wording import add_places, number_cell, tabulate
from recbias.statistics.agreement import kendall_tau
from support.hand_worked_runs import BY_GENDER, compare, state, write_groups, write_run
from support.run_folders import RunSpec, make_run


def rewrite_metrics(folder: Path, **columns: Any) -> RunTables:
    path = folder / "metrics.csv"
    pd.read_csv(path, keep_default_na=False).assign(**columns).to_csv(path, index=False)
    return read_run(folder)


def test_a_column_that_is_asked_for_stays_when_it_is_blank() -> None:
    columns: dict[str, Callable[[Any], str]] = {"a": lambda _: "", "b": lambda _: "", "c": str}
    table = tabulate("", [1, 2], columns).without_blanks("a")
    assert [column.title for column in table.columns] == ["a", "c"]


def test_a_quantity_has_the_same_decimals_throughout_a_table() -> None:
    rows = [{"metric": "year", "value": 1987.5}, {"metric": "nDCG", "value": 0.25}]
    rows = add_places([*rows, {"metric": "nDCG", "value": 0.00012}], ["value"])
    table = tabulate("", rows, {"value": lambda row: number_cell(row["value"], row["places"])})
    assert [row[0].text for row in table.rows] == ["1987.5", "0.2500", "0.0001"]


def test_the_summary_has_one_row_per_model_and_one_column_per_metric(tmp_path: Path) -> None:
    table = build_summary(read_run(make_run(tmp_path)))
    assert [column.title for column in table.columns] == [
        "model",
        *("nDCG", "HR", "MRR", "popularity bias (log)"),
    ]
    assert table.title == "Results (@10)"
    assert [column.plugin for column in table.columns][-2:] == ["", "log_popularity_difference"]
    assert [column.numeric for column in table.columns] == [False, True, True, True, True]
    assert [row[0].text for row in table.rows][:2] == ["Random", "MostPop"]
    assert len(table.rows) == 7


def test_undefined_values_are_marked_and_counted(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("a", "b"), metrics=("HR",), significance=False))
    table = build_summary(rewrite_metrics(tmp_path, value=["", 0.25], undefined=[200, 3]))
    cells = [row[1] for row in table.rows]
    assert [cell.text for cell in cells] == ["n/a", "0.2500"]
    assert math.isnan(cells[0].value)
    assert "undefined 3" in cells[1].note
    assert "HR@10" in table.notes[-1]
    assert "200 for a, 3 for b" in table.notes[-1]


def test_units_without_a_label_are_no_undefined_values_of_a_gap(tmp_path: Path) -> None:
    values = [state("a", 0.1, "nDCG(by=gender, gap=difference)", n=94, undefined=6)]
    groups = [
        state("a", value, BY_GENDER["metric"], group=f"gender={gender}", n=n, undefined=undefined)
        for gender, value, n, undefined in (("F", 0.2, 40, 0), ("M", 0.3, 54, 1))
    ]
    gap = {**BY_GENDER, "metric": "nDCG(by=gender, gap=difference)"}
    gap["parameters"] = {"k": 10, "by": "gender", "gap": "difference"}
    run = write_run(tmp_path, [*values, *groups], (), [BY_GENDER, gap])
    pd.DataFrame(groups, columns=run.metrics.columns).to_csv(tmp_path / "groups.csv", index=False)
    run = read_run(tmp_path)
    undefined = collect_estimates(run).set_index("group")["undefined"].to_dict()
    assert undefined == {"": 1, "gender=F": 0, "gender=M": 1}
    assert build_summary(run).notes == ()  # it is said beside the values of the groups
    (table,) = build_group_tables(run)
    assert table.notes[-1] == "Undefined and left out of nDCG@10 by gender: 1 of 95 values."
    own = pd.DataFrame(groups, columns=run.metrics.columns).assign(metric=gap["metric"])
    own.to_csv(tmp_path / "groups.csv", index=False)  # of a gap alone they are there only
    write_run(tmp_path, values, (), [gap])
    (table,) = build_group_tables(read_run(tmp_path))
    assert table.notes[-1] == "Undefined and left out of nDCG@10 by gender: 1 of 95 values."


def test_undefined_values_of_all_folds_are_counted(tmp_path: Path) -> None:
    counts = ((1, 90, 10), (2, 70, 30), ("all", 2, 0))
    values = [state("a", 0.1, fold=fold, n=n, undefined=m) for fold, n, m in counts]
    (note,) = build_summary(write_run(tmp_path, values)).notes
    assert note == "Undefined and left out of nDCG@10: 40 of 200 values."


def test_the_best_gap_is_marked_without_a_test(tmp_path: Path) -> None:
    gap = {**BY_GENDER, "metric": "nDCG(by=gender, gap=std)", "direction": "lower"}
    gap["parameters"] = {"k": 10, "by": "gender", "gap": "std"}
    values = [state(model, value, gap["metric"]) for model, value in (("a", 0.2), ("b", 0.1))]
    table = build_summary(write_run(tmp_path, values, (), [gap]))
    assert [row[-1].best for row in table.rows] == [False, True]


def test_the_smallest_gap_is_the_best_of_its_column(tmp_path: Path) -> None:
    (table,) = build_group_tables(write_groups(tmp_path, models=["a", "b"]))
    assert table.columns[-1].title == "gap"
    assert [row[-1].best for row in table.rows] == [True, True]  # both are 0.1


def test_several_datasets_are_blocks_of_rows_with_the_mean_first(tmp_path: Path) -> None:
    world = RunSpec(models=("a", "b"), metrics=("HR",), datasets=("y", "x"), users=20)
    table = build_summary(read_run(make_run(tmp_path, world)))
    assert [column.title for column in table.columns] == ["dataset", "model", "HR"]
    heads = [(row[0].text, row[1].text) for row in table.rows]
    assert heads[:3] == [("all", "a"), ("all", "b"), ("y", "a")]
    assert sum(row[2].best for row in table.rows) == 3  # one in each block


def test_the_fold_table_has_every_seed_and_fold_with_the_mean_first(tmp_path: Path) -> None:
    world = RunSpec(models=("a",), metrics=("HR",), seeds=(10, 9), folds=2, users=20)
    table = build_fold_table(read_run(make_run(tmp_path, world)))
    assert table is not None
    assert [column.title for column in table.columns] == ["seed", "fold", "model", "HR"]
    places = [(row[0].text, row[1].text) for row in table.rows]
    assert places[0] == ("all", "all")
    assert places.index(("9", "1")) < places.index(("10", "1"))


def test_groups_and_targets_have_one_table_per_metric(tmp_path: Path) -> None:
    shares = (("race=black", "price=$"), ("race=white", "price=$"))
    run = read_run(make_run(tmp_path, RunSpec(models=("a", "b"), metrics=("HR",), parts=shares)))
    (table,) = build_group_tables(run)
    assert table.title == "HR@10 by group and target"
    assert [column.title for column in table.columns] == ["race", "target", "n", "a", "b"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["black", "price=$", "200", "0.1000", "0.1000"],
        ["white", "price=$", "200", "0.2000", "0.2000"],
    ]
    assert [row[0].text for row in build_summary(run).rows] == ["a", "b"]


def test_crossed_groups_have_a_column_each_with_its_own_value(tmp_path: Path) -> None:
    names = [f"gender={gender}&race={race}" for gender in "FM" for race in ("black", "white")]
    parts = tuple((name, "") for name in names)
    run = read_run(make_run(tmp_path, RunSpec(models=("a", "b"), metrics=("HR",), parts=parts)))
    metrics = run.metrics.assign(metric="HR(by=gender & race)")
    entry = {"metric": "HR(by=gender & race)", "k": 10, "parameters": {"by": "gender & race"}}
    crossed = RunTables(
        run.folder, metrics, run.significance, {**run.manifest, "metrics": [entry]}
    )
    (table,) = build_group_tables(crossed)
    titles = ["F, black (n 200)", "F, white (n 200)", "M, black (n 200)", "M, white (n 200)"]
    assert [column.title for column in table.columns][1:5] == titles
    own = metrics[metrics["model"] == "a"].set_index("group")["value"]
    assert [cell.value for cell in table.rows[0][1:5]] == [own[name] for name in names]
    assert own[names].nunique() == 4


def test_comparisons_of_all_metrics_are_rows_by_their_effect(tmp_path: Path) -> None:
    small = compare("x", "<y>", (0.2, 0.3), 0.2, effect_size=-0.1, p_adjusted=0.21)
    # No effect size: se = 0.1 / t(0.975; 99) = 0.0504, and 0.3 / se / sqrt(100) = 0.595.
    large = compare("x", "<y>", (0.2, 0.5), 0.1, metric="HR", significant=True)
    undefined = {**small, "metric": "MRR", "ci_low": math.nan, "ci_high": math.nan}
    undefined |= {"model": "m", "between": "groups", "effect_size": math.nan}
    run = write_run(tmp_path, [state("x", 0.2)], [small, large, undefined])
    table = tabulate_comparisons(run)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["HR@10", "x", "<y>", "-0.3000", "-0.4000 to -0.2000", "0.5", "0.60", "yes", PAIRED],
        ["nDCG@10", "x", "<y>", "-0.1000", "-0.3000 to 0.1000", "0.21", "0.10", "no", PAIRED],
        ["MRR@10", "m: x", "<y>", "-0.1000", "", "0.21", "n/a", "no", PAIRED],
    ]
    assert [cell.value for cell in table.rows[1]][3:6] == pytest.approx([-0.1, -0.3, 0.21])


PAIRED = "paired t-test"


def build_row(
    a: str, b: str, means: tuple[float, float], *, significant: object = "True"
) -> dict[str, Any]:
    return {
        "a": a,
        "b": b,
        "mean_a": means[0],
        "mean_b": means[1],
        "significant": significant,
        "p_adjusted": 0.5,
        "correction": "bonferroni",
        "family": "metric",
        "family_size": 3.0,
        "alpha": 0.05,
    }


def build_comparisons(*rows: Any) -> Comparisons:
    metric = Definition("m", "m", "higher")
    return Comparisons(metric, ("d", "1", "1"), "paired_t", "models", "", rows)


def test_a_model_wins_against_those_it_is_significantly_better_than() -> None:
    comparisons = build_comparisons(
        build_row("x", "y", (0.3, 0.1)),
        build_row("x", "z", (0.3, 0.2), significant="False"),
        build_row("y", "z", (0.1, 0.2), significant=True),
    )
    assert find_wins(comparisons) == {"x": {"y"}, "y": set(), "z": {"y"}}
    assert comparisons.significant == 2


@pytest.mark.parametrize(
    ("changes", "method"),
    [
        ({}, "paired t-test, Bonferroni over 3 comparisons per metric, alpha 0.05"),
        ({"correction": "none"}, "paired t-test, no correction, alpha 0.05"),
        (
            {"correction": "bh", "family": "report", "family_size": 84.0},
            "paired t-test, Benjamini-Hochberg over all 84 comparisons of the run, alpha 0.05",
        ),
        (
            {"family": "19", "family_size": 19.0},
            "paired t-test, Bonferroni over 19 comparisons, alpha 0.05",
        ),
        (
            {"family_size": float("nan")},
            "paired t-test, Bonferroni over n comparisons per metric, alpha 0.05",
        ),
    ],
)
def test_the_method_names_test_correction_and_family(changes: dict[str, Any], method: str) -> None:
    comparisons = build_comparisons(build_row("x", "y", (1, 2)) | changes)
    assert describe_methods([comparisons]) == method


NAN = math.nan


COLUMN = st.lists(st.one_of(st.integers(-3, 3).map(float), st.just(NAN)), min_size=7, max_size=7)


@given(COLUMN, COLUMN)
def test_tau_equals_that_of_scipy_over_the_models_with_both_values(
    a: list[float], b: list[float]
) -> None:
    agreement = kendall_tau(np.column_stack([a, b]))
    both = ~(np.isnan(a) | np.isnan(b))
    expected = NAN
    if both.sum() > 1:
        expected = stats.kendalltau(np.array(a)[both], np.array(b)[both]).statistic
    assert agreement.tau[0, 1] == pytest.approx(expected, nan_ok=True)
    assert agreement.n[0, 1] == both.sum()


def test_counts_and_shares_of_a_dataset_have_decimals_of_their_own(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("a",), metrics=("HR", "MRR"), significance=False))
    run = rewrite_metrics(tmp_path, model="(dataset)", value=[2373, 0.5032])
    (table,) = build_group_tables(run)
    assert table.title == "Properties of the dataset"
    assert [row[-1].text for row in table.rows] == ["2373", "0.5032"]
