"""Convolutional matrix factorization: item vectors near what a network makes of the items' texts.

Elliot calls another network ConvMF, on the ids of users and items; it is here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Lt, MinLen

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, Codes, Interactions, Queries, TrainingData
from recbias.core.errors import MissingEvidence, OutOfRange, at_setting
from recbias.core.evidence import Embeddings, RankedLists
from recbias.core.plugins import Device, FittedRecommender, State
from recbias.kernels.devices import resolve_device
from recbias.models.factorization import FactorTables
from recbias.models.fitted import FittedFactors, Floats32
from recbias.models.gpu import (
    Tensor,
    copy_to_array,
    create_parameter,
    create_torch_generator,
    initialize_glorot,
)
from recbias.models.ranking import rank_by_scores
from recbias.models.sgd import EpochSampler, create_coin_sampler, create_rating_sampler
from recbias.models.training import (
    Dense,
    Learner,
    NetworkLearner,
    Patience,
    TrainedModel,
    apply_dropout,
    collect_parameters,
    initialize_layers,
    look_up,
)

REVIEWS = "reviews"
"""The name that selects the review texts of the training interactions among the columns."""

_WORD = r"[^\s!-/:-@\[-`{-~\u00a1\u00ab\u00b7\u00bb\u00bf\u2000-\u206f\u3000-\u303f]+"
"""A word of any script, a number or a symbol such as an emoji; not spaces and punctuation."""


@dataclass(frozen=True, eq=False)
class Documents:
    """The words of the items.

    Args:
        codes: Word codes in order, from 1, padded with 0, ``int32 (n_items, width)``.
        n_words: Number of distinct words.
    """

    codes: Codes
    n_words: int

    @property
    def has_text(self) -> BoolArray:
        """Which items have at least one word, ``bool[n_items]``."""
        return self.codes[:, 0] > 0


def encode_documents(
    data: TrainingData, text: Sequence[str], *, vocabulary: int, max_length: int, width: int = 1
) -> Documents:
    """Return the first words of each item in lower case; texts of columns are concatenated.

    The vocabulary contains words of candidates only, those of most candidates, the earlier ones
    if tied; all other words are excluded. ``width`` is the minimum number of columns of the codes.

    Raises:
        MissingEvidence: The dataset has no items table or no reviews.
        UnknownColumn: The items have no such column.
    """
    texts = pd.concat(
        [_read_reviews(data) if name == REVIEWS else _read_column(data, name) for name in text]
    )
    pieces = texts[texts.notna()].astype(str).str.lower().sort_index(kind="stable")
    words = _split_words(pieces, max_length)
    codes, n_words = _encode_words(words, data.candidates, vocabulary)
    is_word = codes > 0
    items, codes = words.index.to_numpy()[is_word], codes[is_word]
    positions = _count_positions(items)
    n_columns = max(width, positions.max(initial=-1) + 1)
    table = np.zeros((data.train.n_items, n_columns), dtype=np.int32)
    table[items, positions] = codes
    return Documents(table, n_words)


def warn_about_missing_texts(model: str, documents: Documents, data: TrainingData) -> None:
    """Report the number of candidates without text in a warning, with the name of the model."""
    n_silent = np.count_nonzero(data.candidates & ~documents.has_text)
    if n_silent:
        n_items = np.count_nonzero(data.candidates)
        warn(f"{model}: {n_silent:,} of {n_items:,} items have no text")


def validate_text_columns(data: TrainingData, text: Sequence[str]) -> None:
    """Raise UnknownColumn if the items lack a column, MissingEvidence if there are no items."""
    for name in text:
        if name != REVIEWS:
            _read_column(data, name)


def _read_column(data: TrainingData, name: str) -> pd.Series[Any]:
    if data.items is None:
        message = "the dataset has no items table, so the items have no text"
        remedy = "add an items table to the dataset, or choose a model without text, such as PMF"
        raise MissingEvidence(message, where="text", remedy=remedy)
    with at_setting("text"):
        return data.items.column(name).reset_index(drop=True).astype(object)


def _read_reviews(data: TrainingData) -> pd.Series[Any]:
    if data.reviews is None:
        remedy = "choose a dataset with reviews, or name item columns"
        raise MissingEvidence("the dataset has no reviews", where="text", remedy=remedy)
    return pd.Series(data.reviews.texts, index=data.reviews.items, dtype=object)


def _split_words(pieces: pd.Series[Any], max_length: int) -> pd.Series[Any]:
    counts = pieces.str.count(_WORD)
    n_preceding = counts.groupby(level=0).cumsum() - counts
    relevant = pieces[(n_preceding < max_length).to_numpy() & (counts > 0).to_numpy()]
    words = relevant.str.findall(_WORD).explode()
    return words[_count_positions(words.index.to_numpy()) < max_length]


def _encode_words(
    words: pd.Series[Any], candidates: BoolArray, vocabulary: int
) -> tuple[AnyArray, int]:
    """Return the code of each word, 0 for words outside the vocabulary, and its size."""
    word_codes, distinct = pd.factorize(words)
    n_distinct = max(len(distinct), 1)
    pairs = np.unique(words.index.to_numpy(dtype=np.int64) * n_distinct + word_codes)
    pairs = pairs[candidates[pairs // n_distinct]]
    n_items = np.bincount(pairs % n_distinct, minlength=len(distinct))
    selected = np.argsort(-n_items, kind="stable")[: min(vocabulary, np.count_nonzero(n_items))]
    new_codes = np.zeros(len(distinct), dtype=np.int32)
    new_codes[selected] = np.arange(1, selected.size + 1)
    return new_codes[word_codes], selected.size


def _count_positions(rows: AnyArray) -> AnyArray:
    """Return the position of each entry in its row, from 0, for ascending rows."""
    return np.arange(rows.size) - np.searchsorted(rows, rows)


_CHANNELS = 32  # Filters of each convolution, and the size of the dense layer

_ENTRIES_PER_POSITION = 16
"""Receptive field of a position after two convolutions and poolings, each of 2 by 2."""

_ITEM_BLOCK = 4096  # Number of items that are scored together


@dataclass(frozen=True, eq=False)
class IdNetwork:
    """Two convolutions over the concatenated user and item vectors, then two dense layers.

    A convolution has width 2 and stride 2; its ReLU is max-pooled by 2. Then the positions are
    summed. The dense layers are linear. If no position sees entries of both vectors, the score is
    therefore the sum of a term of the user and a term of the item.

    Args:
        users: ``float32 (n_users, d)``.
        items: ``float32 (n_items, d)``, ``d`` a multiple of 16.
        convolutions: Two layers over the entries of a window.
        dense: Two layers, the last with one output.
    """

    users: Tensor
    items: Tensor
    convolutions: Sequence[Dense]
    dense: Sequence[Dense]

    @classmethod
    def initialize(cls, train: Interactions, size: int, *, device: Any, rng: Any) -> IdNetwork:
        """Return a network with Glorot-uniform vectors and weights."""
        users, items = (
            initialize_glorot((n_rows, size), device, rng)
            for n_rows in (train.n_users, train.n_items)
        )
        convolutions = [
            Dense.initialize(2 * n_in, _CHANNELS, device, rng) for n_in in (1, _CHANNELS)
        ]
        dense = initialize_layers((_CHANNELS, _CHANNELS, 1), device, rng)
        return cls(users, items, convolutions, dense)

    def parameters(self) -> Sequence[Tensor]:
        """Return the vectors and the weights of the layers."""
        return [self.users, self.items, *collect_parameters([*self.convolutions, *self.dense])]

    def features(self, vectors: Tensor) -> Tensor:
        """Return the features of concatenated vectors, summed over positions, ``(b, 32)``."""
        hidden = vectors
        for layer in self.convolutions:
            left, right = hidden.reshape(-1, 2 * len(layer.weight)).chunk(2, 1)
            gain = (right - left) @ layer.weight
            hidden = (layer(left) + gain.relu()).relu()  # max(a, b) = a + relu(b - a): fastest
        return hidden.reshape(len(vectors), -1, _CHANNELS).sum(1)

    def score(self, features: Tensor, dropout: float = 0.0, generator: Any = None) -> Tensor:
        """Return the scores of features, ``(b,)``."""
        for layer in self.dense:
            features = layer(apply_dropout(features, dropout, generator))
        return features.squeeze(1)

    def export(self) -> FittedSums:
        """Return the vectors and the score of each item."""
        import torch

        with torch.no_grad():
            blocks = self.items.split(_ITEM_BLOCK)
            scores = torch.cat([self.score(self.features(block)) for block in blocks])
        return FittedSums(*map(copy_to_array, (self.users, self.items, scores)))


@dataclass(frozen=True, eq=False)
class FittedSums:
    """Scores that are the sum of a user term and an item term: all users have the same ranking.

    Args:
        user_factors: ``float32 (n_users, d)``.
        item_factors: ``float32 (n_items, d)``.
        item_scores: The item terms, ``float32[n_items]``.
    """

    user_factors: Floats32
    item_factors: Floats32
    item_scores: Floats32

    def state(self) -> State:
        """Return the fields as named arrays."""
        return vars(self)

    def embeddings(self) -> Embeddings:
        """Return the vectors."""
        return Embeddings(self.user_factors, self.item_factors)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        scores = self.item_scores
        return rank_by_scores(lambda users: np.tile(scores, (users.size, 1)), queries, k, data)


_HIDDEN = 200  # Size of the layer between the pooled features and the vector
_TEXT_BLOCK = 64  # Number of texts that the network encodes together


@dataclass(frozen=True, eq=False)
class TextCNN:
    """Word vectors, convolutions, max-pooling and two dense layers.

        c_t = relu(W_w [x_t ... x_(t+w-1)] + b_w),  f = max over t of c_t, for each window size w
        vector = tanh(W_2 tanh(W_1 [f ...] + b_1) + b_2)

    ``x_t`` is the vector of the t-th word. Windows lie within the text; a text shorter than a
    window is padded with zeros. A text without words has the vector 0.

    Args:
        words: The word vectors, ``(n_words + 1, e)``; row 0, the padding, is 0.
        windows: The window sizes in words.
        filters: The layer of each window size, with ``e w`` inputs.
        hidden: ``W_1`` and ``b_1``.
        last: ``W_2`` and ``b_2``.
    """

    words: Tensor
    windows: Sequence[int]
    filters: Sequence[Dense]
    hidden: Dense
    last: Dense

    @classmethod
    def initialize(
        cls,
        sizes: tuple[int, int, int, int],
        windows: Sequence[int],
        *,
        device: Any,
        rng: np.random.Generator,
    ) -> TextCNN:
        """Return a network with Glorot-uniform weights and word vectors from Normal(0, 1/e).

        ``sizes`` are the number of words, the size of a word vector, the number of filters per
        window size, and the size of the vector of a text.
        """
        n_words, word_size, n_filters, n_out = sizes
        words = rng.standard_normal((n_words + 1, word_size), dtype=np.float32)
        words[0] = 0
        return cls(
            create_parameter(words / np.sqrt(word_size), device),
            windows,
            [Dense.initialize(word_size * window, n_filters, device, rng) for window in windows],
            Dense.initialize(n_filters * len(windows), _HIDDEN, device, rng),
            Dense.initialize(_HIDDEN, n_out, device, rng),
        )

    def parameters(self) -> Sequence[Tensor]:
        """Return the trainable tensors."""
        return [self.words, *collect_parameters([*self.filters, self.hidden, self.last])]

    def __call__(self, codes: Tensor, *, dropout: float = 0.0, generator: Any = None) -> Tensor:
        """Return the vectors of texts, ``(b, n_out)``, with dropout of the hidden layer.

        The word codes, ``(b, width)``, are padded with 0; no window is larger than ``width``.
        """
        import torch
        from torch.nn.functional import embedding

        lengths = (codes > 0).sum(1, keepdim=True)
        longest = max(int(lengths.max()), *self.windows)
        vectors = embedding(codes[:, :longest], self.words, padding_idx=0)
        layers = zip(self.windows, self.filters, strict=True)
        features = torch.cat([_pool(vectors, lengths, *layer) for layer in layers], 1)
        hidden = apply_dropout(self.hidden(features).tanh(), dropout, generator)
        outputs: Tensor = self.last(hidden).tanh() * (lengths > 0)
        return outputs


def _pool(vectors: Tensor, lengths: Tensor, window: int, layer: Dense) -> Tensor:
    """Return the maximum of each filter over the windows of a text, ``(b, n_filters)``."""
    import torch

    windows = vectors.unfold(1, window, 1).flatten(2)  # (b, positions, e w), grouped by entry
    last = (lengths - window).clip(0)
    is_within = torch.arange(windows.shape[1], device=windows.device) <= last
    return (layer(windows).relu() * is_within.unsqueeze(2)).amax(1)


@dataclass(eq=False)
class ConvLearner(Learner["FittedFactors"]):
    """Vectors and a network trained in alternation.

    Args:
        reg_user: Weight of the squared user vectors.
        reg_item: Weight of the squared distances of item vectors from encodings.
        reg_network: Weight of the squared weights of the network.
        dropout: Dropout rate of the network.
        tables: The vectors.
        network: The text encoder.
        codes: The word codes of all items, ``(n_items, width)``.
        items_with_text: The candidates that have a word.
        sampler: Samples users, items and values.
        n_samples: Number of samples of the epoch.
        encodings: The text encodings at the start of the epoch, ``(n_items, d)``.
        generator: Samples the dropout masks of the epoch.
    """

    reg_user: float
    reg_item: float
    reg_network: float
    dropout: float
    tables: FactorTables
    network: TextCNN
    codes: Tensor
    items_with_text: AnyArray
    sampler: EpochSampler
    n_samples: int = 1
    encodings: Tensor = None
    generator: Any = None

    def parameters(self) -> Sequence[Tensor]:
        """Return the vectors and the parameters of the network."""
        return [*self.tables.parameters(), *self.network.parameters()]

    def sample_epoch(self, rng: np.random.Generator) -> Sequence[AnyArray]:
        """Return users, items, values, and with some of them an item whose text is encoded."""
        import torch

        samples = self.sampler(rng)
        self.n_samples = max(1, len(samples[0]))
        self.generator = create_torch_generator(rng, self.codes.device)
        with torch.no_grad():
            blocks = self.codes.split(_TEXT_BLOCK)
            self.encodings = torch.cat([self.network(block) for block in blocks])
        return [*samples, _space_out(rng.permutation(self.items_with_text), len(samples[0]))]

    def loss(self, *batch: Tensor) -> Tensor:
        """Return the share of the objective that belongs to a batch."""
        users, items, values, texts = batch
        scores = self.tables.score_pairs(users, items)
        share = len(users) / self.n_samples
        squares = self.reg_user * self.tables.users.square().sum()
        distances = (self.tables.items - self.encodings).square().sum()
        squares = squares + self.reg_item * distances
        error = (values - scores).square().sum() + share * squares
        texts = texts[texts >= 0]
        return error + self._network_loss(texts) if len(texts) else error

    def export(self) -> FittedFactors:
        """Return the vectors."""
        return self.tables.export()

    def _network_loss(self, texts: Tensor) -> Tensor:
        encodings = self.network(self.codes[texts], dropout=self.dropout, generator=self.generator)
        targets = self.tables.items.detach()[texts]
        squares = sum(tensor.square().sum() for tensor in self.network.parameters())
        share = len(texts) / len(self.items_with_text)
        distances = (targets - encodings).square().sum()
        return self.reg_item * distances + share * self.reg_network * squares


def _space_out(texts: AnyArray, n_samples: int) -> AnyArray:
    """Return texts in evenly spaced runs of ``_TEXT_BLOCK``, else -1, ``int64[n_samples]``."""
    texts = texts[:n_samples]
    runs = np.arange(texts.size) // _TEXT_BLOCK
    gap = (n_samples - texts.size) // (runs.max(initial=0) or 1)
    samples = np.full(n_samples, -1, dtype=np.int64)
    samples[np.arange(texts.size) + runs * gap] = texts
    return samples


_Variant: TypeAlias = Literal["paper", "elliot"]


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
    variant: _Variant = "paper"
    patience: Patience = 10
    device: Device = "auto"

    def __post_init__(self) -> None:
        """Refuse an embedding size for which users would not have the same ranking."""
        if self.variant == "elliot" and self.embedding_size % _ENTRIES_PER_POSITION:
            message = f"variant elliot with embedding_size {self.embedding_size}"
            remedy = f"choose a multiple of {_ENTRIES_PER_POSITION}, such as 64"
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
            return self.train("ConvMF", self._create_id_learner(data, rng), data, rng)
        return self.train("ConvMF", self._create_text_learner(data, rng), data, rng)

    def restore(self, state: State) -> FittedRecommender:
        """Return the fitted recommender of a stored state."""
        if self.variant == "elliot":
            return FittedSums(**state)
        return FittedFactors.from_state(state, self.device)

    def _create_id_learner(
        self, data: TrainingData, rng: np.random.Generator
    ) -> NetworkLearner[FittedSums]:
        import torch

        device, sampler = resolve_device(self.device), create_coin_sampler(data.train)
        network = IdNetwork.initialize(data.train, self.embedding_size, device=device, rng=rng)
        noise = torch.Generator(device)

        def sample(rng: np.random.Generator) -> Sequence[AnyArray]:
            samples = sampler(rng)
            noise.manual_seed(int(rng.integers(2**63 - 1)))
            return samples

        def sum_losses(users: Tensor, items: Tensor, labels: Tensor) -> Tensor:
            pairs = look_up(network.users, users), look_up(network.items, items)
            features = network.features(torch.cat(pairs, 1))
            return (labels - network.score(features, self.dropout, noise)).square().sum()

        tables = [network.users, network.items]
        return NetworkLearner(
            network.parameters(), sample, sum_losses, network.export, tables=tables
        )

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
            sampler=create_rating_sampler(data.train, self),
        )
