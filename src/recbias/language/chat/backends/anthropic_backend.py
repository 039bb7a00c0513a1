"""The messages interface of Anthropic, through its SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recbias.language.chat.backends.http_backend import (
    HttpBackend,
    MalformedReply,
    WireFormat,
    make_client_options,
    read_count,
)
from recbias.language.chat.endpoints import as_text
from recbias.language.chat.requests import ChatReply, ChatRequest, classify_text
from recbias.language.chat.settings import LanguageModel


def connect_anthropic(model: LanguageModel) -> HttpBackend:
    """Return the backend of a server with the interface of Anthropic."""
    import anthropic

    credentials = model.read_credentials()
    client = anthropic.Anthropic(**make_client_options(anthropic, model, credentials))
    wire = WireFormat(
        sdk=anthropic,
        create=client.messages.with_raw_response.create,
        required=("model", "messages", "max_tokens"),
        build_payload=build_payload,
        read_reply=lambda body, _: read_reply(body),
        close=client.close,
    )
    return HttpBackend(wire, credentials, model.concurrency)


def build_payload(request: ChatRequest) -> dict[str, Any]:
    """Return the JSON of a request; messages of the system are one text beside the others."""
    decoding = request.decoding
    system = [message.content for message in request.messages if message.role == "system"]
    parameters = {
        "system": "\n\n".join(system) or None,
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "top_k": decoding.top_k,
        "stop_sequences": list(decoding.stop) or None,
        "output_config": _build_output_config(decoding.response_schema),
    }
    return {
        "model": request.model,
        "messages": [
            {"role": message.role, "content": message.content}
            for message in request.messages
            if message.role != "system"
        ],
        "max_tokens": decoding.max_tokens,
        **{name: value for name, value in parameters.items() if value is not None},
        **decoding.extra_body,
    }


def read_reply(body: Mapping[str, Any]) -> ChatReply:
    """Return the reply in the JSON of an answer.

    Raises:
        MalformedReply: It has no content.
    """
    blocks = body.get("content")
    if not isinstance(blocks, list):
        raise MalformedReply("the answer has no content")
    text = "".join(
        as_text(block.get("text"))
        for block in blocks
        if isinstance(block, Mapping) and block.get("type") == "text"
    )
    reason = as_text(body.get("stop_reason"))
    return ChatReply(
        text=text,
        outcome=classify_text(
            text,
            is_cut=reason in {"max_tokens", "model_context_window_exceeded"},
            is_refused=reason == "refusal",
        ),
        prompt_tokens=read_count(body.get("usage"), "input_tokens"),
        completion_tokens=read_count(body.get("usage"), "output_tokens"),
        served_model=as_text(body.get("model")),
        finish_reason=reason,
    )


def _build_output_config(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    return {"format": {"type": "json_schema", "schema": dict(schema)}}
