from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from recbias.core.errors import MissingFile
from recbias.core.stage_context import collect_facts, collect_warnings, record_fact, warn
from recbias.language.chat.client import complete
from recbias.language.chat.dispatching.dispatcher import Dispatcher
from recbias.language.chat.dispatching.shared_limits import SharedLimits
from recbias.language.chat.failures import Failure
from recbias.language.chat.requests import ChatReply, ChatRequest
from recbias.language.chat.settings import LanguageModel
from support.chat.chat_requests import make_requests

MODEL = LanguageModel(model="small", concurrency=64)


@dataclass
class LocalBackend:
    """A model in the process: it answers several requests at once, in one thread."""

    batch_size: int = 4
    concurrency: int = 1
    broken: frozenset[str] = frozenset()
    batches: list[int] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    is_closed: bool = False

    def answer(self, requests: Sequence[ChatRequest]) -> Sequence[ChatReply | Failure]:
        self.batches.append(len(requests))
        self.threads.add(threading.get_ident())
        record_fact("device", "cpu")
        return [self.answer_one(request.messages[-1].content) for request in requests]

    def answer_one(self, prompt: str) -> ChatReply | Failure:
        if prompt in self.broken:
            self.broken -= {prompt}
            return Failure(cause="memory", message="out of memory")
        return ChatReply(text=f"reply to {prompt}")

    def close(self) -> None:
        self.is_closed = True


def test_a_backend_in_the_process_gets_batches_in_one_thread(tmp_path: Path) -> None:
    backend = LocalBackend()
    requests = make_requests(MODEL, 10)
    replies = complete(requests, MODEL, folder=tmp_path, backend=backend)
    assert [reply.text for reply in replies] == [f"reply to prompt {i}" for i in range(10)]
    assert backend.batches == [4, 4, 2]
    assert len(backend.threads) == 1
    assert not backend.is_closed  # whoever opens a backend closes it


def test_a_failed_request_of_a_batch_is_sent_again_alone(tmp_path: Path) -> None:
    backend = LocalBackend(broken=frozenset({"prompt 1"}))
    replies = complete(make_requests(MODEL, 4), MODEL, folder=tmp_path, backend=backend)
    assert replies[1].text == "reply to prompt 1"
    assert backend.batches == [4, 1]


def test_facts_and_warnings_of_the_backend_reach_the_stage(tmp_path: Path) -> None:
    class CuttingBackend(LocalBackend):
        def answer_one(self, prompt: str) -> ChatReply:
            warn("the context is cut")
            return ChatReply(text=prompt)

    with collect_facts() as facts, collect_warnings() as warnings:
        complete(make_requests(MODEL, 1), MODEL, folder=tmp_path, backend=CuttingBackend())
    assert facts["device"] == "cpu"
    assert warnings == ["the context is cut"]


def test_an_error_of_the_backend_is_raised_in_the_stage(tmp_path: Path) -> None:
    class MissingBackend(LocalBackend):
        def answer_one(self, prompt: str) -> ChatReply:
            raise MissingFile("the model has no tokenizer")

    with pytest.raises(MissingFile, match="no tokenizer"):
        complete(make_requests(MODEL, 1), MODEL, folder=tmp_path, backend=MissingBackend())


def test_a_bug_of_the_backend_is_raised_in_the_stage(tmp_path: Path) -> None:
    class FaultyBackend(LocalBackend):
        def answer_one(self, prompt: str) -> ChatReply:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        complete(make_requests(MODEL, 1), MODEL, folder=tmp_path, backend=FaultyBackend())


@dataclass
class FaultyServer(LocalBackend):
    """Answers every second request with a failure, at once."""

    cause: str = "500"
    n_answered: int = 0

    def answer_one(self, prompt: str) -> ChatReply | Failure:
        self.n_answered += 1
        if self.n_answered % 2:
            return ChatReply(text=prompt)
        return Failure(cause=self.cause, message="fault")


@pytest.mark.parametrize(
    ("cause", "is_slower"), [("500", False), ("timeout", False), ("429", True)]
)
def test_only_a_rate_limit_slows_down(tmp_path: Path, cause: str, is_slower: bool) -> None:
    backend = FaultyServer(batch_size=1, concurrency=20, cause=cause)
    limits = SharedLimits.of_model(MODEL, tmp_path, run="run")
    dispatcher = Dispatcher(MODEL, backend, limits, keep=lambda request, reply: None)
    dispatcher.send(make_requests(MODEL, 8))
    assert (dispatcher._concurrency.limit < 20) == is_slower
    assert limits.path.exists() == is_slower  # the pause that the processes share
    assert dispatcher.tally.failures[cause] == dispatcher.tally.n_sent - 8
