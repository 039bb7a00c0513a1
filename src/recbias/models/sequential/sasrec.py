"""SASRec: self-attention over the items before."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.models.ranking.tensors import Tensor
from recbias.models.sequential.attention import (
    Parameters,
    apply_dense,
    apply_norm,
    attend,
    create_dropout,
    list_dense,
    list_norm,
    refuse_uneven_heads,
    sample_weights,
    see_items,
)
from recbias.models.sequential.histories import Histories, UnseenItems, pad_windows
from recbias.models.sequential.losses import (
    sum_binary_cross_entropy,
    sum_cross_entropy,
    sum_sampled_cross_entropy,
)
from recbias.models.sequential.sampled_softmax import SampledSoftmax, require_negatives
from recbias.models.sequential.sequence_model import FittedSequenceModel, SequenceModel
from recbias.numerics.devices import resolve_device


@dataclass(frozen=True, kw_only=True)
class SASRec(SequenceModel):
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

    ``loss: sampled_softmax`` estimates the sum over all items in the softmax from ``negatives``
    items ``N`` that a batch shares, in a time that does not grow with the catalogue:

        -s_ti + ln (exp(s_ti) + Σ_(j in N, j ≠ i) exp(s_tj - ln π_j)),   i = i_(t+1)

    Item j is drawn with probability ``π_j = min(1, c n_j^popularity)``, of its ``n_j`` training
    rows, and counts 1 / ``π_j`` times ("logQ" correction): the expected sum is that of all items.

    Args:
        embedding_size: Size of the vectors; a multiple of ``heads``.
        layers: Number of attention layers.
        heads: Number of attention heads.
        max_length: Largest number of items that are read.
        dropout: Dropout rate of the inputs, the attention weights and the layers' outputs.
        normalize_inputs: Whether the inputs of the first layer are normalized, as in BERT4Rec.
        shift_windows: Whether each epoch moves the cuts at random; else they count from the end.
        loss: ``cross_entropy``, over all items or the sampled ones; ``sampled_softmax``, its
            estimate from items that are drawn for each batch; or ``binary_cross_entropy`` of the
            next item and the sampled ones.
        negatives: Number of sampled items: for ``sampled_softmax`` for each batch; else of those
            that the user does not have, for ``cross_entropy`` for each window, 0 for all items of
            the catalogue; for ``binary_cross_entropy`` for each position.
        popularity: ``sampled_softmax`` draws items by their training rows to this power.
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
        better than SASRec?", RecSys 2023. ``sampled_softmax``: Bengio and Senécal, IEEE
        Transactions on Neural Networks 2008, section III; Yi et al., RecSys 2019, section 4.
    """

    embedding_size: Annotated[int, Gt(0)] = 64
    layers: Annotated[int, Gt(0)] = 2
    heads: Annotated[int, Gt(0)] = 1
    max_length: Annotated[int, Gt(0)] = 50
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.2
    normalize_inputs: bool = True
    shift_windows: bool = True
    loss: Literal["cross_entropy", "sampled_softmax", "binary_cross_entropy"] = "cross_entropy"
    negatives: Annotated[int, Ge(0)] = 0
    popularity: Annotated[float, Ge(0)] = 0.75
    epochs: Annotated[int, Gt(0)] = 100
    batch_size: Annotated[int, Gt(0)] = 128
    learning_rate: Annotated[float, Gt(0)] = 0.001
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def __post_init__(self) -> None:
        refuse_uneven_heads(self.embedding_size, self.heads)
        require_negatives(self.loss, self.negatives, {"binary_cross_entropy": 1})

    @property
    def longest(self) -> int:
        """The number of last items that are encoded for recommendation."""
        return self.max_length

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedSequenceModel:
        """Train on windows of the users' histories."""
        self.check_data(data)
        unseen = UnseenItems.from_interactions(data.train, resolve_device(self.device))
        arrays = sample_weights(self._list_shapes(data.train.n_items), rng)
        cut_windows = partial(self._cut_windows, data, Histories.from_interactions(data.train))
        batch_loss = SampledSoftmax.bind(self, data.train, partial(self._sum_losses, unseen))
        return self.train_windows(data, rng, arrays, cut_windows, batch_loss)

    def encode(self, parameters: Parameters, histories: Tensor) -> Tensor:
        """Return the vector that predicts the item after each history, ``(b, d)``."""
        return self.encode_positions(parameters, histories)[:, -1]

    def encode_positions(
        self, parameters: Parameters, histories: Tensor, noise: Any = None
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
            x = apply_norm(parameters, "input_norm", x)
        x = drop(x) * is_item[..., None]
        for layer in range(self.layers):
            name = f"layer.{layer}"
            normal = apply_norm(parameters, f"{name}.norm", x)
            query, key, value = apply_dense(parameters, f"{name}.qkv", normal).chunk(3, dim=2)
            x = x + drop(attend(query, key, value, visible, self.heads, drop))
            normal = apply_norm(parameters, f"{name}.inner_norm", x)
            hidden = apply_dense(parameters, f"{name}.inner", normal).relu()
            x = x + drop(apply_dense(parameters, f"{name}.outer", drop(hidden)))
            x = x * is_item[..., None]
        return apply_norm(parameters, "norm", x)

    def _list_shapes(self, n_items: int) -> dict[str, tuple[int, ...]]:
        d = self.embedding_size
        shapes: dict[str, tuple[int, ...]] = {
            "items.weight": (n_items, d),
            "positions": (self.max_length, d),
        }
        if self.normalize_inputs:
            shapes |= list_norm("input_norm", d)
        for layer in range(self.layers):
            name = f"layer.{layer}"
            shapes |= list_norm(f"{name}.norm", d) | list_dense(f"{name}.qkv", d, 3 * d)
            shapes |= list_norm(f"{name}.inner_norm", d) | list_dense(f"{name}.inner", d, d)
            shapes |= list_dense(f"{name}.outer", d, d)
        return shapes | list_norm("norm", d)

    def _cut_windows(
        self, data: TrainingData, histories: Histories, rng: np.random.Generator
    ) -> tuple[AnyArray, ...]:
        """Return the users, firsts and counts of the windows of an epoch, ``int64[b]`` each."""
        moved = rng if self.shift_windows else None
        windows = histories.cut_windows(self.max_length + 1, 2, moved)
        if not self.negatives or self.loss == "sampled_softmax":
            return windows
        lacks = np.diff(data.train.binary.indptr)[windows[0]] < data.train.n_items
        return tuple(array[lacks] for array in windows)

    def _sum_losses(
        self,
        unseen: UnseenItems,
        parameters: Parameters,
        noise: Any,
        items: Tensor,
        *windows: Tensor,
        softmax: SampledSoftmax | None = None,
    ) -> Tensor:
        """Return the loss of windows: users, firsts and counts, ``int64[b]`` each."""
        users, firsts, counts = windows
        weight = parameters["items.weight"]
        inputs = pad_windows(items, firsts, counts - 1, len(weight))
        targets = pad_windows(items, firsts + 1, counts - 1, len(weight))
        is_target = targets < len(weight)
        vectors = self.encode_positions(parameters, inputs, noise)
        if softmax is not None:
            return softmax.sum_losses(vectors[is_target], targets[is_target], weight, None, noise)
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
