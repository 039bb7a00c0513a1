from __future__ import annotations

import math
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
    TextScorer,
)
from recbias.language.local_models import LocalModel
from support.models.small_causal import make_network, make_tokenizer, score_separately

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
