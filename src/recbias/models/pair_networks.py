"""Products of vectors plus a network on the pair: NeuMF, and DeepFM with fields of attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, Lt, MinLen

from recbias.core.dataset import AnyArray, Attributes, Matrix, Queries, TrainingData
from recbias.core.errors import MissingEvidence, at_setting
from recbias.core.evidence import Embeddings, RankedLists
from recbias.core.plugins import Device, State
from recbias.kernels.devices import resolve_device
from recbias.models.gpu import Ranking, Tensor, copy_to_array, create_parameter, initialize_glorot
from recbias.models.ranking import BYTES_PER_SCORE
from recbias.models.sgd import EpochSampler, Sampler
from recbias.models.training import (
    Dense,
    NetworkLearner,
    Patience,
    TrainedModel,
    apply_dropout,
    collect_parameters,
    initialize_layers,
    restore_layers,
    store_layers,
)

_BYTES_PER_ENTRY = 8  # Memory per entry of a layer's output for a pair: the output and its ReLU
_MAX_LOGIT = 60.0  # The sigmoid is 1 in float32 at this logit


def apply_layers(
    layers: Sequence[Dense], x: Tensor, dropout: float = 0.0, noise: Any = None
) -> Tensor:
    """Apply ReLU, dropout and a dense layer for each of the layers to ``x``, ``(b, h)``.

    ``noise`` is the ``torch.Generator`` of the dropout masks.
    """
    for layer in layers:
        x = layer(apply_dropout(x.relu(), dropout, noise))
    return x


def sum_pair_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of the binary cross-entropies of pairs."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    return binary_cross_entropy_with_logits(logits, labels, reduction="sum")


class PairModel(TrainedModel):
    """Base class of the networks on pairs."""

    has_sigmoid: bool = False

    def train_pairs(
        self,
        tensors: Any,
        sampler: EpochSampler,
        batch_loss: Callable[..., Tensor],
        data: TrainingData,
        rng: np.random.Generator,
    ) -> FittedPairNetwork:
        """Train tensors (``parameters``, ``state``); the loss takes them, a batch, and noise."""
        learner = NetworkLearner(
            tensors.parameters(),
            sampler,
            partial(batch_loss, tensors),
            lambda: self.restore(tensors.state()),
            has_noise=True,
            is_uniform=True,
        )
        return self.train(type(self).__name__, learner, data, rng)

    def restore(self, state: State) -> FittedPairNetwork:
        """Return the fitted recommender of a stored state."""
        return FittedPairNetwork(state, self.device, sigmoid=self.has_sigmoid)


@dataclass(frozen=True, eq=False)
class FittedPairNetwork:
    """Scores: a product of vectors plus the output of a network on the pair.

        score(u, i) = p_u · q_i + b_i + f(z_ui)
        z_ui = W_n relu(... W_2 relu(a_u + c_i) + b_2 ...) + b_n

    ``f`` is the identity or a sigmoid. The first layer is linear in the user's and the item's part
    of its input, so each part is computed once: ``a_u`` and ``c_i``.

    Args:
        arrays: ``user_factors`` ``p`` ``(n_users, d)``, ``item_factors`` ``q`` ``(n_items, d)``,
            ``item_bias`` ``b`` ``(n_items,)``, ``user_hidden`` ``a`` ``(n_users, h)``,
            ``item_hidden`` ``c`` ``(n_items, h)``, and the layers from ``W_2``: ``deep.0.weight``
            ``(h, h_2)``, ``deep.0.bias`` and so on; the last has one output. All ``float32``.
        device: Where pairs are scored and ranked.
        sigmoid: Whether ``f`` is a sigmoid.
    """

    arrays: State
    device: Device = "cpu"
    sigmoid: bool = False

    def state(self) -> State:
        """Return the arrays."""
        return self.arrays

    def embeddings(self) -> Embeddings:
        """Return the vectors ``p`` and ``q``."""
        return Embeddings(self.arrays["user_factors"], self.arrays["item_factors"])

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        layers = restore_layers("deep", self.arrays)
        entries = self.arrays["item_hidden"].shape[1] + sum(layer.bias.size for layer in layers)
        size = BYTES_PER_SCORE + _BYTES_PER_ENTRY * int(entries)
        score = partial(score_block, sigmoid=self.sigmoid)
        return Ranking(score, self.arrays, self.device, size).lists(queries, k, data)


def score_block(state: Mapping[str, Any], users: Any, *, sigmoid: bool = False) -> Any:
    """Return the scores of all items for these users, ``(b, n_items)``.

    State and user codes are all arrays or all tensors; ``sigmoid`` is whether ``f`` is a sigmoid.

    >>> import numpy as np
    >>> ones = {name: np.ones((1, 1), np.float32) for name in ("user_factors", "item_factors")}
    >>> hidden = {"user_hidden": np.full((1, 1), 2.0), "item_hidden": np.full((1, 1), 3.0)}
    >>> score_block(ones | hidden | {"item_bias": np.full(1, 10.0)}, np.array([0])).tolist()
    [[16.0]]
    """
    x = state["user_hidden"][users][:, None] + state["item_hidden"]
    for layer in restore_layers("deep", state):
        x = layer(x.clip(0))
    x = x[..., 0]
    if sigmoid:
        x = 1 / (1 + math.e ** -x.clip(-_MAX_LOGIT, _MAX_LOGIT))
    return state["user_factors"][users] @ state["item_factors"].T + state["item_bias"] + x


_WIDTHS = (2, 4, 2, 1)
"""Sizes of the network's input and layers, in multiples of the embedding size."""


