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

from recbias.core.arrays import Ids
from recbias.language.model_folders import Source
from recbias.models.text.text_classifier import Reading, TextClassifier, by_tokens, longest
from recbias.models.text.token_files import tokenised
from support.small_encoder import write_small_encoder

TEXTS = np.array(["the soup was good", "tea", "", "very bad rice [MASK]", "שלום 🍜"], dtype=object)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source(write_small_encoder(tmp_path_factory.mktemp("encoder")))


def made(source: Source, weights: Any = None, **given: Any) -> TextClassifier:
    settings: dict[str, Any] = {"pooling": "first", "dropout": 0.5, "max_length": 16}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return TextClassifier.made(source, 3, Reading(**(settings | given)), weights)


def chances(network: TextClassifier, texts: Ids) -> np.ndarray:
    found = np.full((len(texts), 3), np.nan, dtype=np.float32)
    for rows, block in network.blocks(texts):
        found[rows] = block
    return found


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_batch_is_read_as_each_text_alone(source: Source, pooling: str) -> None:
    # by hand: encoder, state of the first token or mean over all, then W h + b, log softmax
    network = made(source, pooling=pooling)
    found = chances(network, TEXTS)
    for place, text in enumerate(TEXTS):
        with torch.inference_mode():
            inputs = network.tokenizer(text, return_tensors="pt")
            last = network.module["encoder"](**inputs).last_hidden_state[0]
            state = last[0] if pooling == "first" else last.mean(0)
            expected = network.module["head"](state).log_softmax(0)
        np.testing.assert_allclose(found[place], expected.numpy(), atol=1e-5)


def test_reading_drops_nothing_and_leaves_the_mode(source: Source) -> None:
    network = made(source)
    before = chances(network, TEXTS)
    network.module.train()
    np.testing.assert_array_equal(chances(network, TEXTS), before)
    assert network.module.training


def test_short_numbers_are_close_and_not_equal(source: Source) -> None:
    full, short = chances(made(source), TEXTS), chances(made(source, precision="bfloat16"), TEXTS)
    np.testing.assert_allclose(full, short, atol=0.05)
    assert (full != short).any()


def test_weights_make_the_same_network(source: Source) -> None:
    network = made(source)
    again = made(source, weights=network.weights())
    np.testing.assert_array_equal(chances(network, TEXTS), chances(again, TEXTS))


def test_longer_texts_than_the_encoder_can_read_are_cut(source: Source, tmp_path: Path) -> None:
    network = made(source, max_length=512)
    assert network.reading.max_length == 40
    long = np.array(["soup " * 10_000], dtype=object)
    with tokenised(long, network.tokenizer, network.reading.max_length) as tokens:
        assert tokens.lengths.tolist() == [40]
    assert np.isfinite(chances(network, long)).all()


def test_positions_that_start_behind_the_padding_token_are_fewer(
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
    network = made(Source(folder), max_length=512)
    assert network.reading.max_length == 40
    long = np.array(["soup " * 100, ""], dtype=object)
    assert np.isfinite(chances(network, long)).all()


def test_an_encoder_without_a_limit_is_limited_by_its_tokenizer(source: Source) -> None:
    network = made(source)
    network.module["encoder"].config.max_position_embeddings = -1  # XLNet's
    network.tokenizer.model_max_length = 33
    assert longest(network.module["encoder"], network.tokenizer) == 32


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_text_without_a_token_is_read(source: Source, tmp_path: Path, pooling: str) -> None:
    folder = write_small_encoder(tmp_path)
    path = folder / "tokenizer.json"
    rules = json.loads(path.read_text(encoding="utf-8")) | {"post_processor": None}
    path.write_text(json.dumps(rules), encoding="utf-8")
    network = made(Source(folder), pooling=pooling)
    texts = np.array(["", "tea"], dtype=object)
    with tokenised(texts, network.tokenizer, 16) as tokens:
        assert tokens.lengths.tolist() == [0, 1]
    assert np.isfinite(chances(network, texts)).all()
    assert np.isfinite(chances(network, texts[:1])).all()


@pytest.mark.parametrize(("own", "read"), [("<mask>", "a <mask> b"), (None, "a  b")])
def test_a_mask_is_the_tokenizers_own(source: Source, own: str | None, read: str) -> None:
    network = made(source)
    network.tokenizer.mask_token = own
    assert network.prepared(np.array(["a [MASK] b"], dtype=object)).tolist() == [read]


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 64))
def test_batches_of_tokens_hold_every_text_once(lengths: list[int], most: int) -> None:
    batches = by_tokens(np.array(lengths, dtype=int), most)
    assert sorted(each for batch in batches for each in batch.tolist()) == list(
        range(len(lengths))
    )
    for batch in batches:
        assert batch.size == 1 or batch.size * max(lengths[each] for each in batch) <= most


def test_short_numbers_do_not_round_the_classes_together(source: Source) -> None:
    # bfloat16 has 8 bits: of two logits near 1 that differ by 0.001, both would be 1
    network = made(source, precision="bfloat16")
    with torch.no_grad():
        network.module["head"].weight.zero_()
        network.module["head"].bias.copy_(torch.tensor([1.0, 1.001, 1.002]))
    found = chances(network, TEXTS)
    np.testing.assert_allclose(np.diff(found, axis=1), 0.001, rtol=1e-3)


@pytest.mark.parametrize("drops", [True, False])
def test_an_encoder_may_be_trained_without_its_own_dropout(source: Source, drops: bool) -> None:
    network = made(source, dropout=0.0, encoder_dropout=drops)
    with tokenised(TEXTS, network.tokenizer, 16) as tokens:
        network.module.train()
        first, second = (network.logits(tokens, np.arange(5)).detach() for _ in range(2))
    assert torch.equal(first, second) is not drops
