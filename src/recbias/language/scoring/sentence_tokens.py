"""Sentences as tokens, and which of the tokens a model predicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.errors import Contradiction, UnknownIdentifier
from recbias.core.stage_context import warn
from recbias.language.backends import silence_transformers
from recbias.language.scoring.sentence_models import SentenceModel

EncoderInput: TypeAlias = Literal["empty", "masked"]
"""What the encoder of an encoder-decoder reads: nothing, or one mask in place of the sentence."""

SENTINEL = "<extra_id_0>"
"""The mask of a span of text of T5 and its relatives; they write it before the span, too."""

CHUNK = 16384  # Number of texts per call of the tokenizer


@dataclass(frozen=True, kw_only=True)
class ScoringSettings:
    """Which tokens of a sentence are scored, in which context, and in which batches.

    Args:
        special_tokens: Whether the sentence has the special tokens that the tokenizer puts around
            a text; those after its start are scored as well. None: only if the model is masked,
            whose special tokens are never scored.
        first_token: Whether the first token is scored, after the start token of the model. None:
            only if the model is masked, which has a context for it.
        encoder_input: What the encoder of an encoder-decoder reads.
        token_types: A token, such as ``[speaker1]``, whose embedding is added to that of each
            token, for causal models with embeddings of speakers.
        max_length: The largest number of tokens of a sentence that is scored, at most that of the
            model.
        batch_tokens: The number of tokens in a batch, with the padding.
    """

    special_tokens: bool | None = None
    first_token: bool | None = None
    encoder_input: EncoderInput = "empty"
    token_types: str | None = None
    max_length: int = 1024
    batch_tokens: int = 2048

    def complete(self, model: SentenceModel) -> ScoringSettings:
        """Return the settings for a model: without None, and with its maximum length.

        A tokenizer that puts no special tokens around a text is warned about.

        Raises:
            Contradiction: The model or its tokenizer cannot do what a setting says.
            UnknownIdentifier: The vocabulary does not have ``token_types``.
        """
        is_masked = model.kind == "masked"
        complete = replace(
            self,
            special_tokens=is_masked if self.special_tokens is None else self.special_tokens,
            first_token=is_masked if self.first_token is None else self.first_token,
            max_length=min(self.max_length, model.max_length),
        )
        if is_masked and model.tokenizer.mask_token_id is None:
            message = "the tokenizer of the model has no mask token"
            raise Contradiction(message, where="model", remedy="name a masked model such as BERT")
        if model.kind == "causal" and complete.first_token and model.start_token is None:
            message = "the tokenizer has neither a start nor an end token to score the first after"
            raise Contradiction(message, where="model", remedy="name another causal model")
        if self.token_types is not None:
            find_token_type(model, self.token_types)
        if self.special_tokens and not model.tokenizer.num_special_tokens_to_add():
            alone = "the tokenizer of the model puts no special tokens around a text"
            warn(f"special_tokens: {alone}, so sentences have none")
        return complete


@dataclass(frozen=True, eq=False)
class SentenceTokens:
    """The tokens of sentences, concatenated, and what is known of them before any is scored.

    Args:
        values: The tokens that the model reads, ``int64[t]``, with special ones.
        starts: The position of the first token of each sentence, ``int64[n + 1]``.
        is_scored: Whether the model predicts the token, ``bool[t]``.
        n_own: The number of tokens of the sentence itself, ``int64[n]``.
        n_unknown: The number of these that the vocabulary does not know, ``int64[n]``.
        is_blank: Whether the sentence has no text, ``bool[n]``.
    """

    values: AnyArray
    starts: AnyArray
    is_scored: BoolArray
    n_own: AnyArray
    n_unknown: AnyArray
    is_blank: BoolArray

    def __len__(self) -> int:
        """Return the number of sentences."""
        return self.starts.size - 1

    @property
    def lengths(self) -> AnyArray:
        """The number of tokens of each sentence that the model reads, ``int64[n]``."""
        return np.diff(self.starts)

    @property
    def n_scored(self) -> AnyArray:
        """The number of tokens of each sentence that the model predicts, ``int64[n]``."""
        sums = np.concatenate([[0], np.cumsum(self.is_scored)])
        return np.diff(sums[self.starts])

    def pad(self, rows: AnyArray, padding: int, width: int = 0) -> tuple[AnyArray, BoolArray]:
        """Return the tokens of some sentences, ``int64[b, w]``, and which are not padding."""
        lengths = self.lengths[rows]
        columns = np.arange(width or lengths.max(initial=1))  # longer ones are cut
        is_token = columns < lengths[:, None]
        tokens = np.full(is_token.shape, padding, dtype=np.int64)
        tokens[is_token] = self.values[(self.starts[rows][:, None] + columns)[is_token]]
        return tokens, is_token


def tokenize_sentences(
    model: SentenceModel, texts: Sequence[str | None], settings: ScoringSettings
) -> SentenceTokens:
    """Return the tokens of sentences; ``settings`` are complete."""
    prefix = _find_prefix(model, settings)
    tokens: list[list[int]] = []
    scored: list[BoolArray] = []
    counts = np.zeros((2, len(texts)), dtype=np.int64)
    for row, (ids, is_special) in enumerate(_tokenize(model, texts, settings)):
        is_own = ~np.array(is_special, dtype=bool)
        counts[:, row] = is_own.sum(), _count_unknown(model, np.array(ids)[is_own])
        is_predicted = is_own if model.kind == "masked" else np.ones(len(ids), dtype=bool)
        added = prefix if ids[: len(prefix)] != prefix or model.kind != "causal" else []
        is_predicted = np.concatenate([np.zeros(len(added), dtype=bool), is_predicted])
        if not (settings.first_token and (added or model.kind == "masked")):
            is_predicted[len(added) : len(added) + 1] = False
        tokens.append([*added, *ids])
        scored.append(is_predicted)
    lengths = np.array([len(ids) for ids in tokens], dtype=np.int64)
    return SentenceTokens(
        np.concatenate([np.array(ids, dtype=np.int64) for ids in [[], *tokens]]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([np.zeros(0, dtype=bool), *scored]),
        counts[0],
        counts[1],
        np.array([not (text or "").strip() for text in texts], dtype=bool),
    )


def _tokenize(
    model: SentenceModel, texts: Sequence[str | None], settings: ScoringSettings
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the tokens of each text, and which are special."""
    for start in range(0, len(texts), CHUNK):
        chunk = [text or "" for text in texts[start : start + CHUNK]]
        with silence_transformers():
            encoded = model.tokenizer(
                chunk,
                add_special_tokens=settings.special_tokens,
                return_special_tokens_mask=True,
            )
        yield from zip(encoded.input_ids, encoded.special_tokens_mask, strict=True)


