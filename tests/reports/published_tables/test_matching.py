from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.core.measures import METRICS, SIGNIFICANCE
from recbias.reports.published import (
    collect_estimates,
    compare_published,
    list_published,
    load_published,
    read_source,
)
from recbias.reports.run import RunTables, read_run

PLACE = {"dataset": "mine", "seed": 42, "fold": 1}


def write_run(
    folder: Path, metric: dict[str, Any], rows: list[dict[str, Any]], tests: list[dict[str, Any]]
) -> RunTables:
    """Return a run of one metric; rows have a model, group, target and value."""
    models = list(dict.fromkeys(row["model"] for row in [*rows, *tests]))
    manifest = {
        "models": [{"label": model, "name": "x"} for model in models],
        "metrics": [{"metric": "m", "k": None, "direction": "zero", **metric}],
        "datasets": [{"label": "mine", "name": "tables"}],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    blank = {"metric": "m", "group": "", "target": "", **PLACE}
    pd.DataFrame([blank | row for row in rows], columns=list(METRICS.names)).to_csv(
        folder / "metrics.csv", index=False
    )
    pd.DataFrame([blank | row for row in tests], columns=list(SIGNIFICANCE.names)).to_csv(
        folder / "significance.csv", index=False
    )
    return read_run(folder)


def test_r_ripa_matches_by_direction_and_target(tmp_path: Path) -> None:
    rows = [
        {"model": "ours", "value": 0.3},
        {"model": "ours", "value": 0.129, "target": "genres=True Crime"},
        {"model": "ours", "value": -0.2, "target": "genres=Sports"},
    ]
    tests = [
        {"model": "ours", "between": "targets", "test": "permutation", "effect_size": 1.5},
        {"model": "ours", "between": "groups", "test": "permutation", "effect_size": 0.8},
        {"model": "ours", "between": "directions", "test": "random_direction", "effect_size": 9},
    ]
    metric = {"name": "R-RIPA", "parameters": {"direction": "centroid"}}
    table = compare_published(write_run(tmp_path, metric, rows, tests), "aab/3")
    # the rows of CD and NG: True Crime 0.129, Sports -0.209, differential 0.338, effect 1.784
    pairs = dict(zip(table["published"], table["measured"], strict=True))
    assert pairs == {0.129: 0.129, -0.209: -0.2, 0.338: 0.3, 1.784: 1.5}
    assert table["within"].tolist().count(True) == 2
    assert table["metric"].tolist() == [
        "R-RIPA (CD, True Crime)",
        "R-RIPA (CD, Sports)",
        "R-RIPA differential (CD)",
        "R-RIPA effect size (CD)",
    ]


def test_tests_of_each_seed_have_the_mean_statistic_and_the_median_p(tmp_path: Path) -> None:
    row = {"model": "CDial-GPT LMD", "value": 1.0, "group": "category=gender"}
    tests = [
        {**row, "between": "groups", "test": "paired_t", "seed": seed, "statistic": t, "p": p}
        for seed, t, p in ((1, -2.0, 0.5), (2, -3.5, 0.1), (3, -2.0, 0.2))
    ]
    metric = {"name": "perplexity_gap", "parameters": {"scale": "perplexity"}}
    run = write_run(tmp_path, metric, [row], tests)
    (measured,) = compare_published(run, "chbias/3")["measured"]
    assert measured == pytest.approx(-2.5)
    (estimate,) = collect_estimates(run)
    assert estimate.values["p paired_t groups"] == 0.2


@pytest.mark.parametrize("name", [name for name in list_published() if read_source(name).joins])
def test_every_join_refers_to_published_metrics_and_values(name: str) -> None:
    published = load_published(name)
    for join in read_source(name).joins:
        rows = published[published["metric"].isin(join.published)]
        assert set(join.published) == set(rows["metric"])
        for column, value in join.only.items():
            assert (rows[column] == value).any()


def compare_values(run: RunTables, name: str) -> dict[str, list[float]]:
    """Return the published and the measured value by system and metric."""
    table = compare_published(run, name)
    rows = zip(
        table["system"], table["metric"], table["published"], table["measured"], strict=True
    )
    return {f"{system}: {metric}": [published, value] for system, metric, published, value in rows}


def test_shares_of_men_are_the_complement(tmp_path: Path) -> None:
    metric = {"name": "attribute_classification", "parameters": {"direction": "svc"}}
    rows = [
        {
            "model": "WG",
            "group": "gender=F",
            "value": value,
            "target": f"predicted at {decile} gender=F",
        }
        for decile, value in (("50-60%", 0.9), ("10-20%", 0.25))
    ]
    values = compare_values(write_run(tmp_path, metric, rows, []), "aab/4")
    expected = {
        "female (SVC, WG, 50% female)": [0.708, 0.9],
        "male (SVC, WG, 50% female)": [0.292, 0.1],
        "female (SVC, WG, 80% male)": [0.051, 0.25],
        "male (SVC, WG, 80% male)": [0.949, 0.75],
    }
    assert {name.partition("predicted ")[2]: pair for name, pair in values.items()} == {
        name: pytest.approx(pair) for name, pair in expected.items()
    }


def test_values_of_the_text_match_groups_sums_and_tests_between_models(tmp_path: Path) -> None:
    metric = {"name": "attribute_classification", "parameters": {"direction": "svc"}}
    target = "predictions for genres=Romance and genres=Action"
    rows = [
        {"model": "WG", "group": "gender=F", "value": 0.8, "target": "accuracy from top 3 items"},
        {"model": "WG", "group": "gender=F", "value": 0.4, "target": target},
    ]
    test = {"between": "models", "a": "WG", "b": "NG", "test": "chi_squared", "p": 0.03}
    tests = [test | {"model": "", "group": "gender=F", "target": target}]
    values = compare_values(write_run(tmp_path, metric, rows, tests), "aab/text")
    assert values == {
        "WG: female users classified male, percent (WG)": [17.9, pytest.approx(20.0)],
        "WG: chi-squared p-value, with vs without gender (SVC)": [0.007, 0.03],
    }
    sums = [
        {"model": "NG", "value": 5.0, "target": "genres=Romance"},
        {"model": "NG", "value": 0.1, "target": "mean of genres=Romance"},
    ]
    values = compare_values(write_run(tmp_path, {"name": "DEAA"}, sums, []), "aab/text")
    assert values == {"NG: GEAA (True Crime, NG)": [73.98, 5.0]}