@dataclass(frozen=True, kw_only=True)
class NeuMF(PairModel):
    """Add a matrix factorization and a neural network on separate vectors (He et al. 2017).

        minimise  Σ_(u,i,y) -ln σ(s_ui) y - ln σ(-s_ui) (1 - y)
        s_ui = h · (p_u ⊙ q_i) + g · φ(m_u, n_i) + b

    ``p``, ``q`` are the vectors of the factorization (GMF) and ``m``, ``n`` those of the network
    (MLP), all of size ``embedding_size`` f. ``φ`` has ReLU layers of sizes 4f, 2f and f on the
    concatenation of ``m_u`` and ``n_i``. An epoch has every training pair with y = 1 and, per
    pair, ``negatives`` items with y = 0 that the user does not have. Both parts are trained
    together by Adam, without pre-training, from Glorot-uniform values. A user without training
    items has an empty list.

    The embeddings are ``h ⊙ p_u`` and ``q_i``; their product is the score of the factorization.

    Args:
        embedding_size: Size f of the vectors; the layer sizes are multiples of it.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step, including negatives.
        learning_rate: Learning rate of Adam.
        negatives: Negative items per training pair.
        dropout: Dropout rate of the inputs of the layers.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        He, Liao, Zhang, Nie, Hu and Chua, "Neural Collaborative Filtering", WWW 2017, equations 7
        and 12, section 3.4.
    """

    embedding_size: Annotated[int, Gt(0)] = 16
    epochs: Annotated[int, Gt(0)] = 7
    batch_size: Annotated[int, Gt(0)] = 2048
    learning_rate: Annotated[float, Gt(0)] = 0.001
    negatives: Annotated[int, Gt(0)] = 4
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.0
    patience: Patience = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedPairNetwork:
        """Train on the training pairs and sampled negatives."""
        n_rows, device = (data.train.n_users, data.train.n_items), resolve_device(self.device)
        tensors = _NeuMFTensors.initialize(n_rows, self.embedding_size, device, rng)
        sampler = Sampler.from_interactions(data.train)
        sample = partial(sampler.sample_with_negatives, self.negatives, unseen=True)
        return self.train_pairs(tensors, sample, self._sum_losses, data, rng)

    def _sum_losses(
        self, tensors: _NeuMFTensors, users: Tensor, items: Tensor, labels: Tensor, noise: Any
    ) -> Tensor:
        return sum_pair_losses(tensors.score(users, items, self.dropout, noise), labels)


