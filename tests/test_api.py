from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias
from recbias import api
from recbias.core.errors import (
    Contradiction,
    Faults,
    MissingRun,
    OutOfRange,
    UnknownName,
    WrongType,
)
from support.specs import make_small_spec


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    return recbias.run(make_small_spec(), out=tmp_path_factory.mktemp("out"))


def test_a_run_gives_its_tables(run: recbias.Run) -> None:
    assert set(run.metrics["model"]) == {"MostPop", "ItemKNN"}
    assert set(run.significance["metric"]) == {"nDCG", "HR"}
    assert run.per_unit is not None
    assert run.lists["rank"].min() == 1
    assert run.lists["rank"].max() == 5
    assert run.failures.empty


def test_a_finished_run_is_loaded_from_its_folder(run: recbias.Run) -> None:
    loaded = recbias.load(run.folder)
    pd.testing.assert_frame_equal(loaded.metrics, run.metrics)


def test_lists_hold_nothing_of_the_training(run: recbias.Run, tmp_path: Path) -> None:
    plan, store = api.plan(make_small_spec(), out=run.folder.parents[1])
    split = store.load(plan.data_contexts[0].split.digest)
    train = {
        (split.train.user_ids.ids[user], split.train.item_ids.ids[item])
        for user, item in zip(split.train.users, split.train.items, strict=True)
    }
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


@pytest.mark.parametrize(("option", "value"), [("on_error", "continue "), ("executor", "threads")])
def test_an_option_with_an_unknown_value_is_refused(
    option: str, value: str, tmp_path: Path
) -> None:
    with pytest.raises(UnknownName, match=f"--{option.replace('_', '-')}: must be one of"):
        recbias.run(make_small_spec(), out=tmp_path, **{option: value})  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("spec", [None, 3, [make_small_spec()]])
def test_a_spec_that_is_neither_a_path_nor_a_mapping_is_refused(spec: Any) -> None:
    with pytest.raises(WrongType, match=f"not a {type(spec).__name__}$"):
        recbias.plan(spec)


def test_a_key_that_is_not_text_is_refused(tmp_path: Path) -> None:
    spec: dict[Any, Any] = {**make_small_spec(), 3: 4}
    with pytest.raises(Faults, match="3: not a setting"):
        recbias.run(spec, out=tmp_path)


def test_the_power_of_a_run_is_found_by_the_name_of_its_experiment(tmp_path: Path) -> None:
    run = recbias.run(make_small_spec(), out=tmp_path)
    pd.testing.assert_frame_equal(recbias.power("small", out=tmp_path), recbias.power(run))
    with pytest.raises(MissingRun, match="'smal' is neither"):
        recbias.power("smal", out=tmp_path)


def test_the_public_names_are_those_that_are_documented() -> None:
    functions = ["compare", "examples", "explain", "list_runs", "load", "monitor"]
    names = ["Run", "__version__", *functions, "multiverse", "plan", "power", "probe"]
    names += ["run", "verify"]
    assert sorted(recbias.__all__) == names
    assert all(callable(getattr(recbias, name)) for name in names if name != "__version__")
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
    assert {1, 2, "all"} == set(run.significance["fold"])


def test_the_summary_has_a_row_for_each_model_and_a_column_for_each_metric(
    run: recbias.Run,
) -> None:
    overall = run.metrics[(run.metrics["group"] == "") & (run.metrics["target"] == "")]
    assert run.summary.index.get_level_values("model").tolist() == list(overall["model"].unique())
    model, metric, k, value = overall[["model", "metric", "k", "value"]].iloc[0]
    name = f"{metric}@{int(float(k))}" if str(k) not in {"", "nan"} else metric
    assert run.summary.xs(model, level="model")[name].item() == value
    page = run._repr_html_()
    assert all(text in page for text in (name, model, f"{value:.4f}"))


def test_runs_are_listed_loaded_by_name_and_compared(tmp_path: Path) -> None:
    before = recbias.run(make_small_spec(name="before"), out=tmp_path)
    after = recbias.run(
        make_small_spec(name="after", split={"name": "random", "test": 0.3}), out=tmp_path
    )
    listed = recbias.list_runs(tmp_path)
    assert sorted(listed["name"]) == ["after", "before"]
    assert set(listed["folder"]) == {before.folder, after.folder}
    assert recbias.load("after", tmp_path).folder == after.folder
    table = recbias.compare("before", after, out=tmp_path)
    assert {*table["a"], *table["b"]} == {"before", "after"}
    assert recbias.compare(before, before, out=tmp_path).empty  # the same results
    with pytest.raises(Contradiction, match=r"1 run\(s\) cannot be compared"):
        recbias.compare(after)
    with pytest.raises(MissingRun, match="'aftr' is neither") as error:
        recbias.load("aftr", tmp_path)
    assert error.value.remedy == "did you mean after?"


