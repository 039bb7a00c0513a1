from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit

import recbias
from recbias.config.plugin_spec import PluginSpec
from recbias.core.measurements.scores import Measurement
from recbias.reports.views.run_tables import RunTables, read_run
from recbias.runner.recomputation.rebuilt_rows import RebuiltRow
from recbias.runner.recomputation.recompute import Recomputation
from recbias.runner.recomputation.recomputed_tests import GROUP_TESTS
from recbias.runner.results.metric_rows import ModelMeasurement
from recbias.verification import recompute_run
from support.specs import make_small_spec

VALUES = ["value", "std", "n", "undefined", "ci_low", "ci_high"]
PAIRS = ["n", "mean_a", "mean_b", "difference", "ci_low", "ci_high", "p", "p_adjusted"]


@pytest.fixture(scope="module")
def folds(tmp_path_factory: pytest.TempPathFactory) -> RunTables:
    """Return a run of two datasets and two seeds with groups, gaps and checks."""
    spec = make_small_spec(
        name="folds",
        seed=None,
        seeds=[1, 2],
        dataset=[
            {"name": "demo", "label": "small", "n_users": 30, "n_items": 25},
            {"name": "demo", "label": "large", "n_users": 35, "n_items": 25},
        ],
        split={"name": "random", "test": 0.2},
        models=["MostPop", "ItemKNN"],
        metrics=["nDCG", "HR", "Gini", {"name": "nDCG", "by": "gender"}],
        tests=[{"name": "paired_t", "family": "report"}, {"name": "wilcoxon", "correction": "bh"}],
        checks=[
            {"metric": "nDCG", "at_least": 0.9},
            {"metric": "nDCG", "not_below": "MostPop", "margin": 0.01},
        ],
    )
    return read_run(recbias.run(spec, out=tmp_path_factory.mktemp("folds") / "results").folder)


@pytest.fixture(scope="module")
def recomputed(folds: RunTables) -> Recomputation:
    return recompute_run(folds)


def assert_equal(found: pd.DataFrame, stored: pd.DataFrame, columns: list[str]) -> None:
    pd.testing.assert_frame_equal(
        found[columns].astype(float),
        stored[columns].astype(float),
        rtol=1e-9,
        check_index_type=False,
    )


def test_every_figure_of_seeds_and_datasets_is_computed_again(
    folds: RunTables, recomputed: Recomputation
) -> None:
    assert_equal(recomputed.metrics, folds.metrics, VALUES)
    assert {*recomputed.basis} == {"units", "samples", "means"}
    assert folds.groups is not None
    assert recomputed.groups is not None
    assert_equal(recomputed.groups, folds.groups, VALUES)


def test_every_test_is_made_and_corrected_again(
    folds: RunTables, recomputed: Recomputation
) -> None:
    assert_equal(recomputed.significance, folds.significance, PAIRS)
    stored = folds.significance["significant"].astype(str)
    assert recomputed.significance["significant"].astype(str).tolist() == stored.tolist()
    assert all(recomputed.is_tested)
    assert {*folds.significance["test"]} == {
        "paired_t",
        "wilcoxon",
        "paired_bootstrap",
        *GROUP_TESTS,
    }


def test_checks_are_decided_again(folds: RunTables, recomputed: Recomputation) -> None:
    assert recomputed.checks == folds.manifest["checks"]
    assert {check["verdict"] for check in recomputed.checks} == {"fail", "pass"}
    changed = [{**check, "verdict": "pass", "failed": False} for check in recomputed.checks]
    again = recompute_run(change_run(folds, manifest={**folds.manifest, "checks": changed}))
    assert again.checks == folds.manifest["checks"]


