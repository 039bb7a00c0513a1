"""LMRec: a language model that is fine-tuned to predict the item of a text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.context import record_fact, warn
from recbias.core.dataset import AnyArray, Codes, Reviews, TrainingData
from recbias.core.evidence import Embeddings
from recbias.core.plugins import EXECUTION, Device, ModelName, Output, State
from recbias.kernels.devices import Precision
from recbias.language.counterfactual import Side, build_swaps, make_counterfactuals
from recbias.models.fine_tuning import fine_tune
from recbias.models.gpu import Tensor, copy_to_device
from recbias.models.text import (
    EncoderModel,
    FittedEncoderModel,
    ItemClasses,
    Pooling,
    TextClassifier,
    Tokens,
    accuracy,
    prepare_reviews,
    select_settings,
    select_validation_reviews,
    split_state,
)
from recbias.models.training import FineTuning, Patience, Task

_MIN_COPY_SHARE = 0.01
"""Number of counterfactual copies, as a share of the reviews, below which a warning is issued."""


@dataclass(frozen=True, kw_only=True)
class LMRec(EncoderModel):
    """Fine-tune a language model on reviews to predict their items; recommend by a prompt.

        p(item | text) = softmax(W dropout(h) + b),    h = the encoder's state of the text
        score(u, i) = (1 / |R_u|) Σ_{r in R_u} ln p(i | r)

    By default ``h`` is the last layer's state of the first token. All weights are trained by
    cross-entropy over the items with training interactions, by AdamW with linear warm-up and
    decay. With a validation set, the epoch with the highest accuracy on its reviews is used.
    ``[MASK]`` in a review or prompt is replaced by the encoder's mask token. R_u are the
    training reviews of user u, whose training items are excluded; users without a training review
    have empty lists.

    Args:
        encoder: A model of the Hugging Face hub, a folder (relative to the spec), or an installed
            package that contains a model.
        revision: A commit, tag or branch of the hub; None is the main branch, whose commit is
            stored with the fitted model.
        pooling: ``first`` is the first token's state, ``mean`` averages the states of all tokens.
        dropout: Dropout rate of ``h`` in training.
        encoder_dropout: Whether the encoder's own dropout layers are active in training, as in
            pretraining; without them fewer epochs suffice.
        learning_rate: Maximum learning rate.
        head_rate: Factor of the learning rate of W and b.
        batch_size: Number of reviews per step.
        epochs: Maximum number of epochs.
        patience: Number of epochs without a higher validation accuracy before training stops; 0
            disables early stopping.
        max_length: Maximum number of tokens per text.
        warmup: Share of the steps in which the learning rate rises from 0.
        weight_decay: Decoupled weight decay of the weight matrices.
        batch_parts: Number of parts of a batch that are computed one after another and whose
            gradients are summed, to save memory.
        counterfactual: Counterfactual data augmentation: adds a copy of each training review that
            contains a word of one side, with the word of the other side. ``gender`` swaps he and
            she, mom and dad, first names of men and women; ``race`` swaps the first names of the
            packaged templates. The fact ``counterfactual_copies`` is the number of copies.
        precision: Type of matrix products: ``auto`` is bfloat16 on CUDA and float32 elsewhere.
            Some CPUs are nearly twice as fast in bfloat16.
        device: Device of the training.

    Raises:
        MissingEvidence: The dataset has no reviews.
        NothingLeft: There are no training reviews.
        MissingFile: The encoder does not exist; DownloadFailed if it cannot be downloaded.
        OutOfRange: Training diverges.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022, section 3.1. For ``counterfactual``: Lu, Mardziel,
        Wu, Amancharla and Datta, "Gender Bias in Neural Natural Language Processing", 2020.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "predictions", "embeddings"})
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "tokenizers")

    encoder: ModelName = "bert-base-uncased"
    revision: str | None = None
    pooling: Pooling = "first"
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.2
    encoder_dropout: bool = True
    learning_rate: Annotated[float, Gt(0)] = 5e-5
    head_rate: Annotated[float, Gt(0)] = 1.0
    batch_size: Annotated[int, Gt(0)] = 128
    epochs: Annotated[int, Gt(0)] = 10
    patience: Patience = 2
    max_length: Annotated[int, Gt(2)] = 512
    warmup: Annotated[float, Ge(0), Lt(1)] = 0.1
    weight_decay: Annotated[float, Ge(0)] = 0.01
    batch_parts: Annotated[int, Gt(0), EXECUTION] = 1
    counterfactual: Literal["none"] | Side = "none"
    precision: Precision = "auto"
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedLMRec:
        """Fine-tune on the training reviews."""
        self.check_data(data)
        classes = ItemClasses.from_data(data)
        reviews = self._add_counterfactuals(prepare_reviews(data), rng)
        network = self.create_network(len(classes), seed=int(rng.integers(2**62)))
        tokens, held_out = (
            network.tokenize(reviews.texts),
            select_validation_reviews(data, classes),
        )
        task = _ItemPrediction(network, tokens, classes, reviews.items, held_out)
        fine_tune(task, select_settings(self, FineTuning, name="LMRec"), rng)
        return _FittedLMRec(self, classes, network.weights())

    def restore(self, state: State) -> _FittedLMRec:
        """Return the fitted recommender of a stored state."""
        return _FittedLMRec(self, *split_state(state))

    def _add_counterfactuals(self, reviews: Reviews, rng: np.random.Generator) -> Reviews:
        if self.counterfactual == "none":
            return reviews
        swaps, own_rng = build_swaps(self.counterfactual), rng.spawn(1)[0]  # trained as without
        rows, texts = make_counterfactuals(reviews.texts, swaps, own_rng)
        record_fact("counterfactual_copies", rows.size)
        if rows.size < _MIN_COPY_SHARE * len(reviews):
            warn(
                f"counterfactual: {self.counterfactual} changes only {rows.size:,} of "
                f"{len(reviews):,} reviews; names that mask_names has masked cannot be swapped"
            )
        return Reviews(
            np.append(reviews.users, reviews.users[rows]),
            np.append(reviews.items, reviews.items[rows]),
            np.append(reviews.texts, texts),
        )


