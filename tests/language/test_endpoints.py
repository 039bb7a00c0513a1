"""Keys and passwords are in nothing that a run leaves or shows."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.config.settings import Builder, as_plain
from recbias.config.source import read_mapping
from recbias.core.context import collect_facts, collect_warnings, stage_context
from recbias.core.errors import MissingExtra, MissingReplies, RequestRefused, UserError
from recbias.language.backends import Failure, TransformersBackend
from recbias.language.client import complete
from recbias.language.endpoints import (
    HIDDEN,
    PROVIDERS,
    ChatReply,
    ChatRequest,
    Credentials,
    Decoding,
    LanguageModel,
    Message,
    Provider,
)
from recbias.language.local_models import LocalModel
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
from support.models.small_causal import make_network, make_tokenizer, write_small_causal


@dataclass(frozen=True, kw_only=True)
class Plugin:
    llm: LanguageModel


def build(llm: dict[str, Any]) -> tuple[LanguageModel | None, list[str]]:
    document = read_mapping({"llm": llm})
    plugin = Builder(document, "WOK").build(Plugin, {"llm": llm}, ())
    return plugin and plugin.llm, [str(fault) for _, fault in document.faults]


def test_the_mapping_of_the_contract_is_read() -> None:
    model, faults = build(
        {
            "provider": "openai",
            "model": "gpt-4-1106-preview",
            "base_url": None,
            "api_key_env": "OPENAI_API_KEY",
            "temperature": 0.0,
            "top_p": 1.0,
            "max_tokens": 512,
            "concurrency": 8,
            "retries": 6,
            "timeout_s": 60,
            "extra_body": {"cache_prompt": False, "prompt_cache_key": "a", "min_tokens": 2},
            "prices": {"input": 10, "output": 30},
            "budget": {"requests": 100, "money": 1.5},
        }
    )
    assert not faults
    assert model.server == "https://api.openai.com/v1"
    assert model.budget.money == 1.5
    assert hash(model)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"provider": "litellm"}, "llm.provider: must be one of openai, anthropic"),
        ({"base_url": "localhost:8000"}, "llm.base_url: must be the address of a server"),
        ({"temperature": 1.5, "provider": "anthropic"}, "accepts a temperature of at most 1.0"),
        ({"seed": 1, "provider": "anthropic"}, "llm.seed: the interface of anthropic has no"),
        ({"budget": {"money": 1.0}}, "llm.budget: a budget of money needs prices"),
        ({"extra_body": {"stream": True}}, "llm.extra_body: stream cannot be set here"),
        ({"extra_body": {"api_key": "x"}}, "llm.extra_body: api_key seems to be a secret"),
        ({"extra_body": {"auth": {"access_token": "x"}}}, "auth.access_token seems to be a"),
        ({"api_key": "sk-1"}, "llm.api_key: not a setting of WOK.llm"),
    ],
)
def test_a_wrong_setting_is_named(changes: dict[str, Any], fault: str) -> None:
    model, faults = build({"model": "small", **changes})
    assert model is None
    assert len(faults) == 1
    assert fault in faults[0]


def test_a_password_in_the_url_is_neither_stored_nor_shown() -> None:
    model = LanguageModel(
        model="small", base_url="https://me:pass%20word@example.org:8000/v1/?key=secret-key"
    )
    assert model.base_url == "https://example.org:8000/v1"
    for text in (repr(model), str(as_plain(model)), str(model.build_request([]))):
        assert "pass" not in text
        assert "secret" not in text
    assert model.read_credentials().userinfo == "me:pass word"
    assert model.read_credentials().query == {"key": "secret-key"}
    assert model == LanguageModel(model="small", base_url="https://example.org:8000/v1")


def test_a_wrong_url_with_a_password_is_not_shown() -> None:
    with pytest.raises(UserError) as caught:
        LanguageModel(model="small", base_url="ftp://me:password1@example.org")
    assert "password1" not in "\n".join(caught.value.lines())


def test_a_missing_key_is_an_error_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for defaults in PROVIDERS.values():
        monkeypatch.delenv(defaults.api_key_env, raising=False)
    with pytest.raises(RequestRefused, match="OPENAI_API_KEY with the key is not set"):
        LanguageModel(model="gpt-4").check_access()
    with pytest.raises(RequestRefused, match="ANTHROPIC_API_KEY with the key is not set"):
        LanguageModel(model="claude", provider="anthropic").check_access()
    with pytest.raises(RequestRefused, match="MY_KEY with the key is not set"):
        LanguageModel(model="m", base_url="http://[::1]/v1", api_key_env="MY_KEY").check_access()
    for host in ("http://localhost.example.org", "http://128.0.0.1"):
        with pytest.raises(RequestRefused):
            LanguageModel(model="m", base_url=host).check_access()
    for host in ("http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:8000/v1"):
        LanguageModel(model="m", base_url=host).check_access()
    LanguageModel(model="m", base_url="http://localhost:8000/v1").check_access()
    LanguageModel(model="m", base_url="https://me:password@example.org").check_access()


@pytest.mark.parametrize("key", ["sk-1\nX-Other: 1", "sk-1 2", "sk-é"])
def test_a_key_that_is_no_key_is_not_sent(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(RequestRefused, match="does not hold a key") as caught:
        LanguageModel(model="gpt-4").check_access()
    assert "sk-1" not in str(caught.value)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="needs the package 'openai'") as caught:
        LanguageModel(model="gpt-4").check_access()
    assert caught.value.remedy == "in the clone: pip install '.[llm]'"


def test_a_schema_is_used_only_if_structured_output_is_set() -> None:
    schema, messages = {"type": "object"}, [Message("user", "Ten films")]
    plain = LanguageModel(model="small")
    structured = LanguageModel(model="small", structured_output=True)
    request = plain.build_request(messages, response_schema=schema)
    assert request.decoding.response_schema is None
    assert request == plain.build_request(messages)
    request = structured.build_request(messages, response_schema=schema, sample=2)
    assert (request.decoding.response_schema, request.sample) == (schema, 2)


KEY = "sk-planted-0123456789"


PASSWORD = "planted-password"


QUERY = "planted-query-value"


BASIC = base64.b64encode(f"me:{PASSWORD}".encode()).decode()


SECRETS = (KEY, PASSWORD, QUERY, BASIC)


def plant(server: ChatServer, provider: Provider) -> LanguageModel:
    """Return a model whose URL has a password and a query."""
    path = "/v1" if provider == "openai" else ""
    url = server.origin.replace("//", f"//me:{PASSWORD}@")
    return LanguageModel(
        model="small", provider=provider, base_url=f"{url}{path}?token={QUERY}", retries=0
    )


def run(model: LanguageModel, folder: Path, caplog: pytest.LogCaptureFixture) -> str:
    """Return everything that a run leaves and shows."""
    warnings: list[str] = []
    facts: dict[str, Any] = {}
    progress: list[Any] = []
    texts: list[str] = []
    requests = make_requests(model, 2)
    with (
        caplog.at_level(logging.WARNING),
        stage_context(
            reply_folder=folder,
            warnings=warnings,
            facts=facts,
            on_progress=lambda *step: progress.append(step),
        ),
    ):
        try:
            texts.append(repr(complete(requests, model)))
        except UserError as error:
            texts += ["\n".join(error.lines()), "".join(traceback.format_exception(error))]
    texts += [path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()]
    texts += [str(path) for path in folder.rglob("*")]
    texts += [repr(model), json.dumps(as_plain(model)), repr(requests), caplog.text]
    return "\n".join([*texts, *warnings, repr(facts), repr(progress)])


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_a_server_that_repeats_the_secrets_does_not_spread_them(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    provider: Provider,
    status: int,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    echo = " ".join(SECRETS)
    body = {**make_reply(f"1. {echo}", model=echo, system_fingerprint=echo), "content": []}
    answer = Answer(body) if status == 200 else make_error(status, "x" * 280 + echo, code=echo)
    with serve_chat(lambda _: answer) as server:
        left = run(plant(server, provider), tmp_path, caplog)
    assert server.headers
    assert not [secret for secret in SECRETS if secret in left]
    assert HIDDEN in left or provider == "anthropic" or status != 200
    assert "planted" not in left


def test_the_password_of_the_url_is_sent_and_the_query_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serve_chat() as server:
        left = run(plant(server, "openai"), tmp_path, caplog)
    assert {headers["authorization"] for headers in server.headers} == {f"Basic {BASIC}"}
    assert all(QUERY in path for path in server.paths)
    assert "planted" not in left


def test_a_server_that_is_not_there_shows_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve_chat() as server:
        pass
    assert "planted" not in run(plant(server, "openai"), tmp_path, caplog)


@pytest.mark.parametrize(
    "text",
    ["key: XNlcjc6UEFTU1BMQU5UNzc= refused", "sk-ab...PLANT99abc", "PASSPLANT77", "user7:PASSPL"],
)
def test_parts_of_secrets_are_hidden(text: str) -> None:
    credentials = Credentials(key="sk-abKEYPLANT99abc", userinfo="user7:PASSPLANT77")
    hidden = credentials.hide_in(text)
    assert HIDDEN in hidden
    for secret in ("sk-abKEYPLANT99abc", "user7:PASSPLANT77", "dXNlcjc6UEFTU1BMQU5UNzc="):
        parts = [secret[i : i + 8] for i in range(len(secret) - 7)]
        assert not any(part in hidden for part in parts)


def test_short_words_that_serve_as_keys_are_left_in_texts() -> None:
    assert Credentials(key="EMPTY").hide_in("EMPTY shelves") == "EMPTY shelves"


REQUEST = ChatRequest(
    provider="openai",
    base_url="http://localhost/v1",
    model="small",
    messages=(Message("system", "You know films."), Message("user", "Ten films, please.")),
    decoding=Decoding(temperature=0.0, top_p=1.0, seed=1),
)


@pytest.mark.parametrize(
    "changes",
    [
        {"provider": "anthropic"},
        {"model": "large"},
        {"messages": REQUEST.messages[::-1]},
        {"messages": (Message("user", "You know films."), REQUEST.messages[1])},
        {"sample": 1},
        {"decoding": replace(REQUEST.decoding, temperature=0.5)},
        {"decoding": replace(REQUEST.decoding, seed=2)},
        {"decoding": replace(REQUEST.decoding, response_schema={"type": "object"})},
        {"decoding": replace(REQUEST.decoding, extra_body={"cache_prompt": False})},
    ],
)
def test_everything_that_could_change_the_reply_changes_the_address(
    changes: dict[str, Any],
) -> None:
    assert replace(REQUEST, **changes).address != REQUEST.address


def test_secrets_of_the_url_are_not_part_of_a_request() -> None:
    request = replace(REQUEST, base_url="http://me:password1@localhost/v1/?key=password2#x")
    assert request == REQUEST
    assert "password" not in repr(request)


@given(st.text() | st.text(st.characters(categories=["Cs"])))
def test_any_reply_can_be_written(text: str) -> None:
    reply = ChatReply(text=text)
    assert reply.text.encode().decode() == reply.text
    assert replace(reply) == reply


def test_lone_surrogates_of_a_reply_are_replaced_and_pairs_joined() -> None:
    assert ChatReply(text="a\ud800b \ud83e\udd8a é").text == "a\ufffdb 🦊 é"


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


@pytest.fixture(scope="module")
def backend() -> TransformersBackend:
    return TransformersBackend(LocalModel("causal", make_tokenizer(), make_network("llama")), 4)


def make_requests_transformers_backend(
    contents: Sequence[str], **settings: Any
) -> list[ChatRequest]:
    model = LanguageModel(**{"model": "small", "max_tokens": 8, **settings})
    return [model.build_request([Message("user", content)]) for content in contents]


def answer(backend: TransformersBackend, requests: Sequence[ChatRequest]) -> list[str]:
    """Return the texts of the replies, whatever their outcomes."""
    answers = backend.answer(requests)
    assert all(isinstance(reply, ChatReply) for reply in answers)
    return [reply.text for reply in answers if isinstance(reply, ChatReply)]


def test_greedy_replies_do_not_depend_on_their_batch(backend: TransformersBackend) -> None:
    requests = make_requests_transformers_backend(["a", "I watched Heat (1995)", "Name ten films"])
    alone = [answer(backend, [request])[0] for request in requests]
    assert answer(backend, requests) == alone
    assert answer(backend, requests[::-1]) == alone[::-1]


def test_a_sampled_reply_depends_on_its_request_only(backend: TransformersBackend) -> None:
    requests = make_requests_transformers_backend(["a", "I watched Heat (1995)"], temperature=1.0)
    both = answer(backend, requests)
    assert answer(backend, requests[::-1]) == both[::-1]
    assert answer(backend, requests[1:]) == both[1:]


def test_samples_and_seeds_give_other_replies(backend: TransformersBackend) -> None:
    model = LanguageModel(model="small", max_tokens=8, temperature=1.0)
    messages = [Message("user", "a")]
    samples = [model.build_request(messages, sample=sample) for sample in range(4)]
    assert len(set(answer(backend, samples))) > 1
    seeds = [
        make_requests_transformers_backend(["a"], temperature=1.0, seed=seed)[0]
        for seed in range(4)
    ]
    assert len(set(answer(backend, seeds))) > 1


def test_a_reply_that_the_maximum_cuts_off_has_that_outcome(backend: TransformersBackend) -> None:
    (reply,) = backend.answer(make_requests_transformers_backend(["Name a film"], max_tokens=3))
    assert isinstance(reply, ChatReply)
    assert (reply.outcome, reply.finish_reason) == ("length", "length")
    assert reply.prompt_tokens == len("Name a film\n\n")
    assert reply.completion_tokens == 3
    assert not reply.answer


def test_a_prompt_that_is_too_long_is_rejected_alone(backend: TransformersBackend) -> None:
    fits, longer = "x" * (512 - 8 - 2), "x" * (512 - 8 - 1)
    first, second = backend.answer(make_requests_transformers_backend([fits, longer]))
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
