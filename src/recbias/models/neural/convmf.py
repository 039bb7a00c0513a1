"""Convolutional matrix factorisation: item vectors that their texts foretell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Lt, MinLen

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import OutOfRange
from recbias.core.protocols import FittedRecommender, Output, State
from recbias.models.elliot.convmf_ids import ENTRIES_PER_POSITION, FittedSums, IdLearner, IdNetwork
from recbias.models.factorization.factor_tables import FactorTables
from recbias.models.neural.item_texts import (
    REVIEWS,
    item_documents,
    refuse_unknown_text,
    warn_of_silence,
)
from recbias.models.neural.text_cnn import TextCNN
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.ranking.tensors import (
    Device,
    OnDevice,
    Tensor,
    create_torch_generator,
    resolve_device,
)
from recbias.models.training.loop import train
from recbias.models.training.rating_targets import (
    EpochSampler,
    create_coin_sampler,
    create_rating_sampler,
)
from recbias.models.training.schedule import Schedule

Variant: TypeAlias = Literal["paper", "elliot"]

TEXTS_AT_ONCE = 64
"""Texts in a step of the network, and in a block of those that are read."""


@dataclass(frozen=True, kw_only=True)
class ConvMF(OnDevice):
    """Factorise ratings, or choices, with item vectors near what a network reads in their text.

        minimise  Σ_(u,i) (r_ui - p_u · q_i)² + reg_user Σ_u |p_u|²
                  + reg_item Σ_i |q_i - cnn(W, X_i)|² + reg_network |W|²

    ``X_i`` are the words of item i, ``cnn`` a convolutional network: word vectors, filters of
    several windows of words, the largest output of each over the text, two layers of tanh.
    ``r_ui`` is the rating. Where all ratings are equal it is 1 for a training pair and 0 for each
    of ``negatives`` items a pair that the user does not have, drawn anew each epoch. As in the
    paper the vectors and the network take turns: an epoch moves the vectors with what the network
    read before it, and the network, text by text, towards the vectors. The paper solves the former
    in closed form; here both are steps of Adam. The vector of an item without text is held near 0
    instead; how many there are is noted. A user without training items has an empty list.

    Args:
        text: Columns of the items that are read, one after the other; ``reviews`` stands for the
            reviews of the training rows.
        embedding_size: Length of the vectors.
        epochs: Passes over the training pairs, at most.
        batch_size: Pairs in a step, drawn ones among them.
        learning_rate: Length of a step.
        reg_user: Weight of the squared user vectors.
        reg_item: Weight of the squared distances of item vectors from their texts.
        reg_network: Weight of the squared weights of the network.
        negatives: Items drawn for each training pair where all ratings are equal.
        vocabulary: Words that are known, those of most items.
        max_length: Words of a text that are read.
        word_size: Length of the word vectors.
        windows: Words that the filters see.
        filters: Filters of each window.
        dropout: Share of a hidden layer that is left out in a step.
        variant: ``elliot`` reads no text, as that framework does: the vectors of user and item
            are laid end to end and go through two convolutions. In no window do both meet where
            ``embedding_size`` is a multiple of 16, as it must be here: everybody has the same
            ranking. It draws users alike, tosses a coin whether an item is the user's, and has no
            ``reg``.
        patience: Epochs without a better nDCG@10 on the validation part, where there is one,
            before the best is taken; 0 does not look.
        device: Where it is trained and its lists are made.

    Raises:
        MissingEvidence: There is no text to read.
        UnknownColumn: The items have no such column.
        OutOfRange: It diverges, or the variant has another ``embedding_size``.

    Source:
        Kim, Park, Oh, Lee and Yu, "Convolutional Matrix Factorization for Document Context-Aware
        Recommendation", RecSys 2016, equation 6 and section 3.2.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ("torch",)

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
        """Refuse a size that the framework's network cannot be ranked by."""
        if self.variant == "elliot" and self.embedding_size % ENTRIES_PER_POSITION:
            found = f"variant elliot with embedding_size {self.embedding_size}"
            remedy = f"choose a multiple of {ENTRIES_PER_POSITION}, such as the thesis' 64"
            raise OutOfRange(found, where="embedding_size", remedy=remedy)

    def needs_now(self) -> frozenset[str]:
        """Return what it reads with the parameters it has."""
        if self.variant == "elliot":
            return frozenset({"train"})
        columns = {"items"} if set(self.text) - {REVIEWS} else set()
        return frozenset({"train"} | columns | {REVIEWS} & set(self.text))

    def check_data(self, data: TrainingData) -> None:
        """Look whether the items have the columns."""
        if self.variant == "paper":
            refuse_unknown_text(data, self.text)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedRecommender:
        """Learn from the texts, and from the ratings or the training pairs and drawn ones."""
        schedule = Schedule.from_model(self, "ConvMF")
        if self.variant == "elliot":
            return train(self._without_text(data, rng), schedule, data, rng)
        return train(self._with_text(data, rng), schedule, data, rng)

    def restore(self, state: State) -> FittedRecommender:
        """Return the fitted recommender of a stored state."""
        if self.variant == "elliot":
            return FittedSums.from_state(state)
        return FittedFactors.from_state(state, self.device)

    def _with_text(self, data: TrainingData, rng: np.random.Generator) -> ConvLearner:
        import torch

        documents = item_documents(
            data,
            self.text,
            vocabulary=self.vocabulary,
            max_length=self.max_length,
            width=max(self.windows),
        )
        warn_of_silence("ConvMF", documents, data, outcome="have no text")
        device = resolve_device(self.device)
        sizes = (documents.n_words, self.word_size, self.filters, self.embedding_size)
        return ConvLearner(
            model=self,
            tables=FactorTables.initialize(
                data.train, self.embedding_size, device=device, rng=rng
            ),
            network=TextCNN.drawn(sizes, self.windows, device=device, rng=rng),
            codes=torch.from_numpy(documents.codes).to(device),
            told=np.flatnonzero(data.candidates & documents.told),
            draw=create_rating_sampler(data.train, self.negatives),
        )

    def _without_text(self, data: TrainingData, rng: np.random.Generator) -> IdLearner:
        network = IdNetwork.initialize(
            data.train, self.embedding_size, device=resolve_device(self.device), rng=rng
        )
        return IdLearner(network, create_coin_sampler(data.train), self.dropout)


