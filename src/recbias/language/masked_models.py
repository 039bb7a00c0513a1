"""Masked language models in this process: what they predict at masked words of many sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.errors import Contradiction
from recbias.core.machine.memory import release_between
from recbias.core.models.devices import Device
from recbias.language.backends import (
    describe_failure,
    load_config,
    load_tokenizer,
    load_weights,
    silence_transformers,
)
from recbias.language.causal_model_files import locate_at_model
from recbias.language.model_folders import Source, find_model
from recbias.language.scoring.target_probabilities import compute_logits
from recbias.language.token_spans import TokenSpans
from recbias.numerics.devices import resolve_device
from recbias.numerics.texts.token_batches import batch_by_tokens, pad_tokens

MAX_MASKS = 256
"""The number of masks in a batch: the logits of each are as many as the vocabulary has tokens."""


@dataclass(frozen=True, eq=False)
class MaskedModel:
    """A masked language model with its tokenizer; its weights are loaded when they are needed.

    Args:
        source: Where the model is.
        tokenizer: The tokenizer.
        device: Where it computes.
    """

    source: Source
    tokenizer: Any
    device: Device = "auto"

    @classmethod
    def load(
        cls, name: str, revision: str | None = None, *, device: Device = "auto"
    ) -> MaskedModel:
        """Return a model.

        Args:
            name: A folder, an installed package, or a model of the Hugging Face hub.
            revision: A commit, tag or branch of the hub; None for its main branch.
            device: Where it computes.

        Raises:
            MissingFile: The model is not found, or cannot be read.
            Contradiction: Its tokenizer has no mask token.
        """
        with locate_at_model():
            source = find_model(name, revision)
            tokenizer = load_tokenizer(source)
        if tokenizer.mask_token_id is None:
            message = f"the tokenizer of {name} has no mask token: it is no masked language model"
            remedy = "name a masked model such as bert-base-uncased, or use detector: causal_lm"
            raise Contradiction(message, where="model", remedy=remedy)
        return cls(source, tokenizer, device)

    @cached_property
    def network(self) -> Any:
        """The ``torch`` module with its masked-language-model head, in evaluation mode.

        Raises:
            MissingFile: It cannot be read, or a weight is missing, which would be random.
        """
        import transformers

        auto: Any = transformers.AutoModelForMaskedLM
        with locate_at_model():
            config = load_config(self.source)
            with silence_transformers(), describe_failure("weights", self.source):
                network = load_weights(auto, self.source, config=config)
        return network.to(resolve_device(self.device)).eval()

    def find_token(self, word: str) -> int | None:
        """Return the token of a word within a sentence, None if the tokenizer divides it."""
        tokens = self.tokenizer(f" {word}", add_special_tokens=False).input_ids
        is_known = len(tokens) == 1 and tokens[0] != self.tokenizer.unk_token_id
        return int(tokens[0]) if is_known else None

    @property
    def max_length(self) -> int:
        """The number of tokens that the model can read."""
        config = load_config(self.source)
        n = int(getattr(config, "max_position_embeddings", 0) or 2**31)
        if "roberta" in config.model_type:  # its positions begin after that of the padding
            n -= config.pad_token_id + 1
        return min(n, int(self.tokenizer.model_max_length))

    def predict(
        self,
        sentences: Sequence[str],
        spans: AnyArray,
        tokens: AnyArray,
        *,
        tokens_per_batch: int = 4096,
        is_normalized: bool = True,
    ) -> tuple[FloatArray, BoolArray]:
        """Return ln p(token | the sentence with one span masked), and which were shortened.

        All masks of a batch are in one pass; the head is applied to the masks only. Of a sentence
        that is longer than the model can read, the tokens around the mask are read.

        Args:
            sentences: The sentences.
            spans: The sentence, and the first and last character of each span, ``int64[m, 3]``.
            tokens: The tokens whose probabilities are returned, ``int64[t]``.
            tokens_per_batch: The number of tokens in a pass, padding included.
            is_normalized: Whether to normalize over the vocabulary; without, the logits of the
                other tokens are not computed, and each row has a constant of its own.

        Returns:
            ``float64[m, t]``, and of each span whether its sentence was shortened, ``bool[m]``.
        """
        import torch

        masked = _MaskedSpans(self, TokenSpans.from_sentences(self.tokenizer, sentences, spans))
        values = np.empty((len(spans), len(tokens)))
        columns = torch.from_numpy(np.asarray(tokens, dtype=np.int64)).to(self.network.device)
        distinct, places = masked.find_distinct()
        batches = batch_by_tokens(masked.lengths[distinct], tokens_per_batch, MAX_MASKS)
        for part in release_between(batches):
            rows = distinct[part]
            ids, positions, n_tokens = masked.fill(rows)
            with _select_logits(self.network, None if is_normalized else columns):
                logits = self._predict_masks(ids, positions, n_tokens).float()
            if is_normalized:
                logits = logits[:, columns] - logits.logsumexp(-1, keepdim=True)
            values[rows] = logits.double().cpu().numpy()
        return values[distinct][places], masked.is_shortened

    def _predict_masks(self, ids: AnyArray, positions: AnyArray, n_tokens: AnyArray) -> Any:
        """Return the logits at one position of each row, ``(n, vocabulary)``."""
        import torch

        network = self.network
        is_token = np.arange(ids.shape[1]) < n_tokens[:, None]
        inputs = {"input_ids": ids, "attention_mask": is_token.astype(np.int64)}
        tensors = {
            name: torch.from_numpy(array).to(network.device) for name, array in inputs.items()
        }
        with torch.inference_mode():
            return compute_logits(
                network, network.base_model, tensors, np.arange(len(ids)), positions
            )


@contextmanager
def _select_logits(network: Any, tokens: Any) -> Iterator[None]:
    """Compute the logits of some tokens only; None for all."""
    from torch.nn.functional import linear

    output = network.get_output_embeddings()

    def project(states: Any) -> Any:
        bias = None if output.bias is None else output.bias[tokens]
        return linear(states, output.weight[tokens], bias)

    if tokens is not None:
        output.forward = project
    try:
        yield
    finally:
        vars(output).pop("forward", None)


@dataclass(frozen=True, eq=False)
class _MaskedSpans:
    """Sentences with one masked span each, between the special tokens of the model."""

    model: MaskedModel
    tokens: TokenSpans

    @cached_property
    def special(self) -> tuple[list[int], list[int]]:
        """The tokens before and after a text."""
        tokenizer = self.model.tokenizer
        ids = tokenizer(tokenizer.mask_token).input_ids
        at = ids.index(tokenizer.mask_token_id)
        return ids[:at], ids[at + 1 :]

    @cached_property
    def room(self) -> int:
        """The number of tokens of a sentence that can be read."""
        return self.model.max_length - sum(map(len, self.special))

    @cached_property
    def full_lengths(self) -> AnyArray:
        """The number of tokens of each sentence with its mask, ``int64[m]``."""
        return np.asarray(self.tokens.sizes - (self.tokens.ends - self.tokens.starts) + 1)

    @property
    def is_shortened(self) -> AnyArray:
        """Which sentences are longer than the model can read, ``bool[m]``."""
        return np.asarray(self.full_lengths > self.room)

    @property
    def lengths(self) -> AnyArray:
        """The number of tokens of each row, ``int64[m]``."""
        return np.minimum(self.full_lengths, self.room) + sum(map(len, self.special))

    def fill(self, rows: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Return the tokens, the position of the mask and the length of rows."""
        filled = [self._fill_row(int(row)) for row in rows]
        padding = self.model.tokenizer.pad_token_id or 0
        lengths = np.array([len(ids) for ids, _ in filled])
        positions = np.array([position for _, position in filled])
        return pad_tokens([ids for ids, _ in filled], padding), positions, lengths

    def find_distinct(self) -> tuple[AnyArray, AnyArray]:
        """Return the first row of each distinct window, and the window of each row."""
        numbers: dict[bytes, int] = {}
        first: list[int] = []
        places = np.empty(len(self.tokens.sentence), dtype=np.int64)
        for row in range(len(places)):
            ids, position = self._fill_row(row)
            key = np.array([position, *ids], dtype=np.int64).tobytes()
            places[row] = numbers.setdefault(key, len(numbers))
            if places[row] == len(first):
                first.append(row)
        return np.array(first, dtype=np.int64), places

    def _fill_row(self, row: int) -> tuple[list[int], int]:
        before, after = self.special
        ids = self.tokens.ids[self.tokens.sentence[row]]
        start, end = int(self.tokens.starts[row]), int(self.tokens.ends[row])
        n_after = len(ids) - end
        n_left = min(start, max((self.room - 1) // 2, self.room - 1 - n_after))
        n_right = min(n_after, self.room - 1 - n_left)
        left, right = ids[start - n_left : start], ids[end : end + n_right]
        mask = self.model.tokenizer.mask_token_id
        return [*before, *left, mask, *right, *after], len(before) + n_left
