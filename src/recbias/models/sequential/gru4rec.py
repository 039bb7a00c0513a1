"""GRU4Rec: a recurrent network over the items before."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.models.ranking.tensors import Tensor
from recbias.models.sequential.attention import Parameters, create_dropout, sample_weights
from recbias.models.sequential.histories import Histories, pad_windows
from recbias.models.sequential.losses import (
    sum_bpr_max,
    sum_cross_entropy,
    sum_sampled_cross_entropy,
)
from recbias.models.sequential.sampled_softmax import SampledSoftmax, require_negatives
from recbias.models.sequential.sequence_model import FittedSequenceModel, SequenceModel
from recbias.numerics.devices import resolve_device

GATES = 3  # A gated recurrent unit has a reset gate, an update gate and a new value


@dataclass(frozen=True, kw_only=True)
class GRU4Rec(SequenceModel):
    """Predict each next item by a recurrent network over the items before it (Hidasi et al. 2016).

        minimise  Σ_u Σ_t L(s_t, i_(t+1));   s_ti = h_t · q_i + b_i,   h_t = GRU(q_(i_t), h_(t-1))
        cross_entropy:    L(s, i) = -ln softmax(s)_i
        sampled_softmax:  L(s, i) = -s_i + ln (exp(s_i) + Σ_(j in N, j ≠ i) exp(s_j - ln π_j))
        bpr_max:          L(s, i) = -ln Σ_(j in N) w_j σ(s_i - s_j) + bpr_reg Σ_(j in N) w_j s_j²

    ``i_1, i_2, ...`` are the training items of user u in the order of time, ``N`` are the sampled
    negatives and ``w`` the softmax of their scores. The vectors ``q`` of inputs and outputs are
    the same ("constrained embedding"). A history is one session: it is cut from its end into
    windows of ``max_length`` inputs, each read from a state of zeros, so that every item but the
    first is predicted once an epoch. Adam trains the network. Lists rank ``s`` after the last
    ``max_length`` items. A user without training items has an empty list. The embeddings are ``h``
    at a user's last position, and ``q``: their product plus the item bias is the score.

    Negatives are shared by a batch, as in the paper, and an item is never its own negative. They
    are sampled by popularity to the power ``popularity``: with 1 as the other items of a
    mini-batch, which the paper uses, are distributed.

    ``cross_entropy`` with negatives compares the next item with them as they are, as the paper
    does. ``sampled_softmax`` estimates the sum over all items in the softmax: it draws ``N``
    without replacement, item j with probability ``π_j = min(1, c n_j^popularity)``, ``n_j`` being
    its training rows, and counts it 1 / ``π_j`` times (the "logQ" correction), so that the sum
    has the right expected value. Its time does not grow with the catalogue.

    Args:
        embedding_size: Size of the vectors and of the hidden state.
        layers: Number of recurrent layers.
        max_length: Largest number of items that are read.
        dropout: Dropout rate of the inputs and outputs of the recurrent network.
        loss: ``cross_entropy``, over all items or the sampled ones, ``sampled_softmax`` or
            ``bpr_max``.
        negatives: Number of sampled items for each batch; 0 for all items of the catalogue, which
            only ``cross_entropy`` can use.
        popularity: The probability of an item as a negative is proportional to its number of
            training rows to this power; 0 for a uniform distribution.
        bpr_reg: Weight of the squared scores of negatives in ``bpr_max``.
        epochs: Maximum number of passes over the windows.
        batch_size: Windows per step.
        learning_rate: Learning rate of Adam.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        Contradiction: ``bpr_max`` or ``sampled_softmax`` has no negatives.
        UnknownColumn: The interactions have no times.
        OutOfRange: The training diverges.

    Source:
        Hidasi, Karatzoglou, Baltrunas and Tikk, "Session-based Recommendations with Recurrent
        Neural Networks", ICLR 2016, section 3. The losses, the additional negatives and the
        constrained embedding: Hidasi and Karatzoglou, "Recurrent Neural Networks with Top-k Gains
        for Session-based Recommendations", CIKM 2018, sections 3 and 4. ``sampled_softmax``:
        Bengio and Senécal, "Adaptive Importance Sampling to Accelerate Training of a Neural
        Probabilistic Language Model", IEEE Transactions on Neural Networks 2008, section III; Yi
        et al., "Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations",
        RecSys 2019, section 4.
    """

    embedding_size: Annotated[int, Gt(0)] = 64
    layers: Annotated[int, Gt(0)] = 1
    max_length: Annotated[int, Gt(0)] = 50
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.2
    loss: Literal["cross_entropy", "sampled_softmax", "bpr_max"] = "cross_entropy"
    negatives: Annotated[int, Ge(0)] = 0
    popularity: Annotated[float, Ge(0)] = 0.5
    bpr_reg: Annotated[float, Ge(0)] = 1.0
    epochs: Annotated[int, Gt(0)] = 100
    batch_size: Annotated[int, Gt(0)] = 128
    learning_rate: Annotated[float, Gt(0)] = 0.001
    patience: Annotated[int, Ge(0)] = 10
    device: Device = "auto"

    def __post_init__(self) -> None:
        require_negatives(self.loss, self.negatives, {"bpr_max": 2048})

    @property
    def longest(self) -> int:
        """The number of last items that are encoded for recommendation."""
        return self.max_length

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedSequenceModel:
        """Train on windows of the users' histories."""
        import torch

        self.check_data(data)
        windows = Histories.from_interactions(data.train).cut_windows(self.max_length + 1, least=2)
        counts = data.train.item_counts()
        weights = (counts / max(counts.max(initial=0), 1)) ** self.popularity * (counts > 0)
        weights = torch.tensor(weights, dtype=torch.float32, device=resolve_device(self.device))
        arrays = self._sample_weights(data.train.n_items, rng)
        batch_loss = SampledSoftmax.bind(self, data.train, partial(self._sum_losses, weights))
        return self.train_windows(data, rng, arrays, lambda _: windows[1:], batch_loss)

    def encode(self, parameters: Parameters, histories: Tensor) -> Tensor:
        """Return the vector that predicts the item after each history, ``(b, d)``."""
        return self.encode_positions(parameters, histories)[:, -1]

    def encode_positions(
        self, parameters: Parameters, histories: Tensor, noise: Any = None
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
            for kind, shape in (("weight", (GATES * d, d)), ("bias", (GATES * d,))):
                for source in ("ih", "hh"):
                    values = rng.uniform(-limit, limit, shape).astype(np.float32)
                    arrays[f"gru.{kind}_{source}_l{layer}"] = values
        return arrays

    def _sum_losses(
        self,
        weights: Tensor,
        parameters: Parameters,
        noise: Any,
        items: Tensor,
        *windows: Tensor,
        softmax: SampledSoftmax | None = None,
    ) -> Tensor:
        """Return the loss of windows: firsts and counts, ``int64[b]`` each.

        ``weights`` are those of the items as negatives, ``(n_items,)``.
        """
        firsts, counts = windows
        vectors, bias = parameters["items.weight"], parameters["items.bias"]
        inputs = pad_windows(items, firsts, counts - 1, len(vectors))
        targets = pad_windows(items, firsts + 1, counts - 1, len(vectors))
        is_target = targets < len(vectors)
        hidden = self.encode_positions(parameters, inputs, noise)[is_target]
        codes = targets[is_target]
        if softmax is not None:
            return softmax.sum_losses(hidden, codes, vectors, bias, noise)
        if not self.negatives:
            return sum_cross_entropy(hidden @ vectors.T + bias, codes)
        sampled = weights.multinomial(self.negatives, replacement=True, generator=noise)
        positive = (hidden * vectors[codes]).sum(1) + bias[codes]
        negatives = hidden @ vectors[sampled].T + bias[sampled]
        negatives = negatives.masked_fill(codes[:, None] == sampled, -float("inf"))
        if self.loss == "cross_entropy":
            return sum_sampled_cross_entropy(positive, negatives)
        return sum_bpr_max(positive, negatives, self.bpr_reg)