def test_samples_without_an_interval_have_none_in_the_mean_of_folds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    picks = [(user, item) for user in range(20) for item in rng.permutation(12)[:6]]
    clicks, items = tmp_path / "clicks.csv", tmp_path / "items.csv"
    pd.DataFrame(picks, columns=["user_id", "item_id"]).to_csv(clicks, index=False)
    pd.DataFrame({"item_id": range(12), "p": rng.random(12)}).to_csv(items, index=False)
    spec = {
        "name": "hidden",
        "dataset": {"name": "tables", "interactions": str(clicks), "items": str(items)},
        "split": {"name": "random", "test": 0.2, "folds": 2},
        "models": ["MostPop", "Random"],
        "k": 3,
        "metrics": [
            {"name": name, "attribute": "weight of p"} for name in ("EXP", "exposure_gap")
        ],
        "tests": ["paired_t"],
        "report": {"formats": ["csv"]},
    }
    run = read_run(recbias.run(spec, out=tmp_path / "results").folder)
    ends = run.metrics[["ci_low", "ci_high"]].isna().all(axis=1)
    assert (ends == run.metrics["metric"].astype(str).str.startswith("EXP")).all()
    again = recompute_run(run)
    assert_equal(again.metrics, run.metrics, VALUES)
    assert all(again.is_tested)


def change_run(run: RunTables, **frames: Any) -> RunTables:
    """Return a run with other tables."""
    fields = {name: getattr(run, name) for name in ("metrics", "significance", "manifest")}
    changed = RunTables(run.folder, **{name: frames.get(name, fields[name]) for name in fields})
    vars(changed).update({name: frames[name] for name in frames if name not in fields})
    return changed


def test_a_changed_unit_changes_its_means_gaps_and_tests(folds: RunTables) -> None:
    assert folds.per_unit is not None
    units = folds.per_unit.copy()
    is_metric = units["metric"].astype(str).isin(["nDCG", "nDCG(by=gender)"])
    is_place = (units["dataset"].astype(str) == "small") & (
        units["model"].astype(str) == "ItemKNN"
    )
    is_first = (units["seed"] == 1) & (units["fold"] == 1)
    row = units[is_metric & is_place & is_first].iloc[0]
    is_unit = units["unit_id"].astype(str) == row["unit_id"]
    at = is_metric & is_place & is_first & is_unit
    assert at.sum() == 2  # over all users, and in the group
    units.loc[at, "value"] = 1.0 - units.loc[at, "value"]
    found = recompute_run(change_run(folds, per_unit=units))
    differs = ~np.isclose(found.metrics["value"], folds.metrics["value"], equal_nan=True)
    changed = folds.metrics[differs]
    assert {*changed["metric"]} > {"nDCG", "nDCG(by=gender)", "nDCG(by=gender, gap=difference)"}
    assert {*changed["seed"]} == {"1", "all"}
    assert {*changed["dataset"]} == {"small", "all"}
    moved = ~np.isclose(found.significance["p"], folds.significance["p"], equal_nan=True)
    assert {*folds.significance[moved]["test"]} >= {"paired_t", "wilcoxon", "welch_t"}
    assert recompute_run(folds).metrics["value"].equals(recompute_run(folds).metrics["value"])


def test_models_with_other_units_are_a_fault(folds: RunTables) -> None:
    assert folds.per_unit is not None
    units = folds.per_unit.astype({"unit_id": object})
    at = units.index[units["model"].astype(str) == "MostPop"][0]
    units.loc[at, "unit_id"] = "somebody"
    found = recompute_run(change_run(folds, per_unit=units))
    (fault,) = found.faults
    assert "was measured on different units" in fault
    assert not any(
        done
        for done, between in zip(found.is_tested, folds.significance["between"], strict=True)
        if between == "models"
    )


