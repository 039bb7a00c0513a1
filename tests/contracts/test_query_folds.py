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
from recbias.core.errors import Faults, UserError
from support.chat.chat_server import serve_chat
from support.specs import make_small_spec

FOLDS = {"name": "users", "sample": 9, "folds": 5}
METRICS = ["HR", "log_popularity_difference", "ItemCoverage"]


def make_spec(**changes: Any) -> dict[str, Any]:
    return make_small_spec(**{"queries": FOLDS, "metrics": METRICS, **changes})


def list_stages(run: recbias.Run, kind: str) -> list[dict[str, Any]]:
    manifest = json.loads((run.folder / "manifest.json").read_text())
    return [stage for stage in manifest["stages"] if stage["kind"] == kind]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    return recbias.run(make_spec(), out=tmp_path_factory.mktemp("folds"))


def test_samples_are_disjoint_and_each_is_a_fold(run: recbias.Run) -> None:
    units = run.per_unit[run.per_unit["metric"] == "HR"]
    users = units[units["model"] == "MostPop"].groupby("fold")["unit_id"].agg(set)
    assert users.index.tolist() == [1, 2, 3, 4, 5]
    assert users.map(len).tolist() == [9] * 5
    assert len(set.union(*users)) == 45
    assert (
        run.lists.groupby(["model", "fold"], observed=True)["query_id"].nunique().tolist()
        == [9] * 10
    )


def test_each_model_is_trained_and_asked_once(run: recbias.Run) -> None:
    assert [stage["model"] for stage in list_stages(run, "fit")] == ["MostPop", "ItemKNN"]
    titles = [stage["stage"] for stage in list_stages(run, "answer")]
    assert titles.count("ask MostPop") == titles.count("ask ItemKNN") == 1
    assert titles.count("ask MostPop, sample 5") == 1


def test_workers_train_each_model_once(tmp_path: Path, run: recbias.Run) -> None:
    parallel = recbias.run(make_spec(), out=tmp_path, workers=2)
    assert [stage["model"] for stage in list_stages(parallel, "fit")] == ["MostPop", "ItemKNN"]
    pd.testing.assert_frame_equal(parallel.metrics, run.metrics)


def test_training_is_shared_with_a_run_of_all_users(tmp_path: Path) -> None:
    recbias.run(make_spec(queries="users"), out=tmp_path)
    again = recbias.run(make_spec(), out=tmp_path)
    assert [stage["reused"] for stage in list_stages(again, "fit")] == [True, True]
    assert [stage["reused"] for stage in list_stages(again, "split")] == [True]


def test_lists_equal_those_of_a_run_of_all_users(tmp_path: Path, run: recbias.Run) -> None:
    full = recbias.run(make_spec(queries="users"), out=tmp_path)
    keys = ["model", "query_id", "rank"]
    both = run.lists.merge(full.lists, on=keys, suffixes=("", "_full"))
    assert len(both) == len(run.lists)
    assert (both["item_id"] == both["item_id_full"]).all()


def test_the_mean_over_folds_has_the_standard_error_of_all_users_together(
    run: recbias.Run,
) -> None:
    units = run.per_unit[run.per_unit["model"] == "ItemKNN"]
    metrics = run.metrics[run.metrics["model"] == "ItemKNN"].set_index(["metric", "fold"])
    values = units[units["metric"] == "log_popularity_difference"]["value"]
    row = metrics.loc[("log_popularity_difference", "all")]
    assert row["value"] == pytest.approx(values.mean())
    error = math.sqrt(values.var(ddof=1) / 45)
    half = (row["ci_high"] - row["ci_low"]) / 2
    assert half == pytest.approx(stats.t.ppf(0.975, 44) * error)
    means = [metrics.loc[("log_popularity_difference", fold), "value"] for fold in "12345"]
    assert row["std"] == pytest.approx(np.std(means, ddof=1))
    hits = units[units["metric"] == "HR"]["value"]
    interval = stats.binomtest(int(hits.sum()), 45).proportion_ci(method="wilson")
    assert metrics.loc[("HR", "all"), "ci_low"] == pytest.approx(interval.low)
    assert metrics.loc[("HR", "all"), "ci_high"] == pytest.approx(interval.high)


def test_models_are_compared_in_each_sample_and_over_the_users_of_all(run: recbias.Run) -> None:
    table = run.significance[run.significance["metric"] == "log_popularity_difference"]
    assert table["fold"].tolist() == [*"12345", "all"]
    assert table["n"].tolist() == [9] * 5 + [45]
    units = run.per_unit[run.per_unit["metric"] == "log_popularity_difference"]
    values = units.pivot_table(index="unit_id", columns="model", values="value", observed=True)
    expected = stats.ttest_rel(values["MostPop"], values["ItemKNN"])
    assert table["p"].iloc[-1] == pytest.approx(expected.pvalue)


def test_too_few_users_for_disjoint_samples_are_refused(tmp_path: Path) -> None:
    queries = {**FOLDS, "sample": 13}
    with pytest.raises(UserError, match=r"5 disjoint samples of 13 need 65 users") as caught:
        recbias.run(make_spec(queries=queries), out=tmp_path)
    assert "queries.sample" in str(caught.value)
    assert caught.value.remedy == "sample: 12 is the largest possible"


def test_samples_are_not_combined_with_folds_of_the_split(tmp_path: Path) -> None:
    split = {"name": "random", "test": 0.2, "folds": 3}
    with pytest.raises(Faults) as caught:
        api.plan(make_spec(split=split), out=tmp_path)
    assert "the split has 3 folds, and the queries are 5 samples" in str(caught.value)


def test_samples_without_a_size_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="5 disjoint samples of users need their size"):
        api.plan(make_spec(queries={"name": "users", "folds": 5}), out=tmp_path)


def test_a_smoke_test_asks_the_first_users_of_each_sample(
    tmp_path: Path, run: recbias.Run
) -> None:
    small = recbias.run(make_spec(), out=tmp_path, limit=2)
    asked = small.lists.groupby("fold")["query_id"].unique().map(list).to_dict()
    full = run.lists.groupby("fold")["query_id"].unique().map(lambda ids: list(ids[:2]))
    assert asked == full.to_dict()


def test_a_chat_model_is_asked_once_for_each_user_of_all_samples(tmp_path: Path) -> None:
    with serve_chat() as server:
        wok = {"name": "WOK", "llm": {"model": "small", "base_url": server.base_url}}
        asked = recbias.run(make_spec(models=["MostPop", wok], metrics=["HR"]), out=tmp_path)
        assert len(server.payloads) == 45
    lines = (asked.folder / "responses.jsonl").read_text().splitlines()
    users = [(json.loads(line)["fold"], json.loads(line)["query_id"]) for line in lines]
    lists = asked.lists[asked.lists["model"] == "MostPop"][["fold", "query_id"]]
    assert users == list(lists.drop_duplicates().itertuples(index=False, name=None))


def test_a_failed_training_is_reported_once(tmp_path: Path) -> None:
    models = ["MostPop", {"name": "WOK", "llm": {"model": "m", "base_url": "http://127.0.0.1:9"}}]
    failed = recbias.run(make_spec(models=models, metrics=["HR"]), out=tmp_path, offline=True)
    manifest = json.loads((failed.folder / "manifest.json").read_text())
    assert [failure["stage"] for failure in manifest["failures"]] == ["ask WOK"]
