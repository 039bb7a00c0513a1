"""The backend that answers requests by a model in this process, in batches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from recbias.language.causal_models import CausalModel, Generation, load_causal_model
from recbias.language.chat.failures import Failure
from recbias.language.chat.requests import ChatReply, ChatRequest, classify_text
from recbias.language.chat.settings import LanguageModel

SEED_DIGITS = 15
"""The hexadecimal digits of an address that seed the sampling of its reply."""


@dataclass(eq=False)
class TransformersBackend:
    """Answers requests by a causal model in this process.

    Greedy replies are generated in batches. A sampled reply is generated alone, from a generator
    seeded by the address of its request, so that it depends on no other request.

    Args:
        model: The model.
        batch_size: The number of requests in a batch.
    """

    model: CausalModel
    batch_size: int
    concurrency: int = 1

    def answer(self, requests: Sequence[ChatRequest]) -> Sequence[ChatReply | Failure]:
        """Return the reply to each request, or why there is none."""
        texts = [self._render(request) for request in requests]
        answers: list[ChatReply | Failure | None] = [
            self._check_length(text, request)
            for text, request in zip(texts, requests, strict=True)
        ]
        waiting = [index for index, answer in enumerate(answers) if answer is None]
        greedy = [index for index in waiting if not requests[index].decoding.temperature]
        sampled = [[index] for index in waiting if requests[index].decoding.temperature]
        for batch in filter(None, [greedy, *sampled]):
            generations = self._generate([texts[index] for index in batch], requests[batch[0]])
            for index, generation in zip(batch, generations, strict=True):
                answers[index] = _make_reply(generation)
        return [answer for answer in answers if answer is not None]

    def close(self) -> None:
        """Do nothing: the memory is released with the object."""

    def _render(self, request: ChatRequest) -> str:
        return self.model.render_chat(
            [{"role": message.role, "content": message.content} for message in request.messages]
        )

    def _check_length(self, text: str, request: ChatRequest) -> Failure | None:
        """Return why a prompt cannot be answered, None if it can."""
        n_tokens = len(self.model.tokenizer(text, add_special_tokens=False).input_ids)
        if n_tokens + request.decoding.max_tokens <= self.model.max_length:
            return None
        message = (
            f"a prompt of {n_tokens:,} tokens and a reply of {request.decoding.max_tokens:,} "
            f"exceed the {self.model.max_length:,} tokens of the model"
        )
        return Failure(cause="too long", message=message, reaction="reject")

    def _generate(self, texts: Sequence[str], request: ChatRequest) -> list[Generation]:
        decoding = request.decoding
        return self.model.generate(
            texts,
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature or 0.0,
            top_p=1.0 if decoding.top_p is None else decoding.top_p,
            top_k=decoding.top_k or 0,
            seed=int(request.address[:SEED_DIGITS], 16),
        )


def _make_reply(generation: Generation) -> ChatReply:
    is_cut = not generation.is_complete
    return ChatReply(
        text=generation.text,
        outcome=classify_text(generation.text, is_cut=is_cut, is_refused=False),
        prompt_tokens=generation.n_prompt,
        completion_tokens=generation.n_generated,
        finish_reason="length" if is_cut else "stop",
        time=time.time(),
    )


def load_transformers(model: LanguageModel) -> TransformersBackend:
    """Return the backend of a model.

    Raises:
        MissingFile: The model is not found.
        MissingExtra: A package that it needs is not installed.
    """
    causal_model = load_causal_model(
        model.model, model.revision or None, device=model.device or "auto"
    )
    return TransformersBackend(causal_model, model.concurrency)
