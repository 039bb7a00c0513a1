from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import recbias
from recbias.reports.agreement import (
    MetricAgreement,
    build_agreement_tables,
    compute_metric_agreement,
)
from recbias.reports.group_tables import build_group_tables
from recbias.reports.render import Content, render_html
from recbias.reports.run import RunTables, read_run
from recbias.reports.tables import (
    build_fold_table,
    build_runs_table,
    build_settings_tables,
    build_summary,
    collect_variants,
    count_undefined,
    tabulate_comparisons,
)
from recbias.reports.views import Comparisons, collect_comparisons, find_better_side, find_wins
from recbias.statistics.agreement import kendall_tau
from support.hand_worked_runs import compare, state, write_run
from support.run_folders import SEVEN_MODELS, RunSpec, make_run
from support.swept_runs import read_swept_run


def rewrite_metrics(folder: Path, **columns: Any) -> RunTables:
    path = folder / "metrics.csv"
    pd.read_csv(path, keep_default_na=False).assign(**columns).to_csv(path, index=False)
    return read_run(folder)


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


@pytest.mark.parametrize(
    ("metric", "values", "wins", "second"),
    [
        ("nDCG", [0.1, 0.3, 0.3, 0.2], ["b", "c"], ["d"]),
        ("ARP", [0.1, 0.3, 0.3, ""], ["a"], ["b", "c"]),
        ("log_popularity_difference", [-0.1, 0.3, 0.05, ""], ["c"], ["a"]),
        ("Gini", [0.1, 0.3, 0.3, ""], [], []),
    ],
)
def test_the_best_value_depends_on_the_direction(
    tmp_path: Path, metric: str, values: list[object], wins: list[str], second: list[str]
) -> None:
    make_run(tmp_path, RunSpec(models=("a", "b", "c", "d"), metrics=(metric,), significance=False))
    table = build_summary(rewrite_metrics(tmp_path, value=values))
    assert [row[0].text for row in table.rows if row[1].best] == wins
    assert [row[0].text for row in table.rows if row[1].second] == second


def test_undefined_values_are_marked_and_counted(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("a", "b"), metrics=("HR",), significance=False))
    table = build_summary(rewrite_metrics(tmp_path, value=["", 0.25], undefined=[200, 3]))
    cells = [row[1] for row in table.rows]
    assert [cell.text for cell in cells] == ["n/a", "0.2500"]
    assert math.isnan(cells[0].value)
    assert "undefined 3" in cells[1].note
    assert "HR@10" in table.notes[-1]
    assert "200 for a, 3 for b" in table.notes[-1]


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


def test_counts_and_shares_of_a_dataset_have_decimals_of_their_own(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("a",), metrics=("HR", "MRR"), significance=False))
    run = rewrite_metrics(tmp_path, model="(dataset)", value=[2373, 0.5032])
    (table,) = build_group_tables(run)
    assert table.title == "Properties of the dataset"
    assert [row[-1].text for row in table.rows] == ["2373", "0.5032"]


def test_a_run_in_which_every_stage_failed_has_an_empty_table(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(significance=False)))
    run.metrics.iloc[:0].to_csv(tmp_path / "metrics.csv", index=False)
    run = read_run(tmp_path)
    assert build_summary(run).rows == ()
    assert build_fold_table(run) is None
    assert build_group_tables(run) == []


def test_means_over_folds_have_no_marks_and_a_note_explains_why(tmp_path: Path) -> None:
    table = build_summary(read_run(make_run(tmp_path, RunSpec(folds=2, users=20))))
    assert {cell.mark for row in table.rows for cell in row} == {""}
    assert "they were not compared" in " ".join(table.notes)


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
    return Comparisons("m", "m", "higher", ("d", "1", "1"), "paired_t", "models", "", rows)


def test_a_model_wins_against_those_it_is_significantly_better_than() -> None:
    comparisons = build_comparisons(
        build_row("x", "y", (0.3, 0.1)),
        build_row("x", "z", (0.3, 0.2), significant="False"),
        build_row("y", "z", (0.1, 0.2), significant=True),
    )
    assert find_wins(comparisons) == {"x": {"y"}, "y": set(), "z": {"y"}}
    assert comparisons.significant == 2


@pytest.mark.parametrize(
    ("means", "reach", "side"),
    [
        ((0.30, -0.31), 0.02, ""),  # as far from 0 on either side: the sum is -0.01
        ((0.30, -0.35), 0.02, "a"),  # the sum is -0.05
        ((0.30, 0.10), 0.02, "b"),
        ((0.01, -0.01), 0.0, ""),
        ((0.30, 0.10), float("nan"), ""),
    ],
)
def test_a_mean_is_nearer_to_zero_only_if_the_distances_differ(
    means: tuple[float, float], reach: float, side: str
) -> None:
    assert find_better_side(build_row("x", "y", means) | {"reach": reach}, "zero") == side


