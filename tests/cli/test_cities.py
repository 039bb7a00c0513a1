"""One file of lists for several datasets, told apart by its column ``dataset``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from support.commands import Said, inside

SPEC = """\
name: cities
dataset:
  - {name: tables, label: CityA, items: a.csv}
  - {name: tables, label: CityB, items: b.csv}
queries: {name: table, path: asked.csv}
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


def run(folder: Path, lists: str = OURS, spec: str = SPEC) -> Said:
    (folder / "a.csv").write_text("item_id,price\np1,$\np2,$$\n", encoding="utf-8")
    (folder / "b.csv").write_text("item_id,price\np1,$$\np2,$\n", encoding="utf-8")
    asked = "query_id,gender\nq1,m\nq2,m\nq3,f\nq4,f\n"
    (folder / "asked.csv").write_text(asked, encoding="utf-8")
    (folder / "ours.csv").write_text(lists, encoding="utf-8")
    (folder / "cities.yaml").write_text(spec, encoding="utf-8")
    return inside("run", "cities.yaml", folder=folder)


def share_of_men(folder: Path) -> dict[str, float]:
    """Return the share of the places at ``$`` that men have, by dataset."""
    table = pd.read_csv(folder / "results/cities/latest/metrics.csv")
    found = table[(table["group"] == "gender=m") & (table["target"] == "price=$")]
    return dict(zip(found["dataset"], found["value"], strict=True))


def test_each_dataset_has_its_own_figure_beside_their_mean_and_the_pooled_one(
    tmp_path: Path,
) -> None:
    said = run(tmp_path)
    assert said.code == 0, said.err
    # places at $ per query: CityA m (1 + 1)/2, f (0 + 1)/2; CityB m (1 + 1)/2, f (1 + 1)/2
    assert share_of_men(tmp_path) == pytest.approx(
        {
            "CityA": 1 / 1.5,
            "CityB": 1 / 2,
            "all": (1 / 1.5 + 1 / 2) / 2,
            "pooled": 2 / 3.5,
        }
    )
    assert "not asked" not in said.err


def test_a_dataset_that_the_file_lacks_is_refused_at_its_place(tmp_path: Path) -> None:
    said = run(tmp_path, OURS.replace("CityB", "City B"))
    assert said.code == 2
    found = "error: cities.yaml:8:38: models[0].path: ours.csv: no row is of the dataset 'CityB'"
    assert found in said.err
    assert "'City B', 'CityA'" in said.err


def test_another_label_is_another_result_though_the_dataset_is_the_same(tmp_path: Path) -> None:
    one = SPEC.replace("label: CityB, items: b.csv", "label: CityB, items: a.csv")
    assert run(tmp_path, spec=one).code == 0
    # CityB's lists, and CityA's prices: at $ men have the place of q2 only, women that of q4
    assert share_of_men(tmp_path)["CityB"] == pytest.approx(0.5)
    swapped = OURS.replace("CityB,q4,p1,2\n", "")
    assert run(tmp_path, swapped, spec=one).code == 0
    assert share_of_men(tmp_path)["CityB"] == pytest.approx(1.0)
    said = run(tmp_path, swapped, spec=one.replace("label: CityB", "label: CityC"))
    assert said.code == 2
    assert "no row is of the dataset 'CityC'" in said.err


def test_a_file_without_the_column_is_for_every_dataset(tmp_path: Path) -> None:
    said = run(tmp_path, "query_id,item_id,rank\nq1,p1,1\nq3,p1,1\nq4,p2,1\n")
    assert said.code == 0, said.err
    # CityA: $ is p1, m and f 1/2 each; CityB: $ is p2, only f
    found = share_of_men(tmp_path)
    assert (found["CityA"], found["CityB"]) == pytest.approx((0.5, 0.0))
