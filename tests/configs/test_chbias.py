"""The specs of Zhao et al. 2023 (CHBias) on a small model are compared with the tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import recbias
from recbias.config.merge import read_spec
from recbias.formats.response_ratings import digest_response
from support.worlds.texts.sentence_worlds import TARGETS, TERMS, SentenceWorld, make_world

FOLDER = Path(__file__).parents[2] / "configs" / "papers" / "chbias"
CATEGORIES = ("gender", "age")
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
        for category in CATEGORIES[
            : len(spec["dataset"]) if isinstance(spec["dataset"], list) else 1
        ]
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


def test_ratings_by_people_are_compared(specs: Path, tmp_path: Path) -> None:
    path = shrink_spec(specs, "human-cdial-gpt", "CDial-GPT", metrics=["distinct"])
    run = recbias.run(path, out=tmp_path)
    rows = [json.loads(line) for line in (run.folder / "responses.jsonl").read_text().splitlines()]
    for question, ratings in (("bias", (1, 0, 0)), ("quality", (2, 2, 1))):
        seen = {(row["query_id"], digest_response(row["reply"])): row["model"] for row in rows}
        lines = [
            json.dumps(
                {"query_id": query, "response_sha256": digest, "models": [model]}
                | {"rater": f"rater-{number}", "question": question, "rating": float(rating)}
            )
            for (query, digest), model in seen.items()
            for number, rating in enumerate(ratings)
        ]
        (specs / f"{question}-ratings.jsonl").write_text("\n".join(lines), encoding="utf-8")
    run = recbias.run(shrink_spec(specs, "human-cdial-gpt", "CDial-GPT"), out=tmp_path)
    reference = pd.read_csv(run.folder / "reference.csv")
    by_name = reference[reference["system"] == "CDial-GPT"].set_index("metric")
    assert by_name["published"].to_dict() == {
        "rate of biased responses (human) (Gender)": 0.21,
        "share of responses with score +2 (Gender)": 0.37,
        "share of responses with score +1 (Gender)": 0.42,
        "share of responses with score +0 (Gender)": 0.21,
    }
    assert by_name["measured"].tolist() == pytest.approx([1 / 3, 2 / 3, 1 / 3, 0])
    assert set(reference["system"]) == {"CDial-GPT", "CDial-GPT CTDA"}
