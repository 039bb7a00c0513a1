"""Fine-tuning of a language model on sentences, with a bias loss beside its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import NothingLeft
from recbias.language.backends import silence_transformers
from recbias.language.scoring.sentence_models import SentenceModel
from recbias.language.scoring.sentence_tokens import (
    ScoringSettings,
    SentenceTokens,
    tokenize_sentences,
)
from recbias.language.scoring.token_likelihood import make_inputs
from recbias.models.ranking.tensors import Tensor, copy_to_device
from recbias.models.sentences.debiasing.bias_of_batch import Batch, BiasLoss, create_bias_loss
from recbias.models.sentences.debiasing.debias import Debias
from recbias.models.sentences.debiasing.training_sentences import TrainingSentences
from recbias.models.training.fine_tuning import fine_tune
from recbias.models.training.fine_tuning_plan import FineTuning, LearningCurve
from recbias.numerics.devices import Precision, choose_precision

WIDTHS = 8
"""A GPU reads batches that are padded to a multiple of this number of tokens."""

LANGUAGE_MODEL, BIAS = "language_model", "bias"
"""The parts of the loss."""

WORSE_THAN_CHANCE = 1.5
"""Cross-entropy above this multiple of that of a uniform distribution is divergence."""


def debias_model(
    model: SentenceModel,
    training: TrainingSentences,
    debias: Debias,
    scoring: ScoringSettings,
    plan: FineTuning,
    rng: np.random.Generator,
) -> LearningCurve:
    """Fine-tune a causal model or an encoder-decoder in place; return the losses of each step.

    Raises:
        NothingLeft: No sentence has a term that the method is about, or a token to predict.
        OutOfRange: The training diverges.
        TooLittleMemory: The device has too little memory for a batch.
    """
    settings = scoring.complete(model)
    texts = training.augment(debias)
    tokens = tokenize_sentences(model, texts, settings)
    if not tokens.n_scored.any():
        message = "no training sentence has a token to predict"
        raise NothingLeft(message, remedy="train on sentences of several words")
    bias = None
    if debias.has_bias_loss:
        bias = create_bias_loss(debias, model, texts, tokens, settings, training.pairs)
    task = SentenceTraining(model, tokens, settings, bias, debias, plan.precision)
    with silence_transformers():
        return fine_tune(task, plan, rng)


@dataclass(eq=False)
class SentenceTraining:
    """Predict the tokens of training sentences, and reduce a bias loss.

    The language-model loss of a step is the mean over its scored tokens, in however many batches
    they are computed, and so is a bias loss of ``reading: paper`` the mean over its sentences. A
    bias loss of ``reading: released`` is about a batch as a whole: that of a step is the mean over
    its batches, weighted by their sentences, and differs from that of one large batch.

    Args:
        model: The model to be trained.
        tokens: The sentences.
        settings: Which tokens are predicted, complete.
        bias: The bias loss; None for the language-model loss alone.
        debias: The weights of the losses.
        precision: The type of matrix products.
    """

    model: SentenceModel
    tokens: SentenceTokens
    settings: ScoringSettings
    bias: BiasLoss | None
    debias: Debias
    precision: Precision = "float32"
    has_validation_texts: ClassVar[bool] = False
    _parts: dict[str, Tensor] = field(default_factory=dict)
    _tokens_per_sentence: float | None = None

    @property
    def module(self) -> Any:
        """The network."""
        return self.model.network

    @property
    def body(self) -> Any:
        """The network without its head, unless a bias loss reads the states of its layers."""
        is_whole = self.model.body is self.model.network
        reads_states = self.bias is not None and self.bias.reads_states
        return None if is_whole or reads_states else self.model.body

    @cached_property
    def lengths(self) -> AnyArray:
        """The number of tokens of each sentence that are read."""
        return np.minimum(self.tokens.lengths, self.settings.max_length)

    @cached_property
    def n_scored(self) -> AnyArray:
        """The number of tokens of each sentence that are predicted, ``int64[n]``."""
        tokens = self.tokens
        starts = np.repeat(tokens.starts[:-1], tokens.lengths)
        columns = np.arange(starts.size) - starts
        is_read = (columns > 0) & (columns < self.settings.max_length)
        owners = np.repeat(np.arange(tokens.lengths.size), tokens.lengths)
        return np.bincount(owners, tokens.is_scored & is_read, tokens.lengths.size)

    @property
    def part_names(self) -> tuple[str, ...]:
        """The losses."""
        return (LANGUAGE_MODEL,) if self.bias is None else (LANGUAGE_MODEL, BIAS)

    @property
    def limits(self) -> Mapping[str, float]:
        """The cross-entropy of a model that is much worse than chance."""
        n_vocabulary = int(self.module.get_input_embeddings().weight.shape[0])
        return {LANGUAGE_MODEL: WORSE_THAN_CHANCE * math.log(n_vocabulary)}

    def prepare_step(self, rows: AnyArray) -> None:
        """Count the scored tokens of the sentences of a step."""
        self._tokens_per_sentence = self._average_tokens(rows)

    def loss(self, rows: AnyArray) -> Tensor:
        """Return the share of a batch in the loss of its step, times its number of sentences.

        Without a step, the batch is the step.
        """
        average = self._tokens_per_sentence or self._average_tokens(rows)
        batch, cross_entropy = self._run(rows)
        language_model = cross_entropy / (average * rows.size)
        if self.bias is None:
            self._parts = {LANGUAGE_MODEL: language_model.detach() * rows.size}
            return language_model * rows.size
        bias = self.bias(batch)
        is_released = self.debias.reading == "released"
        bias = bias if is_released else bias / rows.size
        lm_weight, bias_weight = self.debias.weights
        total = lm_weight * language_model + bias_weight * bias
        if is_released and float(bias.detach()) == 0:
            total = language_model
        losses = {LANGUAGE_MODEL: language_model, BIAS: bias}
        self._parts = {name: loss.detach() * rows.size for name, loss in losses.items()}
        return total * rows.size

    def read_parts(self) -> Mapping[str, Tensor]:
        """Return the losses of the last batch times its number of sentences, without weights."""
        return self._parts

    def validation_score(self) -> float:
        """Return NaN, since there are no validation texts."""
        return math.nan

    def _average_tokens(self, rows: AnyArray) -> float:
        return max(int(self.n_scored[rows].sum()), 1) / rows.size

    def _run(self, rows: AnyArray) -> tuple[Batch, Tensor]:
        """Return a batch after a pass of the model, and the sum of its cross-entropies."""
        import torch
        from torch.nn.functional import cross_entropy

        kind = self.model.device.type
        width = int(self.lengths[rows].max(initial=1))
        if kind == "cuda":  # which is fastest at such widths, and captures passes of each
            width = min(-(-width // WIDTHS) * WIDTHS, self.settings.max_length)
        padding = self.model.tokenizer.pad_token_id or 0
        values, is_token = self.tokens.pad(rows, padding, width)
        reads_states = self.bias is not None and self.bias.reads_states
        inputs = make_inputs(self.model, self.settings, values, is_token)
        is_reduced = choose_precision(self.precision, kind) == "bfloat16"
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=is_reduced):
            output = self.module(**inputs, output_hidden_states=reads_states)
        lines, columns = np.nonzero(is_token[:, 1:])
        is_scored = self.tokens.is_scored[self.tokens.starts[rows][lines] + columns + 1]
        lines, columns = lines[is_scored], columns[is_scored]
        targets = copy_to_device(values[lines, columns + 1], self.model.device)
        predicted = output.logits[torch.from_numpy(lines), torch.from_numpy(columns)].float()
        total = cross_entropy(predicted, targets, reduction="sum")
        states = None
        if reads_states:
            is_pair = self.model.kind == "encoder_decoder"
            states = (output.decoder_hidden_states if is_pair else output.hidden_states)[-1]
        mask = copy_to_device(is_token, self.model.device)
        return Batch(rows, mask, output.logits, states), total
