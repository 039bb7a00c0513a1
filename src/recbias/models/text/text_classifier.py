"""A pretrained encoder with a linear layer on top: which item is a text about?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, Ids
from recbias.core.outputs.sentences import MASK
from recbias.core.stage_context import report_progress
from recbias.language.backends import load_encoder, load_tokenizer
from recbias.language.model_folders import Source
from recbias.models.ranking.tensors import Tensor, copy_to_array
from recbias.models.text.text_ranking import Blocks
from recbias.models.text.token_files import WIDTHS, Tokens, tokenised

Pooling: TypeAlias = Literal["first", "mean"]
"""What of the encoder's last layer stands for a text: its first token, or the mean of all."""

Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]
"""What matrix products are made in: ``auto`` is bfloat16 on CUDA and float32 elsewhere."""

COMMIT = "commit"
"""What the encoder's commit is called among the weights."""

TOKENS_AT_ONCE = 2**14
"""Tokens that are read at once where nothing is learned."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How texts are read.

    Args:
        pooling: What of the encoder's last layer stands for a text.
        dropout: Share of it that is dropped in training.
        encoder_dropout: Whether the encoder drops by chance within itself in training, as much as
            its pretraining did.
        max_length: Tokens of a text that are read, special ones among them; an encoder that
            cannot read so many reads what it can.
        precision: What matrix products are made in.
    """

    pooling: Pooling
    dropout: float = 0.0
    encoder_dropout: bool = True
    max_length: int = 512
    precision: Precision = "auto"


@dataclass(frozen=True, eq=False)
class TextClassifier:
    """The network ``softmax(W dropout(h) + b)``, ``h`` being the encoder's state of a text.

    Args:
        module: A ``torch`` module of an ``encoder`` and a linear ``head``.
        tokenizer: The encoder's tokenizer.
        reading: How texts are read.
        commit: The commit of the hub that the encoder is; None for one that is of no hub.
    """

    module: Any
    tokenizer: Any
    reading: Reading
    commit: str | None = None

    @classmethod
    def made(
        cls,
        source: Source,
        n_classes: int,
        reading: Reading,
        weights: Mapping[str, AnyArray] | None = None,
    ) -> TextClassifier:
        """Return a network with pretrained weights and an untrained head, or with given weights.

        The head is drawn from the random state of the process, which the caller sets.

        Args:
            source: Where the encoder lies.
            n_classes: How many items there are to tell apart.
            reading: How texts are read.
            weights: The state of an earlier network of the same kind.
        """
        import torch

        encoder = load_encoder(source, weights=weights is None)
        head = torch.nn.Linear(encoder.config.hidden_size, n_classes)
        module = torch.nn.ModuleDict({"encoder": encoder, "head": head})
        if weights is not None:
            known = {name: each for name, each in weights.items() if name != COMMIT}
            module.load_state_dict({name: torch.from_numpy(each) for name, each in known.items()})
        else:
            torch.nn.init.normal_(head.weight, std=0.02)
            torch.nn.init.zeros_(head.bias)
        tokenizer = load_tokenizer(source)
        most = min(reading.max_length, longest(encoder, tokenizer))
        return cls(module.eval(), tokenizer, replace(reading, max_length=most), source.commit)

    @property
    def device(self) -> Any:
        """Where it is."""
        return self.module["head"].weight.device

    def weights(self) -> Mapping[str, AnyArray]:
        """Return the state of the network, by name, and the commit that its encoder is."""
        found = {name: copy_to_array(each) for name, each in self.module.state_dict().items()}
        return {**found, **commit_state(self.commit)}

    def autocast(self) -> Any:
        """Return the context in which matrix products are of the precision asked for."""
        import torch

        kind = self.device.type
        asked = self.reading.precision
        short = asked == "bfloat16" or (asked == "auto" and kind == "cuda")
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=short)

    def _exactly(self) -> Any:
        """Return a context in float32: classes whose logits were rounded would often tie."""
        import torch

        return torch.autocast(self.device.type, enabled=False)

    def prepared(self, texts: Ids) -> Ids:
        """Return texts with the tokenizer's own mask token, or nothing where it has none."""
        own = self.tokenizer.mask_token or ""
        if own == MASK:
            return texts
        return np.array([each.replace(MASK, own) for each in texts], dtype=object)

    def states(self, tokens: Tokens, rows: AnyArray) -> Tensor:
        """Return ``h`` of some texts, ``(b, hidden)``."""
        import torch

        encoder = self.module["encoder"]
        encoder.train(self.module.training and self.reading.encoder_dropout)
        ids, inside = tokens.padded(rows, self.tokenizer.pad_token_id or 0)
        mask = torch.from_numpy(inside).to(self.device)
        last = encoder(
            input_ids=torch.from_numpy(ids).to(self.device), attention_mask=mask.long()
        ).last_hidden_state
        if self.reading.pooling == "first":
            return last[:, 0]
        weights = mask.unsqueeze(-1).to(last.dtype)
        return (last * weights).sum(1) / weights.sum(1)

    def logits(self, tokens: Tokens, rows: AnyArray) -> Tensor:
        """Return the logits of some texts, ``float32 (b, n_classes)``."""
        from torch.nn.functional import dropout

        states = self.states(tokens, rows).float()
        kept = dropout(states, self.reading.dropout, training=self.module.training)
        with self._exactly():
            return self.module["head"](kept)

    def blocks(self, texts: Ids, *, what: str = "texts read") -> Blocks:
        """Yield the log-chances of the classes, batch by batch of texts about as long.

        Args:
            texts: The texts.
            what: What the progress is called.
        """
        with self._tokens(texts) as tokens:
            yield from self.chances(tokens, what=what)

    def state_blocks(self, texts: Ids) -> Blocks:
        """Yield positions of some texts and their states, ``float32 (b, hidden)``."""
        with self._tokens(texts) as tokens:
            yield from self.states_of(tokens)

    def states_of(self, tokens: Tokens) -> Blocks:
        """Yield positions and states of texts that are tokens already."""
        return self._read(tokens, lambda rows: self.states(tokens, rows).float(), "texts read")

    def chances(self, tokens: Tokens, *, what: str) -> Blocks:
        """Yield the log-chances of the classes for texts that are tokens already."""
        return self._read(tokens, lambda rows: self.logits(tokens, rows).log_softmax(1), what)

    def _tokens(self, texts: Ids) -> AbstractContextManager[Tokens]:
        return tokenised(self.prepared(texts), self.tokenizer, self.reading.max_length)

    def _read(self, tokens: Tokens, take: Callable[[AnyArray], Tensor], what: str) -> Blocks:
        import torch

        done, training = 0, self.module.training
        self.module.eval()
        for rows in by_tokens(tokens.lengths, TOKENS_AT_ONCE):
            with torch.inference_mode(), self.autocast():
                found = take(rows).cpu().numpy()
            done += rows.size
            report_progress(what, done, len(tokens))
            yield rows, found
        self.module.train(training)


