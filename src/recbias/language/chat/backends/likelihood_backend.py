"""Log-probabilities of given texts, through the completions interface of OpenAI.

The server is asked for a completion of no tokens with ``echo`` and ``logprobs``: it repeats the
prompt with the log-probability of each of its tokens. vLLM does, as did OpenAI; the server of
llama.cpp ignores ``echo`` or refuses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recbias.language.chat.backends.http_backend import (
    HttpBackend,
    MalformedReply,
    WireFormat,
    make_client_options,
    read_count,
)
from recbias.language.chat.endpoints import as_text
from recbias.language.chat.failures import NO_LIKELIHOOD, Failure
from recbias.language.chat.requests import ChatReply, ChatRequest
from recbias.language.chat.settings import LanguageModel

REFUSALS = {"400", "404", "405", "422"}
"""The causes of failures that may be about the interface and not about the key."""

LEAST_SCORE, ROUNDING = -1e6, 1e-3
"""The least log-probability, and the most by which one may exceed 0; some servers send -9999 for
minus infinity."""

MOST_TOKENS_PER_CHARACTER, MORE_TOKENS = 4, 1000
"""A prompt has no more tokens than bytes, beside special tokens and those that are generated."""

_UNSUPPORTED = re.compile(r"\becho\b|log_?prob|chat model|completions", re.IGNORECASE)
"""Matches the message of a server that cannot repeat the prompt with log-probabilities."""


def connect_likelihoods(model: LanguageModel) -> HttpBackend:
    """Return the backend of a server that gives the log-probabilities of a prompt."""
    import openai

    credentials = model.read_credentials()
    client = openai.OpenAI(**make_client_options(openai, model, credentials))
    wire = WireFormat(
        sdk=openai,
        create=client.completions.with_raw_response.create,
        required=("model", "prompt"),
        build_payload=build_payload,
        read_reply=read_reply,
        close=client.close,
        judge=judge_failure,
    )
    return HttpBackend(wire, credentials, model.concurrency)


def build_payload(request: ChatRequest) -> dict[str, Any]:
    """Return the JSON of a request."""
    return {
        "max_tokens": request.decoding.max_tokens,
        **request.decoding.extra_body,
        "model": request.model,
        "prompt": "".join(message.content for message in request.messages),
        "echo": True,
        "logprobs": 1,
    }


def read_reply(body: Mapping[str, Any], request: ChatRequest) -> ChatReply:
    """Return the tokens of the text and their log-probabilities, as a JSON object.

    Tokens of the text begin at or after its first character. One that begins before is of the
    context, and what the server generates after the text is left out.

    Raises:
        MalformedReply: The answer has no log-probabilities of the prompt, or none of the text.
    """
    context, text = (message.content for message in request.messages)
    tokens, scores = _list_scores(body)
    if len(tokens) > MOST_TOKENS_PER_CHARACTER * len(context + text) + MORE_TOKENS:
        raise MalformedReply(f"the answer has {len(tokens):,} tokens, more than the prompt can")
    offsets = locate_tokens(tokens, context + text)
    rows = zip(tokens, scores, offsets, strict=True)
    end = len(context) + len(text)
    of_text = [(token, score) for token, score, start in rows if len(context) <= start < end]
    if not of_text or not all(isinstance(score, (int, float)) for _, score in of_text):
        raise MalformedReply("the answer lacks the log-probability of a token of the text")
    if wrong := [score for _, score in of_text if not _is_log_probability(score)]:
        raise MalformedReply(f"the answer has a log-probability of {wrong[0]}")
    names, values = zip(*of_text, strict=True)
    return ChatReply(
        text=json.dumps({"tokens": names, "log_probabilities": values}),
        prompt_tokens=read_count(body.get("usage"), "prompt_tokens"),
        completion_tokens=read_count(body.get("usage"), "completion_tokens"),
        served_model=as_text(body.get("model")),
        fingerprint=as_text(body.get("system_fingerprint")),
    )


def _is_log_probability(score: float) -> bool:
    """Return whether a number can be a log-probability, rounded as it may be."""
    return not isinstance(score, bool) and LEAST_SCORE <= score <= ROUNDING


def locate_tokens(tokens: Sequence[str], text: str) -> list[int]:
    """Return the position in a text at which each of its tokens begins.

    Positions are not taken from the server, because servers differ in how they count a start
    token and the bytes of a character. A token that is not in the text, such as a part of the
    bytes of a character, is at the position after the last token; the next one is looked for
    after it.

    >>> locate_tokens(["<s>", "L'", "\ufffd", "\ufffd", "t", " Up"], "L'\u00e9t Up")
    [0, 0, 2, 2, 3, 4]

    Args:
        tokens: The tokens of the text, and perhaps others before and after it.
        text: The text.
    """
    offsets, end, n_skipped = [], 0, 0
    for token in tokens:
        start = text.find(token, end, end + n_skipped + len(token)) if token else -1
        if start < 0:
            offsets.append(end)
            n_skipped += len(token)
        else:
            offsets.append(start)
            end, n_skipped = start + len(token), 0
    return offsets


def _list_scores(body: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    """Return the tokens of the prompt, and their log-probabilities."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        raise MalformedReply("the answer has no choices")
    logprobs = choice.get("logprobs")
    names = ("tokens", "token_logprobs")
    columns: list[Any] = (
        [logprobs.get(name) for name in names] if isinstance(logprobs, Mapping) else []
    )
    if not columns or not all(isinstance(column, list) for column in columns):
        message = "the server returns no log-probabilities of the prompt (echo with logprobs)"
        raise MalformedReply(message, cause=NO_LIKELIHOOD)
    tokens, scores = columns
    if len(tokens) != len(scores):
        raise MalformedReply("the answer has not one log-probability for each token")
    return [as_text(token) for token in tokens], scores


def judge_failure(failure: Failure) -> Failure:
    """Return a failure; that of a server without likelihoods stops all requests."""
    if failure.cause in REFUSALS and _UNSUPPORTED.search(failure.message):
        return replace(failure, cause=NO_LIKELIHOOD, reaction="stop")
    return failure