@dataclass(eq=False)
class ConvLearner:
    """Vectors and a network that learn by turns: a ``torch_fit.Learner``.

    Args:
        model: The weights of the terms.
        tables: The vectors.
        network: What reads the texts.
        codes: The words of all items, ``(n_items, width)``.
        told: The candidates that have a word.
        draw: Draws users, items and values.
        n_samples: How many of them the epoch has.
        read: What the network read in all texts before the epoch, ``(n_items, d)``.
        generator: Draws what the network leaves out in the epoch.
    """

    model: ConvMF
    tables: FactorTables
    network: TextCNN
    codes: Tensor
    told: AnyArray
    draw: EpochSampler
    n_samples: int = 1
    read: Tensor = None
    generator: Any = None

    def parameters(self) -> Sequence[Tensor]:
        """Return the vectors and the network."""
        return [*self.tables.parameters(), *self.network.parameters()]

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return users, items and values, and with some of them an item whose text is read."""
        samples = self.draw(rng)
        self.n_samples = max(1, len(samples[0]))
        self.generator = create_torch_generator(rng, self.codes.device)
        self.read = self._read()
        return [*samples, _spread(rng.permutation(self.told), len(samples[0]))]

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the part of the objective that a batch stands for."""
        users, items, values, texts = batch
        scores, _ = self.tables.score_pairs(users, items)
        share = len(users) / self.n_samples
        squares = self.model.reg_user * self.tables.users.square().sum()
        squares = squares + self.model.reg_item * (self.tables.items - self.read).square().sum()
        error = (values - scores).square().sum() + share * squares
        texts = texts[texts >= 0]
        return error + self._network_loss(texts) if len(texts) else error

    def export(self) -> FittedFactors:
        """Return the vectors."""
        return self.tables.export()

    def _network_loss(self, texts: Tensor) -> Tensor:
        """Return how far the network is from the vectors of some items, and its own squares."""
        found = self.network(
            self.codes[texts], dropout=self.model.dropout, generator=self.generator
        )
        wanted = self.tables.items.detach()[texts]
        squares = sum(each.square().sum() for each in self.network.parameters())
        share = len(texts) / len(self.told)
        return (
            self.model.reg_item * (wanted - found).square().sum()
            + share * self.model.reg_network * squares
        )

    def _read(self) -> Tensor:
        """Return what the network reads in all texts, ``(n_items, d)``."""
        import torch

        with torch.no_grad():
            blocks = self.codes.split(TEXTS_AT_ONCE)
            return torch.cat([self.network(each) for each in blocks])


def _spread(texts: AnyArray, n_samples: int) -> AnyArray:
    """Return texts in runs of ``TEXTS_AT_ONCE``, far between, and -1, ``int64[n_samples]``."""
    texts = texts[:n_samples]
    runs = np.arange(texts.size) // TEXTS_AT_ONCE
    gap = (n_samples - texts.size) // (runs.max(initial=0) or 1)
    places = np.full(n_samples, -1, dtype=np.int64)
    places[np.arange(texts.size) + runs * gap] = texts
    return places