def test_no_runs_are_an_empty_table(tmp_path: Path) -> None:
    assert recbias.list_runs(tmp_path / "nowhere").empty
    with pytest.raises(MissingRun) as error:
        recbias.load("a", tmp_path)
    assert error.value.remedy == f"{tmp_path} has no finished run"


def test_a_plan_says_which_stages_are_stored(tmp_path: Path) -> None:
    spec = make_small_spec()
    assert not recbias.plan(spec, out=tmp_path)["stored"].any()
    recbias.run(spec, out=tmp_path)
    stages = recbias.plan(spec, out=tmp_path)
    assert stages["stored"].all()
    assert {"dataset", "split", "queries", "fit", "answer", "measure"} >= set(stages["stage"])


def test_a_report_is_written_again(tmp_path: Path) -> None:
    run = recbias.run(make_small_spec(), out=tmp_path)
    page = run.folder / "report.html"
    page.unlink(missing_ok=True)
    assert run.report() == page
    assert "<html" in page.read_text(encoding="utf-8")
    assert run.report(["md"]) == run.folder


def test_the_tables_of_a_run_have_the_same_keys_and_can_be_joined(run: recbias.Run) -> None:
    keys = ["dataset", "model", "seed", "fold", "metric", "k", "group", "target"]
    units = run.per_unit
    means = units.groupby(keys, as_index=False)["value"].mean()
    joined = run.metrics.merge(means, on=keys, suffixes=("", "_of_units"))
    assert len(joined) == len(run.metrics) == 4
    assert joined["value"].to_numpy() == pytest.approx(joined["value_of_units"].to_numpy())
    assert set(run.metrics["seed"]) == set(units["seed"]) == {42}
    for table in (run.metrics, units, run.significance):
        assert set(table["group"]) == {""}
        assert set(table["target"]) == {""}
    assert run.significance["significant"].dtype == bool
    compared = run.significance["p_adjusted"] <= run.significance["alpha"]
    assert run.significance["significant"].tolist() == compared.tolist()


def test_the_files_read_by_pandas_are_the_tables_of_the_run(run: recbias.Run) -> None:
    blank = {"group": "", "target": "", "model": ""}
    for name in ("metrics", "significance"):
        table = pd.read_csv(run.folder / f"{name}.csv").fillna(blank)
        pd.testing.assert_frame_equal(table, getattr(run, name), check_dtype=False)
    units = pd.read_parquet(run.folder / "per_unit.parquet")
    assert run.per_unit is not None
    pd.testing.assert_frame_equal(units, run.per_unit, check_dtype=False, check_categorical=False)


@pytest.mark.parametrize(
    "name", ["metrics.csv", "significance.csv", "per_unit.parquet", "lists.parquet"]
)
def test_a_run_with_a_truncated_table_is_not_a_run(
    run: recbias.Run, name: str, tmp_path: Path
) -> None:
    folder = tmp_path / "copied" / "elsewhere"
    shutil.copytree(run.folder, folder)
    assert recbias.load(folder).metrics.equals(run.metrics)
    content = (folder / name).read_bytes()
    lines = content.splitlines(keepends=True)
    (folder / name).write_bytes(b"".join(lines[: len(lines) // 2 + 1])[:-1])  # a whole row is lost
    with pytest.raises(MissingRun, match=rf"{re.escape(name)} has .* it is not whole") as caught:
        recbias.load(folder)
    assert "copy the run folder again" in caught.value.remedy
    with pytest.warns(UserWarning, match="not a whole run"):
        assert recbias.list_runs(tmp_path).empty


def test_a_damaged_table_of_the_right_size_is_an_error_of_the_user(
    run: recbias.Run, tmp_path: Path
) -> None:
    folder = tmp_path / "copied"
    shutil.copytree(run.folder, folder)
    path = folder / "per_unit.parquet"
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(MissingRun, match=r"per_unit\.parquet: it cannot be read"):
        _ = recbias.load(folder).per_unit


def test_tables_of_single_users_may_be_left_out_of_a_published_run(
    run: recbias.Run, tmp_path: Path
) -> None:
    folder = tmp_path / "copied"
    shutil.copytree(run.folder, folder)
    (folder / "lists.parquet").unlink()
    loaded = recbias.load(folder)
    assert loaded.lists is None
    assert loaded.metrics.equals(run.metrics)
