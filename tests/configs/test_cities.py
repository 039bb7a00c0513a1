"""One file of lists for two datasets, with the column ``dataset``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from support.commands import CommandResult, invoke_recbias

SPEC = """\
name: cities
dataset:
  - {name: tables, label: CityA, items: a.csv}
  - {name: tables, label: CityB, items: b.csv}
queries: {name: table, path: queries.csv}
k: 2
models:
  - {name: lists, label: ours, path: ours.csv}
metrics:
  - {name: price_percentage, label: gender, attribute: price, permutations: 19}
report: {formats: [csv, json]}
"""

OURS = """\
dataset,query_id,item_id,rank
CityA,q1,p1,1
CityA,q1,p2,2
CityA,q2,p1,1
CityA,q3,p2,1
CityA,q4,p1,1
CityB,q1,p2,1
CityB,q2,p2,1
CityB,q2,p1,2
CityB,q3,p2,1
CityB,q4,p2,1
CityB,q4,p1,2
"""


def run(folder: Path, lists: str = OURS, spec: str = SPEC) -> CommandResult:
    (folder / "a.csv").write_text("item_id,price\np1,$\np2,$$\n", encoding="utf-8")
    (folder / "b.csv").write_text("item_id,price\np1,$$\np2,$\n", encoding="utf-8")
    queries = "query_id,gender\nq1,m\nq2,m\nq3,f\nq4,f\n"
    (folder / "queries.csv").write_text(queries, encoding="utf-8")
    (folder / "ours.csv").write_text(lists, encoding="utf-8")
    (folder / "cities.yaml").write_text(spec, encoding="utf-8")
    return invoke_recbias("run", "cities.yaml", folder=folder)


def read_share_of_men(folder: Path) -> dict[str, float]:
    """Return the share of recommendations at ``$`` that men receive, by dataset."""
    table = pd.read_csv(folder / "results/cities/latest/metrics.csv")
    rows = table[(table["group"] == "gender=m") & (table["target"] == "price=$")]
    return dict(zip(rows["dataset"], rows["value"], strict=True))


def test_metric_has_a_value_per_dataset_their_mean_and_a_pooled_value(
    tmp_path: Path,
) -> None:
    result = run(tmp_path)
    assert result.code == 0, result.err
    # items at $ per query: CityA m (1 + 1)/2, f (0 + 1)/2; CityB m (1 + 1)/2, f (1 + 1)/2
    assert read_share_of_men(tmp_path) == pytest.approx(
        {
            "CityA": 1 / 1.5,
            "CityB": 1 / 2,
            "all": (1 / 1.5 + 1 / 2) / 2,
            "pooled": 2 / 3.5,
        }
    )
    assert "not in the run" not in result.err


def test_dataset_missing_in_the_file_is_reported_at_its_location(tmp_path: Path) -> None:
    result = run(tmp_path, OURS.replace("CityB", "City B"))
    assert result.code == 2
    message = "error: cities.yaml:8:38: models[0].path: ours.csv: no row is of the dataset 'CityB'"
    assert message in result.err
    assert "'City B', 'CityA'" in result.err


def test_label_of_a_dataset_selects_its_rows(tmp_path: Path) -> None:
    same_items = SPEC.replace("label: CityB, items: b.csv", "label: CityB, items: a.csv")
    assert run(tmp_path, spec=same_items).code == 0
    # lists of CityB with prices of CityA: at $, men have that of q2 only, women that of q4
    assert read_share_of_men(tmp_path)["CityB"] == pytest.approx(0.5)
    swapped = OURS.replace("CityB,q4,p1,2\n", "")
    assert run(tmp_path, swapped, spec=same_items).code == 0
    assert read_share_of_men(tmp_path)["CityB"] == pytest.approx(1.0)
    result = run(tmp_path, swapped, spec=same_items.replace("label: CityB", "label: CityC"))
    assert result.code == 2
    assert "no row is of the dataset 'CityC'" in result.err