@dataclass(frozen=True, eq=False)
class _NeuMFTensors:
    """The parameters of NeuMF."""

    gmf_users: Tensor  # ``p``, ``(n_users, f)``
    gmf_items: Tensor  # ``q``, ``(n_items, f)``
    mlp_users: Tensor  # ``m``, ``(n_users, f)``
    mlp_items: Tensor  # ``n``, ``(n_items, f)``
    layers: Sequence[Dense]  # The layers of ``φ``
    output: Dense  # The weights ``h`` and ``g``, stacked in one column, and the bias ``b``

    @classmethod
    def initialize(
        cls, n_rows: tuple[int, int], embedding_size: int, device: Any, rng: np.random.Generator
    ) -> _NeuMFTensors:
        p, q, m, n = (
            initialize_glorot((size, embedding_size), device, rng) for size in 2 * n_rows
        )
        layers = initialize_layers([embedding_size * width for width in _WIDTHS], device, rng)
        return cls(p, q, m, n, layers, Dense.initialize(2 * embedding_size, 1, device, rng))

    def parameters(self) -> Sequence[Tensor]:
        tables = [self.gmf_users, self.gmf_items, self.mlp_users, self.mlp_items]
        return [*tables, *collect_parameters([*self.layers, self.output])]

    def score(
        self, users: Tensor, items: Tensor, dropout: float = 0.0, noise: Any = None
    ) -> Tensor:
        """Return the scores of pairs, ``(b,)``."""
        import torch

        products = self.gmf_users.index_select(0, users) * self.gmf_items.index_select(0, items)
        vectors = [self.mlp_users.index_select(0, users), self.mlp_items.index_select(0, items)]
        first, *upper_layers = self.layers
        lowest = first(apply_dropout(torch.cat(vectors, 1), dropout, noise))
        hidden = apply_layers(upper_layers, lowest, dropout, noise)
        return self.output(torch.cat([products, hidden.relu()], 1))[:, 0]

    def state(self) -> State:
        first, *upper_layers = self.layers
        f = self.gmf_items.shape[1]
        last = Dense(self.output.weight[f:], self.output.bias)
        return {
            "user_factors": copy_to_array(self.gmf_users * self.output.weight[:f, 0]),
            "item_factors": copy_to_array(self.gmf_items),
            "item_bias": np.zeros(len(self.gmf_items), dtype=np.float32),
            "user_hidden": copy_to_array(self.mlp_users @ first.weight[:f]),
            "item_hidden": copy_to_array(self.mlp_items @ first.weight[f:] + first.bias),
            **store_layers("deep", [*upper_layers, last]),
        }


_Columns: TypeAlias = Literal["auto", "none"] | Annotated[tuple[str, ...], MinLen(1)]
"""Columns by name, none, or automatic (see ``select_columns``)."""

_MIN_ROWS_PER_VALUE = 10
"""``auto`` selects columns whose values have at least so many rows on average."""


@dataclass(frozen=True, eq=False)
class Fields:
    """The values of each row, as indices into one table of the values of all fields.

    The first field is the row itself, with values 0 to n - 1. A field has as many slots as the
    largest number of values that a row has in it.

    Args:
        values: Index of the value of each slot, ``int32 (n, n_slots)``; 0 for an empty slot.
        shares: Weight of the value of each slot, ``float32 (n, n_slots)``: 1 / number of values of
            the row in the field; 0 for an empty slot.
        widths: Number of slots of each field.
        n_values: Number of values of all fields, including the rows.
    """

    values: npt.NDArray[np.int32]
    shares: npt.NDArray[np.float32]
    widths: tuple[int, ...]
    n_values: int

    @classmethod
    def from_attributes(
        cls, n: int, attributes: Attributes | None, columns: Sequence[str]
    ) -> Fields:
        """Return the fields of ``n`` rows: the row itself and the columns."""
        values = [np.arange(n, dtype=np.int32)[:, None]]
        shares, n_values = [np.ones((n, 1), dtype=np.float32)], n
        for name in columns if attributes is not None else ():
            matrix = attributes.membership(name).matrix  # type: ignore[union-attr]
            indices, weights = _fill_slots(matrix)
            values.append(np.where(weights > 0, indices + np.int32(n_values), np.int32(0)))
            shares.append(weights)
            n_values += matrix.shape[1]
        widths = tuple(array.shape[1] for array in values)
        return cls(np.hstack(values), np.hstack(shares), widths, n_values)

    def __len__(self) -> int:
        return len(self.values)


def _fill_slots(matrix: Matrix) -> tuple[AnyArray, AnyArray]:
    """Return the column indices of each row, padded with 0, and 1 / their number."""
    counts = np.diff(matrix.indptr)
    shape = (len(counts), max(int(counts.max(initial=0)), 1))
    rows = np.repeat(np.arange(len(counts)), counts)
    slots = np.arange(rows.size) - matrix.indptr[rows]
    indices, shares = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.float32)
    indices[rows, slots] = matrix.indices
    shares[rows, slots] = 1 / counts[rows]
    return indices, shares