def test_values_that_do_not_follow_from_the_files_are_kept(tmp_path: Path) -> None:
    """R-RIPA has a bootstrap of the direction, Atkinson's index samples of its own."""
    spec = make_small_spec(
        models=["MostPop", {"name": "PureSVD", "factors": 5}],
        metrics=[
            {"name": "nDCG", "by": "gender", "gap": "atkinson"},
            {
                "name": "R-RIPA",
                "groups": {"of": "users", "attribute": "gender", "a": "F", "b": "M"},
                "targets": {"of": "items", "attribute": "genres", "e": "Romance", "p": "Action"},
                "permutations": 50,
            },
        ],
    )
    run = read_run(recbias.run(spec, out=tmp_path / "results").folder)
    found = recompute_run(run)
    assert_equal(found.metrics, run.metrics, VALUES)
    assert_equal(found.significance, run.significance, PAIRS)
    basis = {
        (row["metric"].partition("(")[0], bool(row["target"]) and row["model"] == "PureSVD"): kind
        for row, kind in zip(run.metrics.to_dict("records"), found.basis, strict=True)
    }
    assert basis["nDCG", False] == "samples"
    assert basis["R-RIPA", True] == "values"


def test_intervals_of_samples_are_within_the_range_of_the_metric(tmp_path: Path) -> None:
    # 60 random lists of 3 of 25 items: nearly all items, and the normal interval goes beyond 1
    spec = make_small_spec(
        name="coverage",
        seed=None,
        seeds=[1, 2],
        dataset={"name": "demo", "n_users": 60, "n_items": 25},
        k=3,
        models=["Random"],
        metrics=["ItemCoverage"],
    )
    run = read_run(recbias.run(spec, out=tmp_path / "results").folder)
    assert run.replicates is not None
    for seed, rows in run.replicates.groupby("seed"):
        row = run.metrics[run.metrics["seed"].astype(str) == str(seed)].iloc[0]
        assert row["value"] + 1.96 * rows["value"].std() > 1
    assert run.metrics["ci_high"].tolist() == [1.0, 1.0, 1.0]
    assert (run.metrics["ci_low"] < 1).all()
    recomputed = recompute_run(run)
    assert_equal(recomputed.metrics, run.metrics, VALUES)
    assert recomputed.basis == ["samples", "samples", "means"]
    # a run of an earlier version, whose intervals were not limited, is not a changed one
    beyond = 2 * run.metrics["value"] - run.metrics["ci_low"]
    manifest = {name: part for name, part in run.manifest.items() if name != "derivations"}
    earlier = replace(run, metrics=run.metrics.assign(ci_high=beyond), manifest=manifest)
    assert (beyond > 1).all()
    assert_equal(recompute_run(earlier).metrics, earlier.metrics, VALUES)


def test_intervals_of_small_groups_over_seeds_are_those_of_the_run(tmp_path: Path) -> None:
    spec = make_small_spec(
        name="small-groups",
        seed=None,
        seeds=[1, 2],
        dataset={"name": "demo", "n_users": 60, "n_items": 40},
        split={"name": "random", "test": 0.2},
        models=["MostPop", "Random"],
        metrics=[{"name": "nDCG", "by": "age", "gap": "groups"}],
        tests=[{"name": "paired_t", "correction": "holm"}],
        k=3,
    )
    run = read_run(recbias.run(spec, out=tmp_path / "results").folder)
    found = recompute_run(run)
    assert run.groups is not None
    assert found.groups is not None
    assert (run.groups["std"] == 0).any()  # groups of equal values
    assert_equal(found.groups, run.groups, VALUES)
    assert_equal(found.metrics, run.metrics, VALUES)
    assert_equal(found.significance, run.significance, [*PAIRS, "family_size"])


@pytest.mark.parametrize(("scale", "same"), [(1e-9, False), (1.0, False), (0.0, True)])
def test_intervals_of_small_values_are_compared_on_their_scale(scale: float, same: bool) -> None:
    # ends that differ by a tenth are of another formula, also where both are below 1e-9
    stored = Measurement(scale, 9, 0, ci_low=-scale, ci_high=2 * scale)
    computed = replace(stored, ci_low=-1.1 * scale)
    metric = PluginSpec("metrics", "m", "m", None, {}, ())
    row = ModelMeasurement("d", "m", 1, 1, metric, computed)
    assert RebuiltRow((), row, stored, "samples").has_same_interval is same
    assert RebuiltRow((), row, computed, "samples").has_same_interval


