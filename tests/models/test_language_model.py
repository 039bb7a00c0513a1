from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import recbias
from recbias.core.context import collect_warnings
from recbias.core.dataset import Queries, TrainingData
from recbias.core.errors import Contradiction, OutOfRange, UnknownColumn, UnknownIdentifier
from recbias.core.plugins import ReadsModels
from recbias.language.likelihood import score_sentences
from recbias.language.local_models import LocalModel
from recbias.models.language_model import (
    FittedLanguageModel,
    SentenceLanguageModel,
    generate_responses,
)
from support.models.small_causal import make_network, make_tokenizer
from support.models.small_sentence_models import make_sentence_model, write_sentence_model
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


CONTEXTS = ["How are you?", "Good morning.\nThe tea is cold.", "", "Hi\n\n  Where is it?  "]


SETTINGS = SentenceLanguageModel(model="small", max_new_tokens=12)


ALTERNATING = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
)


@pytest.mark.parametrize("name", ["gpt2", "openai", "llama", "t5", "bart"])
def test_a_response_does_not_depend_on_the_others(name: str) -> None:
    model = make_sentence_model(name)
    together = generate_responses(model, CONTEXTS, SETTINGS)
    alone = [generate_responses(model, [context], SETTINGS)[0] for context in CONTEXTS]
    assert together == alone
    assert len(set(together)) > 1
    assert generate_responses(model, [], SETTINGS) == []


def test_a_response_is_the_next_line_after_the_turns() -> None:
    model = make_sentence_model("llama", adds_start=True)
    prompt = "<s>Good morning.\nThe tea is cold.\n"
    ids = model.tokenizer(prompt, add_special_tokens=False, return_tensors="pt").input_ids
    generated = model.network.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    line = model.tokenizer.decode(generated, skip_special_tokens=True).strip().partition("\n")[0]
    assert generate_responses(model, CONTEXTS[1:2], SETTINGS) == [line.strip()]


@pytest.mark.parametrize("name", ["gpt2", "openai"])
def test_token_types_are_added_to_each_token(name: str) -> None:
    model = make_sentence_model(name)
    speaker = model.tokenizer.convert_tokens_to_ids("Q")
    settings = replace(SETTINGS, token_types="Q")
    expected = []
    for context in CONTEXTS[:2]:
        prompt = model.tokenizer(f"{context}\n", return_tensors="pt").input_ids
        ids = prompt
        for _ in range(SETTINGS.max_new_tokens):
            with torch.inference_mode():
                logits = model.network(ids, token_type_ids=torch.full_like(ids, speaker)).logits
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
        generated = ids[0, prompt.shape[1] :].tolist()
        generated = generated[: (*generated, 2).index(2)]
        text = model.tokenizer.decode(generated, skip_special_tokens=True).strip()
        expected.append(text.partition("\n")[0].strip())
    found = generate_responses(model, CONTEXTS[:2], settings)
    assert found == expected
    assert found != generate_responses(model, CONTEXTS[:2], SETTINGS)


def test_token_types_that_a_model_lacks_are_refused() -> None:
    for name, token in (("llama", "Q"), ("t5", "Q"), ("gpt2", "[speaker1]")):
        settings = replace(SETTINGS, token_types=token)
        with pytest.raises((Contradiction, UnknownIdentifier)) as caught:
            generate_responses(make_sentence_model(name), CONTEXTS, settings)
        assert caught.value.where == "token_types"
        assert caught.value.remedy


def test_a_chat_template_reads_the_turns_as_messages() -> None:
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    tokenizer = make_tokenizer(chat_template=template)
    model = LocalModel("causal", tokenizer, make_network("llama"))
    prompt = "<assistant>Good morning.<user>The tea is cold.<assistant>"
    ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt").input_ids
    generated = model.network.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    text = tokenizer.decode(generated, skip_special_tokens=True).strip()
    assert generate_responses(model, CONTEXTS[1:2], SETTINGS) == [text]


def test_turns_that_a_template_refuses_are_left_out_and_counted() -> None:
    tokenizer = make_tokenizer(chat_template=ALTERNATING)
    model = LocalModel("causal", tokenizer, make_network("llama"))
    with collect_warnings() as warnings:
        generated = generate_responses(model, ["a\nb", "b", "a\nb\nc"], SETTINGS)
    assert generated[0] == generated[1] != generated[2]
    assert [text for text in warnings if text.startswith("1 of 3 contexts")]


def test_the_oldest_turns_of_a_long_context_are_left_out() -> None:
    model = make_sentence_model("llama")
    turns = ["Tea. " * 70, "No. " * 70, "Where is it?"]
    with collect_warnings() as warnings:
        generated = generate_responses(model, ["\n".join(turns), "\n".join(turns[1:])], SETTINGS)
    assert generated[0] == generated[1]
    assert [text for text in warnings if text.startswith("1 of 2 contexts")]


def test_a_turn_that_is_too_long_is_cut() -> None:
    model = make_sentence_model("llama")
    with collect_warnings() as warnings:
        generated = generate_responses(model, ["x" * 900 + "y" * 499, "y" * 499], SETTINGS)
    assert generated[0] == generated[1]
    assert [text for text in warnings if text.startswith("1 of 2 contexts")]


def test_a_response_that_fills_the_model_is_refused() -> None:
    with pytest.raises(OutOfRange) as caught:
        generate_responses(
            make_sentence_model("llama"), ["tea"], replace(SETTINGS, max_new_tokens=512)
        )
    assert caught.value.where == "max_new_tokens"