def select_columns(
    attributes: Attributes | None, columns: _Columns, setting: str
) -> tuple[str, ...]:
    """Return the names of the selected columns.

    ``auto`` selects the columns whose values have at least ten rows on average, which excludes
    titles, zip codes and prices. ``setting`` is the name of the setting, for messages.

    Raises:
        MissingEvidence: Columns are named, but there is no table.
        UnknownColumn: There is no such column.
    """
    if columns == "none" or (columns == "auto" and attributes is None):
        return ()
    if attributes is None:
        message = f"the dataset has no {setting.removesuffix('_features')}s table"
        remedy = f"set {setting}: auto, or add the table to the dataset"
        raise MissingEvidence(message, where=setting, remedy=remedy)
    if columns == "auto":
        matrices = {name: attributes.membership(name).matrix for name in attributes.names}
        return tuple(
            name
            for name, matrix in matrices.items()
            if 0 < _MIN_ROWS_PER_VALUE * matrix.shape[1] <= matrix.nnz
        )
    for name in columns:
        with at_setting(setting):
            attributes.column(name)
    return tuple(columns)


ROW_BLOCK = 65536  # Number of users or items that are exported together


class _SideTerms(NamedTuple):
    """The terms of users, or of items, in the scores of their pairs."""

    vectors: Tensor  # Sum of the vectors of the fields, ``(b, d)``
    bias: Tensor  # Sum of the weights and of the products of all pairs of these fields, ``(b,)``
    hidden: Tensor  # Their share of the first deep layer's output, ``(b, h)``
    squares: Tensor  # Sum of the squares of the vectors, ``(b,)``

    def take(self, rows: Tensor) -> _SideTerms:
        return _SideTerms(*(tensor.index_select(0, rows) for tensor in self))


@dataclass(frozen=True, eq=False)
class _Side:
    """The parameters of users, or of items, with their fields."""

    vectors: Tensor  # ``v``, ``(n_values, d)``
    weights: Tensor  # ``w``, ``(n_values, 1)``
    values: Tensor  # Index of the value of each slot, ``(n, n_slots)``
    shares: Tensor  # Weight of the value of each slot, ``(n, n_slots, 1)``
    widths: tuple[int, ...]  # Number of slots of each field

    @classmethod
    def initialize(cls, fields: Fields, embedding_size: int, device: Any, rng: Any) -> _Side:
        import torch

        return cls(
            initialize_glorot((fields.n_values, embedding_size), device, rng),
            create_parameter(np.zeros((fields.n_values, 1)), device),
            torch.from_numpy(fields.values).to(device),
            torch.from_numpy(fields.shares[..., None]).to(device),
            fields.widths,
        )

    def compute_terms(self, rows: Tensor, weight: Tensor) -> _SideTerms:
        """Return the terms of rows; on a CPU repeated rows are computed once.

        ``weight`` has the first deep layer's rows for these fields, ``(n_fields d, h)``.
        """
        import torch

        if rows.device.type == "cuda":  # which would wait for the number of distinct rows
            return self._compute_distinct(rows, weight)
        distinct, inverse = torch.unique(rows, return_inverse=True)
        return self._compute_distinct(distinct, weight).take(inverse)

    def compute_all_terms(self, weight: Tensor) -> _SideTerms:
        """Return the terms of all rows, without gradients."""
        import torch

        with torch.no_grad():
            rows = torch.arange(len(self.values), device=self.values.device)
            blocks = [
                self._compute_distinct(block, weight) for block in torch.split(rows, ROW_BLOCK)
            ]
            return _SideTerms(*(torch.cat(tensors) for tensors in zip(*blocks, strict=True)))

    def _compute_distinct(self, rows: Tensor, weight: Tensor) -> _SideTerms:
        from torch.nn.functional import embedding

        values, shares = self.values[rows], self.shares[rows]
        weights = (embedding(values, self.weights) * shares).sum((1, 2))
        vectors = self._pool(embedding(values, self.vectors) * shares)
        total, squares = vectors.sum(1), vectors.square().sum((1, 2))
        interactions = (total.square().sum(1) - squares) / 2
        return _SideTerms(total, weights + interactions, vectors.flatten(1) @ weight, squares)

    def _pool(self, slots: Tensor) -> Tensor:
        """Return the sum over the slots of each field, ``(b, n_fields, d)``."""
        import torch

        if max(self.widths) == 1:
            return slots
        return torch.stack([field.sum(1) for field in slots.split(self.widths, 1)], 1)


@dataclass(frozen=True, eq=False)
class _ScoreTerms:
    """The terms of the scores of pairs."""

    linear: Tensor  # Offset, weights, and products of two fields of the same side, ``(b,)``
    products: Tensor  # Products of a field of the user and a field of the item, ``(b,)``
    deep: Tensor  # The deep output, ``(b,)``
    squares: Tensor  # Sum of the squares of the vectors of the pair, ``(b,)``

    @property
    def logits(self) -> Tensor:
        """The scores."""
        return self.linear + self.products + self.deep


