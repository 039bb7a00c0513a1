"""A fine-tuned language model from end to end, on reviews that are made up."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
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
from recbias.core.context import StageRecord
from recbias.runner.estimate import preview
from recbias.runner.execute import Silent
from support.commands import invoke_recbias
from support.files.review_files import (
    ENCODER_WORDS,
    TEMPLATES,
    make_review,
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


ALONE = {"OMP_NUM_THREADS": "1"}


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
    assert run.lists is not None
    lists = run.lists[run.lists["model"] == "LMRec"]
    assert lists["query_id"].str.endswith(":Robin").sum() == 4 * 4  # templates, places
    warnings = {text for stage in run.manifest["stages"] for text in stage["warnings"]}
    assert "mean_attribute: 4 queries carry no gender and are excluded" in warnings


class Steps(Silent):
    """Hears at which step of the fine-tuning it started."""

    def __init__(self) -> None:
        self.first: list[int] = []
        self.records: dict[str, StageRecord] = {}

    def progressed(self, what: str, done: int, total: int) -> None:
        if what == "LMRec steps":
            self.first = self.first or [done, total]

    def finished(self, record: StageRecord) -> None:
        self.records[record.stage] = record


KILLED = """
import os, sys
from pathlib import Path
import recbias
from recbias.core import context as context_module
from recbias.runner.stage import Silent

context_module.MIN_CHECKPOINT_INTERVAL = 0.0

class Deadly(Silent):
    def progressed(self, what, done, total):
        if [*Path("killed/store/partial").glob(f"{sys.argv[1]}*")]:
            os.kill(os.getpid(), 9)

recbias.run("tiny.json", out="killed", data="data", observer=Deadly())
"""
"""A run that is killed in the step after the first checkpoint of a stage."""


@pytest.mark.slow  # two trainings
def test_interrupted_fine_tuning_resumes_to_equal_bytes(
    world: Path, run: recbias.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world)
    plan, store = api.plan("tiny.json", out="killed", data="data")
    stage = next(stage for stage in plan.stages if stage.title == "fit LMRec")
    words = [sys.executable, "-c", KILLED, stage.digest]
    process = subprocess.run(words, env=os.environ | ALONE, timeout=300)
    assert process.returncode == -9
    seen = {step.stage.title: step for step in preview(plan, store).steps}
    assert (seen[stage.title].stored, seen[stage.title].partial) == (False, True)
    observer = Steps()
    resumed = recbias.run("tiny.json", out="killed", data="data", observer=observer)
    first, total = observer.first
    assert 1 < first < total
    assert total == 10 * 11  # epochs, and batches of 16 of 168 reviews
    assert observer.records[stage.title].resumed_seconds > 0
    for name in ("metrics.csv", "lists.parquet", "significance.csv"):
        assert (resumed.folder / name).read_bytes() == (run.folder / name).read_bytes()


def test_missing_encoder_offline_names_the_command(world: Path) -> None:
    models = [{**LMREC, "encoder": "nobody/nothing"}, BASELINES[0]]
    spec = write_spec(world, name="offline", models=models, metrics=["class_accuracy"])
    result = invoke_recbias("run", spec, "--data", "data", "--offline", folder=world)
    assert result.code == 2
    assert "the model nobody/nothing is not on this machine" in result.err
    assert "hf download nobody/nothing" in " ".join(result.err.split())
    assert "models[0].encoder" in result.err
    assert not list((world / "results").glob("offline/*"))  # nothing was trained in vain


def test_search_uses_validation_reviews_only(world: Path) -> None:
    space = {"dropout": {"choice": [0.0, 0.4]}, "learning_rate": {"choice": [0.001, 0.01]}}
    tune = {"metric": "class_accuracy", "trials": 2, "pruning": "none", "space": space}
    searched = {key: value for key, value in LMREC.items() if key != "learning_rate"}
    models = [{**searched, "epochs": 3, "tune": tune}]
    changes = {"name": "tuned", "models": models, "metrics": ["class_accuracy"], "tests": []}
    trials, figures = [], []
    for folder in ("data", "poisoned"):
        if folder == "poisoned":
            write_reviews(
                world / folder, [make_venue(venue) for venue in range(6)], swap_test_dishes(world)
            )
        tuned = run_spec(world, "--data", folder, **changes)
        trials.append(pd.read_csv(tuned.folder / "trials.csv").drop(columns="seconds"))
        figures.append(tuned.metrics["value"].iloc[0])
    assert len(trials[0]) == 2
    assert (trials[0]["value"] * 24 % 1).to_numpy() == pytest.approx(0)  # validation reviews
    pd.testing.assert_frame_equal(trials[0], trials[1])
    assert figures[0] > figures[1]


def swap_test_dishes(world: Path) -> list[dict[str, Any]]:
    """Return the reviews, those of the test part being of another venue's dish."""
    plan, store = api.plan(world / "tiny.json", out=world / "results", data=world / "data")
    test = store.load(next(stage for stage in plan.stages if stage.kind == "split").digest).test
    test_pairs = {*zip(test.user_ids.ids[test.users], test.item_ids.ids[test.items], strict=True)}
    reviews = make_reviews()
    for review in reviews:
        if (review["user_id"], review["business_id"]) in test_pairs:
            venue = (int(review["business_id"][1:]) + 3) % 6
            review["text"] = make_review(venue, int(review["user_id"][1:]))["text"]
    return reviews


AWKWARD = [
    "soup " * 10_000,
    "",
    "  ",
    "\U0001f35c\U0001f44d\U0001f3fd " * 5,
    "مطعم رائع جدا",
    "מרק טוב",
]


