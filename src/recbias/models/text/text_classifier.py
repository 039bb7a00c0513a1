"""A pretrained encoder with a linear classification layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, Ids
from recbias.core.outputs.text_outputs import MASK
from recbias.core.stage_context import report_progress
from recbias.language.backends import count_positions, load_encoder, load_tokenizer
from recbias.language.model_folders import Source
from recbias.models.ranking.tensors import (
    Tensor,
    copy_to_array,
    copy_to_device,
    is_out_of_memory,
)
from recbias.models.text.text_ranking import Blocks
from recbias.models.text.token_files import WIDTHS, Tokens, tokenize_texts
from recbias.numerics.devices import Precision, choose_precision
from recbias.numerics.texts.token_batches import batch_by_tokens

Pooling: TypeAlias = Literal["first", "mean"]
"""The state of a text: the last layer's state of the first token, or the mean over all tokens."""

COMMIT = "commit"  # The name of the encoder's commit among the stored weights
MAX_BATCH_TOKENS = 2**14  # Number of tokens per batch outside training
DEVICE_BATCH_TOKENS = 2**17  # The same on a GPU, which is done with a smaller batch too soon


@dataclass(frozen=True, kw_only=True)
class EncodingSettings:
    """How texts are encoded."""

    pooling: Pooling  # How the state of a text is computed from the last layer
    dropout: float = 0.0  # Dropout rate of the state in training
    encoder_dropout: bool = True  # Whether the encoder's own dropout layers are active in training
    # Maximum number of tokens per text, including special tokens; limited by the encoder's
    # maximum
    max_length: int = 512
    precision: Precision = "auto"  # The type of matrix products