@dataclass(frozen=True, eq=False)
class DeepFMTensors:
    """The parameters of DeepFM.

    Args:
        users: The parameters of the users.
        items: The parameters of the items.
        offset: ``b``, ``(1,)``.
        layers: The deep layers; the last has one output.
    """

    users: _Side
    items: _Side
    offset: Tensor
    layers: Sequence[Dense]

    @classmethod
    def initialize(
        cls,
        fields: tuple[Fields, Fields],
        sizes: tuple[int, ...],
        *,
        device: Any,
        rng: np.random.Generator,
    ) -> DeepFMTensors:
        """Return initial parameters for the fields of the users and of the items.

        ``sizes`` are the size of the vectors, then the sizes of the hidden layers.
        """
        d, *hidden = sizes
        users, items = [_Side.initialize(side, d, device, rng) for side in fields]
        n_fields = sum(len(side.widths) for side in fields)
        layers = initialize_layers([n_fields * d, *hidden, 1], device, rng)
        return cls(users, items, create_parameter(np.zeros(1), device), layers)

    def parameters(self) -> Sequence[Tensor]:
        """Return all trainable tensors."""
        tables = [
            table for side in (self.users, self.items) for table in (side.vectors, side.weights)
        ]
        return [*tables, self.offset, *collect_parameters(self.layers)]

    def compute_terms(
        self, users: Tensor, items: Tensor, dropout: float = 0.0, noise: Any = None
    ) -> _ScoreTerms:
        """Return the terms of the scores of pairs."""
        user_weight, item_weight = self._split_first_layer()
        user = self.users.compute_terms(users, user_weight)
        item = self.items.compute_terms(items, item_weight)
        hidden = user.hidden + item.hidden + self.layers[0].bias
        return _ScoreTerms(
            self.offset + user.bias + item.bias,
            (user.vectors * item.vectors).sum(1),
            apply_layers(self.layers[1:], hidden, dropout, noise)[:, 0],
            user.squares + item.squares,
        )

    def state(self) -> State:
        """Return the state of a ``FittedPairNetwork``, without the terms of the user alone."""
        user_weight, item_weight = self._split_first_layer()
        users = self.users.compute_all_terms(user_weight)
        items = self.items.compute_all_terms(item_weight)
        return {
            "user_factors": copy_to_array(users.vectors),
            "item_factors": copy_to_array(items.vectors),
            "item_bias": copy_to_array(items.bias),
            "user_hidden": copy_to_array(users.hidden),
            "item_hidden": copy_to_array(items.hidden + self.layers[0].bias),
            **store_layers("deep", self.layers[1:]),
        }

    def _split_first_layer(self) -> tuple[Tensor, Tensor]:
        """Return the rows of the first layer's matrix for the users' and the items' fields."""
        n_inputs = len(self.users.widths) * self.users.vectors.shape[1]
        weight = self.layers[0].weight
        return weight[:n_inputs], weight[n_inputs:]


_Variant: TypeAlias = Literal["paper", "elliot"]

_Sizes: TypeAlias = tuple[Annotated[int, Gt(0)], ...]


