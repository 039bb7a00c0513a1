"""The bias loss of a batch of sentences under a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.errors import NothingLeft
from recbias.core.stage_context import record_fact, warn
from recbias.language.scoring.sentence_models import SentenceModel
from recbias.language.scoring.sentence_tokens import ScoringSettings, SentenceTokens
from recbias.language.terms.term_pairs import TermPairs, compile_terms
from recbias.models.ranking.tensors import Tensor
from recbias.models.sentences.debiasing.bias_losses import (
    compute_cosine_gap_loss,
    compute_log_ratio_loss,
    compute_projection_loss,
    compute_released_log_ratio_loss,
    compute_released_projection_loss,
    find_bias_subspace,
)
from recbias.models.sentences.debiasing.debias import Debias
from recbias.models.sentences.debiasing.term_occurrences import (
    TermOccurrences,
    find_occurrences,
    number_targets,
)
from recbias.models.sentences.debiasing.term_vectors import TermVectors


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of sentences after a pass of the model.

    Args:
        rows: The sentences, by position, ``int64[b]``.
        is_token: Which positions are not padding, ``bool (b, w)``.
        logits: The logits, ``(b, w, vocabulary)``; those at a position predict the next.
        states: The last hidden states, ``(b, w, d)``; None if no loss uses them.
    """

    rows: AnyArray
    is_token: Tensor
    logits: Tensor
    states: Tensor | None


class BiasLoss(Protocol):
    """Computes the bias loss of a batch."""

    reads_states: ClassVar[bool]

    def __call__(self, batch: Batch) -> Tensor:
        """Return the sum of the losses of the sentences."""


def create_bias_loss(
    debias: Debias,
    model: SentenceModel,
    texts: Sequence[str],
    tokens: SentenceTokens,
    settings: ScoringSettings,
    pairs: TermPairs,
) -> BiasLoss:
    """Return the bias loss of a method over training sentences; count those without a term.

    Raises:
        NothingLeft: No sentence has a term that the loss is about.
        Contradiction: The tokenizer does not give the places of tokens.
    """
    is_released = debias.reading == "released"
    vectors = TermVectors.create(model, pairs)
    if debias.method == "LMD" and is_released:
        occurs = _mark_first_terms(texts, pairs)
        _count_without_term(
            debias, np.invert(occurs.any(axis=1)), f"target term of {pairs.groups[0]}"
        )
        return ReleasedLogRatio(vectors, occurs)
    if debias.method == "LMD":
        numbers = number_targets(pairs, first_only=False)
    else:
        numbers = {term: number for number, term in enumerate(pairs.attribute_terms)}
    occurrences = find_occurrences(
        model, texts, tokens, settings, numbers, whole_words=pairs.whole_words
    )
    if debias.method == "LMD":
        occurrences = occurrences.take(occurrences.starts > 0)
    kind = "target" if debias.method == "LMD" else "attribute"
    if not len(occurrences):
        message = f"none of the {len(texts):,} sentences has {kind} terms of {pairs.category}"
        raise NothingLeft(message, where="terms", remedy="use other terms or another method")
    is_without = np.isin(np.arange(len(texts)), occurrences.sentences, invert=True)
    _count_without_term(debias, is_without, f"{kind} term of {pairs.category}")
    if debias.method == "LMD":
        return LogRatio(vectors, occurrences)
    if debias.method == "ADD":
        return (ReleasedCosineGap if is_released else CosineGap)(vectors, occurrences)
    basis = find_bias_subspace(*vectors.read_targets(is_input=not is_released)).detach()
    return (ReleasedProjection if is_released else Projection)(vectors, occurrences, basis)


@dataclass(frozen=True, eq=False)
class LogRatio:
    """LMD of the paper."""

    reads_states: ClassVar[bool] = False
    vectors: TermVectors
    occurrences: TermOccurrences

    def __call__(self, batch: Batch) -> Tensor:
        """Return the sum of the losses of the sentences."""
        import torch

        inside = self.occurrences.take_batch(batch.rows)
        logits = batch.logits[_index(inside.sentences), _index(inside.starts - 1)]
        sides = [logits.new_zeros(0)], [logits.new_zeros(0)]
        for pair in np.unique(inside.terms):
            rows = logits[_index(np.flatnonzero(inside.terms == pair))]
            for side, terms in zip(sides, (self.vectors.first, self.vectors.second), strict=True):
                side.append(rows[:, terms[pair]].mean(1))
        first, second = (torch.cat(side) for side in sides)
        return compute_log_ratio_loss(first, second, len(self.vectors.first))


