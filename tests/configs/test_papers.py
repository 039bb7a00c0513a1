"""The spec of Beattie et al. 2023 with and without gender, on given vectors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.config.entries import load_packaged_spaces
from recbias.config.source import read_spec
from recbias.core.context import collect_warnings
from recbias.core.text import normalize_name
from recbias.data.books_yelp import Goodreads
from recbias.data.describe import describe
from recbias.reports.published import load_published
from support.commands import CommandResult, invoke_recbias

SPEC = Path(__file__).parents[2] / "configs" / "papers" / "aab" / "with-and-without-gender.yaml"


N_USERS, N_ITEMS, SIZE = 1000, 60, 4


SIZES = {"u": N_USERS, "i": N_ITEMS}


TABLES = {"aab/1", "aab/2", "aab/3", "aab/4", "aab/5", "aab/text"}


def write_world(folder: Path) -> dict[str, Any]:
    """Write users of two genders, films of two genres and vectors; return dataset and models."""
    rng = np.random.default_rng(3)
    is_woman, is_romance = np.arange(N_USERS) % 2 == 0, np.arange(N_ITEMS) % 2 == 0
    users, items = (np.array([f"{kind}{row}" for row in range(n)]) for kind, n in SIZES.items())
    genders, genres = np.where(is_woman, "F", "M"), np.where(is_romance, "Romance", "Action")
    tables = {
        "users": pd.DataFrame({"user_id": users, "gender": genders}),
        "items": pd.DataFrame({"item_id": items, "genres": genres}),
        "interactions": pd.DataFrame(
            {
                "user_id": np.repeat(users, 6),
                "item_id": np.concatenate(
                    [rng.choice(items, 6, replace=False) for _ in range(N_USERS)]
                ),
            }
        ),
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    for label, strength in (("WG", 2.0), ("NG", 0.5)):
        for name, has_side in (("users", is_woman), ("items", is_romance)):
            vectors = rng.normal(size=(has_side.size, SIZE))
            vectors[:, 0] += np.where(has_side, strength, -strength)
            np.save(folder / f"{label}-{name}.npy", vectors)
    for name, ids in (("users", users), ("items", items)):
        (folder / f"{name}.txt").write_text("\n".join(ids), encoding="utf-8")
    id_files = {f"{name[:-1]}_ids": str(folder / f"{name}.txt") for name in ("users", "items")}
    return {
        "dataset": {"name": "tables", **{name: str(folder / f"{name}.csv") for name in tables}},
        "models": [
            {"name": "vectors", "label": label, **id_files}
            | {name: str(folder / f"{label}-{name}.npy") for name in ("users", "items")}
            for label in ("WG", "NG")
        ],
    }


def test_every_table_is_compared(tmp_path: Path) -> None:
    spec = {**read_spec(SPEC).data, **write_world(tmp_path), "seeds": [1, 2]}
    spec["report"] = {**spec["report"], "formats": ["csv"]}
    for metric in spec["metrics"]:
        metric.update({"sample": 200} if "sample" in metric else {})
        metric.update({"permutations": 99} if metric["name"] in {"DEAA", "R-RIPA"} else {})
    run = recbias.run(spec, out=tmp_path / "results")
    assert run.manifest["failures"] == []
    reference = pd.read_csv(run.folder / "reference.csv").set_index(["system", "metric"])
    assert set(reference["table"]) == TABLES
    measured = reference["measured"]
    assert measured["WG", "accuracy (SVC, WG, test)"] > measured["NG", "accuracy (SVC, NG, test)"]
    similarity = measured["WG", "SVC vs CD (WG)"]
    assert similarity > 0.8
    share = measured["WG", "share of podcasts predicted female (SVC, WG, 50% female)"]
    rest = measured["WG", "share of podcasts predicted male (SVC, WG, 50% female)"]
    assert share + rest == 1


FOLDER = Path(__file__).parents[2] / "configs" / "papers" / "children"


SETTINGS = {
    "topK": "neighbors",
    "num factors": "embedding_size",
    "embedding size": "embedding_size",
    "latent dim": "embedding_size",
    "intermediate dim": "hidden_size",
    "epochs": "epochs",
    "learning rate": "learning_rate",
    "batch size": "batch_size",
    "eps": "eps",
    "l1 ratio": "l1_ratio",
    "alpha": "alpha",
    "negative sample": "negatives",
    "adversarial epochs": "adversarial_epochs",
    "dropout prob": "dropout",
    "l_b": "reg_bias",
    "reg user": "reg_user",
    "reg positive item": "reg_positive",
    "reg negative item": "reg_negative",
    "reg": "reg",
}
"""The hyperparameters of Table A.2 by our names, those that the trained models use."""


NOT_COMPARED = {"ML (MovieLens)": "", "GR (Goodreads)": "ItemKNN"}
"""The neighbours of ItemKNN include the item itself in the framework of the thesis."""


def read_models(name: str) -> dict[str, dict[str, Any]]:
    """Return the settings of each model of a spec."""
    entries = read_spec(FOLDER / name).data["models"]
    models = [{"name": entry} if isinstance(entry, str) else entry for entry in entries]
    return {normalize_name(model["name"]): model for model in models}


def test_power_is_that_of_the_family_of_the_thesis_for_models_without_epochs() -> None:
    (test,) = read_spec(FOLDER / "power.yaml").data["tests"]
    assert (test["correction"], test["family"]) == ("bonferroni", 19)
    models = read_models("power.yaml")
    assert len(models) == 7
    assert not any("epochs" in settings for settings in models.values())


@pytest.mark.parametrize("name", ["neighbourhood-n4", "latent-factors-n7", "neural-n4"])
def test_groups_have_the_models_of_the_whole(name: str) -> None:
    whole = read_models("table-5-1-elliot.yaml")
    group = read_models(f"{name}.yaml")
    assert {model: whole[model] for model in group} == group


def test_the_search_has_every_model_of_the_table() -> None:
    models = read_models("a1-search.yaml")
    published = {normalize_name(system) for system in load_published("children/a1")["system"]}
    assert len(published) == 17
    assert set(models) == published
    spaces = {normalize_name(model) for model in load_packaged_spaces()["thesis"]}
    assert published <= spaces
    assert all(model["tune"]["space"] == "thesis" for model in models.values())


@pytest.mark.parametrize(
    ("name", "dataset"),
    [
        ("table-5-1-elliot.yaml", "ML (MovieLens)"),
        ("a3-elliot.yaml", "ML (MovieLens)"),
        ("goodreads.yaml", "GR (Goodreads)"),
    ],
)
def test_settings_are_those_of_the_thesis(name: str, dataset: str) -> None:
    table = load_published("children/a2")
    rows: pd.DataFrame = table[(table["dataset"] == dataset) & (table["value"] != "")]
    models = read_models(name)
    n_compared = 0
    for row in rows.itertuples(index=False):
        system, hyperparameter, published = map(str, (row.system, row.hyperparameter, row.value))
        model = models.get(normalize_name(system), {})
        setting = "factors" if system == "PureSVD" else SETTINGS.get(hyperparameter, "")
        if system != NOT_COMPARED[dataset] and setting in model:
            assert float(model[setting]) == pytest.approx(float(published)), (system, setting)
            n_compared += 1
    assert n_compared > 30


SPECS = Path(__file__).parents[2] / "configs" / "papers" / "wok"


OF_ALL = "log_popularity_difference(popularity=all, corrected=False)"


NO_KEYS = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""}


def run_without_key(spec: str, data: Path, folder: Path, *options: str) -> Path:
    """Run a spec whose language models have no keys; return its run folder."""
    path = SPECS / f"{spec}.yaml"
    arguments = (path, "--data", data, *options)
    result = invoke_recbias("run", *arguments, folder=folder, env=NO_KEYS)
    assert result.code == 2
    for variable in NO_KEYS:
        assert f"the environment variable {variable} with the key is not set" in result.err
    return folder / "results" / f"wok-{spec}" / "latest"


def read_means(run: Path) -> pd.Series:
    """Return the means over samples, by metric and model at k = 10."""
    table = pd.read_csv(run / "metrics.csv")
    samples = table[table["fold"] != "all"]
    assert sorted(samples["fold"].unique()) == [*"12345"]
    means = table[(table["fold"] == "all") & (table["k"] == 10)]
    values: pd.Series = means.set_index(["metric", "model"])["value"].dropna()
    return values


@pytest.mark.real_data
@pytest.mark.slow
def test_baselines_of_the_papers_tables_are_measured_without_a_key(
    real_data: Path, tmp_path: Path
) -> None:
    values = read_means(run_without_key("ml-1m", real_data, tmp_path))
    models = ["Random", "MostPop", "ItemKNN", "UserKNN", "ItemKNN-recbias", "UserKNN-recbias"]
    bias, hits = values[OF_ALL][models], values["HR"][models]
    # LensKit's are in the order of the paper (0.957 and 0.630), those of recbias are not
    assert bias.tolist() == pytest.approx([-2.047, 1.340, 1.105, 0.756, 0.603, 0.760], abs=0.01)
    assert hits.tolist() == pytest.approx([0.003, 0.080, 0.139, 0.207, 0.190, 0.209], abs=0.01)
    assert (values["unmatched"] == 0).all()


def write_ml_10m(folder: Path, rng: np.random.Generator) -> None:
    """Write 60 users and 40 films, of which the first are the most popular, as MovieLens-10M."""
    (folder / "ml-10m").mkdir()
    popularity = 1 / np.arange(1, 41)
    lines = [
        f"{user}::{film}::{rating / 2}::{838985046 + film}"
        for user in range(1, 61)
        for film, rating in zip(
            rng.choice(np.arange(1, 41), 12, replace=False, p=popularity / popularity.sum()),
            rng.integers(1, 11, 12),
            strict=True,
        )
    ]
    (folder / "ml-10m" / "ratings.dat").write_text("\n".join(lines) + "\n")
    films = [f"{film}::Film {film} ({1968 + film})::Drama" for film in range(1, 41)]
    (folder / "ml-10m" / "movies.dat").write_text("\n".join(films) + "\n")
    (folder / "ml-10m" / "tags.dat").write_text("")


@pytest.mark.slow  # five datasets
def test_tables_of_ml_10m_are_planned_and_measured_in_the_publishers_layout(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    write_ml_10m(tmp_path, rng)
    size = ("--set", "queries.sample=11")
    arguments = (SPECS / "ml-10m.yaml", "--data", tmp_path, *size)
    planned = invoke_recbias("plan", *arguments, folder=tmp_path, env=NO_KEYS)
    assert planned.code == 0, planned.err
    assert "660 requests, 0 stored, 660 to send" in planned.out  # 55 users, 4 models, 3 prompts
    run = run_without_key("ml-10m", tmp_path, tmp_path, *size)
    values = read_means(run)[OF_ALL]
    assert values["Random"] < values["ItemKNN"] < values["MostPop"]
    reference = pd.read_csv(run / "reference.csv")
    compared = reference.dropna(subset="measured")
    assert set(compared["system"]) == {"Random", "MostPop", "ItemKNN", "UserKNN"}  # LensKit's
    too_large = invoke_recbias("run", *arguments[:-2], folder=tmp_path)
    assert too_large.code == 2
    assert "queries.sample: 5 disjoint samples of 1,000 need 5,000 users" in too_large.err
    assert "sample: 12 is the largest possible" in too_large.err


SPEC_NGIM_ML_1M = Path(__file__).parents[2] / "configs" / "papers" / "children" / "ngim-ml-1m.yaml"


@pytest.fixture(scope="module")
def run(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ngim")
    result = invoke_recbias("run", SPEC_NGIM_ML_1M, "--data", real_data, folder=folder)
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


ROOT = Path(__file__).parents[2]


SPEC_GOODREADS = ROOT / "configs" / "papers" / "children" / "goodreads.yaml"


FEW = """\
extends: {spec}
dataset: {{filters: [{{name: threshold, at_least: 4}}, {{name: k_core, k: 5}}]}}
models: [Random, MostPop, {{name: ItemKNN, neighbors: 8}}]
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("goodreads")
    script = ROOT / "benchmarks" / "goodreads_files.py"
    command = [sys.executable, str(script), str(folder), "--scale", "0.004"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_generated_files_have_the_requested_counts(data: Path) -> None:
    with collect_warnings():
        dataset = Goodreads(side=("authors",), unrated="keep").load(data, None)  # type: ignore[arg-type]
    counts = describe(dataset)["counts"]
    # 0.004 of 542,145 readers, 124,082 books and 10,059,349 shelved books
    assert (counts["users"], counts["items"], counts["interactions"]) == (2169, 496, 40_237)
    assert counts["duplicates"] == 0


def test_books_are_labelled_and_recommended(data: Path, tmp_path: Path) -> None:
    spec = tmp_path / "few.yaml"
    spec.write_text(FEW.format(spec=SPEC_GOODREADS.resolve()), encoding="utf-8")
    result = invoke_recbias("run", spec, "--data", data, folder=tmp_path)
    assert result.code == 0, result.err
    run = tmp_path / "results" / "children-goodreads" / "latest"
    metrics: Any = pd.read_csv(run / "metrics.csv").set_index(["model", "metric"])["value"]
    n_items = json.loads((run / "manifest.json").read_text())["datasets"][0]["counts"]["items"]
    labelled = metrics["(dataset)", "labelled_items(label=ngim.gender)"]
    assert 0.1 < labelled / n_items < 0.5
    # the expected exposure of random lists is the share of labelled books
    exposure = metrics["Random", "REC-ST(label=ngim.gender)"]
    assert exposure == pytest.approx(labelled / n_items, abs=0.02)
    assert metrics["ItemKNN", "nDCG"] > 2 * metrics["Random", "nDCG"]
    significance = pd.read_csv(run / "significance.csv")
    assert set(significance["family_size"]) == {15}
    reference = pd.read_csv(run / "reference.csv")
    assert set(reference["system"]) == {"Random", "MostPop", "ItemKNN", "(dataset)"}
    assert set(reference["table"]) == {"children/5.2", "children/5.3", "children/a6"}
    assert {"nDCG", "MRR", "MAP", "HR", "REC-ST_Gender"} < set(reference["metric"])
    counts = reference[reference["table"] == "children/5.3"]
    assert counts["published"].tolist() == [3438]
    assert counts["measured"].tolist() == [labelled]


SPEC_CITIES = """\
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


def run_cities(folder: Path, lists: str = OURS, spec: str = SPEC_CITIES) -> CommandResult:
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


def test_metric_has_a_value_per_dataset_their_mean_and_a_pooled_value(tmp_path: Path) -> None:
    result = run_cities(tmp_path)
    assert result.code == 0, result.err
    # items at $ per query: CityA m (1 + 1)/2, f (0 + 1)/2; CityB m (1 + 1)/2, f (1 + 1)/2
    assert read_share_of_men(tmp_path) == pytest.approx(
        {"CityA": 1 / 1.5, "CityB": 1 / 2, "all": (1 / 1.5 + 1 / 2) / 2, "pooled": 2 / 3.5}
    )
    assert "not in the run" not in result.err


def test_dataset_missing_in_the_file_is_reported_at_its_location(tmp_path: Path) -> None:
    result = run_cities(tmp_path, OURS.replace("CityB", "City B"))
    assert result.code == 2
    message = "error: cities.yaml:8:38: models[0].path: ours.csv: no row is of the dataset 'CityB'"
    assert message in result.err
    assert "'City B', 'CityA'" in result.err


def test_label_of_a_dataset_selects_its_rows(tmp_path: Path) -> None:
    same_items = SPEC_CITIES.replace("label: CityB, items: b.csv", "label: CityB, items: a.csv")
    assert run_cities(tmp_path, spec=same_items).code == 0
    # lists of CityB with prices of CityA: at $, men have that of q2 only, women that of q4
    assert read_share_of_men(tmp_path)["CityB"] == pytest.approx(0.5)
    swapped = OURS.replace("CityB,q4,p1,2\n", "")
    assert run_cities(tmp_path, swapped, spec=same_items).code == 0
    assert read_share_of_men(tmp_path)["CityB"] == pytest.approx(1.0)
    result = run_cities(tmp_path, swapped, spec=same_items.replace("label: CityB", "label: CityC"))
    assert result.code == 2
    assert "no row is of the dataset 'CityC'" in result.err
