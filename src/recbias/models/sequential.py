"""Models of the order of interactions: SASRec, GRU4Rec and BERT4Rec."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from recbias.core.dataset import AnyArray, Interactions, Queries, TrainingData
from recbias.core.errors import Contradiction, UnknownColumn
from recbias.core.evidence import Embeddings, RankedLists
from recbias.core.plugins import Device, OnlyWith, State
from recbias.kernels.devices import resolve_device
from recbias.models.fitted import FittedFactors
from recbias.models.gpu import Tensor, copy_to_array, create_parameter
from recbias.models.training import NetworkLearner, Patience, TrainedModel, apply_dropout

_Parameters: TypeAlias = Mapping[str, Any]
"""The tensors of a network by name."""

_Dropout: TypeAlias = Callable[[Tensor], Tensor]
"""Sets random entries to 0 and scales the others."""

_HIDDEN_SCORE = -1e9  # The attention score of a position that is not read
_TABLES = frozenset({"items.weight", "positions", "special"})
"""The parameters that hold a vector for each item or position."""

_INITIAL_STD = 0.02  # Standard deviation of their initial values


def sample_weights(shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator) -> _Parameters:
    """Return initial arrays by name.

    A ``.scale`` is 1 and a ``.bias`` is 0. The weights of dense layers are Glorot-uniform, and
    vectors (``_TABLES``) are sampled from Normal(0, 0.02²).
    """
    arrays: dict[str, AnyArray] = {}
    for name, shape in shapes.items():
        if name.endswith((".scale", ".bias")):
            arrays[name] = np.full(shape, float(name.endswith(".scale")), dtype=np.float32)
        elif name in _TABLES:
            noise = rng.standard_normal(shape, dtype=np.float32)
            arrays[name] = noise * np.float32(_INITIAL_STD)
        else:
            limit = np.float32(np.sqrt(6 / sum(shape)))
            arrays[name] = (2 * rng.random(shape, dtype=np.float32) - 1) * limit
    return arrays


def _list_dense(name: str, n_in: int, n_out: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a dense layer by name."""
    return {f"{name}.weight": (n_in, n_out), f"{name}.bias": (n_out,)}


