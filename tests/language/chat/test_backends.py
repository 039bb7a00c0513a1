from __future__ import annotations

from typing import Any

import pytest

from recbias.language.chat.backends.backend import open_backend
from recbias.language.chat.failures import Failure
from recbias.language.chat.requests import ChatReply, Message
from recbias.language.chat.settings import LanguageModel
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


def ask(server: ChatServer, **settings: Any) -> ChatReply | Failure:
    """Send one request, again as long as parameters are negotiated."""
    model = make_model(server, **settings)
    backend = open_backend(model)
    answer: ChatReply | Failure = Failure(cause="", message="", reaction="resend")
    while isinstance(answer, Failure) and answer.reaction == "resend":
        (answer,) = backend.answer(make_requests(model, 1))
    backend.close()
    return answer


def anthropic_url(server: ChatServer) -> dict[str, Any]:
    return {"provider": "anthropic", "base_url": server.origin}


def test_openai_gets_the_messages_and_parameters() -> None:
    with serve_chat() as server:
        model = make_model(server, **ALL, extra_body={"cache_prompt": False})
        (reply,) = open_backend(model).answer([model.build_request(CONVERSATION)])
    assert server.payloads == [
        {
            "model": "small",
            "messages": [
                {"role": message.role, "content": message.content} for message in CONVERSATION
            ],
            **ALL,
            "cache_prompt": False,
        }
    ]
    assert isinstance(reply, ChatReply)
    assert (reply.text, reply.outcome, reply.finish_reason) == (
        "1. Alien (1979)",
        "complete",
        "stop",
    )
    assert (reply.prompt_tokens, reply.completion_tokens) == (10, 5)
    assert (reply.served_model, reply.fingerprint) == ("small", "fp_1")


def test_anthropic_gets_the_messages_and_parameters() -> None:
    with serve_chat() as server:
        model = LanguageModel(model="small", **anthropic_url(server), top_k=250, max_tokens=99)
        (reply,) = open_backend(model).answer([model.build_request(CONVERSATION)])
    assert server.payloads == [
        {
            "model": "small",
            "system": "You know films.",
            "messages": [{"role": "user", "content": CONVERSATION[1].content}],
            "max_tokens": 99,
            "temperature": 0.0,
            "top_k": 250,
        }
    ]
    assert isinstance(reply, ChatReply)
    assert (reply.text, reply.outcome) == ("1. Alien (1979)", "complete")
    assert (reply.prompt_tokens, reply.completion_tokens) == (10, 5)


def test_a_schema_is_sent_in_the_form_of_the_provider() -> None:
    schema = {"type": "object", "properties": {"titles": {"type": "array"}}}
    with serve_chat() as server:
        for settings in ({"base_url": server.base_url}, anthropic_url(server)):
            model = LanguageModel(model="small", structured_output=True, **settings)
            request = model.build_request(CONVERSATION, response_schema=schema)
            open_backend(model).answer([request])
    openai, anthropic = server.payloads
    assert openai["response_format"]["json_schema"]["schema"] == schema
    assert anthropic["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


@pytest.mark.parametrize(
    ("body", "outcome", "text"),
    [
        (make_reply("1. Alien", "length"), "length", "1. Alien"),
        (make_reply(None, "content_filter"), "refusal", ""),
        (make_reply(""), "empty", ""),
        (make_reply(" \n"), "empty", " \n"),
        (make_reply(None), "empty", ""),
        (make_reply(None, "tool_calls"), "empty", ""),
        (
            make_reply(
                None,
                choices=[
                    {"message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}
                ],
            ),
            "refusal",
            "I cannot.",
        ),
    ],
)
def test_a_reply_without_text_to_read_is_an_outcome(
    body: dict[str, Any], outcome: str, text: str
) -> None:
    with serve_chat(lambda _: Answer(body)) as server:
        reply = ask(server)
    assert isinstance(reply, ChatReply)
    assert (reply.outcome, reply.text, reply.answer) == (outcome, text, "")


@pytest.mark.parametrize(
    ("text", "reason", "outcome"),
    [
        ("1. Alien", "max_tokens", "length"),
        ("I cannot", "refusal", "refusal"),
        ("", "end_turn", "empty"),
        ("1. Alien", "stop_sequence", "complete"),
    ],
)
def test_anthropic_has_the_same_outcomes(text: str, reason: str, outcome: str) -> None:
    script: Script = lambda _: Answer(make_anthropic_reply(text, reason))  # noqa: E731
    with serve_chat(script) as server:
        reply = ask(server, **anthropic_url(server))
    assert isinstance(reply, ChatReply)
    assert (reply.outcome, reply.finish_reason) == (outcome, reason)


def test_a_prompt_that_a_content_filter_blocks_is_a_refusal() -> None:
    error = make_error(400, "The prompt was filtered", code="content_filter")
    with serve_chat(lambda _: error) as server:
        reply = ask(server)
    assert isinstance(reply, ChatReply)
    assert reply.outcome == "refusal"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>It works!</html>",
        b'{"choices": [{"message": {"content": "1. Al',
        b'"text"',
        b"[" * 100_000,
        b"\xff\xfe{",
        {"choices": []},
        {"choices": None},
        {"choices": [{"message": None}]},
        {"choices": "text"},
    ],
)
def test_an_answer_in_another_format_is_sent_again(body: Any) -> None:
    with serve_chat(lambda _: Answer(body)) as server:
        for settings in ({}, anthropic_url(server)):
            failure = ask(server, **settings)
            assert isinstance(failure, Failure)
            assert (failure.cause, failure.reaction) == ("invalid JSON", "retry")


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": None, "completion_tokens": -3}, {"prompt_tokens": "9"}]
)
def test_a_server_may_leave_out_the_usage(usage: Any) -> None:
    with serve_chat(lambda _: Answer(make_reply("1. Alien", usage=usage))) as server:
        reply = ask(server)
    assert isinstance(reply, ChatReply)
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)


