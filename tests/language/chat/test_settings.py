from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from recbias.config.settings import Builder, as_plain
from recbias.config.source import read_mapping
from recbias.core.errors import MissingExtra, RequestRefused, UserError
from recbias.language.endpoints import PROVIDERS, LanguageModel, Message


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
        ({"model": ""}, "llm.model: must be"),
        ({"base_url": "localhost:8000"}, "llm.base_url: must be the address of a server"),
        ({"base_url": "http://host:99999"}, "llm.base_url: must be the address of a server"),
        ({"temperature": -1}, "llm.temperature: must be a number"),
        ({"temperature": 1.5, "provider": "anthropic"}, "accepts a temperature of at most 1.0"),
        ({"seed": 1, "provider": "anthropic"}, "llm.seed: the interface of anthropic has no"),
        ({"budget": {"money": 1.0}}, "llm.budget: a budget of money needs prices"),
        ({"budget": {"euros": 1.0}}, "llm.budget.euros: not a setting"),
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
    assert caught.value.remedy == "pip install 'recbias[llm]'"


def test_a_schema_is_used_only_if_structured_output_is_set() -> None:
    schema, messages = {"type": "object"}, [Message("user", "Ten films")]
    plain = LanguageModel(model="small")
    structured = LanguageModel(model="small", structured_output=True)
    request = plain.build_request(messages, response_schema=schema)
    assert request.decoding.response_schema is None
    assert request == plain.build_request(messages)
    request = structured.build_request(messages, response_schema=schema, sample=2)
    assert (request.decoding.response_schema, request.sample) == (schema, 2)
