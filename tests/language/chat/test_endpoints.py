"""Keys and passwords are in nothing that a run leaves or shows."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.config.settings import Builder, as_plain
from recbias.config.source import read_mapping
from recbias.core.context import stage_context
from recbias.core.errors import MissingExtra, RequestRefused, UserError
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
from support.chat.chat_requests import make_requests
from support.chat.chat_server import Answer, ChatServer, make_error, make_reply, serve_chat


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
    assert model is not None
    assert model.server == "https://api.openai.com/v1"
    assert model.budget is not None
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
