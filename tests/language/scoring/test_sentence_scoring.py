from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.errors import Contradiction
from recbias.language.likelihood import SentenceLikelihoods, score_sentences
from recbias.language.local_models import LocalModel, ScoringSettings
from support.models.small_causal import make_network, make_tokenizer
from support.models.small_sentence_models import KINDS, make_sentence_model

WORDS = [
    "the soup was good",
    "the tea was very very bad and the rice was good",
    "a soup",
    "bread and tea and rice and beef and soup was a very good",
    "rice was bad",
    "tea",
]
SENTENCES = [
    "He is old.",
    "The young woman is at work, and so is he.",
    "Tea",
    "Grau, teurer Freund",
    "éé",
]


def score(model: LocalModel, texts: Sequence[str | None], **changes: Any) -> SentenceLikelihoods:
    return score_sentences(model, texts, ScoringSettings(**changes))


def compute_logits(model: LocalModel, tokens: list[int], read: list[int] | None = None) -> Any:
    """Return the log-probabilities after one pass over one sentence."""
    inputs = {"input_ids": torch.tensor([tokens])}
    if read is not None:
        inputs = {"input_ids": torch.tensor([read]), "decoder_input_ids": inputs["input_ids"]}
    with torch.inference_mode():
        logits: Any = model.network(**inputs).logits[0]
        return logits.log_softmax(-1).double().numpy()


def follow(logits: Any, tokens: list[int], first: int) -> list[float]:
    return [
        float(logits[position - 1, tokens[position]]) for position in range(first, len(tokens))
    ]


def get_values(likelihoods: SentenceLikelihoods, row: int) -> list[float]:
    values = likelihoods.log_probabilities[likelihoods.owners == row]
    return [float(value) for value in values[~np.isnan(values)]]


def check(likelihoods: SentenceLikelihoods, expected: list[list[float]]) -> None:
    for row, values in enumerate(expected):
        assert get_values(likelihoods, row) == pytest.approx(values, abs=1e-4)
        ppl = math.exp(-sum(values) / len(values)) if values else math.nan
        assert likelihoods.perplexity[row] == pytest.approx(ppl, rel=1e-4, nan_ok=True)


PREFIX = "The old teacher who lives at the end of the street says that "
PAIRS = [f"{PREFIX}{end}" for end in ("she is glad.", "he is glad.", "she", "she is.", "he")]


@pytest.mark.parametrize("first_token", [True, False])
@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma3"])
def test_beginnings_that_sentences_share_are_read_once(name: str, first_token: bool) -> None:
    model = make_sentence_model(name, adds_start=True)
    texts = [*PAIRS, *SENTENCES, PAIRS[0]]
    start = [1] if first_token else []
    tokens = [
        [*start, *model.tokenizer(text, add_special_tokens=False).input_ids] for text in texts
    ]
    expected = [follow(compute_logits(model, ids), ids, 1) for ids in tokens]
    n_read: list[int] = []
    hook = model.network.get_input_embeddings().register_forward_pre_hook(
        lambda _module, inputs: n_read.append(inputs[0].numel())
    )
    likelihoods = score(model, texts, first_token=first_token)
    hook.remove()
    check(likelihoods, expected)
    assert sum(n_read) < 0.7 * sum(len(ids) for ids in tokens)


def test_a_model_that_refuses_masks_reads_whole_sentences() -> None:
    model = LocalModel("causal", make_tokenizer(), make_network("bloom"))
    tokens = [model.tokenizer(text).input_ids for text in PAIRS]
    expected = [follow(compute_logits(model, ids), ids, 1) for ids in tokens]
    check(score(model, PAIRS), expected)


def test_the_default_is_the_loss_of_transformers() -> None:
    model = make_sentence_model("gpt2")
    ids = torch.tensor([model.tokenizer(SENTENCES[0]).input_ids])
    with torch.inference_mode():
        loss = float(model.network(ids, labels=ids).loss)
    assert score(model, SENTENCES[:1]).perplexity[0] == pytest.approx(math.exp(loss), rel=1e-5)


@pytest.mark.parametrize("adds_start", [True, False])
def test_the_first_token_is_scored_after_the_start_token(adds_start: bool) -> None:
    model = make_sentence_model("llama", adds_start=adds_start)
    tokens = [
        [1, *model.tokenizer(text, add_special_tokens=False).input_ids] for text in SENTENCES
    ]
    expected = [follow(compute_logits(model, ids), ids, 1) for ids in tokens]
    check(score(model, [*SENTENCES], first_token=True), expected)
    check(
        score(model, [*SENTENCES], first_token=True, special_tokens=adds_start or None), expected
    )
    assert len(expected[2]) == 3


def test_special_tokens_are_read_and_those_after_the_start_scored() -> None:
    model = make_sentence_model("llama", adds_start=True)
    tokens = [model.tokenizer(text).input_ids for text in SENTENCES]
    assert tokens[0][0] == 1
    expected = [follow(compute_logits(model, ids), ids, 1) for ids in tokens]
    check(score(model, [*SENTENCES], special_tokens=True), expected)


def test_a_tokenizer_without_special_tokens_around_texts_is_warned_about() -> None:
    model = make_sentence_model("gpt2")
    with pytest.warns(match="special_tokens: the tokenizer of the model puts no") as caught:
        likelihoods = score(model, [*SENTENCES], special_tokens=True)
    assert len(caught) == 1
    expected = score(model, [*SENTENCES]).perplexity
    np.testing.assert_array_equal(likelihoods.perplexity, expected)