@dataclass(frozen=True, eq=False)
class TextClassifier:
    """The network ``softmax(W dropout(h) + b)``, where ``h`` is the encoder's state of a text."""

    module: Any  # A ``torch`` module with an ``encoder`` and a linear ``head``
    tokenizer: Any  # The encoder's tokenizer
    encoding: EncodingSettings  # How texts are encoded
    commit: str | None = None  # The commit of the encoder on the hub; None for a local encoder

    @classmethod
    def create(
        cls,
        source: Source,
        n_classes: int,
        encoding: EncodingSettings,
        weights: Mapping[str, AnyArray] | None = None,
    ) -> TextClassifier:
        """Return a network with pretrained weights and a random head, or with stored weights.

        The head is initialized from the global random state of torch, which the caller sets.
        """
        import torch

        encoder = load_encoder(source, weights=weights is None)
        head = torch.nn.Linear(encoder.config.hidden_size, n_classes)
        module = torch.nn.ModuleDict({"encoder": encoder, "head": head})
        if weights is not None:
            arrays = {name: array for name, array in weights.items() if name != COMMIT}
            module.load_state_dict({name: torch.from_numpy(arrays[name]) for name in arrays})
        else:
            torch.nn.init.normal_(head.weight, std=0.02)
            torch.nn.init.zeros_(head.bias)
        tokenizer = load_tokenizer(source)
        max_length = min(encoding.max_length, find_max_length(encoder, tokenizer))
        return cls(
            module.eval(), tokenizer, replace(encoding, max_length=max_length), source.commit
        )

    @property
    def device(self) -> Any:
        """The device of the weights."""
        return self.module["head"].weight.device

    def weights(self) -> Mapping[str, AnyArray]:
        """Return the weights by name, and the commit of the encoder."""
        tensors = self.module.state_dict()
        weights = {name: copy_to_array(tensor) for name, tensor in tensors.items()}
        return {**weights, **encode_commit(self.commit)}

    def autocast(self) -> Any:
        """Return the context in which matrix products have the precision of the settings."""
        import torch

        kind = self.device.type
        is_reduced = choose_precision(self.encoding.precision, kind) == "bfloat16"
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=is_reduced)

    def replace_masks(self, texts: Ids) -> Ids:
        """Replace ``[MASK]`` by the tokenizer's mask token, or remove it if there is none."""
        mask_token = self.tokenizer.mask_token or ""
        if mask_token == MASK:
            return texts
        return np.array([text.replace(MASK, mask_token) for text in texts], dtype=object)

    def tokenize(self, texts: Ids) -> AbstractContextManager[Tokens]:
        """Return the context of the tokens of texts."""
        return tokenize_texts(self.replace_masks(texts), self.tokenizer, self.encoding.max_length)

    def states(self, tokens: Tokens, rows: AnyArray) -> Tensor:
        """Return ``h`` of a batch of texts, ``(b, hidden)``."""
        encoder = self.module["encoder"]
        is_training = self.module.training and self.encoding.encoder_dropout
        if encoder.training != is_training:  # the call visits all layers
            encoder.train(is_training)
        ids, mask_array = tokens.pad_rows(rows, self.tokenizer.pad_token_id or 0)
        inputs, mask = (copy_to_device(array, self.device) for array in (ids, mask_array))
        states = encoder(input_ids=inputs, attention_mask=mask.long()).last_hidden_state
        if self.encoding.pooling == "first":
            return states[:, 0]
        weights = mask.unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1)

    def logits(self, tokens: Tokens, rows: AnyArray) -> Tensor:
        """Return the logits of a batch of texts, ``float32 (b, n_classes)``."""
        import torch
        from torch.nn.functional import dropout

        states = self.states(tokens, rows).float()
        inputs = dropout(states, self.encoding.dropout, training=self.module.training)
        with torch.autocast(self.device.type, enabled=False):  # rounded logits would often tie
            return self.module["head"](inputs)

    def classify(self, texts: Ids, *, label: str = "texts classified") -> Blocks:
        """Yield the log-probabilities of the classes, in batches of texts of similar length."""
        with self.tokenize(texts) as tokens:
            yield from self.read_log_probabilities(tokens, label=label)

    def encode(self, texts: Ids) -> Blocks:
        """Yield positions of texts and their states, ``float32 (b, hidden)``."""
        with self.tokenize(texts) as tokens:
            yield from self.encode_tokens(tokens)

    def encode_tokens(self, tokens: Tokens) -> Blocks:
        """Yield positions and states of tokenized texts."""
        return self._infer(tokens, lambda rows: self.states(tokens, rows).float(), "texts encoded")

    def read_log_probabilities(self, tokens: Tokens, *, label: str) -> Blocks:
        """Yield positions of tokenized texts and their log-probabilities of the classes."""
        return self._infer(tokens, lambda rows: self.logits(tokens, rows).log_softmax(1), label)

    def _infer(self, tokens: Tokens, compute: Callable[[AnyArray], Tensor], label: str) -> Blocks:
        import torch

        n_completed, is_training = 0, self.module.training
        self.module.eval()
        is_cpu = self.device.type == "cpu"
        size = MAX_BATCH_TOKENS if is_cpu else DEVICE_BATCH_TOKENS
        batches = [*batch_by_tokens(tokens.lengths, size)][::-1]
        while batches:
            rows = batches.pop()
            try:
                with torch.inference_mode(), self.autocast():
                    block = compute(rows).cpu().numpy()
            except RuntimeError as error:
                if is_cpu or rows.size == 1 or not is_out_of_memory(error):
                    raise
                batches += np.array_split(rows, 2)[::-1]
                continue
            n_completed += rows.size
            report_progress(label, n_completed, len(tokens))
            yield rows, block
        self.module.train(is_training)


def encode_commit(commit: str | None) -> Mapping[str, AnyArray]:
    """Return a commit as an array of a state; nothing for None.

    >>> decode_commit(encode_commit("0123abc")), decode_commit({})
    ('0123abc', None)
    """
    return {} if commit is None else {COMMIT: np.frombuffer(commit.encode(), dtype=np.uint8)}


def decode_commit(weights: Mapping[str, AnyArray] | None) -> str | None:
    """Return the commit of the encoder in stored weights, None if there is none."""
    return None if weights is None or COMMIT not in weights else weights[COMMIT].tobytes().decode()


def find_max_length(encoder: Any, tokenizer: Any) -> int:
    """Return the maximum number of tokens of an encoder, a multiple of ``WIDTHS``."""
    max_length = count_positions(encoder, tokenizer)
    return max(max_length - max_length % WIDTHS, 1)
