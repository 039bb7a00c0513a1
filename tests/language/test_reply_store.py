from __future__ import annotations

import json
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.errors import Unwritable
from recbias.language.endpoints import OUTCOMES, ChatReply, ChatRequest, LanguageModel, Message
from recbias.language.reply_store import ReplyStore

MODEL = LanguageModel(model="small", base_url="http://127.0.0.1:1/v1")
REPLIES = st.builds(
    ChatReply,
    text=st.text() | st.text(st.characters(categories=["Cc", "Zl", "Zp"])) | st.just("\ud800"),
    outcome=st.sampled_from(OUTCOMES),
    prompt_tokens=st.integers(0, 10**9),
    completion_tokens=st.integers(0, 10**9),
    served_model=st.text(),
    fingerprint=st.text(),
    finish_reason=st.text(),
    negotiated=st.lists(st.text()).map(tuple),
    time=st.floats(0, 1e10),
)


def make_request(prompt: str, sample: int = 0) -> ChatRequest:
    return MODEL.build_request([Message("user", prompt)], sample=sample)


def load(folder: Path) -> ReplyStore:
    store = ReplyStore(folder)
    store.refresh()
    return store


def store_reply(folder: Path, prompt: str, reply: ChatReply) -> Path:
    """Store a reply in a file of its own and return the file."""
    store = ReplyStore(folder)
    before = set(folder.glob("*.jsonl"))
    store.append(make_request(prompt), reply)
    store.close()
    (path,) = set(folder.glob("*.jsonl")) - before
    return path


@given(reply=REPLIES)
def test_a_reply_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, reply: ChatReply
) -> None:
    folder = tmp_path_factory.mktemp("replies")
    path = store_reply(folder, "prompt", reply)
    assert load(folder).find(make_request("prompt")) == reply
    assert path.read_bytes().count(b"\n") == 1


def test_a_line_says_what_was_asked_and_what_came_back(tmp_path: Path) -> None:
    reply = ChatReply(text="1. Alien", prompt_tokens=10, completion_tokens=5, time=3.0)
    path = store_reply(tmp_path, "prompt", reply)
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "address": make_request("prompt").address,
        "provider": "openai",
        "base_url": "http://127.0.0.1:1/v1",
        "model": "small",
        "sample": 0,
        "text": "1. Alien",
        "outcome": "complete",
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "served_model": "",
        "fingerprint": "",
        "finish_reason": "",
        "negotiated": [],
        "time": 3.0,
    }


def test_of_two_replies_at_one_address_the_earlier_is_used(tmp_path: Path) -> None:
    late = store_reply(tmp_path, "prompt", ChatReply(text="late", time=2.0))
    early = store_reply(tmp_path, "prompt", ChatReply(text="early", time=1.0))
    for first, second in (("1", "2"), ("2", "1")):
        late = late.rename(tmp_path / f"{first}.jsonl")
        early = early.rename(tmp_path / f"{second}x.jsonl")
        reply = load(tmp_path).find(make_request("prompt"))
        assert reply.text == "early"


def test_an_unfinished_line_is_ignored_and_not_continued(tmp_path: Path) -> None:
    path = store_reply(tmp_path, "torn", ChatReply(text="x" * 100))
    path.write_bytes(path.read_bytes()[:150])
    store_reply(tmp_path, "whole", ChatReply(text="whole"))
    with collect_warnings() as warnings:
        store = load(tmp_path)
    assert store.find(make_request("torn")) is None
    assert store.find(make_request("whole")) is not None
    assert not warnings


@pytest.mark.parametrize(
    "line",
    [
        b"not JSON",
        b"[1]",
        b'{"address": 1}',
        b'{"address": "a", "text": 1, "outcome": "complete", "prompt_tokens": "many"}',
        b"\x00" * 100,
    ],
)
def test_a_damaged_line_is_skipped_with_one_warning(tmp_path: Path, line: bytes) -> None:
    path = store_reply(tmp_path, "first", ChatReply(text="first"))
    path.write_bytes(line + b"\n" + line + b"\n" + path.read_bytes())
    with collect_warnings() as warnings:
        store = load(tmp_path)
    assert store.find(make_request("first")) is not None
    assert warnings == ["2 damaged line(s) of the stored replies are skipped"]


def test_a_file_from_somebody_else_is_used_under_any_name(tmp_path: Path) -> None:
    path = store_reply(tmp_path / "theirs", "prompt", ChatReply(text="theirs"))
    (tmp_path / "mine").mkdir()
    lines = path.read_bytes().rstrip(b"\n")  # an editor may have removed the last line end
    (tmp_path / "mine" / "given to me.jsonl").write_bytes(lines)
    reply = load(tmp_path / "mine").find(make_request("prompt"))
    assert reply == ChatReply(text="theirs")


def append_many(arguments: tuple[Path, int]) -> None:
    folder, worker = arguments
    store = ReplyStore(folder)
    for i in range(200):
        text = f"{worker} {i} " + "x" * 5000
        store.append(make_request(f"{worker} {i}"), ChatReply(text=text))
    store.close()


def test_processes_do_not_disturb_each_other(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.map(append_many, [(tmp_path, worker) for worker in range(4)])
    with collect_warnings() as warnings:
        store = load(tmp_path)
    assert not warnings
    for worker in range(4):
        for i in range(200):
            reply = store.find(make_request(f"{worker} {i}"))
            assert reply.text.startswith(f"{worker} {i} x")


def test_a_full_disk_is_an_error_and_no_reply_is_glued_to_a_torn_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, write = ReplyStore(tmp_path), os.write
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:50]))
    with pytest.raises(Unwritable, match="a reply cannot be stored: No space left"):
        store.append(make_request("a"), ChatReply(text="a"))
    monkeypatch.setattr(os, "write", write)
    store.append(make_request("b"), replace(ChatReply(text="b")))
    store.close()
    assert load(tmp_path).find(make_request("b")) == ChatReply(text="b")


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("", encoding="utf-8")
    with pytest.raises(Unwritable):
        ReplyStore(path).append(make_request("a"), ChatReply(text="a"))
