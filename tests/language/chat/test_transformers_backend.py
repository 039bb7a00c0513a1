from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import MissingReplies
from recbias.language.backends import Failure, TransformersBackend
from recbias.language.client import complete
from recbias.language.endpoints import ChatReply, ChatRequest, LanguageModel, Message
from recbias.language.local_models import LocalModel
from support.models.small_causal import make_network, make_tokenizer, write_small_causal


@pytest.fixture(scope="module")
def backend() -> TransformersBackend:
    return TransformersBackend(LocalModel("causal", make_tokenizer(), make_network("llama")), 4)


def make_requests(contents: Sequence[str], **settings: Any) -> list[ChatRequest]:
    model = LanguageModel(**{"model": "small", "max_tokens": 8, **settings})
    return [model.build_request([Message("user", content)]) for content in contents]


def answer(backend: TransformersBackend, requests: Sequence[ChatRequest]) -> list[str]:
    """Return the texts of the replies, whatever their outcomes."""
    answers = backend.answer(requests)
    assert all(isinstance(reply, ChatReply) for reply in answers)
    return [reply.text for reply in answers if isinstance(reply, ChatReply)]


def test_greedy_replies_do_not_depend_on_their_batch(backend: TransformersBackend) -> None:
    requests = make_requests(["a", "I watched Heat (1995)", "Name ten films"])
    alone = [answer(backend, [request])[0] for request in requests]
    assert answer(backend, requests) == alone
    assert answer(backend, requests[::-1]) == alone[::-1]


def test_a_sampled_reply_depends_on_its_request_only(backend: TransformersBackend) -> None:
    requests = make_requests(["a", "I watched Heat (1995)"], temperature=1.0)
    both = answer(backend, requests)
    assert answer(backend, requests[::-1]) == both[::-1]
    assert answer(backend, requests[1:]) == both[1:]


def test_samples_and_seeds_give_other_replies(backend: TransformersBackend) -> None:
    model = LanguageModel(model="small", max_tokens=8, temperature=1.0)
    messages = [Message("user", "a")]
    samples = [model.build_request(messages, sample=sample) for sample in range(4)]
    assert len(set(answer(backend, samples))) > 1
    seeds = [make_requests(["a"], temperature=1.0, seed=seed)[0] for seed in range(4)]
    assert len(set(answer(backend, seeds))) > 1


def test_a_reply_that_the_maximum_cuts_off_has_that_outcome(backend: TransformersBackend) -> None:
    (reply,) = backend.answer(make_requests(["Name a film"], max_tokens=3))
    assert isinstance(reply, ChatReply)
    assert (reply.outcome, reply.finish_reason) == ("length", "length")
    assert reply.prompt_tokens == len("Name a film\n\n")
    assert reply.completion_tokens == 3
    assert not reply.answer


def test_a_prompt_that_is_too_long_is_rejected_alone(backend: TransformersBackend) -> None:
    fits, longer = "x" * (512 - 8 - 2), "x" * (512 - 8 - 1)
    first, second = backend.answer(make_requests([fits, longer]))
    assert isinstance(first, ChatReply)
    assert isinstance(second, Failure)
    assert second.reaction == "reject"
    assert "a prompt of 505 tokens and a reply of 8 exceed the 512 tokens" in second.message


def test_a_model_in_the_process_answers_and_its_replies_are_stored(tmp_path: Path) -> None:
    folder = write_small_causal(tmp_path / "model")
    model = LanguageModel(provider="transformers", model=str(folder), max_tokens=8, concurrency=2)
    requests = [model.build_request([Message("user", f"film {n}")]) for n in range(5)]
    with collect_warnings():
        replies = complete(requests, model, folder=tmp_path / "replies")
        (folder / "model.safetensors").unlink()
        again = complete(requests, model, folder=tmp_path / "replies")
    assert again == replies
    assert {reply.outcome for reply in replies} <= {"complete", "length", "empty"}


def test_other_weights_in_the_folder_are_asked_again(tmp_path: Path) -> None:
    folders = [
        write_small_causal(tmp_path / name, kind) for name, kind in (("a", "llama"), ("b", "gpt2"))
    ]
    addresses = {
        LanguageModel(provider="transformers", model=str(folder))
        .build_request([Message("user", "a")])
        .revision
        for folder in folders
    }
    assert len(addresses) == 2
    assert all(address.startswith("sha256:") for address in addresses)


def test_offline_runs_do_not_load_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LanguageModel(provider="transformers", model="./nowhere")
    monkeypatch.setattr("recbias.language.client.is_network_forbidden", lambda: True)
    with pytest.raises(MissingReplies):
        complete([model.build_request([Message("user", "a")])], model, folder=tmp_path)
