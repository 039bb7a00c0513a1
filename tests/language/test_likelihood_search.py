from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recbias.core.dataset import AnyArray
from recbias.core.errors import OutOfRange
from recbias.language.likelihood import Context, PrefixTree, TextScorer, TextSearch
from recbias.language.local_models import LocalModel
from support.models.small_causal import make_network, make_tokenizer

LLAMA = LocalModel("causal", make_tokenizer(), make_network("llama"))
CONTEXT = "I watched Heat. I will also like"


def count_tokens(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counts = list[int]()
    plain = TextScorer._score_tree

    def score_and_count(scorer: TextScorer, tree: PrefixTree, context: Context) -> AnyArray:
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
    scores = TextSearch(scorer).score_best(CONTEXT, k, excluded=excluded, offsets=offsets)
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
    scores = TextSearch(scorer).score_best(CONTEXT, 5, excluded=nothing, offsets=offsets)
    assert np.sort(scores)[-5:] == pytest.approx(np.sort(full - offsets)[-5:], abs=1e-5)
    assert np.isneginf(scores).sum() > 60
    assert sum(counts) < n_all


def test_a_context_longer_than_the_model_is_refused() -> None:
    scorer = TextScorer.from_texts(LLAMA, ["a"])
    with pytest.raises(OutOfRange):
        TextSearch(scorer).score_best("x" * 10_000, 1, excluded=np.zeros(1, dtype=bool))