@pytest.fixture(scope="module")
def awkward(world: Path) -> recbias.Run:
    """A study of reviews and venues as they come."""
    bare = [
        make_venue(2, attributes=None),
        make_venue(3, categories=None),
        make_venue(6, attributes={}),
    ]
    venues = [make_venue(0), make_venue(1), *bare]
    reviews: list[dict[str, Any] | str] = [
        make_review(venue, number) for venue in range(4) for number in range(15)
    ]
    reviews += [make_review(0, 50 + number, text) for number, text in enumerate(AWKWARD)]
    reviews += [make_review(6, 1), '{"user_id": "u1", "busin', "not json", '{"business_id": "v0"}']
    write_reviews(world / "awkward", venues, reviews)
    return run_spec(
        world,
        *("--data", "awkward"),
        name="awkward",
        dataset=SPEC["dataset"] | {"bad_lines": "skip"},
        models=[{**LMREC, "epochs": 1}, *BASELINES],
    )


def test_unusual_reviews_and_venues_are_kept_and_counted(awkward: recbias.Run) -> None:
    assert awkward.failures.empty
    counts = awkward.manifest["datasets"][0]["counts"]
    assert counts["bad_lines"] == 3
    assert counts["interactions"] == 67
    for model in MODELS:
        (right,) = select_rows(awkward.metrics, model, "class_accuracy")["value"]
        assert 0 <= right <= 1
    warnings = {text for stage in awkward.manifest["stages"] for text in stage["warnings"]}
    # 3 test reviews of the venue that has no categories
    assert any("their items share no category" in text for text in warnings)
    for metric, column in (("price_percentage", "price"), ("association", "categories")):
        assert any(f"{metric}: " in text and f"item without {column}" in text for text in warnings)


def test_slot_without_words_is_an_error_with_its_line(world: Path) -> None:
    (world / "bad.yaml").write_text(TEMPLATES.replace("A table for [name]", "A table for [nome]"))
    queries = {"name": "templates", "templates": "bad.yaml"}
    result = invoke_recbias(
        "run", write_spec(world, name="bad", queries=queries), "--data", "data", folder=world
    )
    assert result.code == 2
    assert "bad.yaml:9" in result.err
    assert "there are no words for the slot [nome]" in result.err


@pytest.fixture(scope="module")
def mitigated(world: Path, run: recbias.Run) -> recbias.Run:
    """The plain model beside two mitigations of it, on the same prompts and reviews."""
    reranker = {"name": "DetGreedy", "label": "catalogue", "attribute": "price_level"}
    models = [
        {**LMREC, "rerank": reranker},
        {**LMREC, "label": "LMRec-gender", "counterfactual": "gender"},
    ]
    return run_spec(world, name="mitigated", models=models, metrics=["class_accuracy", *BIAS])


def test_mitigations_are_compared_with_the_plain_model(
    run: recbias.Run, mitigated: recbias.Run
) -> None:
    facts = {stage["stage"]: stage["facts"] for stage in mitigated.manifest["stages"]}
    assert facts["fit LMRec-gender"]["counterfactual_copies"] == 168  # each has he or she
    rows = mitigated.metrics[mitigated.metrics["metric"] == "class_accuracy"]
    right = rows.set_index("model")["value"]
    assert math.isnan(right["LMRec + catalogue"])  # it re-ranks lists, not items for a review
    level = {
        model: select_rows(mitigated.metrics, model, "mean_attribute").set_index("group")["value"]
        for model in right.index
    }
    gap = {model: means["gender=male"] - means["gender=female"] for model, means in level.items()}
    assert abs(gap["LMRec-gender"]) < gap["LMRec"]
    # 3 of 6 venues are of each price, so 2 of 4 places are, whoever is named
    assert level["LMRec + catalogue"].tolist() == [2, 2, 2]
    share = select_rows(mitigated.metrics, "LMRec + catalogue", "price_percentage")["value"]
    assert share.tolist() == [0.5] * 4


def test_change_of_bias_has_a_paired_test(mitigated: recbias.Run) -> None:
    table = mitigated.significance
    between = table[(table["between"] == "models") & (table["a"] == "LMRec")]
    shares = between[between["metric"].str.startswith("price_percentage")]
    # 2 mitigations x 2 genders x 2 prices, on the same samples of the names
    assert len(shares) == 8
    assert {*shares["test"]} == {"paired_bootstrap"}
    assert shares["p"].notna().all()
    levels = between[between["metric"].str.startswith("mean_attribute")]
    named = levels[levels["group"] != "neutral"]
    assert (named["n"] == 4).all()  # the names of a gender, each with itself
    assert {*named["test"]} == {"paired_t"}


def test_masked_prompts_have_no_bias(world: Path, run: recbias.Run) -> None:
    queries = {"name": "templates", "templates": "mine.yaml", "mask": ["name"]}
    masked = run_spec(world, name="masked", queries=queries, models=[LMREC], metrics=BIAS)
    assert masked.lists is not None
    lists = masked.lists.assign(template=masked.lists["query_id"].str.partition(":")[0])
    per_template = lists.groupby(["template", "rank"])["item_id"].nunique()
    assert per_template.tolist() == [1] * 16
    level = select_rows(masked.metrics, "LMRec", "mean_attribute")["value"]
    neutral = select_rows(run.metrics, "LMRec", "mean_attribute").set_index("group")["value"][
        "neutral"
    ]
    assert level.tolist() == pytest.approx([neutral, neutral])
    result = invoke_recbias("compare", run.folder, masked.folder, folder=world)
    assert result.code == 0, result.err
    assert "1 gap" in result.out