def _list_norm(name: str, size: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a layer normalization by name."""
    return {f"{name}.scale": (size,), f"{name}.bias": (size,)}


def _apply_dense(parameters: _Parameters, name: str, x: Tensor) -> Tensor:
    """Return ``x W + b``."""
    return x @ parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def _apply_norm(parameters: _Parameters, name: str, x: Tensor) -> Tensor:
    """Return ``x``, normalized over its last axis, times a scale plus a bias."""
    from torch.nn.functional import layer_norm

    scale, bias = parameters[f"{name}.scale"], parameters[f"{name}.bias"]
    return layer_norm(x, scale.shape, scale, bias, 1e-8)


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, visible: Tensor, heads: int, drop: _Dropout
) -> Tensor:
    """Return scaled dot-product attention, ``(b, n, d)``.

    Args:
        queries: ``(b, n, d)``; ``heads`` heads share d equally. ``keys`` and ``values`` likewise.
        keys: The keys.
        values: The values.
        visible: Whether position i (row) reads position j (column), ``bool (b, n, n)``. A position
            that reads nothing has the value 0.
        heads: Number of heads.
        drop: Applies dropout to the attention weights.
    """
    b, n, d = queries.shape
    q, k, v = (x.view(b, n, heads, d // heads).transpose(1, 2) for x in (queries, keys, values))
    scores = q @ k.transpose(2, 3) / (d // heads) ** 0.5
    weights = scores.masked_fill(~visible[:, None], _HIDDEN_SCORE).softmax(-1)
    weights = drop(weights * visible.any(2)[:, None, :, None])
    return (weights @ v).transpose(1, 2).reshape(b, n, d)


def create_dropout(rate: float, generator: Any) -> _Dropout:
    """Return dropout whose masks a ``torch.Generator`` samples; none if that is None."""
    return partial(apply_dropout, rate=0.0 if generator is None else rate, generator=generator)


def see_items(is_item: Tensor, *, causal: bool) -> Tensor:
    """Return which positions each position reads, ``bool (b, n, n)``: items, not padding.

    Args:
        is_item: Whether each position holds an item, ``bool (b, n)``.
        causal: Whether a position reads only itself and those before it.
    """
    n = is_item.shape[1]
    visible = is_item[:, None].expand(-1, n, n)
    return visible.tril() if causal else visible


def _refuse_uneven_heads(embedding_size: int, heads: int) -> None:
    """Raise Contradiction if attention heads cannot share the vectors equally."""
    if embedding_size % heads:
        message = f"{heads} heads cannot share vectors of {embedding_size} numbers equally"
        remedy = f"set embedding_size to a multiple of {heads}"
        raise Contradiction(message, where="heads", remedy=remedy)


_DRAWS = 2**31 - 1
"""The range of random numbers: an item's probability differs from uniform by one in this many."""


@dataclass(frozen=True, eq=False)
class Histories:
    """The training items of all users in the order of time, concatenated.

    Rows of a user with equal times are in the order of the file, as in the split
    ``leave_one_out``. A repeated pair stays repeated.

    Args:
        items: The items of each user, first to last, ``int64[n]``.
        starts: Where each user starts in ``items``, ``int64[n_users + 1]``.
    """

    items: AnyArray
    starts: AnyArray

    @classmethod
    def from_interactions(cls, train: Interactions) -> Histories:
        """Return the histories of training interactions."""
        order = np.lexsort(
            (train.times, train.users) if train.times is not None else (train.users,)
        )
        starts = np.append(0, np.cumsum(train.user_counts()))
        return cls(train.items[order].astype(np.int64), starts.astype(np.int64))

    def cut_windows(
        self, length: int, least: int, rng: np.random.Generator | None = None
    ) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Cut each history, from its end, into windows of ``length`` items or fewer.

        Two windows share one item if ``least`` is 2, so that every item but a user's first is the
        successor of another in exactly one window; else they share none.

        Args:
            length: Largest number of items of a window.
            least: Smallest number of items of a window, 1 or 2.
            rng: Moves all cuts of a history later by a random number of items, uniform over those
                that give other windows, so that the last window is the shorter; None for no move.

        Returns:
            The user of each window, its position in ``items``, and its number of items, which is
            at least ``least``, ``int64`` each.
        """
        stride = length - (least - 1)
        counts = np.diff(self.starts)
        moves = np.zeros_like(counts) if rng is None else rng.integers(stride, size=counts.size)
        sizes = counts - (least - 1) + moves
        n_windows = np.where(counts >= least, -(-sizes // stride), 0)
        users = np.repeat(np.arange(counts.size), n_windows)
        number = np.arange(users.size) - np.repeat(np.cumsum(n_windows) - n_windows, n_windows)
        starts, ends = self.starts[users], self.starts[users + 1]
        stops = ends + moves[users] - number * stride
        firsts = np.maximum(stops - length, starts)
        return users, firsts, np.minimum(stops, ends) - firsts

    def select_last(self, users: AnyArray, length: int) -> tuple[AnyArray, AnyArray]:
        """Return the position and the number of the last ``length`` items of users."""
        stops = self.starts[users + 1]
        firsts = np.maximum(stops - length, self.starts[users])
        return firsts, stops - firsts


def pad_windows(items: Tensor, starts: Tensor, counts: Tensor, padding: int) -> Tensor:
    """Return windows of items as rows whose last items are in the last column, padded before.

    Args:
        items: All histories, ``int64[n]``.
        starts: Where each window starts, ``int64[b]``.
        counts: Its number of items, ``int64[b]``.
        padding: The code in place of an item.

    >>> import torch
    >>> items, starts, counts = torch.arange(5), torch.tensor([0, 3]), torch.tensor([3, 1])
    >>> pad_windows(items, starts, counts, 9).tolist()
    [[0, 1, 2], [9, 9, 3]]
    """
    import torch

    width = int(counts.max()) if len(counts) else 0
    columns = torch.arange(width, device=items.device) - (width - counts)[:, None]
    if not len(items):
        return torch.full_like(columns, padding)
    positions = (starts[:, None] + columns).clip(0, len(items) - 1)
    return items[positions].masked_fill(columns < 0, padding)


@dataclass(frozen=True, eq=False)
class UnseenItems:
    """Samples, uniformly and without rejection, items that users do not have, on a device.

    The items that user u lacks are numbered 0, 1, ...; number r is the item r + c, where c of the
    user's items are not above it, found by a binary search among all users' items at once.

    Args:
        keys: For each distinct training pair in the order of users and items, the user's offset
            plus the item minus its rank among the user's items, ``int64[p]``, ascending.
        starts: Where each user starts in ``keys``, ``int64[n_users + 1]``.
        n_items: The number of items.
    """

    keys: Tensor
    starts: Tensor
    n_items: int

    @classmethod
    def from_interactions(cls, train: Interactions, device: Any) -> UnseenItems:
        """Return the sampler of a training part."""
        import torch

        matrix = train.binary
        starts = matrix.indptr.astype(np.int64)
        counts = np.diff(starts)
        users = np.repeat(np.arange(train.n_users), counts)
        ranks = np.arange(users.size) - starts[users]
        keys = users * (train.n_items + 1) + matrix.indices - ranks
        as_tensor = partial(torch.tensor, dtype=torch.int64, device=device)
        return cls(as_tensor(keys), as_tensor(starts), train.n_items)

    def sample(self, users: Tensor, n: int, generator: Any) -> Tensor:
        """Return ``n`` items for each user, ``int64 (b, n)``; each user must lack an item."""
        import torch

        first, n_seen = self.starts[users], self.starts[users + 1] - self.starts[users]
        n_unseen = (self.n_items - n_seen)[:, None]
        draws = torch.randint(
            _DRAWS, (len(users), n), generator=generator, dtype=torch.int64, device=users.device
        )
        numbers = draws % n_unseen
        keys = users[:, None] * (self.n_items + 1) + numbers
        return numbers + torch.searchsorted(self.keys, keys, right=True) - first[:, None]


def sum_cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Return Σ -ln softmax(scores)_target over rows of scores of all items, ``(n, n_items)``."""
    from torch.nn.functional import cross_entropy

    return cross_entropy(scores, targets, reduction="sum")


def sum_sampled_cross_entropy(positive: Tensor, negatives: Tensor) -> Tensor:
    """Return Σ -ln softmax over the target, ``(n,)``, and its negatives, ``(n, k)``."""
    import torch

    scores = torch.cat([positive[:, None], negatives], 1)
    return (scores.logsumexp(1) - positive).sum()


def sum_binary_cross_entropy(positive: Tensor, negatives: Tensor) -> Tensor:
    """Return Σ -ln σ(s_target) - Σ_j ln(1 - σ(s_j)) over the negatives."""
    from torch.nn.functional import logsigmoid

    return -logsigmoid(positive).sum() - logsigmoid(-negatives).sum()


_ENCODED_TOKENS = 2**15
"""The number of items, padding included, that are encoded together for recommendation."""


@dataclass(frozen=True, eq=False)
class _FittedSequenceModel:
    """A trained network that reads a history and scores the next item.

        score(u, i) = h_u · q_i + b_i

    ``h_u`` is the vector of the history of user u.

    Args:
        network: The settings of the model.
        arrays: The weights by name, with ``items.weight`` ``q`` ``(n_items, d)`` and, unless
            it is 0, ``items.bias`` ``b`` ``(n_items,)``; and ``users``, the vectors of the
            training users, ``(n_users, d)``, NaN for a user without history.
    """

    network: Any
    arrays: State

    def state(self) -> State:
        """Return the arrays."""
        return self.arrays

    def embeddings(self) -> Embeddings:
        """Return the vectors whose product is the score without the item bias."""
        return Embeddings(self.arrays["users"], self.arrays["items.weight"])

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, from the user's history in ``data``."""
        users = np.unique(queries.users[queries.users >= 0])
        items, bias = self.arrays["items.weight"], self.arrays.get("items.bias")
        factors = FittedFactors(self._encode(users, data), items, bias, self.network.device)
        return factors.recommend(queries, k, data)

    def encode_users(self, data: TrainingData) -> _FittedSequenceModel:
        """Return a copy with the vectors of the users of these data."""
        vectors = self._encode(np.arange(data.train.n_users), data)
        return replace(self, arrays={**self.arrays, "users": vectors})

    def _encode(self, users: AnyArray, data: TrainingData) -> AnyArray:
        """Return the vectors of ``users`` with a history, ``(n_users, d)``; others are NaN."""
        import torch

        device = resolve_device(self.network.device)
        histories = Histories.from_interactions(data.train)
        n_items, size = self.arrays["items.weight"].shape
        vectors = np.full((data.train.n_users, size), np.nan, dtype=np.float32)
        active = users[np.diff(histories.starts)[users] > 0]
        if not active.size:
            return vectors
        firsts, counts = histories.select_last(active, self.network.longest)
        order = np.argsort(counts, kind="stable")
        size = max(1, _ENCODED_TOKENS // int(counts.max()))
        with torch.no_grad():
            parameters = {
                name: torch.tensor(array, device=device) for name, array in self.arrays.items()
            }
            items = _to_tensor(histories.items, device)
            for start in range(0, order.size, size):
                rows = order[start : start + size]
                windows = [_to_tensor(array[rows], device) for array in (firsts, counts)]
                padded = pad_windows(items, windows[0], windows[1], n_items)
                vectors[active[rows]] = copy_to_array(self.network.encode(parameters, padded))
        return vectors


class _SequenceModel(TrainedModel):
    """Base class of the models that learn from the order of each user's interactions."""

    needs: ClassVar[frozenset[str]] = frozenset({"train", "times"})

    max_length: int

    def check_data(self, data: TrainingData) -> None:
        """Raise UnknownColumn if the training interactions have no times."""
        if data.train.times is None:
            message = f"{type(self).__name__} needs the order of a user's interactions, and they"
            remedy = "add a column timestamp to the interactions, or choose another model"
            raise UnknownColumn(f"{message} have no times", remedy=remedy)

    def restore(self, state: State) -> _FittedSequenceModel:
        """Return the fitted recommender of a stored state."""
        return _FittedSequenceModel(self, state)

    @property
    def longest(self) -> int:
        """The number of last items that are encoded for recommendation."""
        return self.max_length

    def encode(self, parameters: _Parameters, histories: Tensor) -> Tensor:
        """Return the vector that predicts the item after each history, ``(b, d)``.

        Histories are item codes, ``int64 (b, n)``, with the padding before them, whose code is the
        number of items.
        """
        return self.encode_positions(parameters, histories)[:, -1]

    def encode_positions(
        self, parameters: _Parameters, histories: Tensor, noise: Any = None
    ) -> Tensor:
        """Return the output of the network at each position, ``(b, n, d)``.

        ``noise`` is the ``torch.Generator`` of dropout, None for no dropout.
        """
        raise NotImplementedError

    def train_windows(
        self,
        data: TrainingData,
        rng: np.random.Generator,
        arrays: State,
        cut_windows: Callable[[np.random.Generator], Sequence[AnyArray]],
        batch_loss: Callable[..., Tensor],
    ) -> _FittedSequenceModel:
        """Train on windows of the histories.

        ``cut_windows`` returns the windows of an epoch as arrays of one length. ``batch_loss``
        takes the parameters by name, and tensors: all histories, and the slices of these arrays of
        a batch; and the generator of noise.
        """
        device = resolve_device(self.device)
        items = _to_tensor(Histories.from_interactions(data.train).items, device)
        tensors = {key: create_parameter(array, device) for key, array in arrays.items()}

        def sample(rng: np.random.Generator) -> Sequence[AnyArray]:
            windows = cut_windows(rng)
            order = rng.permutation(len(windows[0]))
            return [array[order] for array in windows]

        def export() -> _FittedSequenceModel:
            arrays = {name: copy_to_array(tensor) for name, tensor in tensors.items()}
            return _FittedSequenceModel(self, arrays)

        loss = partial(batch_loss, tensors, items)
        learner = NetworkLearner(list(tensors.values()), sample, loss, export, has_noise=True)
        return self.train(type(self).__name__, learner, data, rng).encode_users(data)


def _to_tensor(array: AnyArray, device: Any) -> Tensor:
    import torch

    return torch.tensor(array, dtype=torch.int64, device=device)


_WIDTH = 4
"""The size of the inner layers, in multiples of the embedding size."""


@dataclass(frozen=True, kw_only=True)
class BERT4Rec(_SequenceModel):
    """Predict masked items by self-attention over the others of the history (Sun et al. 2019).

        minimise  Σ_u Σ_(t masked) -ln softmax(s_t)_(i_t);   s_ti = g_t · q_i + b_i
        g = N(GELU(W h + b)),   x⁰_t = N(q_(i_t) + p_t), q of a masked item being that of [mask]
        y = N(x + Attention(x, x, x)),   x' = N(y + W_2 GELU(W_1 y + b_1) + b_2)

    ``i_1, i_2, ...`` are the training items of user u in the order of time, ``h_t`` is the output
    of the last layer at position t, ``N`` is a layer normalization, and ``p_t`` the vector of the
    position, counted from the end of the window. Attention reads all positions. Histories are cut
    from their end into windows of ``max_length`` items. In each epoch the items of a window are
    masked at random anew; in a share of the windows only the last item is, as it is for
    recommendation: lists rank ``s`` at a [mask] after the last ``max_length`` - 1 items. Adam
    trains the network at a constant rate. A user without training items has an empty list. The
    embeddings are ``g`` at that [mask], and ``q``: their product plus the item bias is the score.

    An epoch learns from the masked items only, so that training needs many more epochs than that
    of SASRec: with too few, accuracy is far below the published one (Petrov and Macdonald).

    Args:
        embedding_size: Size of the vectors; a multiple of ``heads``.
        layers: Number of attention layers.
        heads: Number of attention heads.
        max_length: Largest number of items of a window, [mask] included.
        dropout: Dropout rate of the inputs, the attention weights and the layers' outputs.
        mask_share: Probability that an item is masked. The last item of a window is masked if no
            other is.
        last_share: Probability that only the last item of a window is masked.
        epochs: Maximum number of passes over the windows.
        batch_size: Windows per step.
        learning_rate: Learning rate of Adam.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        Contradiction: The heads do not divide the vectors.
        UnknownColumn: The interactions have no times.
        OutOfRange: The training diverges.

    Source:
        Sun, Liu, Wu, Pei, Lin, Ou and Jiang, "BERT4Rec: Sequential Recommendation with
        Bidirectional Encoder Representations from Transformer", CIKM 2019, section 3; the
        normalizations of x⁰ and g are those of the authors' code. On the number of epochs: Petrov
        and Macdonald, "A Systematic Review and Replicability Study of BERT4Rec for Sequential
        Recommendation", RecSys 2022.
    """

    embedding_size: Annotated[int, Gt(0)] = 64
    layers: Annotated[int, Gt(0)] = 2
    heads: Annotated[int, Gt(0)] = 2
    max_length: Annotated[int, Gt(1)] = 50
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.2
    mask_share: Annotated[float, Gt(0), Le(1)] = 0.2
    last_share: Annotated[float, Ge(0), Le(1)] = 0.1
    epochs: Annotated[int, Gt(0)] = 200
    batch_size: Annotated[int, Gt(0)] = 128
    learning_rate: Annotated[float, Gt(0)] = 0.001
    patience: Patience = 20
    device: Device = "auto"

    def __post_init__(self) -> None:
        _refuse_uneven_heads(self.embedding_size, self.heads)

    @property
    def longest(self) -> int:
        """The number of last items that are encoded for recommendation."""
        return self.max_length - 1

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedSequenceModel:
        """Train on windows of the users' histories."""
        self.check_data(data)
        windows = Histories.from_interactions(data.train).cut_windows(self.max_length, least=1)
        arrays = sample_weights(self._list_shapes(data.train.n_items), rng)
        return self.train_windows(data, rng, arrays, lambda _: windows[1:], self._sum_losses)

    def encode(self, parameters: _Parameters, histories: Tensor) -> Tensor:
        """Return the vector that predicts the item after each history, ``(b, d)``."""
        from torch.nn.functional import pad

        masked = pad(histories, (0, 1), value=len(parameters["items.weight"]) + 1)
        hidden = self.encode_positions(parameters, masked)[:, -1]
        return self.transform(parameters, hidden)

    def transform(self, parameters: _Parameters, hidden: Tensor) -> Tensor:
        """Return ``g`` of outputs ``h`` of the last layer, ``(n, d)``."""
        from torch.nn.functional import gelu

        return _apply_norm(parameters, "head.norm", gelu(_apply_dense(parameters, "head", hidden)))

    def encode_positions(
        self, parameters: _Parameters, histories: Tensor, noise: Any = None
    ) -> Tensor:
        """Return the output of the last layer at each position, ``(b, n, d)``.

        Histories are item codes, ``int64 (b, n)``; the number of items stands for padding, and the
        next number for a masked item. ``noise`` is the ``torch.Generator`` of dropout, None for no
        dropout.
        """
        import torch
        from torch.nn.functional import gelu

        drop = create_dropout(self.dropout, noise)
        table = torch.cat([parameters["items.weight"], parameters["special"]])
        visible = see_items(histories != len(table) - 2, causal=False)
        x = table[histories] + parameters["positions"][-histories.shape[1] :]
        x = drop(_apply_norm(parameters, "norm", x))
        for layer in range(self.layers):
            name = f"layer.{layer}"
            query, key, value = _apply_dense(parameters, f"{name}.qkv", x).chunk(3, dim=2)
            y = attend(query, key, value, visible, self.heads, drop)
            y = drop(_apply_dense(parameters, f"{name}.joined", y))
            x = _apply_norm(parameters, f"{name}.norm", x + y)
            hidden = gelu(_apply_dense(parameters, f"{name}.inner", x))
            y = drop(_apply_dense(parameters, f"{name}.outer", hidden))
            x = _apply_norm(parameters, f"{name}.outer_norm", x + y)
        return x

    def choose_masked(self, is_item: Tensor, noise: Any) -> Tensor:
        """Return which items of each window are masked, ``bool (b, n)``; at least one is.

        Args:
            is_item: Whether each position holds an item, ``bool (b, n)``, the last ones do.
            noise: The ``torch.Generator`` that samples them.
        """
        import torch

        def draw(shape: tuple[int, ...]) -> Tensor:
            return torch.rand(shape, generator=noise, device=is_item.device)

        is_masked = is_item & (draw(tuple(is_item.shape)) < self.mask_share)
        only_last = (draw((len(is_item),)) < self.last_share) | ~is_masked.any(1)
        is_last = torch.zeros_like(is_masked)
        is_last[:, -1:] = True
        return torch.where(only_last[:, None], is_last, is_masked)

    def _list_shapes(self, n_items: int) -> dict[str, tuple[int, ...]]:
        d = self.embedding_size
        shapes: dict[str, tuple[int, ...]] = {
            "items.weight": (n_items, d),
            "items.bias": (n_items,),
            "special": (2, d),  # padding, which is never read, and [mask]
            "positions": (self.max_length, d),
        }
        for layer in range(self.layers):
            name = f"layer.{layer}"
            shapes |= _list_dense(f"{name}.qkv", d, 3 * d) | _list_dense(f"{name}.joined", d, d)
            shapes |= _list_dense(f"{name}.inner", d, _WIDTH * d)
            shapes |= _list_dense(f"{name}.outer", _WIDTH * d, d)
            shapes |= _list_norm(f"{name}.norm", d) | _list_norm(f"{name}.outer_norm", d)
        return (
            shapes | _list_norm("norm", d) | _list_dense("head", d, d) | _list_norm("head.norm", d)
        )

    def _sum_losses(
        self, parameters: _Parameters, items: Tensor, firsts: Tensor, counts: Tensor, noise: Any
    ) -> Tensor:
        """Return the loss of windows: firsts and counts, ``int64[b]`` each."""
        weight, bias = parameters["items.weight"], parameters["items.bias"]
        padded = pad_windows(items, firsts, counts, len(weight))
        is_masked = self.choose_masked(padded < len(weight), noise)
        inputs = padded.masked_fill(is_masked, len(weight) + 1)
        hidden = self.encode_positions(parameters, inputs, noise)[is_masked]
        vectors, targets = self.transform(parameters, hidden), padded[is_masked]
        return sum_cross_entropy(vectors @ weight.T + bias, targets)


_GATES = 3  # A gated recurrent unit has a reset gate, an update gate and a new value


@dataclass(frozen=True, kw_only=True)
class GRU4Rec(_SequenceModel):
    """Predict each next item by a recurrent network over the items before it (Hidasi et al. 2016).

        minimise  Σ_u Σ_t -ln softmax(s_t)_(i_(t+1))
        s_ti = h_t · q_i + b_i,   h_t = GRU(q_(i_t), h_(t-1))

    ``i_1, i_2, ...`` are the training items of user u in the order of time. The softmax is over
    all items, or over the next one and the negatives. The vectors ``q`` of inputs and outputs are
    the same ("constrained embedding"). A history is one session: it is cut from its end into
    windows of ``max_length`` inputs, each read from a state of zeros, so that every item but the
    first is predicted once an epoch. Adam trains the network. Lists rank ``s`` after the last
    ``max_length`` items. A user without training items has an empty list. The embeddings are ``h``
    at a user's last position, and ``q``: their product plus the item bias is the score.

    Negatives are shared by a batch, as in the paper, and an item is never its own negative. They
    are sampled by popularity to the power ``popularity``: with 1 as the other items of a
    mini-batch, which the paper uses, are distributed.

    Args:
        embedding_size: Size of the vectors and of the hidden state.
        layers: Number of recurrent layers.
        max_length: Largest number of items that are read.
        dropout: Dropout rate of the inputs and outputs of the recurrent network.
        negatives: Number of sampled items for each batch; 0 for all items of the catalogue.
        popularity: The probability of an item as a negative is proportional to its number of
            training rows to this power; 0 for a uniform distribution.
        epochs: Maximum number of passes over the windows.
        batch_size: Windows per step.
        learning_rate: Learning rate of Adam.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        UnknownColumn: The interactions have no times.
        OutOfRange: The training diverges.

    Source:
        Hidasi, Karatzoglou, Baltrunas and Tikk, "Session-based Recommendations with Recurrent
        Neural Networks", ICLR 2016, section 3. The additional negatives and the
        constrained embedding: Hidasi and Karatzoglou, "Recurrent Neural Networks with Top-k Gains
        for Session-based Recommendations", CIKM 2018, sections 3 and 4.
    """

    embedding_size: Annotated[int, Gt(0)] = 64
    layers: Annotated[int, Gt(0)] = 1
    max_length: Annotated[int, Gt(0)] = 50
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.2
    negatives: Annotated[int, Ge(0)] = 0
    popularity: Annotated[float, Ge(0), OnlyWith("negatives")] = 0.5
    epochs: Annotated[int, Gt(0)] = 100
    batch_size: Annotated[int, Gt(0)] = 128
    learning_rate: Annotated[float, Gt(0)] = 0.001
    patience: Patience = 10
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedSequenceModel:
        """Train on windows of the users' histories."""
        import torch

        self.check_data(data)
        windows = Histories.from_interactions(data.train).cut_windows(self.max_length + 1, least=2)
        counts = data.train.item_counts()
        weights = (counts / max(counts.max(initial=0), 1)) ** self.popularity * (counts > 0)
        weights = torch.tensor(weights, dtype=torch.float32, device=resolve_device(self.device))
        arrays = self._sample_weights(data.train.n_items, rng)
        batch_loss = partial(self._sum_losses, weights)
        return self.train_windows(data, rng, arrays, lambda _: windows[1:], batch_loss)

    def encode_positions(
        self, parameters: _Parameters, histories: Tensor, noise: Any = None
    ) -> Tensor:
        """Return the vector that predicts the item after each position, ``(b, n, d)``.

        ``noise`` is the ``torch.Generator`` of dropout, None for no dropout.
        """
        import torch
        from torch.func import functional_call

        drop = create_dropout(self.dropout, noise)
        items, n = parameters["items.weight"], histories.shape[1]
        n_padding = (histories >= len(items)).sum(1, keepdim=True)
        columns = torch.arange(n, device=histories.device)
        # the network reads the items first and the padding last, which then changes nothing
        turned = histories.gather(1, (columns + n_padding) % n).clip(max=len(items) - 1)
        weights = {
            name.removeprefix("gru."): tensor
            for name, tensor in parameters.items()
            if name.startswith("gru.")
        }
        size = self.embedding_size
        network = torch.nn.GRU(size, size, self.layers, batch_first=True, device="meta")
        with warnings.catch_warnings():  # the weights of CUDA are compacted at every call
            warnings.filterwarnings("ignore", "RNN module weights are not part", UserWarning)
            hidden, _ = functional_call(network, weights, (drop(items[turned]),))
        back = ((columns - n_padding) % n)[..., None].expand_as(hidden)
        return drop(hidden.gather(1, back))

    def _sample_weights(self, n_items: int, rng: np.random.Generator) -> dict[str, AnyArray]:
        """Return initial arrays: those of the recurrent network are uniform within 1 / sqrt(d)."""
        d = self.embedding_size
        arrays = dict(
            sample_weights({"items.weight": (n_items, d), "items.bias": (n_items,)}, rng)
        )
        limit = 1 / np.sqrt(d)
        for layer in range(self.layers):
            for kind, shape in (("weight", (_GATES * d, d)), ("bias", (_GATES * d,))):
                for source in ("ih", "hh"):
                    values = rng.uniform(-limit, limit, shape).astype(np.float32)
                    arrays[f"gru.{kind}_{source}_l{layer}"] = values
        return arrays

    def _sum_losses(
        self, weights: Tensor, parameters: _Parameters, items: Tensor, *batch: Any
    ) -> Tensor:
        """Return the loss of windows: firsts and counts, ``int64[b]`` each, and noise.

        ``weights`` are those of the items as negatives, ``(n_items,)``.
        """
        firsts, counts, noise = batch
        vectors, bias = parameters["items.weight"], parameters["items.bias"]
        inputs = pad_windows(items, firsts, counts - 1, len(vectors))
        targets = pad_windows(items, firsts + 1, counts - 1, len(vectors))
        is_target = targets < len(vectors)
        hidden = self.encode_positions(parameters, inputs, noise)[is_target]
        codes = targets[is_target]
        if not self.negatives:
            return sum_cross_entropy(hidden @ vectors.T + bias, codes)
        sampled = weights.multinomial(self.negatives, replacement=True, generator=noise)
        positive = (hidden * vectors[codes]).sum(1) + bias[codes]
        negatives = hidden @ vectors[sampled].T + bias[sampled]
        negatives = negatives.masked_fill(codes[:, None] == sampled, -float("inf"))
        return sum_sampled_cross_entropy(positive, negatives)


@dataclass(frozen=True, kw_only=True)
class SASRec(_SequenceModel):
    """Predict each next item by self-attention over the items before it (Kang and McAuley 2018).

        minimise  Σ_u Σ_t -ln softmax(s_t)_(i_(t+1));   s_ti = h_t · q_i
        x⁰_t = N(q_(i_t) + p_t)
        y = x + Attention(N(x), N(x), N(x)),   x' = y + W_2 ReLU(W_1 N(y) + b_1) + b_2

    ``i_1, i_2, ...`` are the training items of user u in the order of time, ``h_t`` is the
    normalized output of the last layer at position t, ``N`` is a layer normalization, and ``p_t``
    the vector of the position, counted from the end of the window. Attention at position t reads
    positions up to t only. Histories are cut into windows of ``max_length`` inputs or fewer, so
    that every item but the first is predicted once an epoch; the paper reads the last window
    only. Each epoch cuts each history at other places, so that an item is predicted in turn after
    few and after many items. Lists rank ``s`` after the last ``max_length`` items. A user without
    training items has an empty list. The embeddings are ``h`` at a user's last position, and
    ``q``.

    The paper's loss is ``loss: binary_cross_entropy`` with ``negatives: 1``. The default, the
    cross-entropy over all items, is more accurate in the comparison of Klenitskiy and Vasilev.
    The paper does not normalize its inputs: ``normalize_inputs: false``. Vectors that are small at
    first then have little weight beside what the first layer adds, and training takes longer.

    Args:
        embedding_size: Size of the vectors; a multiple of ``heads``.
        layers: Number of attention layers.
        heads: Number of attention heads.
        max_length: Largest number of items that are read.
        dropout: Dropout rate of the inputs, the attention weights and the layers' outputs.
        normalize_inputs: Whether the inputs of the first layer are normalized, as in BERT4Rec.
        shift_windows: Whether each epoch moves the cuts at random; else they count from the end.
        loss: ``cross_entropy``, over all items or the sampled ones, or ``binary_cross_entropy`` of
            the next item and the sampled ones.
        negatives: Number of items that are sampled, of those that the user does not have: for
            ``cross_entropy`` for each window, 0 for all items of the catalogue; for
            ``binary_cross_entropy`` for each position.
        epochs: Maximum number of passes over the windows.
        batch_size: Windows per step.
        learning_rate: Learning rate of Adam.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        Contradiction: The heads do not divide the vectors, or a loss by negatives has none.
        UnknownColumn: The interactions have no times.
        OutOfRange: The training diverges.

    Source:
        Kang and McAuley, "Self-Attentive Sequential Recommendation", ICDM 2018, section III. The
        cross-entropy: Klenitskiy and Vasilev, "Turning Dross Into Gold Loss: is BERT4Rec really
        better than SASRec?", RecSys 2023.
    """

    embedding_size: Annotated[int, Gt(0)] = 64
    layers: Annotated[int, Gt(0)] = 2
    heads: Annotated[int, Gt(0)] = 1
    max_length: Annotated[int, Gt(0)] = 50
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.2
    normalize_inputs: bool = True
    shift_windows: bool = True
    loss: Literal["cross_entropy", "binary_cross_entropy"] = "cross_entropy"
    negatives: Annotated[int, Ge(0)] = 0
    epochs: Annotated[int, Gt(0)] = 100
    batch_size: Annotated[int, Gt(0)] = 128
    learning_rate: Annotated[float, Gt(0)] = 0.001
    patience: Patience = 10
    device: Device = "auto"

    def __post_init__(self) -> None:
        _refuse_uneven_heads(self.embedding_size, self.heads)
        if self.loss == "binary_cross_entropy" and not self.negatives:
            message = "binary_cross_entropy compares the next item with negatives, which are 0"
            raise Contradiction(message, where="negatives", remedy="set negatives: 1")

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedSequenceModel:
        """Train on windows of the users' histories."""
        self.check_data(data)
        unseen = UnseenItems.from_interactions(data.train, resolve_device(self.device))
        arrays = sample_weights(self._list_shapes(data.train.n_items), rng)
        cut_windows = partial(self._cut_windows, data, Histories.from_interactions(data.train))
        batch_loss = partial(self._sum_losses, unseen)
        return self.train_windows(data, rng, arrays, cut_windows, batch_loss)

    def encode_positions(
        self, parameters: _Parameters, histories: Tensor, noise: Any = None
    ) -> Tensor:
        """Return the vector that predicts the item after each position, ``(b, n, d)``.

        ``noise`` is the ``torch.Generator`` of dropout, None for no dropout.
        """
        drop = create_dropout(self.dropout, noise)
        items, positions = parameters["items.weight"], parameters["positions"]
        is_item = histories < len(items)
        visible = see_items(is_item, causal=True)
        x = items[histories.clip(max=len(items) - 1)] + positions[-histories.shape[1] :]
        if self.normalize_inputs:
            x = _apply_norm(parameters, "input_norm", x)
        x = drop(x) * is_item[..., None]
        for layer in range(self.layers):
            name = f"layer.{layer}"
            normal = _apply_norm(parameters, f"{name}.norm", x)
            query, key, value = _apply_dense(parameters, f"{name}.qkv", normal).chunk(3, dim=2)
            x = x + drop(attend(query, key, value, visible, self.heads, drop))
            normal = _apply_norm(parameters, f"{name}.inner_norm", x)
            hidden = _apply_dense(parameters, f"{name}.inner", normal).relu()
            x = x + drop(_apply_dense(parameters, f"{name}.outer", drop(hidden)))
            x = x * is_item[..., None]
        return _apply_norm(parameters, "norm", x)

    def _list_shapes(self, n_items: int) -> dict[str, tuple[int, ...]]:
        d = self.embedding_size
        shapes: dict[str, tuple[int, ...]] = {
            "items.weight": (n_items, d),
            "positions": (self.max_length, d),
        }
        if self.normalize_inputs:
            shapes |= _list_norm("input_norm", d)
        for layer in range(self.layers):
            name = f"layer.{layer}"
            shapes |= _list_norm(f"{name}.norm", d) | _list_dense(f"{name}.qkv", d, 3 * d)
            shapes |= _list_norm(f"{name}.inner_norm", d) | _list_dense(f"{name}.inner", d, d)
            shapes |= _list_dense(f"{name}.outer", d, d)
        return shapes | _list_norm("norm", d)

    def _cut_windows(
        self, data: TrainingData, histories: Histories, rng: np.random.Generator
    ) -> tuple[AnyArray, ...]:
        """Return the users, firsts and counts of the windows of an epoch, ``int64[b]`` each."""
        moved = rng if self.shift_windows else None
        windows = histories.cut_windows(self.max_length + 1, 2, moved)
        if not self.negatives:
            return windows
        lacks = np.diff(data.train.binary.indptr)[windows[0]] < data.train.n_items
        return tuple(array[lacks] for array in windows)

    def _sum_losses(
        self, unseen: UnseenItems, parameters: _Parameters, items: Tensor, *batch: Any
    ) -> Tensor:
        """Return the loss of windows: users, firsts and counts, ``int64[b]`` each, and noise."""
        users, firsts, counts, noise = batch
        weight = parameters["items.weight"]
        inputs = pad_windows(items, firsts, counts - 1, len(weight))
        targets = pad_windows(items, firsts + 1, counts - 1, len(weight))
        is_target = targets < len(weight)
        vectors = self.encode_positions(parameters, inputs, noise)
        if not self.negatives:
            return sum_cross_entropy(vectors[is_target] @ weight.T, targets[is_target])
        if self.loss == "cross_entropy":
            sampled = weight[unseen.sample(users, self.negatives, noise)]  # (b, k, d)
            negatives = (vectors @ sampled.transpose(1, 2))[is_target]
        else:
            rows = users[:, None].expand_as(targets)[is_target]
            sampled = weight[unseen.sample(rows, self.negatives, noise)]  # (n, k, d)
            negatives = (sampled @ vectors[is_target][..., None])[..., 0]
        positive = (vectors[is_target] * weight[targets[is_target]]).sum(1)
        if self.loss == "cross_entropy":
            return sum_sampled_cross_entropy(positive, negatives)
        return sum_binary_cross_entropy(positive, negatives)
