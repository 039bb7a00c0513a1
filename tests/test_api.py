from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import recbias
from recbias import api
from recbias.core.errors import MissingRun, OutOfRange
from support.specs import make_small_spec


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    return recbias.run(make_small_spec(), out=tmp_path_factory.mktemp("out"))


def test_a_run_gives_its_tables(run: recbias.Run) -> None:
    assert set(run.metrics["model"]) == {"MostPop", "ItemKNN"}
    assert set(run.significance["metric"]) == {"nDCG", "HR"}
    assert run.per_unit is not None
    assert run.lists is not None
    assert run.lists["rank"].min() == 1
    assert run.lists["rank"].max() == 5
    assert run.failures == []


def test_a_finished_run_is_loaded_from_its_folder(run: recbias.Run) -> None:
    loaded = recbias.load(run.folder)
    pd.testing.assert_frame_equal(loaded.metrics, run.metrics)


def test_the_mean_is_the_mean_of_the_units(run: recbias.Run) -> None:
    units = run.per_unit
    assert units is not None
    part = units[(units["metric"] == "nDCG") & (units["model"] == "ItemKNN")]
    row = run.metrics[(run.metrics["metric"] == "nDCG") & (run.metrics["model"] == "ItemKNN")]
    assert row["value"].iloc[0] == pytest.approx(part["value"].mean(), abs=1e-12)
    assert int(row["n"].iloc[0]) + int(row["undefined"].iloc[0]) == len(part) == 60


def test_lists_hold_nothing_of_the_training(run: recbias.Run, tmp_path: Path) -> None:
    plan, store = api.plan(make_small_spec(), out=run.folder.parents[1])
    split = store.load(plan.data_contexts[0].split.digest)
    train = {
        (split.train.user_ids.ids[user], split.train.item_ids.ids[item])
        for user, item in zip(split.train.users, split.train.items, strict=True)
    }
    assert run.lists is not None
    recommended = set(zip(run.lists["query_id"], run.lists["item_id"], strict=True))
    assert recommended
    assert not recommended & train


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingRun):
        recbias.load(tmp_path)


@pytest.mark.parametrize("options", [{"workers": 0}, {"limit": 0}])
def test_options_are_checked(options: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(OutOfRange):
        recbias.run(make_small_spec(), out=tmp_path, **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_the_public_names_are_those_that_are_documented() -> None:
    assert sorted(recbias.__all__) == ["Run", "__version__", "load", "power", "run"]
    with pytest.raises(AttributeError):
        recbias.nothing  # noqa: B018


def test_several_datasets_seeds_and_folds_have_their_means(tmp_path: Path) -> None:
    datasets = [
        {"name": "demo", "label": label, "n_users": 40, "n_items": 30} for label in ("one", "two")
    ]
    spec = make_small_spec(
        dataset=datasets,
        seed=None,
        seeds=[1, 2],
        split={"name": "random", "test": 0.2, "folds": 2},
        models=["MostPop", "Random"],
        metrics=["nDCG", "ItemCoverage"],
    )
    run = recbias.run(spec, out=tmp_path)
    places = run.metrics[run.metrics["metric"] == "nDCG"]
    # 2 datasets x (2 seeds x 2 folds) + 2 means + 1 mean of both, for each of 2 models
    assert len(places) == 2 * (2 * 4 + 2 + 1)
    whole = places[(places["dataset"] == "all") & (places["model"] == "MostPop")]
    parts = places[(places["model"] == "MostPop") & (places["seed"].astype(str) != "all")]
    assert whole["value"].iloc[0] == pytest.approx(parts["value"].mean())
    assert {"1", "2", "all"} == set(run.significance["fold"].astype(str))
