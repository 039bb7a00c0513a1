"""Disjoint samples of users as folds: models are trained and asked once, values are by sample."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recbias
from recbias import api
from recbias.core.errors import Faults
from support.chat.chat_server import serve_chat
from support.specs import make_small_spec
from support.worlds.film_worlds import get_lists, get_units

FOLDS = {"name": "users", "sample": 9, "folds": 5}
METRICS = ["HR", "log_popularity_difference", "ItemCoverage", "nDCG"]


def make_spec(**changes: Any) -> dict[str, Any]:
    return make_small_spec(**{"queries": FOLDS, "metrics": METRICS, **changes})


def list_stages(run: recbias.Run, kind: str) -> list[dict[str, Any]]:
    manifest = json.loads((run.folder / "manifest.json").read_text())
    stages: list[dict[str, Any]] = manifest["stages"]
    return [stage for stage in stages if stage["kind"] == kind]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    return recbias.run(make_spec(), out=tmp_path_factory.mktemp("folds"))


def test_samples_are_disjoint_and_each_is_a_fold(run: recbias.Run) -> None:
    units = get_units(run)[get_units(run)["metric"] == "HR"]
    users = units[units["model"] == "MostPop"].groupby("fold")["unit_id"].agg(set)
    assert users.index.tolist() == [1, 2, 3, 4, 5]
    assert users.map(len).tolist() == [9] * 5
    assert len(set.union(*users)) == 45
    assert (
        get_lists(run).groupby(["model", "fold"], observed=True)["query_id"].nunique().tolist()
        == [9] * 10
    )


def test_each_model_is_trained_and_asked_once(run: recbias.Run) -> None:
    assert [stage["model"] for stage in list_stages(run, "fit")] == ["MostPop", "ItemKNN"]
    titles = [stage["stage"] for stage in list_stages(run, "answer")]
    assert titles.count("recommend MostPop") == titles.count("recommend ItemKNN") == 1
    assert titles.count("take sample 5 of MostPop") == 1


def test_workers_train_each_model_once(tmp_path: Path, run: recbias.Run) -> None:
    parallel = recbias.run(make_spec(), out=tmp_path, workers=2)
    trained = [stage["model"] for stage in list_stages(parallel, "fit")]
    assert sorted(trained) == ["ItemKNN", "MostPop"]  # in the order in which they end
    pd.testing.assert_frame_equal(parallel.metrics, run.metrics)


def test_lists_equal_those_of_a_run_of_all_users(tmp_path: Path, run: recbias.Run) -> None:
    full = recbias.run(make_spec(queries="users"), out=tmp_path)
    keys = ["model", "query_id", "rank"]
    both = get_lists(run).merge(get_lists(full), on=keys, suffixes=("", "_full"))
    assert len(both) == len(get_lists(run))
    assert (both["item_id"] == both["item_id_full"]).all()


def read_rows(run: recbias.Run, model: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the metric rows of a model by metric and fold."""
    rows: list[dict[str, Any]] = run.metrics.to_dict("records")  # type: ignore[assignment]
    return {(row["metric"], str(row["fold"])): row for row in rows if row["model"] == model}


def test_the_mean_over_folds_has_the_standard_error_of_all_users_together(
    run: recbias.Run,
) -> None:
    units, rows = get_units(run), read_rows(run, "ItemKNN")
    units = units[units["model"] == "ItemKNN"]
    values = units[units["metric"] == "log_popularity_difference"]["value"].to_numpy()
    row = rows["log_popularity_difference", "all"]
    assert row["value"] == pytest.approx(values.mean())
    error = math.sqrt(values.var(ddof=1) / 45)
    # the popularity is counted, and the interval is not that of its values alone
    assert (row["ci_high"] - row["ci_low"]) / 2 > stats.t.ppf(0.975, 44) * error
    accuracies = units[units["metric"] == "nDCG"]["value"].to_numpy()
    error = math.sqrt(accuracies.var(ddof=1) / 45)
    row_of_accuracy = rows["nDCG", "all"]
    half = (row_of_accuracy["ci_high"] - row_of_accuracy["ci_low"]) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, 44) * error)
    means = [rows["log_popularity_difference", fold]["value"] for fold in "12345"]
    assert row["std"] == pytest.approx(np.std(means, ddof=1))
    hits = int(units[units["metric"] == "HR"]["value"].sum())
    interval = stats.binomtest(hits, 45).proportion_ci(method="wilson")
    assert rows["HR", "all"]["ci_low"] == pytest.approx(interval.low)
    assert rows["HR", "all"]["ci_high"] == pytest.approx(interval.high)


