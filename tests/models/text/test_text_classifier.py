from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import Ids
from recbias.language.local_models import batch_by_tokens
from recbias.language.model_files import Source
from recbias.models.text import EncodingSettings, TextClassifier, find_max_length, tokenize_texts
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


def test_inference_disables_dropout_and_restores_the_mode(source: Source) -> None:
    network = create_network(source)
    before = collect_scores(network, TEXTS)
    network.module.train()
    np.testing.assert_array_equal(collect_scores(network, TEXTS), before)
    assert network.module.training


def test_bfloat16_results_are_close_to_float32(source: Source) -> None:
    full, short = (
        collect_scores(create_network(source), TEXTS),
        collect_scores(create_network(source, precision="bfloat16"), TEXTS),
    )
    np.testing.assert_allclose(full, short, atol=0.05)
    assert (full != short).any()


def test_a_network_is_restored_from_its_weights(source: Source) -> None:
    network = create_network(source)
    again = create_network(source, weights=network.weights())
    np.testing.assert_array_equal(collect_scores(network, TEXTS), collect_scores(again, TEXTS))


def test_texts_beyond_the_maximum_length_are_truncated(source: Source, tmp_path: Path) -> None:
    network = create_network(source, max_length=512)
    assert network.encoding.max_length == 40
    long = np.array(["soup " * 10_000], dtype=object)
    with tokenize_texts(long, network.tokenizer, network.encoding.max_length) as tokens:
        assert tokens.lengths.tolist() == [40]
    assert np.isfinite(collect_scores(network, long)).all()


def test_positions_behind_the_padding_index_reduce_the_maximum_length(
    source: Source, tmp_path: Path
) -> None:
    # RoBERTa has as many vectors of positions as its config says, of which the first few are not
    # positions of a token
    folder = write_small_encoder(tmp_path)
    config = transformers.RobertaConfig(
        vocab_size=17,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=41,
        pad_token_id=0,
    )
    auto: Any = transformers.AutoModel
    roberta = auto.from_config(config)
    roberta.save_pretrained(folder)
    network = create_network(Source(folder), max_length=512)
    assert network.encoding.max_length == 40
    long = np.array(["soup " * 100, ""], dtype=object)
    assert np.isfinite(collect_scores(network, long)).all()


def test_the_tokenizer_limits_an_encoder_without_a_maximum_length(source: Source) -> None:
    network = create_network(source)
    network.module["encoder"].config.max_position_embeddings = -1  # XLNet's
    network.tokenizer.model_max_length = 33
    assert find_max_length(network.module["encoder"], network.tokenizer) == 32


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_text_without_tokens_is_encoded(source: Source, tmp_path: Path, pooling: str) -> None:
    folder = write_small_encoder(tmp_path)
    path = folder / "tokenizer.json"
    rules = json.loads(path.read_text(encoding="utf-8")) | {"post_processor": None}
    path.write_text(json.dumps(rules), encoding="utf-8")
    network = create_network(Source(folder), pooling=pooling)
    texts = np.array(["", "tea"], dtype=object)
    with tokenize_texts(texts, network.tokenizer, 16) as tokens:
        assert tokens.lengths.tolist() == [0, 1]
    assert np.isfinite(collect_scores(network, texts)).all()
    assert np.isfinite(collect_scores(network, texts[:1])).all()


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


def test_bfloat16_does_not_round_logits(source: Source) -> None:
    # bfloat16 has 8 bits: of two logits near 1 that differ by 0.001, both would be 1
    network = create_network(source, precision="bfloat16")
    with torch.no_grad():
        network.module["head"].weight.zero_()
        network.module["head"].bias.copy_(torch.tensor([1.0, 1.001, 1.002]))
    scores = collect_scores(network, TEXTS)
    np.testing.assert_allclose(np.diff(scores, axis=1), 0.001, rtol=1e-3)


@pytest.mark.parametrize("has_dropout", [True, False])
def test_the_dropout_of_the_encoder_can_be_disabled(source: Source, has_dropout: bool) -> None:
    network = create_network(source, dropout=0.0, encoder_dropout=has_dropout)
    with tokenize_texts(TEXTS, network.tokenizer, 16) as tokens:
        network.module.train()
        first, second = (network.logits(tokens, np.arange(5)).detach() for _ in range(2))
    assert torch.equal(first, second) is not has_dropout
