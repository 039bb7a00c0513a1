"""Keys and passwords are in nothing that a run leaves or shows."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

from recbias.config.settings import as_plain
from recbias.core.context import stage_context
from recbias.core.errors import UserError
from recbias.language.client import complete
from recbias.language.endpoints import HIDDEN, Credentials, LanguageModel, Provider, strip_url
from support.chat.chat_requests import make_requests
from support.chat.chat_server import Answer, ChatServer, make_error, make_reply, serve_chat

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


@pytest.mark.parametrize(
    ("url", "stripped"),
    [
        ("http://a/v1///", "http://a/v1"),
        ("http://u:p@a:80/v1?k=v#f", "http://a:80/v1"),
        ("http://u:p@w@a/v1", "http://a/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_a_url_is_stripped_to_its_address(url: str, stripped: str) -> None:
    assert strip_url(url) == stripped
