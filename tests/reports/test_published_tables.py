"""Published tables: what they hold, and which values of a run they are compared with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.core.measures import METRICS, SIGNIFICANCE
from recbias.reports.published import (
    COLUMNS,
    collect_estimates,
    compare_published,
    list_published,
    load_published,
    read_source,
)
from recbias.reports.run import RunTables, read_run
from recbias.reports.verdict import build_verdict
from support.run_folders import RunSpec, make_run


def make_run_with(folder: Path, world: RunSpec, values: list[float]) -> RunTables:
    """Return a run whose values, by metric and then by model, are ``values``."""
    make_run(folder, world)
    path = folder / "metrics.csv"
    pd.read_csv(path, keep_default_na=False).assign(value=values).to_csv(path, index=False)
    return read_run(folder)


def test_a_run_is_compared_with_table_a3(tmp_path: Path) -> None:
    world = RunSpec(models=("ItemKNN", "EASE"), metrics=("nDCG", "MAP", "mean_precision"))
    run = make_run_with(tmp_path, world, [0.2939, 0.34, 0.17, 0.21, 0.31, 0.34])
    table = compare_published(run, "children/a3", tolerance=0.006)
    assert tuple(table.columns) == COLUMNS
    assert table["system"].tolist() == ["ItemKNN", "ItemKNN"]  # EASE is not published
    assert table["metric"].tolist() == ["nDCG", "MAP"]  # and MRR and HR are not measured
    assert table["k"].tolist() == [10.0, 10.0]
    # 0.2939 - 0.2993 = -0.0054; the thesis' MAP is mean_precision: 0.31 - 0.3023 = 0.0077
    assert table["published"].tolist() == [0.2993, 0.3023]
    assert table["difference"].tolist() == pytest.approx([-0.0054, 0.0077])
    assert table["relative"].tolist() == pytest.approx([-0.0054 / 0.2993, 0.0077 / 0.3023])
    assert table["within"].tolist() == [True, False]
    assert table["published_std"].isna().all()


def test_the_verdict_names_the_table_what_is_missing_and_the_largest_ratio(tmp_path: Path) -> None:
    """0.0064 - 0.0079 = -0.0015 is within 0.01, and 19% less."""
    world = RunSpec(models=("ItemKNN", "Random"), metrics=("nDCG",))
    run = make_run_with(tmp_path, world, [0.2939, 0.0064])
    run.spec["report"] = {"reference": "children/a3"}
    verdict = build_verdict(run)
    assert verdict.line == (
        "2 of 2 values within 0.01 of the published table children/a3 (2 of its 16 models)"
    )
    assert verdict.sentences[0] == (
        "The table is of Murtadha Al Nahadi (2023); largest relative difference -19% (nDCG of "
        "Random)."
    )
    notes = [tile.note for tile in verdict.tiles]
    assert notes[1] == "largest difference -0.001500 (nDCG)"


@pytest.mark.parametrize(
    ("label", "name", "system"),
    [
        ("BPR-MF", "BPR-MF", "BPRMF"),
        ("bpr_mf", "x", "BPRMF"),
        ("mine", "item-knn", "ItemKNN"),
        ("theirs", "lenskit/ItemKNN", "ItemKNN"),
    ],
)
def test_systems_match_in_any_spelling(tmp_path: Path, label: str, name: str, system: str) -> None:
    world = RunSpec(models=(label,), metrics=("nDCG",), names={label: name})
    table = compare_published(make_run_with(tmp_path, world, [0.3]), "children/a3")
    published = {"BPRMF": 0.2765, "ItemKNN": 0.2993}
    assert table["published"].tolist() == [published[system]]
    assert table["system"].tolist() == [label]


def test_stereotype_metrics_match_by_their_label(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("MostPop",), metrics=("HIT_BAD(label=x)",)))
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["metrics"][0]["parameters"] = {"label": "ngim.gender", "k": 10}
    path.write_text(json.dumps(manifest), encoding="utf-8")
    run = read_run(tmp_path)
    table = compare_published(run, "children/a5")
    assert table["metric"].tolist() == ["HIT_BAD_Gender"]
    assert table["published"].tolist() == [1.0]
    assert compare_published(run, "children/a9").empty  # that is race


@pytest.mark.parametrize("name", list_published())
def test_every_table_has_a_description_and_can_be_loaded(name: str) -> None:
    table = read_source(name)
    assert table.name == name
    assert table.title
    assert "20" in table.citation
    frame = load_published(name)
    assert len(frame) > 0
    assert not frame.columns.duplicated().any()
    if table.comparable:
        assert {"system", "metric", "cutoff", "value", "std"} <= set(frame.columns)
        assert table.joins or not table.metrics or set(table.metrics) & {*frame["metric"]}


CATEGORIES = ("Gender", "Orientation", "Age", "Appearance")
METHODS = ("Baseline", "LMD", "ADD", "HD", "CADA", "CTDA")
PRINTED = {
    "CDial-GPT": """\
        -2.51  4.28  2.74 -0.94
        -0.93  1.31 -2.39  0.40
         0.17 -0.54  0.50  0.03
        -2.12 -6.10 -0.63  1.27
        -1.74  0.65 -0.43 -0.55
        -0.22  0.11 -0.25  0.05""",
    "EVA2.0": """\
         1.48  3.04 -2.30  3.28
        -0.89  1.09 -0.18  2.55
        -0.54  0.77 -1.20  1.43
         1.21  0.27  0.40 -2.59
         0.89  0.46  0.72  0.80
         0.37 -0.79 -0.17  0.28""",
}
"""Table 3 as it is printed: a row for each method, and a column for each category."""


def test_table_3_of_chbias_has_the_printed_value_in_each_cell() -> None:
    table = load_published("chbias/3").set_index(["system", "method", "bias_category"])["value"]
    for system, text in PRINTED.items():
        for method, line in zip(METHODS, text.splitlines(), strict=True):
            row = [table[system, method, category] for category in CATEGORIES]
            assert row == [float(cell) for cell in line.split()], (system, method)


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
