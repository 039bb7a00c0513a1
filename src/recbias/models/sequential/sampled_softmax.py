"""The softmax of sampled items, as an estimate of that of all items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.errors import Contradiction
from recbias.core.models.devices import Device
from recbias.models.ranking.tensors import Tensor
from recbias.models.sequential.losses import sum_cross_entropy
from recbias.numerics.devices import resolve_device

NEVER = -1e9
"""The score of a column that no target has; its exponential is 0."""


class DrawsNegatives(Protocol):
    """The settings of a model that may have a sampled softmax."""

    @property
    def loss(self) -> str:
        """The name of the loss."""

    @property
    def negatives(self) -> int:
        """The number of items that are drawn for a batch."""

    @property
    def popularity(self) -> float:
        """The power of the numbers of rows to which the probabilities are proportional."""

    @property
    def device(self) -> Device:
        """Where the model is trained."""


@dataclass(frozen=True, eq=False)
class SampledSoftmax:
    """The cross-entropy of targets among items that are drawn for a step.

        loss = Σ_t -s_ti + ln (exp(s_ti) + Σ_(j in N, j ≠ i) exp(s_tj - ln π_j))

    ``i`` is the target of position t, ``s`` are its scores, and ``N`` are the drawn items, the
    same for all positions. Item j is drawn with probability ``π_j``, at most once, so that the
    sum of exponentials has the expected value of that of all items (Horvitz and Thompson). An item
    that is drawn although it is the target (an accidental hit) counts once, as the target, and the
    target, which is there in any case, is not corrected.

    The probabilities are proportional to weights, but at most 1: ``π_j = min(1, c w_j)``, with c
    such that they sum to n. An item with π = 1 is drawn in each step. Items in random order lie
    end to end as intervals of the lengths ``π_j``; drawn are those that hold the points u, u + 1,
    ..., u + n - 1, u uniform in [0, 1) (systematic sampling). Where n is the number of items or
    more, the loss is that of all items.

    Args:
        probabilities: ``π``, ``float64[n_items]``.
        size: The number of items that are drawn, n.

    Source:
        Bengio and Senécal, "Adaptive Importance Sampling to Accelerate Training of a Neural
        Probabilistic Language Model", IEEE Transactions on Neural Networks 2008, section III, on
        the estimate of the normalization with the target's term exact. The correction by -ln of
        the probability ("logQ"): Yi, Yang, Hong, Cheng, Heldt, Kumthekar, Zhao, Wei and Chi,
        "Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations", RecSys
        2019, section 4. The sample: Madow, "On the Theory of Systematic Sampling, II", Annals of
        Mathematical Statistics 1949; Horvitz and Thompson, "A Generalization of Sampling Without
        Replacement from a Finite Universe", Journal of the American Statistical Association 1952.

    >>> import torch
    >>> softmax = SampledSoftmax.from_weights(np.array([1.0, 1.0, 2.0]), 2, "cpu")
    >>> softmax.probabilities.tolist()
    [0.5, 0.5, 1.0]
    >>> sorted(softmax.draw(torch.Generator().manual_seed(0)).tolist())[1]
    2
    """

    probabilities: Tensor
    size: int

    @classmethod
    def from_weights(cls, weights: AnyArray, n: int, device: Any) -> SampledSoftmax:
        """Return the softmax of ``n`` items drawn by weights above 0, ``float64[n_items]``."""
        import torch

        probabilities = compute_probabilities(weights, n)
        return cls(
            torch.tensor(probabilities, dtype=torch.float64, device=device),
            min(n, weights.size),
        )

    @classmethod
    def from_counts(
        cls, counts: AnyArray, n: int, popularity: float, device: Any
    ) -> SampledSoftmax:
        """Return the softmax of items drawn by their number of rows to a power.

        Items without rows are drawn like those with one, as their scores are part of the sum that
        is estimated.
        """
        weights = (np.maximum(counts, 1) / max(counts.max(initial=0), 1)) ** popularity
        return cls.from_weights(np.maximum(weights, np.finfo(np.float64).tiny), n, device)

    @classmethod
    def bind(
        cls, model: DrawsNegatives, train: Interactions, batch_loss: Callable[..., Tensor]
    ) -> Callable[..., Tensor]:
        """Return a loss of batches with the softmax of a model that has this loss, or as it is."""
        if model.loss != "sampled_softmax":
            return batch_loss
        device = resolve_device(model.device)
        counts = train.item_counts()
        softmax = cls.from_counts(counts, model.negatives, model.popularity, device)
        return partial(batch_loss, softmax=softmax)

    def draw(self, generator: Any) -> Tensor:
        """Return distinct items, ``int64[size]``; generator is a ``torch.Generator``."""
        import torch

        device, n_items = self.probabilities.device, len(self.probabilities)
        if self.size == n_items:
            return torch.arange(n_items, device=device)
        order = torch.randperm(n_items, generator=generator, device=device)
        ends = self.probabilities[order].cumsum(0)
        start = torch.rand(1, generator=generator, dtype=torch.float64, device=device)
        places = torch.searchsorted(
            ends, start + torch.arange(self.size, device=device), right=True
        )
        return order[places.clip(max=n_items - 1)]  # the sum of the lengths is rounded

    def sum_losses(
        self,
        vectors: Tensor,
        targets: Tensor,
        items: Tensor,
        bias: Tensor | None,
        generator: Any,
    ) -> Tensor:
        """Return the loss of positions, whose scores are products with items, plus a bias.

        Args:
            vectors: Those of the positions, ``(b, d)``.
            targets: Their items, ``int64[b]``.
            items: The vectors of all items, ``(n_items, d)``.
            bias: That of each item, ``(n_items,)``, or none.
            generator: The ``torch.Generator`` that draws the items.
        """
        import torch

        drawn = self.draw(generator)
        shift = -self.probabilities[drawn].log().to(items.dtype)
        own = (vectors * items[targets]).sum(1)
        if bias is not None:
            shift, own = shift + bias[drawn], own + bias[targets]
        # One more column, without vector, is the place of targets that are not drawn
        table = torch.cat([items[drawn], items.new_zeros(1, items.shape[1])])
        shift = torch.cat([shift, shift.new_full((1,), NEVER)])
        columns = torch.full((len(items),), self.size, device=items.device)
        columns[drawn] = torch.arange(self.size, device=items.device)
        places = columns[targets]
        scores = torch.addmm(shift, vectors, table.T)
        return sum_cross_entropy(scores.scatter(1, places[:, None], own[:, None]), places)


def compute_probabilities(weights: AnyArray, n: int) -> AnyArray:
    """Return ``min(1, c w)``, which sums to ``n``, of weights above 0; all 1 if there are fewer.

    >>> compute_probabilities(np.array([1.0, 4.0, 1.0, 2.0]), 2)
    array([0.25, 1.  , 0.25, 0.5 ])
    """
    if n >= weights.size:
        return np.ones(weights.size)
    falling = np.sort(weights)[::-1].astype(np.float64)
    rests = np.cumsum(falling[::-1])[::-1]  # the sum of each weight and the smaller ones
    factors = (n - np.arange(n)) / rests[:n]  # c, where as many items have probability 1
    first = int(np.argmax(factors * falling[:n] <= 1))
    return np.asarray(np.minimum(1.0, factors[first] * weights))


def require_negatives(loss: str, negatives: int, others: Mapping[str, int]) -> None:
    """Raise Contradiction if ``sampled_softmax`` or another loss by negatives has none.

    ``others`` are such losses with a number of negatives that the message proposes.
    """
    numbers = {"sampled_softmax": 512, **others}
    if loss in numbers and not negatives:
        message = f"{loss} compares the next item with negatives, which are 0"
        remedy = f"set negatives: {numbers[loss]}"
        raise Contradiction(message, where="negatives", remedy=remedy)
