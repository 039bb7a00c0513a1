from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.core.columns import METRICS, SIGNIFICANCE
from recbias.reports.frame import RunTables, read_run
from recbias.reports.published import compare_with, list_published
from recbias.reports.sources import about

PLACE = {"dataset": "mine", "seed": 42, "fold": 1}


def run_of(
    folder: Path, metric: dict[str, Any], rows: list[dict[str, Any]], tests: list[dict[str, Any]]
) -> RunTables:
    """A run of one metric: each row has a model, group, target and value."""
    models = list(dict.fromkeys(row["model"] for row in [*rows, *tests]))
    manifest = {
        "models": [{"label": each, "name": "x"} for each in models],
        "metrics": [{"metric": "m", "k": None, "direction": "zero", **metric}],
        "datasets": [{"label": "mine", "name": "tables"}],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    blank = {"metric": "m", "group": "", "target": "", **PLACE}
    pd.DataFrame([blank | row for row in rows], columns=list(METRICS)).to_csv(
        folder / "metrics.csv", index=False
    )
    pd.DataFrame([blank | row for row in tests], columns=list(SIGNIFICANCE)).to_csv(
        folder / "significance.csv", index=False
    )
    return read_run(folder)


def test_r_ripa_meets_its_table_by_direction_and_target(tmp_path: Path) -> None:
    rows = [
        {"model": "ours", "value": 0.3},
        {"model": "ours", "value": 0.129, "target": "genres=True Crime"},
        {"model": "ours", "value": -0.2, "target": "genres=Sports"},
    ]
    tests = [
        {"model": "ours", "between": "targets", "test": "permutation", "effect_size": 1.5},
        {"model": "ours", "between": "directions", "test": "random_direction", "effect_size": 9},
    ]
    metric = {"name": "R-RIPA", "parameters": {"direction": "centroid"}}
    found = compare_with(run_of(tmp_path, metric, rows, tests), "aab/3")
    # the rows of CD and NG: True Crime 0.129, Sports -0.209, differential 0.338, effect 1.784
    pairs = dict(zip(found["published"], found["measured"], strict=True))
    assert pairs == {0.129: 0.129, -0.209: -0.2, 0.338: 0.3, 1.784: 1.5}
    assert found["within"].tolist().count(True) == 2
    assert found["metric"].tolist() == [
        "R-RIPA (CD, True Crime)",
        "R-RIPA (CD, Sports)",
        "R-RIPA differential (CD)",
        "R-RIPA effect size (CD)",
    ]


def test_t_values_meet_theirs_by_model_method_and_category(tmp_path: Path) -> None:
    rows = [
        {"model": "CDial-GPT", "value": 1.0, "group": "category=gender"},
        {"model": "EVA2.0 LMD", "value": 1.0, "group": "category=age"},
    ]
    tests = [
        {**each, "between": "groups", "test": "paired_t", "statistic": t}
        for each, t in zip(rows, (-2.5, -0.18), strict=True)
    ]
    found = compare_with(run_of(tmp_path, {"name": "perplexity_gap"}, rows, tests), "chbias/3")
    assert found["published"].tolist() == [-2.51, -0.18]
    assert found["measured"].tolist() == [-2.5, -0.18]
    assert found["metric"].tolist() == ["t-value (Gender)", "t-value (Age)"]
    assert found["within"].tolist() == [True, True]


def test_price_percentages_meet_the_text_by_label_and_level(tmp_path: Path) -> None:
    rows = [
        {"model": "LMRec", "value": 0.7, "group": "race=black", "target": "price=$"},
        {"model": "LMRec", "value": 0.2, "group": "race=black", "target": "price=$$"},
        {"model": "LMRec", "value": 0.3, "group": "race=white", "target": "price=$"},
    ]
    found = compare_with(run_of(tmp_path, {"name": "price_percentage"}, rows, []), "lmrec/text")
    assert found["published"].tolist() == [0.6949, 0.3051]
    assert found["measured"].tolist() == [0.7, 0.3]


def test_a_metric_of_another_name_meets_nothing(tmp_path: Path) -> None:
    rows = [{"model": "ours", "value": 0.3}]
    assert compare_with(run_of(tmp_path, {"name": "nDCG"}, rows, []), "aab/3").empty


@pytest.mark.parametrize("name", [each for each in list_published() if about(each).joins])
def test_every_join_is_of_a_metric_that_is_printed(name: str) -> None:
    from recbias.reports.published import load_published

    printed = load_published(name)
    for join in about(name).joins:
        rows = printed[printed["metric"].isin(join.published)]
        assert set(join.published) == set(rows["metric"])
        for column, value in join.only.items():
            assert (rows[column] == value).any()