def test_equal_biases_of_opposite_sign_win_against_nobody(tmp_path: Path) -> None:
    values = np.random.default_rng(3).normal(0.5, 0.3, size=400)
    means = [float(values.mean()), float((values - 1.0).mean())]  # about 0.5 and -0.5
    spec = {
        "name": "opposite",
        "dataset": {"name": "demo", "n_users": 40, "n_items": 30},
        "models": ["MostPop", "Random"],
        "metrics": ["log_popularity_difference"],
        "split": {"name": "random"},
        "tests": ["paired_t"],
    }
    run = recbias.run(spec, out=tmp_path)
    table = pd.read_csv(run.folder / "metrics.csv")
    half = 1.966 * 0.3 / 20
    table["value"], table["ci_low"] = means, [mean - half for mean in means]
    table["ci_high"] = [mean + half for mean in means]
    table.to_csv(run.folder / "metrics.csv", index=False)
    pairs = pd.read_csv(run.folder / "significance.csv")
    pairs["mean_a"], pairs["mean_b"], pairs["significant"] = means[0], means[1], True
    pairs.to_csv(run.folder / "significance.csv", index=False)
    manifest = json.loads((run.folder / "manifest.json").read_text())
    (run.folder / "manifest.json").write_text(json.dumps(manifest | {"files": {}}))
    (comparisons,) = collect_comparisons(read_run(run.folder))
    assert comparisons.significant == 1
    assert find_wins(comparisons) == {"MostPop": set(), "Random": set()}


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
    assert build_comparisons(build_row("x", "y", (1, 2)) | changes).method() == method


SENTENCE = "HR@10 is undefined for a, which provides no embeddings."


def make_undefined_run(folder: Path, *models: str, folds: int = 1) -> RunTables:
    """Return a run of the models a, b and c, some of which have no embeddings for HR."""
    world = RunSpec(models=("a", "b", "c"), metrics=("HR", "MRR"), folds=folds, users=20)
    make_run(folder, world)
    path = folder / "metrics.csv"
    frame = pd.read_csv(path, keep_default_na=False).astype({"value": object})
    rows = frame["model"].isin(models) & (frame["metric"] == "HR")
    frame["value"] = frame["value"].mask(rows, "")
    frame["undefined"] = frame["undefined"].mask(rows, 1)
    frame.to_csv(path, index=False)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["undefined"] = [
        {"metric": "HR", "k": 10, "model": model, "missing": "embeddings"} for model in models
    ]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return read_run(folder)


def test_the_reason_is_in_the_notes_once_and_not_counted(tmp_path: Path) -> None:
    notes = build_summary(make_undefined_run(tmp_path, "a")).notes
    assert notes.count(SENTENCE) == 1
    assert not [note for note in notes if "excluded from the mean" in note]


def test_the_cell_is_undefined_and_has_the_reason(tmp_path: Path) -> None:
    run = make_undefined_run(tmp_path, "a")
    cell = build_summary(run).rows[0][1]
    assert (cell.text, cell.note) == ("n/a", "undefined: the model provides no embeddings")
    page = render_html(Content(run))
    assert 'title="undefined: the model provides no embeddings"' in page
    assert page.count(SENTENCE) == 1


def test_metrics_with_the_same_undefined_values_share_a_footnote() -> None:
    records = [
        {"metric": metric, "k": 10.0, "model": "a", "undefined": 3.0} for metric in ("HR", "MRR")
    ]
    records.append({"metric": "MAP", "k": 10.0, "model": "a", "undefined": 4.0})
    assert count_undefined(records, ["HR@10", "MRR@10", "MAP@10"], {}) == [
        "HR@10, MRR@10: undefined values are excluded from the mean (3 for a).",
        "MAP@10: undefined values are excluded from the mean (4 for a).",
    ]


NAN = math.nan


