"""A fine-tuned language model from end to end, on reviews that are made up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
import torch

import recbias
from recbias import api
from support.commands import invoke_recbias
from support.files.review_files import (
    ENCODER_WORDS,
    TEMPLATES,
    make_reviews,
    make_venue,
    write_reviews,
)
from support.models.small_encoder import write_small_encoder

LMREC: dict[str, Any] = {
    "name": "LMRec",
    "encoder": "encoder",
    "pooling": "mean",
    "learning_rate": 0.01,
    "batch_size": 16,
    "epochs": 10,
    "patience": 0,
    "max_length": 40,
    "device": "cpu",
}
BASELINES: list[Any] = [
    {"name": "TFIDF-LR", "ngrams": 1, "min_df": 1},
    {"name": "Encoder-LR", "encoder": "encoder", "max_length": 40},
]
CLASSES = [
    f"class_{metric}" for metric in ("precision", "recall", "F1", "accuracy", "MRR", "HR@2")
]
CATEGORIES = [
    {"name": f"category_{metric}", "without": ["Restaurants"], "label": f"category_{metric}"}
    for metric in ("precision@2", "R-precision", "MAP", "MRR", "nDCG")
]
BIAS = [
    {"name": "price_percentage", "label": "gender", "attribute": "price"},
    {"name": "association", "label": "gender", "attribute": "categories", "min_count": 1},
    {"name": "mean_attribute", "label": "gender", "attribute": "price"},
]
SPEC: dict[str, Any] = {
    "name": "tiny",
    "seed": 7,
    "dataset": {
        "name": "yelp",
        "folder": "reviews",
        "filters": [{"name": "mask_names", "persons": "names"}],
    },
    "split": {"name": "random", "per": "item", "test": 0.2, "validation": 0.1},
    "queries": {"name": "templates", "templates": "mine.yaml", "neutral": True},
    "k": 4,
    "models": [LMREC, *BASELINES],
    "metrics": [*CLASSES, *CATEGORIES, *BIAS],
    "tests": [{"name": "paired_t", "correction": "holm"}],
    "report": {"formats": ["csv"]},
}


def write_spec(folder: Path, **changes: Any) -> Path:
    """Write the spec with some keys changed, in a file of the experiment's name."""
    spec = SPEC | changes
    path = folder / f"{spec['name']}.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return path


def run_spec(folder: Path, *words: str, **changes: Any) -> recbias.Run:
    """Run the spec with some keys changed, in this process."""
    result = invoke_recbias(
        "run", write_spec(folder, **changes), "--data", "data", *words, folder=folder
    )
    assert result.code == 0, result.err
    return recbias.load(folder / "results" / (SPEC | changes)["name"] / "latest")


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Work in one thread: so little work goes faster so, and its sums come out the same."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with reviews, templates and an encoder."""
    folder = tmp_path_factory.mktemp("world")
    write_reviews(folder / "data", [make_venue(venue) for venue in range(6)], make_reviews())
    (folder / "mine.yaml").write_text(TEMPLATES)
    write_small_encoder(folder / "encoder", ENCODER_WORDS)
    return folder


@pytest.fixture(scope="module")
def run(world: Path) -> recbias.Run:
    """The whole study."""
    return run_spec(world, "--offline")


@pytest.fixture(scope="module")
def stages(world: Path, run: recbias.Run) -> Mapping[str, Any]:
    """What each stage of the study left in the store, by its title."""
    plan, store = api.plan(world / "tiny.json", out=world / "results", data=world / "data")
    selected = [stage for stage in plan.stages if stage.kind in {"split", "fit", "answer"}]
    return {stage.title: store.load(stage.digest) for stage in selected}


MODELS = ("LMRec", "TFIDF-LR", "Encoder-LR")


