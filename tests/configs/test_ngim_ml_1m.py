"""The children's exposure on MovieLens-1M, beside the published figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias
from support.commands import invoke_recbias

SPEC = Path(__file__).parents[2] / "configs" / "papers" / "children" / "ngim-ml-1m.yaml"


@pytest.fixture(scope="module")
def run(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ngim")
    result = invoke_recbias("run", SPEC, "--data", real_data, folder=folder)
    assert result.code == 0, result.err
    return folder / "results" / "children-ngim-ml-1m" / "latest"


def read_by_model(run: Path, metric: str) -> Any:
    table = pd.read_csv(run / "metrics.csv")
    return table[table["metric"].str.startswith(metric)].set_index("model")


@pytest.mark.real_data
def test_random_recommends_the_fewest_stereotypes(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["queries"][0]["asked"] == 218
    hit, exposed = read_by_model(run, "HIT_BAD"), read_by_model(run, "REC-ST")
    assert hit["value"].tolist() == [1.0] * 5
    assert hit["n"].tolist() == exposed["n"].tolist() == [218] * 5
    assert exposed["value"].between(0.6, 0.9).all()
    assert exposed["value"].idxmin() == "Random"
    # Random beside the share of labelled films, 1,755 of the 2,810 that can be recommended
    assert exposed.loc["Random", "ci_low"] < 1755 / 2810 < exposed.loc["Random", "ci_high"]


@pytest.mark.real_data
def test_most_popular_is_near_the_published_values_and_all_are_below(run: Path) -> None:
    # four actors tie where the five of the thesis cannot, so fewer films are labelled
    table: Any = pd.read_csv(run / "reference.csv").set_index(["system", "metric"])
    assert len(table) == 5 * 3
    assert table.loc[("MostPop", "REC-ST_Gender"), "published"] == pytest.approx(0.816597)
    for metric in ("REC-ST_Gender", "MRR_BAD_Gender"):
        assert abs(table.loc[("MostPop", metric), "difference"]) < 0.03
        assert (table.xs(metric, level="metric")["difference"] < 0).all()
        assert (table.xs(metric, level="metric")["difference"] > -0.16).all()


@pytest.mark.real_data
def test_218_children_show_no_difference_of_a_few_hundredths(run: Path) -> None:
    # sd(d) of ItemKNN and UserKNN by hand, and 3.89 standard errors: z(0.99868) + z(0.8) =
    # 3.006 + 0.842 = 3.848 for the 19 comparisons of the thesis, a little more for the t of 217
    # degrees of freedom
    power = recbias.power(run, 0.02)
    table: Any = power[power["metric"].str.startswith("REC-ST")].set_index(["a", "b"])
    units: Any = pd.read_parquet(run / "per_unit.parquet")
    units = units[units["metric"].astype(str).str.startswith("REC-ST")]
    values = units.pivot_table(index="unit_id", columns="model", values="value", observed=True)
    error = (values["ItemKNN"] - values["UserKNN"]).std() / 218**0.5
    detectable = table.loc[("ItemKNN", "UserKNN"), "detectable"]
    assert 3.84 < detectable / error < 3.92
    assert 218 < table.loc[("ItemKNN", "UserKNN"), "needed"] < 750
    hits = power[power["metric"].str.startswith("HIT_BAD")]
    assert hits["detectable"].isna().all()
    assert set(hits["remark"]) == {"undefined: no variance among the 218 users"}
