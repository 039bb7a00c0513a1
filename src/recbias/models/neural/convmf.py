"""Convolutional matrix factorization: item vectors near the output of a network on texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Lt, MinLen

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import OutOfRange
from recbias.core.models.devices import Device
from recbias.core.protocols import FittedRecommender, State
from recbias.models.elliot.convmf_ids import ENTRIES_PER_POSITION, FittedSums, IdLearner, IdNetwork
from recbias.models.factorization.factor_tables import FactorTables
from recbias.models.neural.inputs import (
    REVIEWS,
    encode_documents,
    validate_text_columns,
    warn_about_missing_texts,
)
from recbias.models.neural.text_cnn import ConvLearner, TextCNN
from recbias.models.ranking.fitted_models import FittedFactors
from recbias.models.training.loop import TrainedModel
from recbias.models.training.samplers import create_coin_sampler, create_rating_sampler
from recbias.numerics.devices import resolve_device

Variant: TypeAlias = Literal["paper", "elliot"]


@dataclass(frozen=True, kw_only=True)
class ConvMF(TrainedModel):
    """Factorize ratings or implicit feedback with item vectors near a network's text encoding.

        minimise  Σ_(u,i) (r_ui - p_u · q_i)² + reg_user Σ_u |p_u|²
                  + reg_item Σ_i |q_i - cnn(W, X_i)|² + reg_network |W|²

    ``X_i`` are the words of item i and ``cnn`` is a convolutional network: word vectors, filters
    with several window sizes, max-pooling over the text and two tanh layers. ``r_ui`` is the
    rating. If all ratings are equal, it is 1 for a training pair and 0 for ``negatives`` items per
    pair that the user does not have, sampled anew in each epoch. As in the paper, the vectors and
    the network alternate: an epoch trains the vectors with the text encodings from its start, and
    the network on the current vectors. The paper solves for the vectors in closed form; here Adam
    trains both. An item without text has the encoding 0; a warning reports their number. A user
    without training items has an empty list.

    Args:
        text: Item columns, concatenated; ``reviews`` selects the reviews of the training
            interactions.
        embedding_size: Size of the vectors.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step, including negatives.
        learning_rate: Learning rate of Adam.
        reg_user: Weight of the squared norms of the user vectors.
        reg_item: Weight of the squared distances of item vectors from their text encodings.
        reg_network: Weight of the squared weights of the network.
        negatives: Negative items per training pair if all ratings are equal.
        vocabulary: Maximum number of words; those of most items are used.
        max_length: Number of words per item that are read.
        word_size: Size of the word vectors.
        windows: Window sizes of the filters, in words.
        filters: Number of filters per window size.
        dropout: Dropout rate of the hidden layer.
        variant: ``elliot`` follows that framework. It uses no text: two convolutions run over the
            concatenated vectors of user and item. No window contains entries of both if
            ``embedding_size`` is a multiple of 16, which is required here, so all users have the
            same ranking. It samples users uniformly, tosses a coin between a seen and an unseen
            item, and has no ``reg``.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        MissingEvidence: The dataset has no text.
        UnknownColumn: The items have no such column.
        OutOfRange: The training diverges, or ``embedding_size`` does not suit the variant.

    Source:
        Kim, Park, Oh, Lee and Yu, "Convolutional Matrix Factorization for Document Context-Aware
        Recommendation", RecSys 2016, equation 6 and section 3.2.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})

    text: Annotated[tuple[str, ...], MinLen(1)] = ("title", "genres")
    embedding_size: Annotated[int, Gt(0)] = 32
    epochs: Annotated[int, Gt(0)] = 15
    batch_size: Annotated[int, Gt(0)] = 4096
    learning_rate: Annotated[float, Gt(0)] = 0.002
    reg_user: Annotated[float, Ge(0)] = 10.0
    reg_item: Annotated[float, Ge(0)] = 10.0
    reg_network: Annotated[float, Ge(0)] = 0.001
    negatives: Annotated[int, Gt(0)] = 4
    vocabulary: Annotated[int, Gt(0)] = 8000
    max_length: Annotated[int, Gt(0)] = 300
    word_size: Annotated[int, Gt(0)] = 64
    windows: Annotated[tuple[Annotated[int, Gt(0)], ...], MinLen(1)] = (3, 4, 5)
    filters: Annotated[int, Gt(0)] = 100
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.2
    variant: Variant = "paper"
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def __post_init__(self) -> None:
        """Refuse an embedding size for which users would not have the same ranking."""
        if self.variant == "elliot" and self.embedding_size % ENTRIES_PER_POSITION:
            message = f"variant elliot with embedding_size {self.embedding_size}"
            remedy = f"choose a multiple of {ENTRIES_PER_POSITION}, such as 64"
            raise OutOfRange(message, where="embedding_size", remedy=remedy)

    def needs_now(self) -> frozenset[str]:
        """Return the inputs that the settings require."""
        if self.variant == "elliot":
            return frozenset({"train"})
        columns = {"items"} if set(self.text) - {REVIEWS} else set()
        return frozenset({"train"} | columns | {REVIEWS} & set(self.text))

    def check_data(self, data: TrainingData) -> None:
        """Raise an error if the items lack a column."""
        if self.variant == "paper":
            validate_text_columns(data, self.text)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedRecommender:
        """Train on the texts and on the ratings, or on training pairs and sampled negatives."""
        if self.variant == "elliot":
            device = resolve_device(self.device)
            network = IdNetwork.initialize(data.train, self.embedding_size, device=device, rng=rng)
            learner = IdLearner(network, create_coin_sampler(data.train), self.dropout)
            return self.train("ConvMF", learner, data, rng)
        return self.train("ConvMF", self._create_text_learner(data, rng), data, rng)

    def restore(self, state: State) -> FittedRecommender:
        """Return the fitted recommender of a stored state."""
        if self.variant == "elliot":
            return FittedSums(**state)
        return FittedFactors.from_state(state, self.device)

    def _create_text_learner(self, data: TrainingData, rng: np.random.Generator) -> ConvLearner:
        import torch

        sizes = {"vocabulary": self.vocabulary, "max_length": self.max_length}
        documents = encode_documents(data, self.text, **sizes, width=max(self.windows))
        warn_about_missing_texts("ConvMF", documents, data)
        device, size = resolve_device(self.device), self.embedding_size
        layer_sizes = (documents.n_words, self.word_size, self.filters, size)
        return ConvLearner(
            reg_user=self.reg_user,
            reg_item=self.reg_item,
            reg_network=self.reg_network,
            dropout=self.dropout,
            tables=FactorTables.initialize(data.train, size, device=device, rng=rng),
            network=TextCNN.initialize(layer_sizes, self.windows, device=device, rng=rng),
            codes=torch.from_numpy(documents.codes).to(device),
            items_with_text=np.flatnonzero(data.candidates & documents.has_text),
            sampler=create_rating_sampler(data.train, self.negatives),
        )