@dataclass(frozen=True, eq=False)
class ReleasedLogRatio:
    """LMD of the released code; ``occurs`` is whether a sentence has the first term of a pair."""

    reads_states: ClassVar[bool] = True
    vectors: TermVectors
    occurs: BoolArray

    def __call__(self, batch: Batch) -> Tensor:
        """Return the sum of the losses of the sentences."""
        import torch

        first, second = self.vectors.read_targets(is_input=False)
        occurs = torch.from_numpy(self.occurs[batch.rows]).to(batch.is_token.device)
        return compute_released_log_ratio_loss(
            batch.states, batch.is_token, occurs, (first - second).detach()
        )


@dataclass(frozen=True, eq=False)
class CosineGap:
    """ADD of the paper."""

    reads_states: ClassVar[bool] = False
    vectors: TermVectors
    occurrences: TermOccurrences

    def __call__(self, batch: Batch) -> Tensor:
        """Return the sum of the losses of the sentences."""
        terms = _index(self.occurrences.take_batch(batch.rows).terms)
        attributes = self.vectors.read_attributes()[terms]
        return compute_cosine_gap_loss(attributes, *self.vectors.read_targets(is_input=True))


@dataclass(frozen=True, eq=False)
class ReleasedCosineGap:
    """ADD of the released code."""

    reads_states: ClassVar[bool] = True
    vectors: TermVectors
    occurrences: TermOccurrences

    def __call__(self, batch: Batch) -> Tensor:
        """Return the sum of the losses of the sentences."""
        states = _average_states(batch, self.occurrences)
        first, second = self.vectors.read_targets(is_input=False)
        return compute_cosine_gap_loss(states, first.detach(), second.detach())


@dataclass(frozen=True, eq=False)
class Projection:
    """HD of the paper."""

    reads_states: ClassVar[bool] = False
    vectors: TermVectors
    occurrences: TermOccurrences
    basis: Tensor

    def __call__(self, batch: Batch) -> Tensor:
        """Return the sum of the losses of the sentences."""
        terms = _index(self.occurrences.take_batch(batch.rows).terms)
        return compute_projection_loss(self.vectors.read_attributes()[terms], self.basis)


@dataclass(frozen=True, eq=False)
class ReleasedProjection:
    """HD of the released code."""

    reads_states: ClassVar[bool] = True
    vectors: TermVectors
    occurrences: TermOccurrences
    basis: Tensor

    def __call__(self, batch: Batch) -> Tensor:
        """Return the sum of the losses of the sentences."""
        states = _average_states(batch, self.occurrences)
        return compute_released_projection_loss(states, self.basis)


def _count_without_term(debias: Debias, is_without: BoolArray, noun: str) -> None:
    n_without = int(is_without.sum())
    record_fact("sentences_without_term", n_without)
    if n_without:
        count = f"{debias.method}: {n_without:,} of {is_without.size:,} sentences"
        warn(f"{count} have no {noun} and add no bias loss")


def _mark_first_terms(texts: Sequence[str], pairs: TermPairs) -> BoolArray:
    """Return whether each sentence has the first term of each target pair, ``bool[n, p]``."""
    patterns = [
        compile_terms((term,), whole_words=pairs.whole_words) for term in pairs.target_terms
    ]
    return np.array(
        [[bool(pattern.search(text)) for pattern in patterns] for text in texts], dtype=bool
    )


def _average_states(batch: Batch, occurrences: TermOccurrences) -> Tensor:
    """Return the mean last hidden state of the tokens of each occurrence, ``(m, d)``."""
    import torch

    inside = occurrences.take_batch(batch.rows)
    states: Any = batch.states
    spans = zip(inside.sentences, inside.starts, inside.ends, strict=True)
    means = [states[row, start:end].mean(0) for row, start, end in spans]
    return torch.stack(means) if means else states.new_zeros(0, states.shape[-1])


def _index(array: AnyArray) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64))