def _count_unknown(model: SentenceModel, tokens: AnyArray) -> int:
    """Return the number of unknown tokens; a token that also ends texts stands for nothing."""
    tokenizer = model.tokenizer
    unknown = tokenizer.unk_token_id
    special = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id}
    return 0 if unknown is None or unknown in special else int((tokens == unknown).sum())


def _find_prefix(model: SentenceModel, settings: ScoringSettings) -> list[int]:
    """Return the tokens before each sentence, which are not scored.

    Raises:
        Contradiction: The model has no such token.
    """
    if model.kind == "masked":
        return []
    if model.kind == "causal":
        first = model.start_token if settings.first_token else None
        return [] if first is None else [first]
    start = find_decoder_start(model)
    sentinel = _find_sentinel(model)
    has_sentinel = settings.encoder_input == "masked" and sentinel is not None
    return [start, sentinel] if has_sentinel and sentinel is not None else [start]


def find_decoder_start(model: SentenceModel) -> int:
    """Return the token that the decoder starts with; Contradiction if there is none."""
    configs = (model.network.config, model.network.generation_config)
    tokens = [config.decoder_start_token_id for config in configs] + [model.start_token]
    start = next((token for token in tokens if token is not None), None)
    if start is None:
        message = "the configuration of the model names no decoder_start_token_id"
        raise Contradiction(message, where="model", remedy="add it to config.json")
    return int(start)


def make_encoder_input(model: SentenceModel, settings: ScoringSettings) -> list[int]:
    """Return the tokens that the encoder of an encoder-decoder reads; at least one.

    Raises:
        Contradiction: The tokenizer has no mask.
    """
    text = ""
    if settings.encoder_input == "masked":
        text = SENTINEL if _find_sentinel(model) is not None else model.tokenizer.mask_token
        if text is None:
            message = "the tokenizer has no token for a masked text"
            remedy = "use encoder_input: empty"
            raise Contradiction(message, where="encoder_input", remedy=remedy)
    tokens: list[int] = model.tokenizer(text).input_ids
    return tokens or [find_decoder_start(model)]


def _find_sentinel(model: SentenceModel) -> int | None:
    token = model.tokenizer.get_vocab().get(SENTINEL)
    return None if token is None else int(token)


def find_token_type(model: SentenceModel, name: str) -> int:
    """Return the number of the token whose embedding is added to that of each token.

    Raises:
        Contradiction: The model adds no embeddings of token types.
        UnknownIdentifier: The vocabulary does not have the token.
    """
    if model.kind != "causal" or not _has_speakers(model.network):
        message = f"a model of the type {model.network.config.model_type} has no speakers"
        raise Contradiction(message, where="token_types", remedy="leave token_types out")
    token = model.tokenizer.get_vocab().get(name)
    if token is None:
        message = f"the vocabulary of the model has no token {name!r}"
        remedy = "name a token of the vocabulary, such as [speaker1] of CDial-GPT"
        raise UnknownIdentifier(message, where="token_types", remedy=remedy)
    return int(token)


def _has_speakers(network: Any) -> bool:
    """Return whether token types are tokens of the vocabulary: those of BERT are segments."""
    is_read = "token_type_ids" in signature(network.forward).parameters
    return is_read and not hasattr(network.config, "type_vocab_size")
