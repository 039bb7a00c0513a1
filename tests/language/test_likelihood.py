from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.core.dataset import AnyArray
from recbias.core.errors import Contradiction, OutOfRange
from recbias.language.likelihood import (
    PrefixTree,
    SentenceLikelihoods,
    TextScorer,
    score_sentences,
)
from recbias.language.local_models import LocalModel, ScoringSettings
from support.models.small_causal import make_network, make_tokenizer, score_separately
from support.models.small_sentence_models import KINDS, make_sentence_model

TITLES = [" Alien", " Aliens", " Alien 3", " Heat", " The Heat", " É", " Alien", " Z" * 40]


CONTEXT = "I watched Heat. I will also like"


def make_model(kind: str, *, adds_start: bool = False) -> LocalModel:
    return LocalModel("causal", make_tokenizer(adds_start=adds_start), make_network(kind))


LLAMA = make_model("llama")


@pytest.mark.parametrize("context", [CONTEXT, "I"])
@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen3", "mistral", "gemma3"])
def test_texts_in_a_tree_have_the_scores_of_one_pass_each(kind: str, context: str) -> None:
    model = make_model(kind)
    scores = TextScorer.from_texts(model, TITLES).score(context)
    assert scores == pytest.approx(score_separately(model, context, TITLES), abs=1e-5)
    assert np.ptp(scores) > 0.1


def test_the_score_is_the_mean_log_probability_of_the_tokens() -> None:
    # the tokens of "ab" after "x": ln p(a | x) and ln p(b | xa), by the definition of softmax
    x, a, b = LLAMA.tokenizer("xab", add_special_tokens=False).input_ids
    with torch.inference_mode():
        after_x, after_a = LLAMA.network(torch.tensor([[x, a]])).logits[0].double().tolist()
    expected = (
        after_x[a]
        - math.log(sum(map(math.exp, after_x)))
        + after_a[b]
        - math.log(sum(map(math.exp, after_a)))
    ) / 2
    (score,) = TextScorer.from_texts(LLAMA, ["ab"]).score("x")
    assert score == pytest.approx(expected, abs=1e-5)


@settings(max_examples=25)
@given(
    texts=st.lists(st.text("ab é🎬", min_size=1, max_size=12), min_size=1, max_size=12),
    context=st.text("abc ", min_size=1, max_size=20),
)
def test_any_texts_have_the_scores_of_one_pass_each(texts: list[str], context: str) -> None:
    scores = TextScorer.from_texts(LLAMA, texts).score(context)
    assert scores == pytest.approx(score_separately(LLAMA, context, texts), abs=1e-5)


def test_more_texts_than_fit_into_a_tree_have_the_same_scores() -> None:
    texts = [f" film {n} {'abcdefgh' * (n % 3)}" for n in range(60)]
    scorer = TextScorer.from_texts(LLAMA, texts)
    assert len(scorer.trees) > 1
    chosen = [0, 17, 59]
    expected = score_separately(LLAMA, CONTEXT, [texts[n] for n in chosen])
    assert scorer.score(CONTEXT)[chosen] == pytest.approx(expected, abs=1e-5)


def test_the_start_token_stands_before_the_context_where_texts_have_one() -> None:
    model = make_model("llama", adds_start=True)
    (with_start,) = TextScorer.from_texts(model, [" Heat"]).score("I")
    (without,) = TextScorer.from_texts(LLAMA, [" Heat"]).score("I")
    (written,) = TextScorer.from_texts(LLAMA, [" Heat"]).score("<s>I")
    assert with_start == pytest.approx(written, abs=1e-6)
    assert abs(with_start - without) > 1e-3


@pytest.mark.parametrize(
    ("kind", "reason"), [("bloom", "attention mask"), ("mamba", "linear_attention")]
)
def test_a_model_whose_texts_cannot_share_a_pass_is_refused(kind: str, reason: str) -> None:
    with pytest.raises(Contradiction, match=reason) as caught:
        TextScorer.from_texts(make_model(kind), TITLES)
    assert caught.value.where == "model"
    assert "Llama" in caught.value.remedy


def test_a_model_that_ignores_the_mask_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model("llama")
    forward = model.network.forward

    def ignore_mask(*tokens: object, attention_mask: object = None, **others: object) -> object:
        return forward(*tokens, **others)

    monkeypatch.setattr(model.network, "forward", ignore_mask)
    with pytest.raises(Contradiction, match="the score of one text changes by"):
        TextScorer.from_texts(model, TITLES)


def test_a_context_that_leaves_no_room_for_a_text_is_an_error() -> None:
    scorer = TextScorer.from_texts(LLAMA, [" Heat"])
    with pytest.raises(OutOfRange, match="508 tokens and a text of 5 exceed the 512") as caught:
        scorer.score("x" * 508)
    assert "max_history" in caught.value.remedy
    assert scorer.score("x" * 507).shape == (1,)


def test_an_empty_context_is_an_error() -> None:
    with pytest.raises(OutOfRange, match="empty context"):
        TextScorer.from_texts(LLAMA, [" Heat"]).score("")


def count_tokens(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counts = list[int]()
    plain = TextScorer._score_tree

    def score_and_count(scorer: TextScorer, tree: PrefixTree, context: Any) -> AnyArray:
        counts.append(tree.tokens.size)
        return plain(scorer, tree, context)

    monkeypatch.setattr(TextScorer, "_score_tree", score_and_count)
    return counts


@settings(max_examples=25)
@given(
    texts=st.lists(st.text("abcdef ", min_size=1, max_size=12), min_size=1, max_size=30),
    k=st.integers(1, 8),
    seed=st.integers(0, 5),
    has_offsets=st.booleans(),
)
def test_the_best_texts_and_their_scores_are_those_of_all_scores(
    texts: list[str], k: int, seed: int, has_offsets: bool
) -> None:
    rng = np.random.default_rng(seed)
    scorer = TextScorer.from_texts(LLAMA, texts)
    excluded = rng.random(len(texts)) < 0.2
    offsets = rng.normal(size=len(texts)) if has_offsets else None
    scores = scorer.score_best(CONTEXT, k, excluded=excluded, offsets=offsets)
    expected = scorer.score(CONTEXT) - (0 if offsets is None else offsets)
    expected[excluded] = -np.inf
    assert np.sort(scores)[-k:] == pytest.approx(np.sort(expected)[-k:], abs=1e-5)
    is_scored = np.isfinite(scores)
    assert scores[is_scored] == pytest.approx(expected[is_scored], abs=1e-5)


def test_texts_with_an_improbable_start_are_not_evaluated_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # an offset of 100 puts the bound of every text but the first 40 below any score
    texts = [f"{a}{b}{c} the rest of a title" for a in "abcdef" for b in "abcdef" for c in "abcd"]
    scorer = TextScorer.from_texts(LLAMA, texts)
    counts = count_tokens(monkeypatch)
    full = scorer.score(CONTEXT)
    n_all = sum(counts)
    counts.clear()
    offsets = np.where(np.arange(len(texts)) < 40, 0.0, 100.0)
    nothing = np.zeros(len(texts), dtype=bool)
    scores = scorer.score_best(CONTEXT, 5, excluded=nothing, offsets=offsets)
    assert np.sort(scores)[-5:] == pytest.approx(np.sort(full - offsets)[-5:], abs=1e-5)
    assert np.isneginf(scores).sum() > 60
    assert sum(counts) < n_all


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
