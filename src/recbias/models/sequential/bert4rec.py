"""BERT4Rec: self-attention over the items on both sides of masked ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import Contradiction
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
from recbias.models.sequential.histories import Histories, pad_windows
from recbias.models.sequential.losses import sum_cross_entropy
from recbias.models.sequential.sampled_softmax import SampledSoftmax, require_negatives
from recbias.models.sequential.sequence_model import FittedSequenceModel, SequenceModel

WIDTH = 4
"""The size of the inner layers, in multiples of the embedding size."""


@dataclass(frozen=True, kw_only=True)
class BERT4Rec(SequenceModel):
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

    ``loss: sampled_softmax`` estimates the sum over all items in the softmax from ``negatives``
    items ``N`` that a batch shares, in a time that does not grow with the catalogue:

        -s_ti + ln (exp(s_ti) + Σ_(j in N, j ≠ i) exp(s_tj - ln π_j)),   i = i_t

    Item j is drawn with probability ``π_j = min(1, c n_j^popularity)``, of its ``n_j`` training
    rows, and counts 1 / ``π_j`` times ("logQ" correction): the expected sum is that of all items.

    Args:
        embedding_size: Size of the vectors; a multiple of ``heads``.
        layers: Number of attention layers.
        heads: Number of attention heads.
        max_length: Largest number of items of a window, [mask] included.
        dropout: Dropout rate of the inputs, the attention weights and the layers' outputs.
        mask_share: Probability that an item is masked. The last item of a window is masked if no
            other is.
        last_share: Probability that only the last item of a window is masked.
        loss: ``cross_entropy`` over all items, or ``sampled_softmax``, its estimate from items
            that are drawn for each batch.
        negatives: Number of items that ``sampled_softmax`` draws for each batch.
        popularity: ``sampled_softmax`` draws items by their training rows to this power.
        epochs: Maximum number of passes over the windows.
        batch_size: Windows per step.
        learning_rate: Learning rate of Adam.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        Contradiction: The heads do not divide the vectors; ``sampled_softmax`` has no negatives,
            or ``cross_entropy`` has some.
        UnknownColumn: The interactions have no times.
        OutOfRange: The training diverges.

    Source:
        Sun, Liu, Wu, Pei, Lin, Ou and Jiang, "BERT4Rec: Sequential Recommendation with
        Bidirectional Encoder Representations from Transformer", CIKM 2019, section 3; the
        normalizations of x⁰ and g are those of the authors' code. On the number of epochs: Petrov
        and Macdonald, "A Systematic Review and Replicability Study of BERT4Rec for Sequential
        Recommendation", RecSys 2022. ``sampled_softmax``: Bengio and Senécal, IEEE Transactions on
        Neural Networks 2008, section III; Yi et al., RecSys 2019, section 4.
    """

    embedding_size: Annotated[int, Gt(0)] = 64
    layers: Annotated[int, Gt(0)] = 2
    heads: Annotated[int, Gt(0)] = 2
    max_length: Annotated[int, Gt(1)] = 50
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.2
    mask_share: Annotated[float, Gt(0), Le(1)] = 0.2
    last_share: Annotated[float, Ge(0), Le(1)] = 0.1
    loss: Literal["cross_entropy", "sampled_softmax"] = "cross_entropy"
    negatives: Annotated[int, Ge(0)] = 0
    popularity: Annotated[float, Ge(0)] = 0.75
    epochs: Annotated[int, Gt(0)] = 200
    batch_size: Annotated[int, Gt(0)] = 128
    learning_rate: Annotated[float, Gt(0)] = 0.001
    patience: Annotated[int, Ge(0)] = 20
    device: Device = "auto"

    def __post_init__(self) -> None:
        refuse_uneven_heads(self.embedding_size, self.heads)
        require_negatives(self.loss, self.negatives, {})
        if self.loss == "cross_entropy" and self.negatives:
            message = f"cross_entropy scores all items, and negatives are {self.negatives}"
            remedy = "set loss: sampled_softmax, or remove negatives"
            raise Contradiction(message, where="negatives", remedy=remedy)

    @property
    def longest(self) -> int:
        """The number of last items that are encoded for recommendation."""
        return self.max_length - 1

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedSequenceModel:
        """Train on windows of the users' histories."""
        self.check_data(data)
        windows = Histories.from_interactions(data.train).cut_windows(self.max_length, least=1)
        arrays = sample_weights(self._list_shapes(data.train.n_items), rng)
        batch_loss = SampledSoftmax.bind(self, data.train, self._sum_losses)
        return self.train_windows(data, rng, arrays, lambda _: windows[1:], batch_loss)

    def encode(self, parameters: Parameters, histories: Tensor) -> Tensor:
        """Return the vector that predicts the item after each history, ``(b, d)``."""
        from torch.nn.functional import pad

        masked = pad(histories, (0, 1), value=len(parameters["items.weight"]) + 1)
        hidden = self.encode_positions(parameters, masked)[:, -1]
        return self.transform(parameters, hidden)

    def transform(self, parameters: Parameters, hidden: Tensor) -> Tensor:
        """Return ``g`` of outputs ``h`` of the last layer, ``(n, d)``."""
        from torch.nn.functional import gelu

        return apply_norm(parameters, "head.norm", gelu(apply_dense(parameters, "head", hidden)))

    def encode_positions(
        self, parameters: Parameters, histories: Tensor, noise: Any = None
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
        x = drop(apply_norm(parameters, "norm", x))
        for layer in range(self.layers):
            name = f"layer.{layer}"
            query, key, value = apply_dense(parameters, f"{name}.qkv", x).chunk(3, dim=2)
            y = attend(query, key, value, visible, self.heads, drop)
            y = drop(apply_dense(parameters, f"{name}.joined", y))
            x = apply_norm(parameters, f"{name}.norm", x + y)
            hidden = gelu(apply_dense(parameters, f"{name}.inner", x))
            y = drop(apply_dense(parameters, f"{name}.outer", hidden))
            x = apply_norm(parameters, f"{name}.outer_norm", x + y)
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
            shapes |= list_dense(f"{name}.qkv", d, 3 * d) | list_dense(f"{name}.joined", d, d)
            shapes |= list_dense(f"{name}.inner", d, WIDTH * d)
            shapes |= list_dense(f"{name}.outer", WIDTH * d, d)
            shapes |= list_norm(f"{name}.norm", d) | list_norm(f"{name}.outer_norm", d)
        return shapes | list_norm("norm", d) | list_dense("head", d, d) | list_norm("head.norm", d)

    def _sum_losses(
        self,
        parameters: Parameters,
        noise: Any,
        items: Tensor,
        *windows: Tensor,
        softmax: SampledSoftmax | None = None,
    ) -> Tensor:
        """Return the loss of windows: firsts and counts, ``int64[b]`` each."""
        firsts, counts = windows
        weight, bias = parameters["items.weight"], parameters["items.bias"]
        padded = pad_windows(items, firsts, counts, len(weight))
        is_masked = self.choose_masked(padded < len(weight), noise)
        inputs = padded.masked_fill(is_masked, len(weight) + 1)
        hidden = self.encode_positions(parameters, inputs, noise)[is_masked]
        vectors, targets = self.transform(parameters, hidden), padded[is_masked]
        if softmax is not None:
            return softmax.sum_losses(vectors, targets, weight, bias, noise)
        return sum_cross_entropy(vectors @ weight.T + bias, targets)