def test_models_are_compared_in_each_sample_and_over_the_users_of_all(run: recbias.Run) -> None:
    table = run.significance[run.significance["metric"] == "log_popularity_difference"]
    assert table["fold"].tolist() == [1, 2, 3, 4, 5, "all"]
    assert table["n"].tolist() == [9] * 5 + [45]
    units = get_units(run)[get_units(run)["metric"] == "log_popularity_difference"]
    values = units.pivot_table(index="unit_id", columns="model", values="value", observed=True)
    expected = stats.ttest_rel(values["MostPop"], values["ItemKNN"])
    assert table["p"].iloc[-1] == pytest.approx(expected.pvalue)


def test_samples_are_not_combined_with_folds_of_the_split(tmp_path: Path) -> None:
    split = {"name": "random", "test": 0.2, "folds": 3}
    with pytest.raises(Faults) as caught:
        api.plan(make_spec(split=split), out=tmp_path)
    assert "the split has 3 folds, and the queries are 5 samples" in str(caught.value)


def test_a_smoke_test_asks_the_first_users_of_each_sample(
    tmp_path: Path, run: recbias.Run
) -> None:
    small = recbias.run(make_spec(), out=tmp_path, limit=2)
    asked = get_lists(small).groupby("fold")["query_id"].unique().map(list).to_dict()
    full = get_lists(run).groupby("fold")["query_id"].unique().map(lambda ids: list(ids[:2]))
    assert asked == full.to_dict()


def test_a_chat_model_is_asked_once_for_each_user_of_all_samples(tmp_path: Path) -> None:
    with serve_chat() as server:
        wok = {"name": "WOK", "llm": {"model": "small", "base_url": server.base_url}}
        asked = recbias.run(make_spec(models=["MostPop", wok], metrics=["HR"]), out=tmp_path)
        assert len(server.payloads) == 45
    lines = (asked.folder / "responses.jsonl").read_text().splitlines()
    users = [(json.loads(line)["fold"], json.loads(line)["query_id"]) for line in lines]
    lists = get_lists(asked)[get_lists(asked)["model"] == "MostPop"][["fold", "query_id"]]
    assert users == list(lists.drop_duplicates().itertuples(index=False, name=None))


def test_settings_are_searched_once_for_all_samples(tmp_path: Path) -> None:
    tune = {"metric": "nDCG", "trials": 2, "space": {"neighbors": {"choice": [5, 20]}}}
    split = {"name": "random", "test": 0.2, "validation": 0.1}
    models = [{"name": "ItemKNN", "tune": tune}]
    tuned = recbias.run(make_spec(models=models, split=split, metrics=["HR"]), out=tmp_path)
    assert len(list_stages(tuned, "trial")) == 2
    assert len(pd.read_csv(tuned.folder / "trials.csv")) == 2
    assert len(tuned.metrics) == 6  # five samples and their mean


def test_a_failed_training_is_reported_once(tmp_path: Path) -> None:
    models = ["MostPop", {"name": "WOK", "llm": {"model": "m", "base_url": "http://127.0.0.1:9"}}]
    failed = recbias.run(make_spec(models=models, metrics=["HR"]), out=tmp_path, offline=True)
    manifest = json.loads((failed.folder / "manifest.json").read_text())
    assert [failure["stage"] for failure in manifest["failures"]] == ["recommend WOK"]
