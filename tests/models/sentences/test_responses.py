from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from recbias.core.context import collect_warnings
from recbias.core.errors import Contradiction, OutOfRange, UnknownIdentifier
from recbias.language.local_models import LocalModel
from recbias.models.language_model import SentenceLanguageModel, generate_responses
from support.models.small_causal import make_network, make_tokenizer
from support.models.small_sentence_models import make_sentence_model

CONTEXTS = ["How are you?", "Good morning.\nThe tea is cold.", "", "Hi\n\n  Where is it?  "]
SETTINGS = SentenceLanguageModel(model="small", max_new_tokens=12)

ALTERNATING = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
)


@pytest.mark.parametrize("name", ["gpt2", "openai", "llama", "t5", "bart"])
def test_a_response_does_not_depend_on_the_others(name: str) -> None:
    model = make_sentence_model(name)
    together = generate_responses(model, CONTEXTS, SETTINGS)
    alone = [generate_responses(model, [context], SETTINGS)[0] for context in CONTEXTS]
    assert together == alone
    assert len(set(together)) > 1
    assert generate_responses(model, [], SETTINGS) == []


def test_a_response_is_the_next_line_after_the_turns() -> None:
    model = make_sentence_model("llama", adds_start=True)
    prompt = "<s>Good morning.\nThe tea is cold.\n"
    ids = model.tokenizer(prompt, add_special_tokens=False, return_tensors="pt").input_ids
    generated = model.network.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    line = model.tokenizer.decode(generated, skip_special_tokens=True).strip().partition("\n")[0]
    assert generate_responses(model, CONTEXTS[1:2], SETTINGS) == [line.strip()]


@pytest.mark.parametrize("name", ["gpt2", "openai"])
def test_token_types_are_added_to_each_token(name: str) -> None:
    model = make_sentence_model(name)
    speaker = model.tokenizer.convert_tokens_to_ids("Q")
    settings = replace(SETTINGS, token_types="Q")
    expected = []
    for context in CONTEXTS[:2]:
        prompt = model.tokenizer(f"{context}\n", return_tensors="pt").input_ids
        ids = prompt
        for _ in range(SETTINGS.max_new_tokens):
            with torch.inference_mode():
                logits = model.network(ids, token_type_ids=torch.full_like(ids, speaker)).logits
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
        generated = ids[0, prompt.shape[1] :].tolist()
        generated = generated[: (*generated, 2).index(2)]
        text = model.tokenizer.decode(generated, skip_special_tokens=True).strip()
        expected.append(text.partition("\n")[0].strip())
    found = generate_responses(model, CONTEXTS[:2], settings)
    assert found == expected
    assert found != generate_responses(model, CONTEXTS[:2], SETTINGS)


def test_token_types_that_a_model_lacks_are_refused() -> None:
    for name, token in (("llama", "Q"), ("t5", "Q"), ("gpt2", "[speaker1]")):
        settings = replace(SETTINGS, token_types=token)
        with pytest.raises((Contradiction, UnknownIdentifier)) as caught:
            generate_responses(make_sentence_model(name), CONTEXTS, settings)
        assert caught.value.where == "token_types"
        assert caught.value.remedy


def test_a_chat_template_reads_the_turns_as_messages() -> None:
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    tokenizer = make_tokenizer(chat_template=template)
    model = LocalModel("causal", tokenizer, make_network("llama"))
    prompt = "<assistant>Good morning.<user>The tea is cold.<assistant>"
    ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt").input_ids
    generated = model.network.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    text = tokenizer.decode(generated, skip_special_tokens=True).strip()
    assert generate_responses(model, CONTEXTS[1:2], SETTINGS) == [text]


def test_turns_that_a_template_refuses_are_left_out_and_counted() -> None:
    tokenizer = make_tokenizer(chat_template=ALTERNATING)
    model = LocalModel("causal", tokenizer, make_network("llama"))
    with collect_warnings() as warnings:
        generated = generate_responses(model, ["a\nb", "b", "a\nb\nc"], SETTINGS)
    assert generated[0] == generated[1] != generated[2]
    assert [text for text in warnings if text.startswith("1 of 3 contexts")]


def test_the_oldest_turns_of_a_long_context_are_left_out() -> None:
    model = make_sentence_model("llama")
    turns = ["Tea. " * 70, "No. " * 70, "Where is it?"]
    with collect_warnings() as warnings:
        generated = generate_responses(model, ["\n".join(turns), "\n".join(turns[1:])], SETTINGS)
    assert generated[0] == generated[1]
    assert [text for text in warnings if text.startswith("1 of 2 contexts")]


def test_a_turn_that_is_too_long_is_cut() -> None:
    model = make_sentence_model("llama")
    with collect_warnings() as warnings:
        generated = generate_responses(model, ["x" * 900 + "y" * 499, "y" * 499], SETTINGS)
    assert generated[0] == generated[1]
    assert [text for text in warnings if text.startswith("1 of 2 contexts")]


def test_a_response_that_fills_the_model_is_refused() -> None:
    with pytest.raises(OutOfRange) as caught:
        generate_responses(
            make_sentence_model("llama"), ["tea"], replace(SETTINGS, max_new_tokens=512)
        )
    assert caught.value.where == "max_new_tokens"