@pytest.mark.parametrize("model", MODELS)
def test_values_of_table_3_agree_with_scikit_learn(
    run: recbias.Run, stages: Mapping[str, Any], model: str
) -> None:
    result = stages[f"recommend {model}"].predictions
    right, first, ranked = result.items, result.ranked[:, 0], result.ranked
    assert ranked.shape == (48, 6)  # a fifth of 40 reviews of each of 6 venues
    scores = np.zeros(ranked.shape)
    np.put_along_axis(scores, ranked, np.arange(6, 0, -1)[None].repeat(48, axis=0), axis=1)
    weighted = {"average": "weighted", "zero_division": 0}
    expected = {
        "class_precision": sklearn.metrics.precision_score(right, first, **weighted),
        "class_recall": sklearn.metrics.recall_score(right, first, **weighted),
        "class_F1": sklearn.metrics.f1_score(right, first, **weighted),
        "class_accuracy": sklearn.metrics.accuracy_score(right, first),
        "class_MRR": sklearn.metrics.label_ranking_average_precision_score(
            np.eye(6, dtype=int)[right], scores
        ),
        "class_HR": sklearn.metrics.top_k_accuracy_score(right, scores, k=2, labels=range(6)),
    }
    values = run.metrics[run.metrics["model"] == model].set_index("metric")["value"]
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert values["class_accuracy"] > 0.5  # of 6 venues


def test_held_out_reviews_are_not_used_in_training(stages: Mapping[str, Any]) -> None:
    split = stages["split yelp"]
    marks = {}
    for part in ("train", "validation", "test"):
        rows = getattr(split, part)
        users, items = rows.user_ids.ids[rows.users], rows.item_ids.ids[rows.items]
        marks[part] = {
            f"mark{item[1:]}x{user[1:]}" for user, item in zip(users, items, strict=True)
        }
    assert [len(part_marks) for part_marks in marks.values()] == [168, 24, 48]
    terms = {*stages["fit TFIDF-LR"]["terms"].tobytes().decode().split("\n")}
    assert {term for term in terms if term.startswith("mark")} == marks["train"]


def select_rows(table: pd.DataFrame, model: str, metric: str) -> pd.DataFrame:
    """Return the rows of a model and a metric."""
    return table[(table["model"] == model) & table["metric"].str.startswith(metric)]


def test_planted_bias_appears_in_every_figure(run: recbias.Run) -> None:
    level = select_rows(run.metrics, "LMRec", "mean_attribute").set_index("group")["value"]
    assert level["gender=female"] <= level["neutral"] <= level["gender=male"]
    assert level["gender=female"] < level["gender=male"]
    share = select_rows(run.metrics, "LMRec", "price_percentage").set_index(["group", "target"])[
        "value"
    ]
    assert share["gender=female", "price=$"] > 0.6
    assert share["gender=female", "price=$"] + share["gender=male", "price=$"] == pytest.approx(1)
    goes = select_rows(run.metrics, "LMRec", "association").set_index(["group", "target"])["value"]
    assert goes["gender=male", "categories=Fine"] > 0 > goes["gender=male", "categories=Quick"]
    inside_models = run.significance[run.significance["between"] == "groups"]
    for metric in ("price_percentage", "association", "mean_attribute"):
        p = select_rows(inside_models, "LMRec", metric)["p"].dropna()
        # 8!/(4! 4!) = 70 relabellings, two of which are as extreme
        assert p.min() == pytest.approx(2 / 70), metric


def test_words_without_label_are_queried_but_excluded_from_values(run: recbias.Run) -> None:
    lists = run.lists[run.lists["model"] == "LMRec"]
    assert lists["query_id"].str.endswith(":Robin").sum() == 4 * 4  # templates, places
    warnings = {text for stage in run.manifest["stages"] for text in stage["warnings"]}
    assert "mean_attribute: 4 queries carry no gender and are excluded" in warnings


def test_missing_encoder_offline_names_the_command(world: Path) -> None:
    models = [{**LMREC, "encoder": "nobody/nothing"}, BASELINES[0]]
    spec = write_spec(world, name="offline", models=models, metrics=["class_accuracy"])
    result = invoke_recbias("run", spec, "--data", "data", "--offline", folder=world)
    assert result.code == 2
    assert "the model nobody/nothing is not on this machine" in result.err
    assert "hf download nobody/nothing" in " ".join(result.err.split())
    assert "models[0].encoder" in result.err
    assert not list((world / "results").glob("offline/*"))  # nothing was trained in vain
