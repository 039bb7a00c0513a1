"""Scripts of a completions server that repeats the prompt with its log-probabilities."""

from __future__ import annotations

from typing import Any

from recbias.language.local_models import LocalModel
from support.chat.chat_server import Answer, Script


def make_echo(model: LocalModel) -> Script:
    """Return a script that answers by a model in this process, in the format of OpenAI."""
    import torch

    def answer(payload: dict[str, Any]) -> Answer:
        codes = model.encode(payload["prompt"])
        with torch.inference_mode():
            logits = model.network(torch.tensor([codes])).logits[0].float()
        scores = logits.log_softmax(dim=-1)
        following = [int(scores[-1].argmax())] * payload["max_tokens"]
        log_probabilities = [
            None,
            *(float(scores[row, code]) for row, code in enumerate([*codes, *following][1:])),
        ]
        tokens = [model.tokenizer.decode([code]) for code in [*codes, *following]]
        return Answer(make_echo_reply(tokens, log_probabilities))

    return answer


def make_echo_reply(tokens: list[str], log_probabilities: list[float | None]) -> dict[str, Any]:
    """Return the JSON of a completion with ``echo``."""
    offsets = [len("".join(tokens[:row])) for row in range(len(tokens))]
    logprobs = {
        "tokens": tokens,
        "token_logprobs": log_probabilities,
        "text_offset": offsets,
        "top_logprobs": None,
    }
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "model": "small",
        "choices": [{"index": 0, "text": "".join(tokens), "logprobs": logprobs}],
        "usage": {"prompt_tokens": len(tokens), "completion_tokens": 0},
    }
