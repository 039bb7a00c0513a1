"""A language model in this process that scores sentences and responds to dialogues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.arrays import Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.core.outputs.text_outputs import Responses, SentenceScores
from recbias.core.protocols import ModelName, Output
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.language.causal_model_files import list_causal_model_files
from recbias.language.causal_models import Precision
from recbias.language.responses import ResponseSettings, generate_responses
from recbias.language.scoring.sentence_models import (
    SentenceModel,
    check_sentence_model,
    load_sentence_model,
)
from recbias.language.scoring.sentence_scoring import score_sentences
from recbias.language.scoring.sentence_tokens import EncoderInput, ScoringSettings
from recbias.models.sentences.sentence_queries import (
    CONTEXT,
    GROUP,
    PAIR,
    REFERENCE,
    TEXT,
    SentenceQueries,
)
from recbias.numerics.devices import OnDevice


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
            embedding is added to that of each token of a sentence; None for no such embedding.
        max_length: The largest number of tokens of a sentence, at most that of the model.
        batch_tokens: The number of tokens in a batch, which limits the memory.
        max_new_tokens: The maximum number of tokens of a response.
        temperature: The sampling temperature of responses; 0 is greedy.
        top_p: The probability mass that responses are sampled from.
        top_k: The number of tokens that responses are sampled from; 0 for all.
        seed: The seed of sampled responses.
        precision: The type of the weights in memory.
        device: Where the model computes.

    Raises:
        MissingFile: The model is not found, has weights of another format than ``safetensors``
            (``recbias convert``), or lacks those of its head.
        MissingExtra: A package that reads a ``.gguf`` file is not installed.
        Contradiction: The model or its tokenizer cannot do what a setting says.
        UnknownIdentifier: The vocabulary does not have ``token_types``.
        UnknownColumn: The queries have no texts.

    Source:
        Zhao et al., "CHBias", ACL 2023, section 4, and its released code; Salazar, Liang, Nguyen
        and Kirchhoff, "Masked language model scoring", ACL 2020 (masked models).

    >>> model = SentenceLanguageModel(model="./my-model", first_token=True)
    >>> model.scoring.first_token, model.generation.max_new_tokens
    (True, 64)
    """

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
    batch_tokens: Annotated[int, Gt(0)] = 2048
    max_new_tokens: Annotated[int, Gt(0)] = 64
    temperature: Annotated[float, Ge(0)] = 0.0
    top_p: Annotated[float, Gt(0), Le(1)] = 1.0
    top_k: Annotated[int, Ge(0)] = 0
    seed: Annotated[int, Ge(0)] = 0
    precision: Precision = "float32"
    device: Device = "auto"

    @property
    def scoring(self) -> ScoringSettings:
        """How sentences are scored."""
        return ScoringSettings(
            special_tokens=self.special_tokens,
            first_token=self.first_token,
            encoder_input=self.encoder_input,
            token_types=self.token_types,
            max_length=self.max_length,
            batch_tokens=self.batch_tokens,
        )

    @property
    def generation(self) -> ResponseSettings:
        """How responses are generated."""
        return ResponseSettings(
            max_new_tokens=self.max_new_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            seed=self.seed,
            batch_tokens=self.batch_tokens,
        )

    def model_files(self) -> Sequence[Path]:
        """Return the files of the model; none for one of a hub."""
        return list_causal_model_files(self.model)

    def check_data(self, data: TrainingData) -> None:
        """Refuse a model that is not available or gives no probabilities of words."""
        check_sentence_model(self.model, self.revision)

    def load(self) -> SentenceModel:
        """Return the pretrained model."""
        return load_sentence_model(
            self.model, self.revision, precision=self.precision, device=self.device
        )

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedLanguageModel:
        """Return the pretrained model; nothing is trained."""
        return FittedLanguageModel(self)


@dataclass(frozen=True, eq=False)
class FittedLanguageModel:
    """A language model that answers queries; it is loaded when it is first used.

    Args:
        settings: The model.
        trained: The model with other weights than the pretrained ones, if there is one.
    """

    settings: SentenceLanguageModel
    trained: SentenceModel | None = field(default=None)

    @cached_property
    def model(self) -> SentenceModel:
        """The model that answers."""
        return self.settings.load() if self.trained is None else self.trained

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
