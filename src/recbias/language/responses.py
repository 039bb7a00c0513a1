"""Responses of a language model in this process to the contexts of dialogues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recbias.core.context import report_progress, warn
from recbias.core.errors import Contradiction, OutOfRange
from recbias.core.machine import release_between
from recbias.language.local_models import LocalModel, batch_by_tokens, find_token_type


@dataclass(frozen=True, kw_only=True)
class ResponseSettings:
    """How responses are generated.

    Args:
        max_new_tokens: The maximum number of tokens of a response.
        temperature: The sampling temperature; 0 is greedy.
        top_p: The probability mass that is sampled from.
        top_k: The number of tokens that are sampled from; 0 is all.
        seed: The seed of the sampling.
        batch_tokens: The number of tokens in a batch, contexts and responses.
        token_types: A token whose embedding is added to that of each other token.
    """

    max_new_tokens: int = 64
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    batch_tokens: int = 2048
    token_types: str | None = None


def generate_responses(
    model: LocalModel, contexts: Sequence[str], settings: ResponseSettings
) -> list[str]:
    """Return the response to each context, whose lines are the turns of two speakers.

    A model with a chat template reads the turns as messages, the last one by the user. Another
    causal model reads the lines and writes the next one: its text up to the end of the line. Of an
    encoder-decoder, the encoder reads the lines. The oldest turns of a context that is too long
    for the model are left out, which is counted in a warning.

    Raises:
        Contradiction: The model is masked and writes no text, or has no ``token_types``.
        OutOfRange: The model has no place for ``max_new_tokens`` after a context.
        UnknownIdentifier: The vocabulary does not have ``token_types``.
    """
    if model.kind == "masked":
        remedy = "name a causal model or an encoder-decoder"
        raise Contradiction("a masked model writes no responses", where="model", remedy=remedy)
    writer = _Writer(model, settings)
    prompts = [writer.write_prompt(context) for context in contexts]
    if writer.n_shortened:
        warn(
            f"{writer.n_shortened:,} of {len(contexts):,} contexts exceed the length of the model "
            "or of its chat template: their oldest turns are left out"
        )
    lengths = np.array([writer.count_tokens(prompt) for prompt in prompts], dtype=np.int64)
    batches = batch_by_tokens(lengths + settings.max_new_tokens, settings.batch_tokens)
    responses, n_completed = [""] * len(contexts), 0
    for number, rows in enumerate(release_between(batches)):
        generations = writer.model.generate(
            [prompts[row] for row in rows],
            max_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k,
            seed=settings.seed + number,
        )
        for row, generation in zip(rows.tolist(), generations, strict=True):
            text = generation.text.strip()
            is_line = not (writer.has_encoder or writer.has_template)
            responses[row] = text.partition("\n")[0].strip() if is_line else text
        n_completed += rows.size
        report_progress("responses generated", n_completed, len(contexts))
    return responses


class _Writer:
    """Writes prompts that fit into the model."""

    def __init__(self, model: LocalModel, settings: ResponseSettings) -> None:
        self.n_shortened = 0
        name = settings.token_types
        token_type = None if name is None else find_token_type(model, name)
        self.model = replace(model, token_type=token_type)
        self.has_encoder = model.kind == "encoder_decoder"
        self.has_template = not self.has_encoder and bool(model.tokenizer.chat_template)
        self.room = model.max_length - (0 if self.has_encoder else settings.max_new_tokens)
        if self.room < 1:
            message = f"a response of {settings.max_new_tokens:,} tokens fills the whole model"
            remedy = f"use fewer than its {model.max_length:,} tokens"
            raise OutOfRange(message, where="max_new_tokens", remedy=remedy)

    def write_prompt(self, context: str) -> str:
        """Return what the model reads of a context."""
        turns = [turn.strip() for turn in context.splitlines() if turn.strip()] or [""]
        remaining = turns
        while len(remaining) > 1 and not self._fits(remaining):
            remaining = remaining[1:]
        prompt = self._render(remaining)
        excess = self.count_tokens(prompt) - self.room
        if excess > 0:
            remaining = [self._cut(remaining[0], excess)]
            prompt = self._render(remaining)
        self.n_shortened += remaining != turns
        return prompt

    def _fits(self, turns: Sequence[str]) -> bool:
        try:
            return self.count_tokens(self._render(turns)) <= self.room
        except Contradiction:  # such as a template for conversations that the user begins
            return False

    def _render(self, turns: Sequence[str]) -> str:
        if self.has_encoder:
            return "\n".join(turns)
        if not self.has_template:
            return self.model.add_start("\n".join(turns) + "\n")
        roles = ("user", "assistant")
        n = len(turns)
        messages = [
            {"role": roles[(n - 1 - position) % 2], "content": turn}
            for position, turn in enumerate(turns)
        ]
        return self.model.render_chat(messages)

    def _cut(self, turn: str, excess: int) -> str:
        """Return the end of a turn, without its first tokens."""
        offsets = self.model.tokenizer(
            turn, add_special_tokens=False, return_offsets_mapping=True
        ).offset_mapping
        return turn[offsets[excess][0] :] if excess < len(offsets) else ""

    def count_tokens(self, prompt: str) -> int:
        """Return the number of tokens that the model reads of a prompt."""
        tokenizer = self.model.tokenizer
        return len(tokenizer(prompt, add_special_tokens=self.has_encoder).input_ids)