def write_values(folder: Path, values: dict[str, list[float]], **world: object) -> Path:
    models = SEVEN_MODELS[: len(next(iter(values.values())))]
    spec = RunSpec(models=models, metrics=tuple(values), users=5, items=20, **world)  # type: ignore[arg-type]
    frame = pd.read_csv(make_run(folder, spec) / "metrics.csv", keep_default_na=False)
    for metric, column in values.items():
        rows = (frame["metric"] == metric) & (frame["dataset"] == "ml-1m")
        frame.loc[rows, "value"] = np.tile(column, rows.sum() // len(column))
    frame.to_csv(folder / "metrics.csv", index=False)
    return folder


def compute(folder: Path, values: dict[str, list[float]]) -> MetricAgreement:
    agreement = compute_metric_agreement(read_run(write_values(folder, values)), "ml-1m")
    assert agreement is not None
    return agreement


def test_models_of_which_a_metric_is_undefined_are_excluded_from_its_pairs_and_counted(
    tmp_path: Path,
) -> None:
    # Without the third model b is 1, 2, 4, 3 where a is 1, 2, 4, 5: of six pairs five agree and
    # one (4 and 3) does not, (5 - 1) / 6. c is a reversed.
    values = {"a": [1.0, 2, 3, 4, 5], "b": [1.0, 2, NAN, 4, 3], "c": [5.0, 4, 3, 2, 1]}
    result = compute(tmp_path, values)
    assert result.get_tau((0, 1)) == pytest.approx(4 / 6)
    assert result.get_tau((0, 2)) == -1.0
    assert (result.agreement.n[0, 1], result.agreement.n[0, 2]) == (4, 5)
    assert dict(result.excluded) == {"b@10": ["ItemKNN"]}
    (table,) = build_agreement_tables(read_run(tmp_path))
    assert [cell.text for cell in table.rows[0]] == ["1 a", "", "0.67", "-1.00"]
    assert table.rows[0][2].note == "n 4"
    assert "over 4 to 5 models" in table.notes[0]
    assert table.notes[1:] == (
        "b@10 is undefined or infinite for 1 model, excluded from its pairs: ItemKNN.",
    )


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


def test_settings_that_differ_are_found_at_any_depth(tmp_path: Path) -> None:
    (group,) = collect_variants(read_swept_run(tmp_path))
    assert group.name == "ItemKNN"
    assert group.names == ["neighbors", "llm.shrink"]
    assert group.settings["knn 5 10"] == {"neighbors": 5, "llm.shrink": 10}
    assert group.axis == "neighbors"


@pytest.mark.parametrize("datasets", [("ml-1m",), ("ml-1m", "books")])
def test_table_has_the_results_of_the_summary(tmp_path: Path, datasets: tuple[str, ...]) -> None:
    run = read_swept_run(tmp_path, datasets=datasets)
    (table,), summary = build_settings_tables(run), build_summary(run)
    titles = [column.title for column in table.columns]
    n = titles.index("neighbors")
    assert titles[n : n + 2] == ["neighbors", "llm.shrink"]
    assert titles[n + 2 :] == [column.title for column in summary.columns[n + 1 :]]
    values = {
        (*(cell.text for cell in row[:n]), f"knn {row[n].text} {row[n + 1].text}"): row[
            n + 2
        ].value
        for row in table.rows
    }
    expected = {tuple(c.text for c in row[: n + 1]): row[n + 1].value for row in summary.rows}
    assert values == {key: value for key, value in expected.items() if key[-1] != "MostPop"}
    assert len(values) == 6 * (3 if len(datasets) > 1 else 1)
    assert [row[n].value for row in table.rows[:3]] == [80, 5, 20]


def test_all_runs_stand_in_one_table(tmp_path: Path) -> None:
    worlds = {
        "a": RunSpec(models=("MostPop", "ItemKNN"), metrics=("nDCG", "HR")),
        "b": RunSpec(models=("ItemKNN",), metrics=("HR", "Gini"), datasets=("x", "y")),
    }
    runs = {label: read_run(make_run(tmp_path / label, world)) for label, world in worlds.items()}
    table = build_runs_table(runs)
    titles = [column.title for column in table.columns]
    assert titles == ["run", "dataset", "model", "nDCG", "HR", "Gini index"]
    heads = [tuple(cell.text for cell in row[:3]) for row in table.rows]
    assert heads == [
        ("a", "", "MostPop"),
        ("a", "", "ItemKNN"),
        ("b", "all", "ItemKNN"),
        ("b", "x", "ItemKNN"),
        ("b", "y", "ItemKNN"),
    ]
    metrics = pd.read_csv(tmp_path / "a" / "metrics.csv").set_index(["model", "metric"])["value"]
    assert table.rows[1][3].value == pytest.approx(metrics["ItemKNN", "nDCG"], rel=1e-12)
    assert [table.rows[1][5].text, table.rows[2][3].text] == ["", ""]
    assert not any(cell.best or cell.mark for row in table.rows for cell in row)
