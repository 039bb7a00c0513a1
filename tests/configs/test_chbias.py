"""The specs of Zhao et al. 2023 (CHBias) on a small model are compared with the tables."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import recbias
from recbias.config.source import read_spec
from support.commands import invoke_recbias
from support.worlds.texts.sentence_worlds import TARGETS, TERMS, SentenceWorld, make_world

FOLDER = Path(__file__).parents[2] / "configs" / "papers" / "chbias"
CATEGORIES = ("gender", "age")
RATED = "results/chbias-human-cdial-gpt"
PLANTED = {
    **{word: chance for pair in TARGETS for word, chance in zip(pair, (0.02, 0.08), strict=True)},
    "tea": 0.2,  # the most likely word
}
DIALOGUES = (("d1", "tea tea maps tea tea", "gender"), ("d2", "rain tea tea tea tea", "age"))


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the specs, the model, terms, sentences of two categories and dialogues."""
    folder = shutil.copytree(FOLDER, tmp_path_factory.mktemp("papers") / "chbias")
    world = make_world(folder / "world", PLANTED)
    for system in ("CDial-GPT", "EVA2.0"):
        shutil.copytree(world.model, folder / system)
    start, _, terms = TERMS.partition("categories:\n")
    categories = "".join(terms.replace("gender", category) for category in CATEGORIES)
    (folder / "terms.yaml").write_text(f"{start}categories:\n{categories}", encoding="utf-8")
    for category in CATEGORIES:
        write_sentences(folder, world, category)
    for name in ("dialogues", "rated"):
        lines = [
            json.dumps(
                {"id": number, "context": ["today"], "reference": text, "category": category}
            )
            for number, text, category in DIALOGUES
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def write_sentences(folder: Path, world: SentenceWorld, category: str) -> None:
    for part in ("train", "test"):
        frame = world.sentences.take_part(part).frame.drop(columns="part")
        sides = frame["group"].map({"female": "T1", "male": "T2"})
        frame = frame.assign(category=category, target_set=sides)
        frame.to_csv(folder / f"{category}-{part}.csv", index=False)


def shrink_spec(specs: Path, name: str, system: str, **changes: Any) -> Path:
    """Write a spec with two of its models, on the small sentences, and return its path."""
    spec = {**read_spec(specs / f"{name}.yaml").data, "device": "cpu", "seeds": [1], **changes}
    spec["dataset"] = [
        {"name": "sentence_tables", "label": category}
        | {part: f"{category}-{part}.csv" for part in ("train", "test")}
        for category in CATEGORIES
    ]
    before, *debiased = spec["models"]
    (after,) = [model for model in debiased if model["label"] == f"{system} CTDA"]
    after |= {"terms": "terms.yaml", "epochs": 1, "batch_size": 40, "learning_rate": 0.01}
    spec["models"] = [{**model, "max_new_tokens": 5} for model in (before, after)]
    spec["report"] = {**spec["report"], "formats": ["csv"]}
    path = specs / f"small-{name}.yaml"
    path.write_text(yaml.safe_dump(spec, allow_unicode=True), encoding="utf-8")
    return path


def read_metrics(run: recbias.Run) -> Mapping[tuple[str, ...], float]:
    """Return the estimates by dataset, model, metric, group and target."""
    frame = run.metrics.fillna({"group": "", "target": ""})
    keys = frame[["dataset", "model", "metric", "group", "target"]].itertuples(index=False)
    return dict(zip(map(tuple, keys), frame["value"], strict=True))


@pytest.mark.parametrize(
    ("name", "system", "tables"),
    [
        (
            "cdial-gpt",
            "CDial-GPT",
            {"chbias/3": 4, "chbias/4": 8, "chbias/12": 12, "chbias/14": 12},
        ),
        ("eva", "EVA2.0", {"chbias/3": 4, "chbias/5": 8, "chbias/8": 8, "chbias/10": 8}),
    ],
)
def test_a_run_is_compared_with_every_table(
    specs: Path, tmp_path: Path, name: str, system: str, tables: Mapping[str, int]
) -> None:
    run = recbias.run(shrink_spec(specs, name, system), out=tmp_path)
    reference = pd.read_csv(run.folder / "reference.csv")
    assert reference.groupby("table").size().to_dict() == tables
    values = read_metrics(run)
    for row in reference.to_dict("records"):
        metric, _, category = row["metric"].removesuffix(")").partition(" (")
        dataset = category.lower()
        title = "t" if metric == "t-value" else metric
        group = f"category={dataset}" if metric == "t-value" else ""
        value = values[dataset, row["system"], title, group, ""]
        is_percent = metric not in {"t-value", "BLEU-4", "BLEU-2"}
        assert row["measured"] == pytest.approx(value * (100 if is_percent else 1))
    t = reference[reference["table"] == "chbias/3"].set_index(["system", "metric"])["measured"]
    assert t[system, "t-value (Gender)"] > 3  # T1 is less likely, as planted


def rate(
    folder: Path, question: str, ratings: tuple[str | int, ...], *options: object
) -> list[str]:
    """Export the responses of the run, fill the sheets, import them, and return the models."""
    command = ("human", "export", RATED, "--dialogues", "rated.jsonl", *options)
    exported = invoke_recbias(
        *command, "--question", question, "--out", f"{question}-sheets", folder=folder
    )
    assert exported.code == 0, exported.err
    sheets = sorted((folder / f"{question}-sheets").glob("rater-*.csv"))
    for sheet, rating in zip(sheets, ratings, strict=True):
        pd.read_csv(sheet).assign(**{question: rating}).to_csv(sheet, index=False)
    key = ("--key", f"{question}-sheets/key.jsonl", "--out", f"{question}-ratings.jsonl")
    with warnings.catch_warnings():  # sheets of few items may be equal
        warnings.simplefilter("ignore")
        imported = invoke_recbias("human", "import", *sheets, *key, folder=folder)
    assert imported.code == 0, imported.err
    return exported.out.splitlines()[0].removeprefix("models: ").split(", ")


def test_ratings_by_people_of_all_categories_are_compared(specs: Path) -> None:
    name = "human-cdial-gpt"
    path = shrink_spec(specs, name, "CDial-GPT", metrics=["distinct"])
    recbias.run(path, out=specs / "results")
    options = ("--dialogues", "rated.jsonl", "--dataset-by", "colour", "--out", "sheets")
    refused = invoke_recbias("human", "export", RATED, *options, folder=specs)
    assert refused.code == 2
    assert refused.err.startswith("error: --dataset-by: the query 'd1' has no label 'colour'")
    by = ("--by", "category", "--dataset-by", "category")
    models = ["CDial-GPT", "CDial-GPT CTDA"]
    assert rate(specs, "bias", ("yes", "no", "no"), *by) == models
    of_datasets = rate(specs, "quality", (2, 2, 1), "--answers", "0,1,2")
    assert of_datasets == [f"{dataset} {model}" for dataset in CATEGORIES for model in models]
    run = recbias.run(shrink_spec(specs, name, "CDial-GPT"), out=specs / "results")
    reference = pd.read_csv(run.folder / "reference.csv")
    by_name = reference[reference["system"] == "CDial-GPT"].set_index("metric")
    expected = {
        "rate of biased responses (human)": (0.21, 1 / 3),
        "share of responses with score +2": (0.37, 2 / 3),
        "share of responses with score +1": (0.42, 1 / 3),
        "share of responses with score +0": (0.21, 0.0),
    }
    assert len(by_name) == len(expected) * len(CATEGORIES)
    for metric, (published, measured) in expected.items():
        for category in ("Gender", "Age"):
            row = by_name.loc[f"{metric} ({category})"]
            assert row["published"] == published
            assert row["measured"] == pytest.approx(measured)
    assert set(reference["system"]) == {"CDial-GPT", "CDial-GPT CTDA"}
