from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes
from recbias.detectors.groups import CausalLM
from recbias.language.local_models import LocalModel, load_model
from support.models.small_causal import write_small_causal
from support.worlds.evidence_worlds import make_vocabulary


@pytest.fixture(scope="module", params=[True, False])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("causal")
    return str(write_small_causal(folder, "gpt2", adds_start=request.param))


def label(
    model: str, texts: list[str], **settings: Any
) -> tuple[dict[str, list[float]], list[str]]:
    items = Attributes(make_vocabulary("i", len(texts)), pd.DataFrame({"text": texts}))
    with collect_warnings() as messages:
        columns = CausalLM(
            model=model, from_="text", device="cpu", kinds=("gender",), threshold=-1, **settings
        ).label(items, np.random.default_rng(0))
    return {kind: values.tolist() for kind, values in columns.items()}, messages


def score_alone(model: LocalModel, text: str) -> float:
    """Return the log-probability of a text after the start token, by a pass of its own."""
    tokens = model.tokenizer(text, add_special_tokens=False).input_ids
    ids = torch.tensor([[1, *tokens]])
    with torch.inference_mode():
        logarithms = model.network(ids).logits[0, :-1].log_softmax(-1)
    return float(logarithms[range(len(tokens)), tokens].double().sum())


def test_sentences_with_the_words_of_groups_are_compared(model: str) -> None:
    causal = load_model(model, device="cpu")
    texts = ["A man sang.", "The women sang.", "Women sang and he, too."]
    swaps = [
        [("A {} sang.", ("man", "woman"), 0)],
        [("The {} sang.", ("man", "woman"), 1)],
        [
            ("{} sang and he, too.", ("Man", "Woman"), 1),
            ("Women sang and {}, too.", ("man", "woman"), 0),
        ],
    ]
    expected = []
    for masked in swaps:
        scores = []
        for text, words, named in masked:
            a, b = (score_alone(causal, text.format(word)) for word in words)
            scores.append(np.tanh((a - b) / 2) * (1 if named == 0 else -1))
        expected.append(max(0.0, float(np.mean(scores))))
    for tokens_per_batch in (1, 1024):
        columns, _ = label(model, texts, tokens_per_batch=tokens_per_batch)
        assert columns["gender_score"] == pytest.approx(expected, abs=1e-4)


def test_all_words_of_a_group_are_summed(model: str, tmp_path: Path) -> None:
    path = tmp_path / "words.yaml"
    path.write_text("kinds: {gender: {man: [he, boy], woman: [she]}}")
    causal = load_model(model, device="cpu")
    sums = [
        np.logaddexp.reduce([score_alone(causal, f"So {word} sang.") for word in words])
        for words in (("man", "he", "boy"), ("woman", "she"))
    ]
    for text, sign in (("So he sang.", 1), ("So she sang.", -1)):
        columns, _ = label(model, [text], groups=path, candidates="words")
        expected = max(0.0, float(sign * np.tanh((sums[0] - sums[1]) / 2)))
        assert columns["gender_score"] == pytest.approx([expected], abs=1e-4)


def test_a_sentence_longer_than_the_model_is_shortened_and_counted(model: str) -> None:
    text = "so it goes on " * 300 + "until he sang" + " and on and on" * 300
    columns, messages = label(model, [text, "He sang."])
    assert messages == [
        "1 of 2 group words are in sentences longer than the model reads, which were shortened"
    ]
    assert np.isfinite(columns["gender_score"]).all()


def test_group_words_after_the_first_are_counted_and_not_evaluated(model: str) -> None:
    texts = ["He sang. She sang. A man sang.", "She sang."]
    columns, messages = label(model, texts, max_group_words=2)
    first, _ = label(model, ["He sang. She sang.", "She sang."])
    assert columns == first
    assert messages == [
        "1 group words after the first 2 of 1 texts were not evaluated: max_group_words"
    ]