@dataclass(frozen=True, eq=False)
class _ItemPrediction(Task):
    """Predict the item of each training review.

    Args:
        network: The network to be trained.
        tokens: The tokens of the training reviews.
        classes: The items that are classes.
        items: The item of each training review, ``int32[n]``.
        validation_reviews: The validation reviews, if any.
    """

    network: TextClassifier
    tokens: Tokens
    classes: ItemClasses
    items: Codes
    validation_reviews: Reviews | None

    @property
    def module(self) -> Any:
        return self.network.module

    @property
    def body(self) -> Any:
        return self.module["encoder"]

    @cached_property
    def lengths(self) -> AnyArray:
        return self.tokens.lengths

    @property
    def has_validation_texts(self) -> bool:
        return self.validation_reviews is not None

    def loss(self, rows: AnyArray) -> Tensor:
        from torch.nn.functional import cross_entropy

        classes = copy_to_device(self._review_classes[rows], self.network.device)
        with self.network.autocast():
            logits = self.network.logits(self.tokens, rows)
        return cross_entropy(logits, classes, reduction="sum")

    def validation_score(self) -> float:
        """Return the accuracy on the validation reviews."""
        if self.validation_reviews is None:
            return math.nan
        blocks = self.network.classify(self.validation_reviews.texts, label="validation reviews")
        return accuracy(blocks, self.classes.encode(self.validation_reviews.items))

    @cached_property
    def _review_classes(self) -> AnyArray:
        return self.classes.encode(self.items)


@dataclass(frozen=True, eq=False)
class _FittedLMRec(FittedEncoderModel):
    """A fitted LMRec."""

    def embeddings(self) -> Embeddings:
        """Return the rows of W as embeddings of the items; NaN for items that are no class."""
        rows = self.weights["head.weight"]
        vectors = np.full((self.classes.n_items, rows.shape[1]), np.nan, dtype=np.float32)
        vectors[self.classes.items] = rows
        return Embeddings(None, vectors)
