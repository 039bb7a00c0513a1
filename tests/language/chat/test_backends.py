"""What is sent in the formats of OpenAI and Anthropic, and what is read from the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias.core.context import collect_facts, collect_warnings
from recbias.core.errors import RequestRefused
from recbias.language.client import complete
from recbias.language.endpoints import ChatReply, Message
from support.chat.chat_requests import make_model, make_requests
from support.chat.chat_server import (
    Answer,
    ChatServer,
    Script,
    answer_done,
    make_anthropic_reply,
    make_error,
    make_reply,
    serve_chat,
)

CONVERSATION = (
    Message("system", "You know films."),
    Message("user", 'Braces {x}, quotes "\u201c\u2019, <b>HTML</b>,\nlines, \U0001f3ac'),
)
ALL = {"temperature": 0.0, "top_p": 0.9, "top_k": 250, "seed": 3, "max_tokens": 99}
SCHEMA = {"type": "object", "properties": {"titles": {"type": "array"}}}


def ask(server: ChatServer, folder: Path, **settings: Any) -> ChatReply:
    model = make_model(server, **settings)
    with collect_warnings():
        (reply,) = complete(make_requests(model, 1), model, folder=folder)
    return reply


def use_anthropic(server: ChatServer) -> dict[str, Any]:
    return {"provider": "anthropic", "base_url": server.origin}


def test_openai_gets_the_messages_and_parameters(tmp_path: Path) -> None:
    with serve_chat() as server:
        extra = {"cache_prompt": False}
        model = make_model(server, **ALL, extra_body=extra, structured_output=True)
        request = model.build_request(CONVERSATION, response_schema=SCHEMA)
        (reply,) = complete([request], model, folder=tmp_path)
    (payload,) = server.payloads
    assert payload.pop("response_format")["json_schema"]["schema"] == SCHEMA
    messages = [{"role": sent.role, "content": sent.content} for sent in CONVERSATION]
    assert payload == {"model": "small", "messages": messages, **ALL, **extra}
    assert (reply.text, reply.outcome) == ("1. Alien (1979)", "complete")
    assert (reply.prompt_tokens, reply.completion_tokens) == (10, 5)
    assert (reply.served_model, reply.fingerprint) == ("small", "fp_1")


def test_anthropic_gets_the_messages_and_parameters(tmp_path: Path) -> None:
    with serve_chat() as server:
        settings = {"top_k": 250, "max_tokens": 99, "structured_output": True}
        model = make_model(server, **use_anthropic(server), **settings)
        request = model.build_request(CONVERSATION, response_schema=SCHEMA)
        (reply,) = complete([request], model, folder=tmp_path)
    assert server.payloads == [
        {
            "model": "small",
            "system": "You know films.",
            "messages": [{"role": "user", "content": CONVERSATION[1].content}],
            "max_tokens": 99,
            "temperature": 0.0,
            "top_k": 250,
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        }
    ]
    assert "anthropic-version" in server.headers[0]
    assert (reply.text, reply.outcome) == ("1. Alien (1979)", "complete")
    assert (reply.prompt_tokens, reply.completion_tokens) == (10, 5)


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "Well, "}]},
    {"type": "text", "text": "1. Alien"},
    {"type": "text", "text": " (1979)"},
]
REFUSED = {"message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}


@pytest.mark.parametrize(
    ("body", "outcome", "text"),
    [
        (make_reply("1. Alien"), "complete", "1. Alien"),
        (make_reply(PARTS), "complete", "1. Alien (1979)"),
        (make_reply(" \n"), "empty", " \n"),
        (make_reply(None), "empty", ""),
        (make_reply(None, choices=[REFUSED]), "refusal", "I cannot."),
        (make_reply("1. Alien", error=None, detail=None), "complete", "1. Alien"),
        (make_reply("1. Alien", error={"code": 0, "message": ""}), "complete", "1. Alien"),
        (make_anthropic_reply("1. Alien"), "complete", "1. Alien"),
        (make_anthropic_reply("1. Alien") | {"content": PARTS}, "complete", "1. Alien (1979)"),
        (make_anthropic_reply("I cannot", "refusal"), "refusal", "I cannot"),
    ],
)
def test_only_a_complete_reply_has_an_answer(
    tmp_path: Path, body: dict[str, Any], outcome: str, text: str
) -> None:
    with serve_chat(lambda _: Answer(body)) as server:
        reply = ask(server, tmp_path, **(use_anthropic(server) if "content" in body else {}))
    assert (reply.outcome, reply.text) == (outcome, text)
    assert reply.answer == (text if outcome == "complete" else "")


ENDS = {
    "complete": "stop end_turn eos_token STOP tool_calls",
    "length": "length max_tokens MAX_TOKENS model_context_window_exceeded tokenLimitReached",
    "refusal": "content_filter SAFETY refusal guardrail_intervened",
}


@pytest.mark.parametrize(
    ("outcome", "reason"), [(end, reason) for end in ENDS for reason in ENDS[end].split()]
)
def test_finish_reasons_of_vendors(tmp_path: Path, outcome: str, reason: str) -> None:
    with serve_chat(lambda _: Answer(make_reply("1. Alien", reason))) as server:
        model = make_model(server)
        with collect_warnings() as warnings:
            (reply,) = complete(make_requests(model, 1), model, folder=tmp_path)
    assert (reply.outcome, reply.finish_reason) == (outcome, reason)
    assert not any("not known" in warning for warning in warnings)


def test_an_unknown_finish_reason_is_said_once(tmp_path: Path) -> None:
    with serve_chat(lambda _: Answer(make_reply("1. Alien", "banana"))) as server:
        model = make_model(server)
        with collect_warnings() as warnings:
            replies = complete(make_requests(model, 5), model, folder=tmp_path)
    assert {reply.outcome for reply in replies} == {"complete"}
    assert len(warnings) == 1
    assert "5 replies ended by 'banana'" in warnings[0]


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "busy", "code": 503}},
        {"error": "busy"},
        {"message": "busy", "status": 503},
        {"detail": [{"loc": ["body"], "msg": "busy"}]},
        make_reply("1. Al", "error"),
        make_reply("1. Al", error="busy"),
        make_reply("", choices=[{"message": {"content": "1. Al"}, "error": {"code": 502}}]),
        {"choices": [], "usage": {}},
        b'{"choices": [{"message": {"content": "1. Al',
    ],
)
def test_an_error_in_an_answer_of_status_200_is_sent_again(tmp_path: Path, body: Any) -> None:
    with serve_chat(faults=[Answer(body)]) as server, collect_facts() as facts:
        model = make_model(server)
        (reply,) = complete(make_requests(model, 1), model, folder=tmp_path)
    assert reply.text == "1. Alien (1979)"
    assert facts["requests_sent"] == 2
    (cause,) = [name for name in facts if name.startswith("failed_requests.")]
    assert cause.removeprefix("failed_requests.") in {"500", "502", "503", "invalid JSON"}
    assert len(list(tmp_path.glob("*.jsonl"))) == 1
    assert 'Al"' not in "".join(path.read_text() for path in tmp_path.glob("*.jsonl"))


def test_an_error_in_an_answer_of_anthropic_is_sent_again(tmp_path: Path) -> None:
    fault = Answer({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    with serve_chat(faults=[fault, Answer({"type": "message"})]) as server:
        assert ask(server, tmp_path, **use_anthropic(server)).text == "1. Alien (1979)"
    assert len(server.payloads) == 3


def test_a_prompt_that_a_content_filter_blocks_is_a_refusal(tmp_path: Path) -> None:
    error = make_error(400, "The prompt was filtered", code="content_filter")
    with serve_chat(lambda _: error) as server:
        assert ask(server, tmp_path).outcome == "refusal"


def refuse(name: str, error: Answer) -> Script:
    return lambda payload: error if name in payload else answer_done(payload)


OF_TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) "
    "value is supported."
)
OF_TOP_P = "`temperature` and `top_p` cannot both be specified."
OF_SEED = [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("temperature", make_error(400, OF_TEMPERATURE, code="unsupported_value")),
        ("top_k", make_error(400, "Unrecognized request argument supplied: top_k")),
        ("seed", Answer({"detail": OF_SEED}, 422)),
        ("top_p", make_error(400, OF_TOP_P, type="invalid_request_error")),
    ],
)
def test_a_refused_parameter_is_left_out(tmp_path: Path, name: str, error: Answer) -> None:
    with serve_chat(refuse(name, error)) as server:
        reply = ask(server, tmp_path, **ALL)
    assert reply.negotiated == (f"no {name}",)
    assert set(server.payloads[0]) - set(server.payloads[1]) == {name}
    assert len(server.payloads) == 2


def test_max_tokens_is_renamed_where_it_is_refused(tmp_path: Path) -> None:
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    error = make_error(400, message, param="max_tokens", code="unsupported_parameter")
    with serve_chat(refuse("max_tokens", error)) as server:
        reply = ask(server, tmp_path, max_tokens=99)
    assert reply.negotiated == ("max_completion_tokens for max_tokens",)
    assert server.payloads[1]["max_completion_tokens"] == 99
    assert len(server.payloads) == 2


@pytest.mark.parametrize(
    ("message", "n_sent"),
    [("temperature must be at most 1", 1), ("max_tokens is not supported", 2)],
)
def test_what_cannot_be_negotiated_is_refused(tmp_path: Path, message: str, n_sent: int) -> None:
    error = make_error(400, message)
    with serve_chat(lambda _: error) as server, pytest.raises(RequestRefused, match=message):
        ask(server, tmp_path)
    assert len(server.payloads) == n_sent


@pytest.mark.parametrize(
    "body", [{"object": "error", "message": "no such parameter: k", "code": 400}]
)
def test_a_rejection_in_an_answer_of_status_200_is_not_repeated(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    refusal = pytest.raises(RequestRefused, match="no such parameter: k")
    with serve_chat(lambda _: Answer(body)) as server, refusal:
        ask(server, tmp_path)
    assert len(server.payloads) == 1


THOUGHT = "<think>1. Jaws (1975)"


@pytest.mark.parametrize(
    ("text", "outcome", "answer"),
    [
        (f"{THOUGHT}</think>1. Alien", "complete", "1. Alien"),
        (THOUGHT, "length", ""),
        (f"{THOUGHT}</think>", "empty", ""),
    ],
)
def test_thought_is_no_answer_and_unfinished_thought_no_reply(
    tmp_path: Path, text: str, outcome: str, answer: str
) -> None:
    with serve_chat(lambda _: Answer(make_reply(text))) as server:
        reply = ask(server, tmp_path)
        again = ask(server, tmp_path)
    assert (reply.outcome, reply.answer, reply.text) == (outcome, answer, text)
    assert again == reply