@pytest.fixture(scope="module")
def ratios(tmp_path_factory: pytest.TempPathFactory) -> RunTables:
    """Return a run of three folds with intervals of logarithms and of Student's t.

    MostPop does not show all genres: its EXP is 0, which has no logarithm.
    """
    spec = make_small_spec(
        name="ratios",
        dataset={"name": "demo", "n_users": 40, "n_items": 60, "per_user": 10},
        split={"name": "random", "test": 0.2, "folds": 3},
        k=2,
        models=["MostPop", "ItemKNN"],
        metrics=[
            "homogenization",
            {"name": "EXP", "attribute": "genres"},
            {"name": "nDCG", "by": "gender", "gap": "atkinson_within"},
            {"name": "nDCG", "by": "gender", "gap": "atkinson"},
            {"name": "nDCG", "by": "gender", "gap": "ratio"},
        ],
    )
    return read_run(recbias.run(spec, out=tmp_path_factory.mktemp("ratios") / "results").folder)


def test_intervals_of_logarithms_are_computed_again(ratios: RunTables) -> None:
    exposure = ratios.metrics[ratios.metrics["metric"].astype(str).str.startswith("EXP")]
    assert 0 < (exposure["value"] == 0).sum() < len(exposure)
    recomputation = recompute_run(ratios)
    assert_equal(recomputation.metrics, ratios.metrics, VALUES)
    is_ratio = ratios.metrics["metric"].astype(str).str.contains("gap=ratio")
    kinds = pd.Series(recomputation.basis)
    assert {*kinds[~is_ratio]} == {"samples", "means"}


def test_means_of_folds_have_the_interval_and_the_range_of_one_fold(ratios: RunTables) -> None:
    assert ratios.replicates is not None
    rows = ratios.metrics[ratios.metrics["fold"].astype(str) == "all"].dropna(subset=["ci_low"])
    is_gap = rows["metric"].astype(str).str.contains("gap=")
    assert (rows.loc[is_gap, "ci_low"] >= 0).all()
    assert (rows.loc[is_gap, "ci_high"] <= 1).all()
    is_model = (rows["model"] == "ItemKNN") & (rows["ci_low"] > 0) & (rows["ci_high"] < 1)
    within = rows[is_model & rows["metric"].astype(str).str.contains("within|EXP")]
    assert len(within)
    for row in within.to_dict("records"):
        assert row["ci_high"] / row["value"] == pytest.approx(row["value"] / row["ci_low"])
    samples = ratios.replicates[ratios.replicates["metric"] == "homogenization"]
    assert {*samples["df"]} == {39.0}
    overlap = rows[(rows["metric"] == "homogenization") & (rows["model"] == "ItemKNN")].iloc[0]
    folds = samples[samples["model"] == "ItemKNN"].groupby("fold")["value"].apply(np.array)
    error = np.mean([*folds], axis=0).std(ddof=1)
    assert overlap["ci_high"] - overlap["value"] == pytest.approx(stdtrit(39, 0.975) * error)


def test_a_changed_mean_of_the_only_model_is_found(tmp_path: Path) -> None:
    spec = make_small_spec(models=["MostPop"], metrics=["nDCG", {"name": "nDCG", "by": "gender"}])
    run = read_run(recbias.run(spec, out=tmp_path / "results").folder)
    is_ndcg = run.metrics["metric"] == "nDCG"
    values = run.metrics["value"].where(~is_ndcg, 0.9)
    recomputation = recompute_run(change_run(run, metrics=run.metrics.assign(value=values)))
    assert_equal(recomputation.metrics[is_ndcg], run.metrics[is_ndcg], VALUES)
