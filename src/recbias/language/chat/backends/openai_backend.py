"""Chat completions of OpenAI and of the servers with its interface, through its SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recbias.language.chat.backends.http_backend import (
    CONTENT_FILTER,
    HttpBackend,
    MalformedReply,
    WireFormat,
    make_client_options,
    read_count,
)
from recbias.language.chat.endpoints import as_text
from recbias.language.chat.requests import ChatReply, ChatRequest, classify_text
from recbias.language.chat.settings import LanguageModel


def connect_openai(model: LanguageModel) -> HttpBackend:
    """Return the backend of a server with the interface of OpenAI."""
    import openai

    credentials = model.read_credentials()
    client = openai.OpenAI(**make_client_options(openai, model, credentials))
    wire = WireFormat(
        sdk=openai,
        create=client.chat.completions.with_raw_response.create,
        required=("model", "messages"),
        build_payload=build_payload,
        read_reply=lambda body, _: read_reply(body),
        close=client.close,
        renamed={"max_tokens": "max_completion_tokens"},
    )
    return HttpBackend(wire, credentials, model.concurrency)


def build_payload(request: ChatRequest) -> dict[str, Any]:
    """Return the JSON of a request."""
    decoding = request.decoding
    parameters = {
        "max_tokens": decoding.max_tokens,
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "top_k": decoding.top_k,
        "seed": decoding.seed,
        "stop": list(decoding.stop) or None,
        "response_format": _build_response_format(decoding.response_schema),
    }
    return {
        "model": request.model,
        "messages": [
            {"role": message.role, "content": message.content} for message in request.messages
        ],
        **{name: value for name, value in parameters.items() if value is not None},
        **decoding.extra_body,
    }


def read_reply(body: Mapping[str, Any]) -> ChatReply:
    """Return the reply in the JSON of an answer.

    Raises:
        MalformedReply: It has no message.
    """
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise MalformedReply("the answer has no choices with a message")
    text, refusal = as_text(message.get("content")), as_text(message.get("refusal"))
    reason = as_text(choice.get("finish_reason"))
    is_refused = bool(refusal) or reason == CONTENT_FILTER
    return ChatReply(
        text=text or refusal,
        outcome=classify_text(text, is_cut=reason == "length", is_refused=is_refused),
        prompt_tokens=read_count(body.get("usage"), "prompt_tokens"),
        completion_tokens=read_count(body.get("usage"), "completion_tokens"),
        served_model=as_text(body.get("model")),
        fingerprint=as_text(body.get("system_fingerprint")),
        finish_reason=reason,
    )


def _build_response_format(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    json_schema = {"name": "reply", "strict": True, "schema": dict(schema)}
    return {"type": "json_schema", "json_schema": json_schema}