def commit_state(commit: str | None) -> Mapping[str, AnyArray]:
    """Return a commit as an array by its name in a state, nothing for None.

    >>> commit_of(commit_state("0123abc")), commit_of({})
    ('0123abc', None)
    """
    return {} if commit is None else {COMMIT: np.frombuffer(commit.encode(), dtype=np.uint8)}


def commit_of(weights: Mapping[str, AnyArray] | None) -> str | None:
    """Return the commit that a state was learned from."""
    return None if weights is None or COMMIT not in weights else weights[COMMIT].tobytes().decode()


def longest(encoder: Any, tokenizer: Any) -> int:
    """Return the number of tokens that an encoder can read at once.

    Positions that are counted from behind the padding token's code, as RoBERTa's are, leave fewer
    than there are vectors for. Batches are padded to a multiple of ``WIDTHS``, so it is one.
    """
    most = int(tokenizer.model_max_length)
    positions = getattr(encoder.config, "max_position_embeddings", None) or 0
    if positions > 0:
        named = encoder.named_modules()
        tables = [each for name, each in named if name.endswith("position_embeddings")]
        padding = [getattr(each, "padding_idx", None) for each in tables]
        skipped = max((each + 1 for each in padding if each is not None), default=0)
        most = min(most, positions - skipped)
    return max(most - most % WIDTHS, 1)


def by_tokens(lengths: AnyArray, most: int) -> Sequence[AnyArray]:
    """Return the positions of texts, the shortest first, in batches of about ``most`` tokens.

    >>> [each.tolist() for each in by_tokens(np.array([3, 1, 2, 3]), 4)]
    [[1, 2], [0], [3]]
    """
    order = np.argsort(lengths, kind="stable")
    batches, start = [], 0
    while start < order.size:
        ahead = order[start : start + most]
        widths = lengths[ahead] * np.arange(1, ahead.size + 1)
        fits = max(1, int(np.searchsorted(widths, most, side="right")))
        batches.append(order[start : start + fits])
        start += fits
    return batches
