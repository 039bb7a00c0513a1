from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.core.errors import UnknownColumn
from recbias.core.plugins import ReadsModels
from recbias.core.queries import Queries
from recbias.language.likelihood import score_sentences
from recbias.models.language_model import FittedLanguageModel, SentenceLanguageModel
from support.models.small_sentence_models import write_sentence_model
from support.worlds.small_worlds import make_interactions

PAIRS = [
    ("1", "p1", "female", "She is a good driver.", "work"),
    ("2", "p1", "male", "He is a good driver.", "work"),
    ("3", "p2", "female", "My aunt likes tea.", "home"),
    ("4", "p2", "male", "My uncle likes tea.", "home"),
    ("5", "p3", "female", "", "home"),
    ("6", "p3", "male", "t", "home"),
]
DIALOGUES = [("7", "Hello.\nHow is the tea?", "It is hot."), ("8", None, "It is late.")]


def make_table() -> pd.DataFrame:
    pairs = pd.DataFrame(PAIRS, columns=["id", "pair_id", "group", "text", "category"])
    dialogues = pd.DataFrame(DIALOGUES, columns=["id", "context", "reference"])
    dialogues["text"] = [None, "What time is it?"]
    table = pd.concat([pairs, dialogues], ignore_index=True).astype(object)
    return table.where(table.notna(), None)


def make_queries(**changes: Any) -> Queries:
    return Queries.of_prompts(make_table().assign(**changes))


def fit(folder: Path, name: str = "llama", **settings: Any) -> FittedLanguageModel:
    model = SentenceLanguageModel(
        model=str(write_sentence_model(folder / name, name)), device="cpu", **settings
    )
    assert isinstance(model, ReadsModels)
    data = TrainingData(make_interactions([(0, 0)]))
    model.check_data(data)
    return model.fit(data, np.random.default_rng(0))


def test_sentences_with_a_group_are_scored(tmp_path: Path) -> None:
    fitted = fit(tmp_path)
    with collect_warnings() as warnings:
        scores = fitted.sentence_scores(make_queries())
    texts = [row[3] for row in PAIRS]
    expected = score_sentences(fitted.model, texts, fitted.settings.scoring).perplexity
    assert scores.ids.tolist() == ["1", "2", "3", "4", "5", "6"]
    assert scores.pairs.tolist() == ["p1", "p1", "p2", "p2", "p3", "p3"]
    assert scores.groups.tolist() == ["female", "male"] * 3
    assert scores.perplexity == pytest.approx(expected, nan_ok=True)
    assert scores.labels.to_dict("list") == {"category": ["work"] * 2 + ["home"] * 4}
    assert any("1 of 6 sentences are empty" in text and "'5'" in text for text in warnings)
    assert any("1 of 6 sentences are of one token" in text and "'6'" in text for text in warnings)


def test_a_masked_model_has_no_responses(tmp_path: Path) -> None:
    fitted = fit(tmp_path, "bert")
    with collect_warnings() as warnings:
        assert len(fitted.responses(make_queries())) == 0
    assert warnings == ["2 contexts have no response: a masked model writes no text"]


@pytest.mark.parametrize("name", ["sentence_scores", "responses"])
def test_queries_without_texts_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownColumn, match="none of the") as caught:
        getattr(fit(tmp_path), name)(make_queries(text=None, context=None))
    assert caught.value.where == "queries"


def test_a_spec_measures_the_gap_and_the_responses(tmp_path: Path) -> None:
    write_sentence_model(tmp_path / "model", "llama")
    table = make_table().rename(columns={"id": "query_id"})
    table.to_csv(tmp_path / "queries.csv", index=False)
    spec = {
        "name": "gap",
        "dataset": {"name": "tables"},
        "queries": {"name": "table", "path": str(tmp_path / "queries.csv")},
        "models": [
            {"name": "language_model", "model": str(tmp_path / "model"), "max_new_tokens": 6}
        ],
        "metrics": [
            {
                "name": "perplexity_gap",
                "label": "gap",
                "a": "female",
                "b": "male",
                "by": "category",
            },
            {"name": "unigram_F1"},
        ],
    }
    run = recbias.run(spec, out=tmp_path / "results")
    fitted = SentenceLanguageModel(model=str(tmp_path / "model"), max_new_tokens=6).fit(
        TrainingData(make_interactions([(0, 0)])), np.random.default_rng(0)
    )
    with collect_warnings():
        perplexity = fitted.sentence_scores(make_queries()).perplexity
    gaps = run.metrics[run.metrics["metric"] == "gap"]
    everything = gaps[(gaps["group"] == "") & (gaps["target"] == "")]
    expected = np.mean([perplexity[0] - perplexity[1], perplexity[2] - perplexity[3]])
    assert everything["value"].item() == pytest.approx(expected)
    assert everything["undefined"].item() == 1
    lines = (run.folder / "responses.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert recbias.run(spec, out=tmp_path / "results").folder == run.folder