@pytest.mark.parametrize("first_token", [True, False])
@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("name", ["t5", "bart"])
def test_the_decoder_continues_an_empty_text(name: str, special: bool, first_token: bool) -> None:
    model = make_sentence_model(name)
    tokens = [model.tokenizer(text, add_special_tokens=special).input_ids for text in SENTENCES]
    expected = [
        follow(compute_logits(model, [0, *ids], [2]), [0, *ids], 1 if first_token else 2)
        for ids in tokens
    ]
    likelihoods = score(model, [*SENTENCES], special_tokens=special, first_token=first_token)
    check(likelihoods, expected)


def test_the_decoder_fills_a_mask() -> None:
    model = make_sentence_model("t5")
    sentinel = model.tokenizer.convert_tokens_to_ids("<extra_id_0>")
    starts = [0, sentinel]
    tokens = [
        [*starts, *model.tokenizer(text, add_special_tokens=False).input_ids] for text in SENTENCES
    ]
    expected = [follow(compute_logits(model, ids, [sentinel, 2]), ids, 3) for ids in tokens]
    check(score(model, [*SENTENCES], encoder_input="masked"), expected)
    empty = score(model, [*SENTENCES])
    assert not np.allclose(
        empty.perplexity, score(model, [*SENTENCES], encoder_input="masked").perplexity
    )


@pytest.mark.parametrize("batch_tokens", [1, 50, 2048])
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_masked_model_predicts_each_token_from_the_others(name: str, batch_tokens: int) -> None:
    model = make_sentence_model(name)
    expected = []
    for text in WORDS:
        tokens = model.tokenizer(text).input_ids
        values = []
        for position in range(1, len(tokens) - 1):
            masked = [*tokens[:position], model.tokenizer.mask_token_id, *tokens[position + 1 :]]
            values.append(compute_logits(model, masked)[position, tokens[position]])
        expected.append(values)
    check(score(model, [*WORDS], batch_tokens=batch_tokens), expected)
    assert len(expected[-1]) == 1


def test_a_masked_model_reads_the_words_alone_without_special_tokens() -> None:
    model = make_sentence_model("bert")
    ids = model.tokenizer("rice was", add_special_tokens=False).input_ids
    values = [
        compute_logits(model, masked)[position, ids[position]]
        for position, masked in enumerate([[4, ids[1]], [ids[0], 4]])
    ]
    check(score(model, ["rice was"], special_tokens=False), [values])
    check(score(model, ["rice was"], special_tokens=False, first_token=False), [values[1:]])


@pytest.mark.parametrize("name", KINDS)
def test_sentences_without_a_value_are_nan_and_named(name: str) -> None:
    model = make_sentence_model(name)
    is_masked = model.kind == "masked"
    long = "tea " * 60
    texts = ["", None, "  ", long, "tea" if is_masked else "t", "soup was good"]
    ids = np.array(list("abcdef"), dtype=object)
    likelihoods = score(model, texts, max_length=30)
    has_value = [False, False, False, False, is_masked, True]
    assert (~np.isnan(likelihoods.perplexity)).tolist() == has_value
    problems = [*likelihoods.describe_problems(ids)]
    assert "3 of 6 sentences are empty and have no perplexity; first 'a'" in problems
    assert any(
        "1 of 6 sentences have more than 30 tokens" in text and "'d'" in text for text in problems
    )
    assert is_masked != any("1 of 6 sentences are of one token" in text for text in problems)


def test_unknown_words_are_counted() -> None:
    model = make_sentence_model("bert")
    likelihoods = score(model, ["the soup was good", "Он стар", "tea Он"])
    assert likelihoods.tokens.n_unknown.tolist() == [0, 2, 1]
    (problem,) = likelihoods.describe_problems(np.array(["x", "y", "z"], dtype=object))
    assert problem.startswith("2 of 3 sentences are unknown by half of their tokens or more")
    assert "first 'y'" in problem


def test_probabilities_that_are_not_numbers_are_named() -> None:
    model = make_sentence_model("gpt2")
    model.network.transformer.wte.weight.data[model.tokenizer("Q").input_ids[0]] = math.nan
    with torch.inference_mode():
        likelihoods = score(model, ["Q is a letter"])
    assert np.isnan(likelihoods.perplexity).all()
    assert "not numbers" in next(likelihoods.describe_problems(np.array(["x"])))


def test_token_types_are_added_to_each_token() -> None:
    model = make_sentence_model("gpt2")
    tokens = model.tokenizer(SENTENCES[1]).input_ids
    speaker = model.tokenizer.convert_tokens_to_ids("s")
    ids = torch.tensor([tokens])
    with torch.inference_mode():
        logits = model.network(ids, token_type_ids=torch.full_like(ids, speaker)).logits[0]
    expected = follow(logits.log_softmax(-1).double().numpy(), tokens, 1)
    likelihoods = score(model, SENTENCES, token_types="s")
    assert get_values(likelihoods, 1) == pytest.approx(expected, abs=1e-4)
    assert not np.allclose(
        likelihoods.perplexity[1], score(model, SENTENCES).perplexity[1], rtol=1e-2
    )


def test_tokens_that_the_tokenizer_lacks_are_refused() -> None:
    causal = make_sentence_model("gpt2")
    causal.tokenizer.bos_token = causal.tokenizer.eos_token = None
    with pytest.raises(Contradiction, match="neither a start nor an end token"):
        score(causal, ["tea"], first_token=True)
