from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Ids
from recbias.language.local_models import batch_by_tokens
from recbias.language.model_files import Source
from recbias.models.text import EncodingSettings, TextClassifier, tokenize_texts
from support.models.small_encoder import write_small_encoder

TEXTS = np.array(["the soup was good", "tea", "", "very bad rice [MASK]", "שלום 🍜"], dtype=object)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source(write_small_encoder(tmp_path_factory.mktemp("encoder")))


def create_network(source: Source, weights: Any = None, **changes: Any) -> TextClassifier:
    settings: dict[str, Any] = {"pooling": "first", "dropout": 0.5, "max_length": 16}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return TextClassifier.create(source, 3, EncodingSettings(**(settings | changes)), weights)


def collect_scores(network: TextClassifier, texts: Ids) -> np.ndarray:
    scores = np.full((len(texts), 3), np.nan, dtype=np.float32)
    for rows, block in network.classify(texts):
        scores[rows] = block
    return scores


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_batch_gives_the_same_result_as_single_texts(source: Source, pooling: str) -> None:
    # by hand: encoder, state of the first token or mean over all, then W h + b, log softmax
    network = create_network(source, pooling=pooling)
    scores = collect_scores(network, TEXTS)
    for row, text in enumerate(TEXTS):
        with torch.inference_mode():
            inputs = network.tokenizer(text, return_tensors="pt")
            last = network.module["encoder"](**inputs).last_hidden_state[0]
            state = last[0] if pooling == "first" else last.mean(0)
            expected = network.module["head"](state).log_softmax(0)
        np.testing.assert_allclose(scores[row], expected.numpy(), atol=1e-5)


def test_bfloat16_results_are_close_to_float32(source: Source) -> None:
    full, short = (
        collect_scores(create_network(source), TEXTS),
        collect_scores(create_network(source, precision="bfloat16"), TEXTS),
    )
    np.testing.assert_allclose(full, short, atol=0.05)
    assert (full != short).any()


def test_texts_beyond_the_maximum_length_are_truncated(source: Source, tmp_path: Path) -> None:
    network = create_network(source, max_length=512)
    assert network.encoding.max_length == 40
    long = np.array(["soup " * 10_000], dtype=object)
    with tokenize_texts(long, network.tokenizer, network.encoding.max_length) as tokens:
        assert tokens.lengths.tolist() == [40]
    assert np.isfinite(collect_scores(network, long)).all()


@pytest.mark.parametrize(("mask_token", "expected"), [("<mask>", "a <mask> b"), (None, "a  b")])
def test_masks_are_replaced_by_the_mask_token_of_the_tokenizer(
    source: Source, mask_token: str | None, expected: str
) -> None:
    network = create_network(source)
    network.tokenizer.mask_token = mask_token
    assert network.replace_masks(np.array(["a [MASK] b"], dtype=object)).tolist() == [expected]


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 64))
def test_batches_by_tokens_contain_every_text_once(lengths: list[int], max_tokens: int) -> None:
    batches = batch_by_tokens(np.array(lengths, dtype=int), max_tokens)
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert batch.size == 1 or batch.size * max(lengths[row] for row in batch) <= max_tokens
