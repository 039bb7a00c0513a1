"""Log-probabilities of the tokens of sentences, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.machine.memory import release_between
from recbias.core.stage_context import report_progress
from recbias.language.backends import silence_transformers
from recbias.language.scoring.sentence_models import SentenceModel
from recbias.language.scoring.sentence_tokens import (
    ScoringSettings,
    SentenceTokens,
    find_token_type,
    make_encoder_input,
)
from recbias.language.scoring.shared_prefixes import SharedPrefixes
from recbias.language.scoring.target_probabilities import compute_logits, read_targets
from recbias.numerics.texts.token_batches import batch_by_tokens

MAX_LOGITS = 2**28
"""The largest number of logits in memory: a gibibyte in single precision."""


def compute_log_probabilities(
    model: SentenceModel, tokens: SentenceTokens, rows: AnyArray, settings: ScoringSettings
) -> FloatArray:
    """Return the log-probability of each token, ``float64[t]``; NaN where it is not scored.

    Args:
        model: The model.
        tokens: The sentences.
        rows: The sentences to score, by position.
        settings: The complete settings.
    """
    import torch

    values = np.full(tokens.values.size, np.nan)
    scored = np.flatnonzero(tokens.is_scored)
    owners = np.searchsorted(tokens.starts, scored, side="right") - 1
    scored, owners = (array[np.isin(owners, rows)] for array in (scored, owners))
    if not scored.size:
        return values
    n_vocabulary = int(model.network.get_input_embeddings().weight.shape[0])
    size = limit_batch(settings.batch_tokens, n_vocabulary)
    n_completed = 0
    with torch.inference_mode(), silence_transformers():
        shared = None
        parts: Iterator[tuple[AnyArray, FloatArray]]
        if model.kind == "causal" and settings.token_types is None:
            shared = SharedPrefixes.find(model, tokens, np.unique(owners), size)
        if shared is not None:
            parts = map(shared.evaluate, shared.trees)
        else:
            parts = _evaluate_batches(model, tokens, settings, scored, owners, size)
        for positions, part in release_between(parts):
            values[positions] = part
            n_completed += positions.size
            report_progress("tokens scored", n_completed, scored.size)
    return values


def limit_batch(n_tokens: int, n_vocabulary: int) -> int:
    """Return the number of tokens of a batch whose logits fit into the memory for them.

    >>> limit_batch(4096, 2**18)
    1024
    """
    return max(1, min(n_tokens, MAX_LOGITS // max(n_vocabulary, 1)))


def _evaluate_batches(
    model: SentenceModel,
    tokens: SentenceTokens,
    settings: ScoringSettings,
    scored: AnyArray,
    owners: AnyArray,
    size: int,
) -> Iterator[tuple[AnyArray, FloatArray]]:
    """Yield positions of tokens and their log-probabilities, in padded batches."""
    batches = _split_masks if model.kind == "masked" else _split_sentences
    evaluate = _Evaluation(model, tokens, settings)
    for batch in batches(tokens, owners, size):
        yield scored[batch], evaluate(owners[batch], scored[batch])


def _split_sentences(tokens: SentenceTokens, owners: AnyArray, size: int) -> Iterator[AnyArray]:
    """Yield batches of scored tokens: those of whole sentences."""
    rows, firsts, counts = np.unique(owners, return_index=True, return_counts=True)
    for batch in batch_by_tokens(tokens.lengths[rows], size):
        parts = [np.arange(firsts[row], firsts[row] + counts[row]) for row in batch]
        yield np.concatenate(parts)


def _split_masks(tokens: SentenceTokens, owners: AnyArray, size: int) -> Iterator[AnyArray]:
    """Yield batches of scored tokens, each of which is masked in a copy of its sentence."""
    yield from batch_by_tokens(tokens.lengths[owners], size)


def make_inputs(
    model: SentenceModel, settings: ScoringSettings, values: AnyArray, is_token: AnyArray
) -> dict[str, Any]:
    """Return the inputs of the network of a model for padded sentences.

    Args:
        model: The model.
        settings: The complete settings.
        values: The tokens, ``int64[b, w]``; an encoder-decoder reads them in its decoder.
        is_token: Which are not padding, ``bool[b, w]``.
    """
    import torch

    ids = torch.from_numpy(values).to(model.device)
    mask = torch.from_numpy(is_token).long().to(model.device)
    fixed: dict[str, Any] = {} if model.kind == "masked" else {"use_cache": False}
    if model.kind != "encoder_decoder":
        inputs = {"input_ids": ids, "attention_mask": mask, **fixed}
        if settings.token_types is not None:
            token = find_token_type(model, settings.token_types)
            inputs["token_type_ids"] = torch.full_like(ids, token)
        return inputs
    read = torch.tensor([make_encoder_input(model, settings)], device=model.device)
    read = read.expand(len(ids), -1)
    return {
        "input_ids": read,
        "attention_mask": torch.ones_like(read),
        "decoder_input_ids": ids,
        "decoder_attention_mask": mask,
        **fixed,
    }


class _Evaluation:
    """The passes of a model over the batches of its kind."""

    def __init__(
        self, model: SentenceModel, tokens: SentenceTokens, settings: ScoringSettings
    ) -> None:
        self.model, self.tokens, self.settings = model, tokens, settings

    def __call__(self, owners: AnyArray, positions: AnyArray) -> FloatArray:
        """Return the log-probabilities of tokens, by their sentences and positions."""
        tokens, columns = self.tokens, positions - self.tokens.starts[owners]
        if self.model.kind == "masked":
            rows, lines = owners, np.arange(owners.size)
        else:
            rows, lines = np.unique(owners, return_inverse=True)
        values, is_token = tokens.pad(rows, self.model.tokenizer.pad_token_id or 0)
        targets = values[lines, columns]
        if self.model.kind == "masked":
            values[lines, columns] = self.model.tokenizer.mask_token_id
        else:
            columns = columns - 1
        inputs = make_inputs(self.model, self.settings, values, is_token)
        model = self.model
        logits = compute_logits(model.network, model.body, inputs, lines, columns)
        return read_targets(logits, targets, np.arange(targets.size))
