"""A language model that answers queries: pretrained, or with the weights of a training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.outputs.text_outputs import Responses, SentenceScores
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.language.responses import ResponseSettings, generate_responses
from recbias.language.scoring.sentence_models import SentenceModel
from recbias.language.scoring.sentence_scoring import score_sentences
from recbias.language.scoring.sentence_tokens import ScoringSettings
from recbias.models.ranking.tensors import copy_to_array
from recbias.models.sentences.sentence_queries import (
    CONTEXT,
    GROUP,
    PAIR,
    REFERENCE,
    TEXT,
    SentenceQueries,
)
from recbias.models.training.fine_tuning_plan import LearningCurve

WEIGHT = "weight."
CURVE, CURVE_NAMES, STEPS = "curve", "curve_names", "steps_per_epoch"
"""The names of arrays in a state: of weights (a prefix), and of the learning curve."""


class LanguageModelSettings(Protocol):
    """The settings that a fitted language model uses."""

    @property
    def scoring(self) -> ScoringSettings:
        """How sentences are scored."""

    @property
    def generation(self) -> ResponseSettings:
        """How responses are generated."""

    def load(self) -> SentenceModel:
        """Return the pretrained model."""


@dataclass(frozen=True, eq=False)
class FittedLanguageModel:
    """A language model that answers queries; it is loaded when it is first used.

    Args:
        settings: The model.
        trained: The model with other weights than the pretrained ones, if it is in memory.
        curve: The losses of each step of its training.
        stored: The state of a training; empty if there was none.
    """

    settings: LanguageModelSettings
    trained: SentenceModel | None = None
    curve: LearningCurve | None = None
    stored: State = field(default_factory=dict)

    @classmethod
    def restore(cls, settings: LanguageModelSettings, state: State) -> FittedLanguageModel:
        """Return the fitted model of a state."""
        if not state:
            return cls(settings)
        names = tuple(str(state[CURVE_NAMES]).split())
        curve = LearningCurve(names, state[CURVE], int(state[STEPS]))
        return cls(settings, None, curve, state)

    def state(self) -> State:
        """Return the weights after a training and its losses; nothing without a training."""
        if self.trained is None or self.curve is None:
            return self.stored
        weights = self.trained.network.named_parameters()
        return {
            **{f"{WEIGHT}{name}": copy_to_array(tensor) for name, tensor in weights},
            CURVE: self.curve.values,
            CURVE_NAMES: np.array(" ".join(self.curve.names)),
            STEPS: np.array(self.curve.steps_per_epoch),
        }

    def learning_curve(self) -> pd.DataFrame | None:
        """Return the losses: ``step`` from 1, ``epoch`` from 1, ``loss`` (its name), ``value``."""
        if self.curve is None:
            return None
        n_steps, n_parts = self.curve.values.shape
        steps = np.arange(n_steps)
        return pd.DataFrame(
            {
                "epoch": np.repeat(steps // self.curve.steps_per_epoch + 1, n_parts),
                "step": np.repeat(steps + 1, n_parts),
                "loss": np.tile(np.array(self.curve.names, dtype=object), n_steps),
                "value": self.curve.values.ravel(),
            }
        )

    @cached_property
    def model(self) -> SentenceModel:
        """The model that answers."""
        if self.trained is not None:
            return self.trained
        model = self.settings.load()
        if self.stored:
            _copy_weights(model, self.stored)
        return model

    def sentence_scores(self, queries: Queries) -> SentenceScores:
        """Return the perplexities of the queries with a group."""
        sentences = SentenceQueries.read(queries).take_sentences()
        cells = sentences.cells
        perplexity = np.empty(0)
        if len(sentences):
            likelihoods = score_sentences(self.model, cells[TEXT].tolist(), self.settings.scoring)
            for problem in likelihoods.describe_problems(sentences.ids):
                warn(problem)
            perplexity = likelihoods.perplexity
        return SentenceScores(
            sentences.ids, cells[PAIR], cells[GROUP], perplexity, sentences.labels
        )

    def responses(self, queries: Queries) -> Responses:
        """Return the responses to the queries with a context or a reference."""
        dialogues = SentenceQueries.read(queries).take_dialogues()
        contexts = [context or "" for context in dialogues.cells[CONTEXT]]
        if contexts and self.model.kind == "masked":
            warn(f"{len(contexts):,} contexts have no response: a masked model writes no text")
            dialogues, contexts = dialogues.take_none(), []
        texts: list[str] = []
        if contexts:
            texts = generate_responses(self.model, contexts, self.settings.generation)
        responses: Ids = np.array(texts, dtype=object)
        return Responses(dialogues.ids, responses, dialogues.cells[REFERENCE], dialogues.labels)


def _copy_weights(model: SentenceModel, state: Mapping[str, np.ndarray]) -> None:
    import torch

    with torch.no_grad():
        for name, tensor in model.network.named_parameters():
            tensor.copy_(torch.from_numpy(state[f"{WEIGHT}{name}"]))