def refuse(refused: set[str], error: Answer) -> Script:
    return lambda payload: error if refused & set(payload) else answer_done(payload)


def test_max_tokens_is_renamed_where_it_is_refused() -> None:
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    error = make_error(400, message, param="max_tokens", code="unsupported_parameter")
    with serve_chat(refuse({"max_tokens"}, error)) as server:
        reply = ask(server, max_tokens=99)
    assert isinstance(reply, ChatReply)
    assert reply.negotiated == ("max_completion_tokens for max_tokens",)
    assert server.payloads[1]["max_completion_tokens"] == 99
    assert len(server.payloads) == 2


@pytest.mark.parametrize(
    ("name", "status", "body"),
    [
        (
            "temperature",
            400,
            {
                "error": {
                    "message": "Unsupported value: 'temperature' does not support 0.0 with this "
                    "model. Only the default (1) value is supported.",
                    "param": "temperature",
                    "code": "unsupported_value",
                }
            },
        ),
        ("top_k", 400, {"error": {"message": "Unrecognized request argument supplied: top_k"}}),
        (
            "seed",
            422,
            {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
        ),
        (
            "top_p",
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "`temperature` and `top_p` cannot both be specified.",
                },
            },
        ),
    ],
)
def test_a_refused_parameter_is_left_out(name: str, status: int, body: dict[str, Any]) -> None:
    with serve_chat(refuse({name}, Answer(body, status))) as server:
        reply = ask(server, **ALL)
    assert isinstance(reply, ChatReply)
    assert reply.negotiated == (f"no {name}",)
    assert set(server.payloads[0]) - set(server.payloads[1]) == {name}
    assert len(server.payloads) == 2


def test_a_value_out_of_range_is_not_left_out() -> None:
    error = make_error(400, "temperature must be at most 1", param="temperature")
    with serve_chat(lambda _: error) as server:
        failure = ask(server)
    assert isinstance(failure, Failure)
    assert (failure.reaction, len(server.payloads)) == ("reject", 1)


def test_a_parameter_that_is_refused_in_both_forms_is_rejected() -> None:
    error = make_error(400, "max_tokens is not supported", code="unsupported_parameter")
    with serve_chat(lambda _: error) as server:
        failure = ask(server)
    assert isinstance(failure, Failure)
    assert (failure.reaction, len(server.payloads)) == ("reject", 2)


def test_an_error_in_an_answer_of_status_200_counts_by_its_code() -> None:
    error = Answer({"error": {"message": "slow down", "code": 429}})
    with serve_chat(lambda _: error) as server:
        failure = ask(server)
    assert isinstance(failure, Failure)
    assert failure.is_rate_limit


def test_a_hanging_server_is_given_up() -> None:
    with serve_chat(lambda _: Answer(make_reply("late"), seconds=30)) as server:
        failure = ask(server, timeout_s=0.2)
    assert isinstance(failure, Failure)
    assert (failure.cause, failure.reaction) == ("timeout", "retry")


@pytest.mark.parametrize("cut", [0, 40])
def test_a_cut_answer_is_sent_again(cut: int) -> None:
    with serve_chat(lambda _: Answer(make_reply("1. Alien"), cut=cut)) as server:
        failure = ask(server)
    assert isinstance(failure, Failure)
    assert (failure.cause, failure.reaction) == ("connection", "retry")


def test_a_server_that_is_not_there_is_a_failed_connection() -> None:
    with serve_chat() as server:
        pass
    failure = ask(server)
    assert isinstance(failure, Failure)
    assert failure.cause == "connection"
    assert "refused" in failure.message