@dataclass(frozen=True, kw_only=True)
class DeepFM(PairModel):
    """Add the scores of a factorization machine and a deep network on the same vectors.

        minimise  Σ_(u,i,y) -ln σ(s_ui) y - ln σ(-s_ui) (1 - y) + reg Σ_f |v_f|² / 2
        s_ui = b + Σ_f w_f + Σ_(f < g) v_f · v_g + deep(v_1, ..., v_F)

    The fields f of a pair are the user, the item, and attributes of both, such as the user's age
    and the item's genres. ``v_f`` is the vector and ``w_f`` the weight of the value of the field:
    the mean over several values (genres), 0 for a missing value. ``deep`` has ReLU layers of
    ``hidden_sizes`` and one linear output on the concatenated vectors. An epoch has every training
    pair with y = 1 and, per pair, ``negatives`` items with y = 0 that the user does not have. Adam
    trains from Glorot-uniform vectors. A user without training items has an empty list.

    The embeddings are the sums of the vectors of the user's and of the item's fields; their
    product is the user-item interaction term of the factorization machine.

    Args:
        embedding_size: Size of the vectors.
        hidden_sizes: Sizes of the hidden layers.
        epochs: Maximum number of passes over the training pairs.
        batch_size: Pairs per step, including negatives.
        learning_rate: Learning rate of Adam.
        reg: Weight of the squared norms of the vectors of a pair.
        negatives: Negative items per training pair.
        dropout: Dropout rate of the outputs of the hidden layers.
        user_features: User columns used as fields: names, ``none``, or ``auto`` for the columns
            whose values have at least ten rows on average.
        item_features: The same for item columns.
        variant: ``elliot`` follows that framework. It has no attributes and no ``reg``, samples
            users uniformly and tosses a coin between a seen and an unseen item, and applies a
            sigmoid to the deep output. Its loss combines the product of each pair of a batch with
            the biases and deep output of EVERY pair of the batch, which requires time and memory
            of ``batch_size`` squared.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        UnknownColumn: The users or items have no such column.
        MissingEvidence: Columns are named, but the dataset has no table of users or items.
        OutOfRange: The training diverges.

    Source:
        Guo, Tang, Ye, Li and He, "DeepFM: A Factorization-Machine based Neural Network for CTR
        Prediction", IJCAI 2017, equations 1 to 4.
    """

    libraries: ClassVar[tuple[str, ...]] = ("torch", "scipy")

    embedding_size: Annotated[int, Gt(0)] = 32
    hidden_sizes: _Sizes = (64, 32)
    epochs: Annotated[int, Gt(0)] = 8
    batch_size: Annotated[int, Gt(0)] = 8192
    learning_rate: Annotated[float, Gt(0)] = 0.002
    reg: Annotated[float, Ge(0)] = 0.001
    negatives: Annotated[int, Gt(0)] = 4
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.0
    user_features: _Columns = "auto"
    item_features: _Columns = "auto"
    variant: _Variant = "paper"
    patience: Patience = 10
    device: Device = "auto"

    def check_data(self, data: TrainingData) -> None:
        """Raise an error if the users or items lack a column."""
        self._select_columns(data)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedPairNetwork:
        """Train on the training pairs and sampled negatives."""
        device, sizes = resolve_device(self.device), (self.embedding_size, *self.hidden_sizes)
        tensors = DeepFMTensors.initialize(self._build_fields(data), sizes, device=device, rng=rng)
        sample = partial(self._sample, Sampler.from_interactions(data.train))
        return self.train_pairs(tensors, sample, self._sum_losses, data, rng)

    @property
    def has_sigmoid(self) -> bool:  # type: ignore[override]
        """Whether the deep output passes through a sigmoid."""
        return self.variant == "elliot"

    def _sample(self, sampler: Sampler, rng: np.random.Generator) -> Sequence[AnyArray]:
        if self.variant == "elliot":
            return sampler.sample_coin_pairs(sampler.users.size, rng)
        return sampler.sample_with_negatives(self.negatives, rng, unseen=True)

    def _sum_losses(
        self, tensors: DeepFMTensors, users: Tensor, items: Tensor, labels: Tensor, noise: Any
    ) -> Tensor:
        terms = tensors.compute_terms(users, items, self.dropout, noise)
        if self.variant == "elliot":
            return sum_crossed_losses(terms.products, terms.linear + terms.deep.sigmoid(), labels)
        return sum_pair_losses(terms.logits, labels) + self.reg / 2 * terms.squares.sum()

    def _build_fields(self, data: TrainingData) -> tuple[Fields, Fields]:
        user_columns, item_columns = self._select_columns(data)
        return (
            Fields.from_attributes(data.train.n_users, data.users, user_columns),
            Fields.from_attributes(data.train.n_items, data.items, item_columns),
        )

    def _select_columns(self, data: TrainingData) -> tuple[Sequence[str], Sequence[str]]:
        if self.variant == "elliot":
            return (), ()
        return (
            select_columns(data.users, self.user_features, "user_features"),
            select_columns(data.items, self.item_features, "item_features"),
        )


def sum_crossed_losses(products: Tensor, offsets: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of a batch that combines all products with the other terms of all pairs.

        1/B Σ_a Σ_b -ln σ(t_a + d_b) y_b - ln σ(-(t_a + d_b)) (1 - y_b)
        = 1/B Σ_a Σ_b ln(1 + exp(t_a + d_b)) - Σ_b y_b d_b - (Σ_a t_a) (Σ_b y_b) / B

    for products ``d``, offsets ``t`` (the other terms) and labels ``y``, each ``(B,)``.
    """
    from torch.nn.functional import softplus

    total = softplus(offsets[:, None] + products).sum() / len(labels)
    return total - (labels * products).sum() - offsets.mean() * labels.sum()
