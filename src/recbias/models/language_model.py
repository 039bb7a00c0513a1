"""A language model in this process that scores sentences and responds to dialogues.

It is pretrained, or has the weights of a training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Le

from recbias.core.context import report_progress, warn
from recbias.core.dataset import AnyArray, Ids, Queries, TrainingData
from recbias.core.errors import Contradiction, OutOfRange, UnknownColumn
from recbias.core.evidence import Responses, SentenceScores
from recbias.core.machine import release_between
from recbias.core.plugins import (
    EXECUTION,
    Device,
    InputFile,
    ModelName,
    OnlyWith,
    Output,
    State,
    select_settings,
)
from recbias.kernels import devices
from recbias.kernels.devices import OnDevice
from recbias.language.likelihood import score_sentences
from recbias.language.local_models import (
    EncoderInput,
    LocalModel,
    Precision,
    ScoringSettings,
    batch_by_tokens,
    check_sentence_model,
    find_token_type,
    load_model,
)
from recbias.language.model_files import list_model_files
from recbias.models.debias import Debias, TrainingSentences, debias_model
from recbias.models.fine_tuning import FineTuning, LearningCurve
from recbias.models.gpu import copy_to_array

_TEXT, _PAIR, _GROUP = "text", "pair_id", "group"
_CONTEXT, _REFERENCE = "context", "reference"
_COLUMNS = (_TEXT, _PAIR, _GROUP, _CONTEXT, _REFERENCE)
"""The labels of queries that have a meaning; all others are labels of the sentences."""


@dataclass(frozen=True, eq=False)
class _SentenceQueries:
    """Queries with texts: sentences, or contexts of a dialogue.

    Args:
        ids: The identifiers of the queries.
        cells: The columns ``text``, ``pair_id``, ``group``, ``context`` and ``reference`` as text,
            None where missing.
        labels: The other labels.
    """

    ids: Ids
    cells: dict[str, Ids]
    labels: pd.DataFrame

    @classmethod
    def read(cls, queries: Queries) -> _SentenceQueries:
        """Return the texts of queries, in the column ``text`` of a table where they have none."""
        frame = queries.labels.frame.reset_index(drop=True)
        cells = {name: _read_texts(frame, name) for name in _COLUMNS}
        if queries.texts is not None:
            cells[_TEXT] = queries.texts
        labels = frame.drop(columns=[name for name in _COLUMNS if name in frame])
        return cls(queries.ids.ids, cells, labels)

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.ids)

    def take_sentences(self) -> _SentenceQueries:
        """Return the queries about a group.

        Raises:
            UnknownColumn: They have no texts.
        """
        return _require_texts(self._take(_has_value(self.cells[_GROUP])), _TEXT)

    def take_dialogues(self) -> _SentenceQueries:
        """Return the queries with a context or a reference; the context may be the text.

        Raises:
            UnknownColumn: They have no texts.
        """
        has_context, has_reference = (
            _has_value(self.cells[name]) for name in (_CONTEXT, _REFERENCE)
        )
        dialogues = self._take(has_context | has_reference)
        cells = dialogues.cells
        contexts = np.where(_has_value(cells[_CONTEXT]), cells[_CONTEXT], cells[_TEXT])
        cells = {**cells, _CONTEXT: contexts}
        return _require_texts(replace(dialogues, cells=cells), _CONTEXT)

    def take_none(self) -> _SentenceQueries:
        """Return no query, with the same columns."""
        return self._take(np.zeros(len(self), dtype=bool))

    def _take(self, is_taken: AnyArray) -> _SentenceQueries:
        rows = np.flatnonzero(is_taken)
        cells = {name: column[rows] for name, column in self.cells.items()}
        return _SentenceQueries(
            self.ids[rows], cells, self.labels.iloc[rows].reset_index(drop=True)
        )


def _require_texts(queries: _SentenceQueries, name: str) -> _SentenceQueries:
    if len(queries) and not _has_value(queries.cells[name]).any():
        message = f"none of the {len(queries):,} queries has a {name}"
        remedy = "use queries with texts, or add a column `text` to the table of queries"
        raise UnknownColumn(message, where="queries", remedy=remedy)
    return queries


def _read_texts(frame: pd.DataFrame, name: str) -> Ids:
    """Return a column as text, None where missing; a number as it is written."""
    if name not in frame:
        return np.full(len(frame), None, dtype=object)
    return np.array([_write(cell) for cell in frame[name]], dtype=object)


def _write(cell: Any) -> str | None:
    if isinstance(cell, float):
        return None if np.isnan(cell) else np.format_float_positional(cell, trim="-")
    return None if cell is None else str(cell)


def _has_value(column: Ids) -> AnyArray:
    return np.array([cell is not None and bool(cell.strip()) for cell in column], dtype=bool)


_WEIGHT = "weight."
_CURVE, _CURVE_NAMES, _STEPS = "curve", "curve_names", "steps_per_epoch"
"""The names of arrays in a state: of weights (a prefix), and of the learning curve."""


@dataclass(frozen=True, eq=False)
class FittedLanguageModel:
    """A language model that answers queries; it is loaded when it is first used.

    Args:
        settings: The model.
        trained: The model with other weights than the pretrained ones, if it is in memory.
        curve: The losses of each step of its training.
        stored: The state of a training; empty if there was none.
    """

    settings: Any
    trained: LocalModel | None = None
    curve: LearningCurve | None = None
    stored: State = field(default_factory=dict)

    @classmethod
    def restore(cls, settings: Any, state: State) -> FittedLanguageModel:
        """Return the fitted model of a state."""
        if not state:
            return cls(settings)
        names = tuple(str(state[_CURVE_NAMES]).split())
        curve = LearningCurve(names, state[_CURVE], int(state[_STEPS]))
        return cls(settings, None, curve, state)

    def state(self) -> State:
        """Return the weights after a training and its losses; nothing without a training."""
        if self.trained is None or self.curve is None:
            return self.stored
        weights = self.trained.network.named_parameters()
        return {
            **{f"{_WEIGHT}{name}": copy_to_array(tensor) for name, tensor in weights},
            _CURVE: self.curve.values,
            _CURVE_NAMES: np.array(" ".join(self.curve.names)),
            _STEPS: np.array(self.curve.steps_per_epoch),
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
    def model(self) -> LocalModel:
        """The model that answers."""
        if self.trained is not None:
            return self.trained
        model: LocalModel = self.settings.load()
        if self.stored:
            _copy_weights(model, self.stored)
        return model

    def sentence_scores(self, queries: Queries) -> SentenceScores:
        """Return the perplexities of the queries with a group."""
        sentences = _SentenceQueries.read(queries).take_sentences()
        cells = sentences.cells
        perplexity = np.empty(0)
        if len(sentences):
            likelihoods = score_sentences(self.model, cells[_TEXT].tolist(), self.settings.scoring)
            for problem in likelihoods.describe_problems(sentences.ids):
                warn(problem)
            perplexity = likelihoods.perplexity
        return SentenceScores(
            sentences.ids, cells[_PAIR], cells[_GROUP], perplexity, sentences.labels
        )

    def responses(self, queries: Queries) -> Responses:
        """Return the responses to the queries with a context or a reference."""
        dialogues = _SentenceQueries.read(queries).take_dialogues()
        contexts = [context or "" for context in dialogues.cells[_CONTEXT]]
        if contexts and self.model.kind == "masked":
            warn(f"{len(contexts):,} contexts have no response: a masked model writes no text")
            dialogues, contexts = dialogues.take_none(), []
        texts: list[str] = []
        if contexts:
            texts = generate_responses(self.model, contexts, self.settings)
        responses: Ids = np.array(texts, dtype=object)
        return Responses(dialogues.ids, responses, dialogues.cells[_REFERENCE], dialogues.labels)


def _copy_weights(model: LocalModel, state: Mapping[str, np.ndarray]) -> None:
    import torch

    with torch.no_grad():
        for name, tensor in model.network.named_parameters():
            tensor.copy_(torch.from_numpy(state[f"{_WEIGHT}{name}"]))


def generate_responses(
    model: LocalModel, contexts: Sequence[str], settings: SentenceLanguageModel
) -> list[str]:
    """Return the response to each context, whose lines are the turns of two speakers.

    A model with a chat template reads the turns as messages, the last one by the user. Another
    causal model reads the lines and writes the next one: its text up to the end of the line. Of an
    encoder-decoder, the encoder reads the lines. The oldest turns of a context that is too long
    for the model are left out, which is counted in a warning.

    Raises:
        Contradiction: The model has no ``token_types``.
        OutOfRange: The model has no place for ``max_new_tokens`` after a context.
        UnknownIdentifier: The vocabulary does not have ``token_types``.
    """
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

    def __init__(self, model: LocalModel, settings: SentenceLanguageModel) -> None:
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


_TRAINING = frozenset(
    {"debias", "terms", "epochs", "batch_size", "accumulate", "learning_rate"}
    | {"training_precision"}
)
"""The settings that only a training uses."""


@dataclass(frozen=True, kw_only=True)
class SentenceLanguageModel(OnDevice):
    """Score sentences by a language model in the process, and let it respond to dialogues.

        PPL(x) = exp( -(1/m) Σ_i ln p(x_i | c_i) )

    where the m scored tokens and their contexts c_i depend on the model. A causal model: the
    tokens x_2 to x_n, each after those before it. An encoder-decoder: the same tokens in the
    decoder, while the encoder reads an empty text. A masked model: all tokens, each with the
    others around it (pseudo-perplexity). Sentences that are empty, too long, or of one token
    without a context have no perplexity and are counted in warnings.

    The sentences are the queries with a ``group``, and ``pair_id`` joins the versions of one
    sentence; both are labels. Queries with a label ``context`` (turns of a dialogue, one in a
    line) or ``reference`` have a response, to the text of the query where there is no context.

    Args:
        model: A folder, a ``.gguf`` file, an installed package that contains either, or a model of
            the Hugging Face hub. Its kind is read from its configuration.
        revision: A commit, tag or branch of the hub; None for its main branch.
        special_tokens: Whether sentences have the special tokens of the tokenizer around them;
            those after the start are scored too. None: only for a masked model, which never
            scores them. CHBias has none.
        first_token: Whether the first token is scored, after the start token of the model. None:
            only for a masked model. CHBias does not score it.
        encoder_input: What the encoder of an encoder-decoder reads: ``empty``, or ``masked``: one
            mask in place of the whole sentence, which the decoder fills, as T5 was trained to.
        token_types: A token of the vocabulary, such as ``[speaker1]`` of CDial-GPT, whose
            embedding is added to that of each token of a sentence, or of a context and its
            response; None for no such embedding.
        max_length: The largest number of tokens of a sentence, at most that of the model.
        batch_tokens: The number of tokens in a batch, which limits the memory.
        max_new_tokens: The maximum number of tokens of a response.
        temperature: The sampling temperature of responses; 0 is greedy.
        top_p: The probability mass that responses are sampled from.
        top_k: The number of tokens that responses are sampled from; 0 for all.
        seed: The seed of sampled responses.
        precision: The type of the weights in memory.
        device: Where the model computes.
        debias: ``{method: LMD, weight: 10}`` fine-tunes the model on the training sentences of the
            dataset by Adam without weight decay, while the learning rate falls linearly to 0.
            Methods are LMD, ADD, HD, CADA and CTDA. ``category`` names that of the terms where
            there are several; ``reading: released`` has the losses of the authors' code, with
            ``lm_weight``. docs/papers/chbias.md has the formulas.
        terms: The pairs of target and attribute terms: ``chbias``, or a YAML file.
        epochs: The number of epochs of the debiasing.
        batch_size: The number of sentences in memory at once.
        accumulate: The number of batches whose gradients are averaged in one step: a step is over
            ``batch_size * accumulate`` sentences. Its language-model loss is that of one batch of
            this size; so is a bias loss of ``reading: paper``, but not one of ``released``.
        learning_rate: The learning rate of the first step.
        training_precision: The type of matrix products in the debiasing; ``auto`` is bfloat16 on
            CUDA and float32 elsewhere. Weights have ``precision``.

    Raises:
        MissingFile: The model is not found, has weights of another format than ``safetensors``,
            or lacks those of its head.
        MissingExtra: A package that reads a ``.gguf`` file is not installed.
        Contradiction: The model or its tokenizer cannot do what a setting says.
        UnknownIdentifier: The vocabulary does not have ``token_types``.
        UnknownColumn: The queries have no texts.
        NothingLeft: No training sentence has a term that the debiasing is about.
        OutOfRange: The debiasing diverges.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 4, and its released code; Salazar, Liang, Nguyen
        and Kirchhoff, "Masked language model scoring", ACL 2020 (masked models).

    >>> model = SentenceLanguageModel(model="./my-model", first_token=True)
    >>> model.scoring.first_token, model.scoring.special_tokens
    (True, None)
    """

    after_fit: ClassVar[frozenset[str]] = frozenset(
        {"max_new_tokens", "temperature", "top_p", "top_k", "seed", "batch_tokens"}
    )
    provides: ClassVar[frozenset[Output]] = frozenset({"sentence_scores", "responses"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "tokenizers")

    model: ModelName
    revision: str | None = None
    special_tokens: bool | None = None
    first_token: bool | None = None
    encoder_input: EncoderInput = "empty"
    token_types: str | None = None
    max_length: Annotated[int, Gt(0)] = 1024
    batch_tokens: Annotated[int, Gt(0), EXECUTION] = 2048
    max_new_tokens: Annotated[int, Gt(0)] = 64
    temperature: Annotated[float, Ge(0)] = 0.0
    top_p: Annotated[float, Gt(0), Le(1), OnlyWith("temperature")] = 1.0
    top_k: Annotated[int, Ge(0), OnlyWith("temperature")] = 0
    seed: Annotated[int, Ge(0), OnlyWith("temperature")] = 0
    precision: Precision = "float32"
    device: Device = "auto"
    debias: Debias | None = None
    terms: Annotated[Literal["chbias"] | InputFile, OnlyWith("debias")] = "chbias"
    epochs: Annotated[int, Gt(0), OnlyWith("debias")] = 2
    batch_size: Annotated[int, Gt(0), OnlyWith("debias")] = 8
    accumulate: Annotated[int, Gt(0), OnlyWith("debias")] = 1
    learning_rate: Annotated[float, Gt(0), OnlyWith("debias")] = 5e-5
    training_precision: Annotated[devices.Precision, OnlyWith("debias")] = "auto"

    def __post_init__(self) -> None:
        """Refuse a training in reduced precision."""
        if self.debias is not None and self.precision != "float32":
            message = f"the steps of the debiasing vanish in {self.precision}"
            raise Contradiction(message, where="precision", remedy="use precision: float32")

    @property
    def scoring(self) -> ScoringSettings:
        """How sentences are scored."""
        return select_settings(self, ScoringSettings)

    def model_files(self) -> Sequence[Path]:
        """Return the files of the model; none for one of a hub."""
        return list_model_files(self.model)

    def list_labels(self, queries: Queries) -> Sequence[str]:
        """Return the labels of the queries, which sentences and responses share."""
        return queries.labels.names

    def needs_now(self) -> frozenset[str]:
        """Return the sentences to train on, if the model is debiased."""
        return frozenset() if self.debias is None else frozenset({"sentences"})

    def check_data(self, data: TrainingData) -> None:
        """Refuse a model that is not available, and sentences that it cannot be debiased on."""
        kind = check_sentence_model(self.model, self.revision)
        if self.debias is None:
            return
        if kind == "masked":
            message = "a masked model cannot be debiased, as it does not predict the next token"
            remedy = "name a causal model or an encoder-decoder"
            raise Contradiction(message, where="debias", remedy=remedy)
        TrainingSentences.select(data, self.debias, self.terms)

    def choose_device(self, default: Device) -> Mapping[str, str]:
        """Return the device of this machine, and the type of matrix products of a debiasing."""
        chosen = super().choose_device(default)
        if self.debias is None:
            return chosen
        precision = devices.choose_precision(self.training_precision, chosen["device"])
        return {**chosen, "training_precision": precision}

    def load(self) -> LocalModel:
        """Return the pretrained model."""
        return load_model(self.model, self.revision, precision=self.precision, device=self.device)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedLanguageModel:
        """Return the pretrained model, or the debiased one."""
        if self.debias is None:
            return FittedLanguageModel(self)
        training = TrainingSentences.select(data, self.debias, self.terms)
        model = self.load()
        curve = debias_model(model, training, self.debias, self.scoring, self.plan, rng)
        return FittedLanguageModel(self, model, curve)

    def restore(self, state: State) -> FittedLanguageModel:
        """Return the model of a stored state."""
        return FittedLanguageModel.restore(self, state)

    @property
    def plan(self) -> FineTuning:
        """The optimization of the debiasing."""
        weight = self.debias.weights[1] if self.debias and self.debias.has_bias_loss else 0.0
        return FineTuning(
            name=f"language_model with {self.debias.method}" if self.debias else "",
            epochs=self.epochs,
            batch_size=self.batch_size * self.accumulate,
            batch_parts=self.accumulate,
            learning_rate=self.learning_rate,
            warmup=0.0,
            weight_decay=0.0,
            risk=("debias.weight", weight) if weight else None,
            memory_setting="batch_size",
            precision=self.training_precision,
        )

    def without_training(self) -> SentenceLanguageModel:
        """Return the pretrained model, which a debiased one is compared with."""
        settings = vars(self).items()
        return SentenceLanguageModel(
            **{key: value for key, value in settings if key not in _TRAINING}
        )
