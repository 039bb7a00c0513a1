"""LightGCN: vectors that are averaged over the graph of users and items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from recbias.core.context import record_fact
from recbias.core.dataset import Interactions, Matrix, TrainingData
from recbias.core.plugins import Device
from recbias.kernels.devices import resolve_device
from recbias.models.factorization import sum_squares
from recbias.models.fitted import FactorModel, FittedFactors
from recbias.models.gpu import Tensor, copy_to_array, initialize_normal
from recbias.models.sgd import Sampler
from recbias.models.training import NetworkLearner, Patience, TrainedModel

_INITIAL_STD = 0.1  # Standard deviation of the initial vectors

_MOST_STEPS, _LEAST_TRIPLES = 512, 2048
"""For ``batch_size: auto``: the largest number of steps of an epoch, and the smallest of triples
of a step, that of the paper. MovieLens-1M has 223 steps of 2048."""


@dataclass(frozen=True, kw_only=True)
class LightGCN(TrainedModel, FactorModel):
    """Average the vectors of neighbours in the graph of users and items (He et al. 2020).

        minimise  Σ_(u,i,j) -ln σ(s_ui - s_uj) + reg (|e_u⁰|² + |e_i⁰|² + |e_j⁰|²) / 2
        s_ui = e_u · e_i;   e = (e⁰ + e¹ + ... + e^layers) / (layers + 1)
        e_u^(l+1) = Σ_(i in I_u) e_i^l / sqrt(|I_u| |U_i|),   e_i^(l+1) likewise over U_i

    ``I_u`` are the training items of user u, ``U_i`` the training users of item i; a repeated pair
    is one edge. Only the vectors ``e⁰`` are learned, by Adam. An epoch samples as many triples as
    there are training pairs: a training pair (u, i) uniformly, and uniformly an item j that u does
    not have. With ``layers: 0`` it is a factorization by BPR. A user without training items has an
    empty list. The embeddings are ``e``.

    Each step averages over the whole graph, so that with a fixed ``batch_size`` an epoch grows
    with the square of the data: one of 25 million pairs would take about ten hours with 2048.
    ``auto`` takes max(2048, pairs / 512) triples. Up to a million pairs these are the 2048 of the
    paper; beyond, an epoch has 512 steps and grows as the data do. What an epoch teaches depends
    on its steps: on MovieLens-1M, 15 epochs have nDCG@10 0.286 with the 223 steps of 2048 triples,
    and 0.272 with the 99 of 4,600. The same number of steps with more triples is not less
    accurate, but takes more ``epochs``.

    Args:
        embedding_size: Length of the vectors.
        layers: Number of times that vectors are averaged over neighbours.
        epochs: Maximum number of epochs, each with as many triples as training pairs.
        batch_size: Triples per step; ``auto`` for max(2048, pairs / 512).
        learning_rate: Learning rate of Adam.
        reg: Weight of the squared vectors ``e⁰`` of a triple.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        device: Where the model is trained and the lists are ranked.

    Raises:
        OutOfRange: The training diverges.

    Source:
        He, Deng, Wang, Li, Zhang and Wang, "LightGCN: Simplifying and Powering Graph Convolution
        Network for Recommendation", SIGIR 2020, equations 3, 4 and 15, with equal weights of the
        layers.
    """

    libraries: ClassVar[tuple[str, ...]] = ("torch", "numba")

    embedding_size: Annotated[int, Gt(0)] = 64
    layers: Annotated[int, Ge(0)] = 3
    epochs: Annotated[int, Gt(0)] = 100
    batch_size: Annotated[int, Gt(0)] | Literal["auto"] = "auto"
    learning_rate: Annotated[float, Gt(0)] = 0.001
    reg: Annotated[float, Ge(0)] = 0.0001
    patience: Patience = 10
    device: Device = "auto"

    def count_triples(self, n_pairs: int) -> int:
        """Return the number of triples of a step.

        >>> LightGCN().count_triples(5_120_000)
        10000
        """
        if self.batch_size != "auto":
            return self.batch_size
        return max(_LEAST_TRIPLES, -(-n_pairs // _MOST_STEPS))

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedFactors:
        """Train on triples of a user, a positive and a negative item."""
        device = resolve_device(self.device)
        n_users, n_items = data.train.n_users, data.train.n_items
        shape = (n_users + n_items, self.embedding_size)
        vectors = initialize_normal(shape, _INITIAL_STD, device, rng)
        graph = Graph.from_interactions(data.train, vectors)
        sampler = Sampler.from_interactions(data.train)
        sized = replace(self, batch_size=self.count_triples(sampler.users.size))
        record_fact("triples_a_step", sized.batch_size)

        def export() -> FittedFactors:
            averaged = copy_to_array(graph.propagate(vectors, self.layers))
            users, items = averaged[:n_users], averaged[n_users:]
            return FittedFactors(users, np.ascontiguousarray(items), None, self.device)

        sample, loss = (
            partial(sampler.sample_triples, sampler.users.size),
            partial(self.sum_losses, vectors, graph),
        )
        return sized.train("LightGCN", NetworkLearner([vectors], sample, loss, export), data, rng)

    def sum_losses(
        self, vectors: Tensor, graph: Graph, users: Tensor, positives: Tensor, negatives: Tensor
    ) -> Tensor:
        """Return the loss of triples; ``vectors`` are those of users, then items."""
        from torch.nn.functional import logsigmoid

        n_users = len(vectors) - graph.n_items
        rows = [users, positives + n_users, negatives + n_users]
        averaged = graph.propagate(vectors, self.layers)
        user, positive, negative = (averaged.index_select(0, codes) for codes in rows)
        margins = (user * (positive - negative)).sum(1)
        penalty = sum(sum_squares(vectors.index_select(0, codes)) for codes in rows)
        return self.reg / 2 * penalty - logsigmoid(margins).sum()


@dataclass(frozen=True, eq=False)
class Graph:
    """The symmetrically normalized adjacency of users, then items, as a CSR matrix on a device."""

    columns: Tensor  # The neighbours of each node in turn, ``int32`` if their number allows it
    starts: Tensor  # The position in ``columns`` where each node starts, of the same type
    weights: Tensor  # The weight of each neighbour
    n_items: int

    @classmethod
    def from_interactions(cls, train: Interactions, like: Tensor) -> Graph:
        """Return the graph of training pairs, with the type and on the device of a tensor."""
        import torch

        matrix = normalize_adjacency(train.binary)
        integers = torch.int32 if matrix.nnz <= np.iinfo(np.int32).max else torch.int64
        columns, starts = (
            torch.tensor(codes, dtype=integers, device=like.device)
            for codes in (matrix.indices, matrix.indptr)
        )
        weights = torch.tensor(matrix.data, dtype=like.dtype, device=like.device)
        return cls(columns, starts, weights, train.n_items)

    def propagate(self, vectors: Tensor, layers: int) -> Tensor:
        """Return the mean of the vectors of all layers, ``(n_users + n_items, d)``.

        The mean is linear in the vectors and the adjacency is symmetric, so that the gradient is
        propagated by the same function.
        """
        import torch

        average = self._average

        class Propagation(torch.autograd.Function):
            @staticmethod
            def forward(_: Any, values: Tensor) -> Tensor:
                return average(values, layers)

            @staticmethod
            def backward(_: Any, gradient: Tensor) -> Tensor:
                return average(gradient, layers)

        apply: Any = Propagation.apply
        return apply(vectors)

    def _average(self, vectors: Tensor, layers: int) -> Tensor:
        from torch.nn.functional import embedding_bag

        total = current = vectors.contiguous()
        for _ in range(layers):  # the product of the adjacency and the vectors
            current = embedding_bag(
                self.columns,
                current,
                self.starts,
                mode="sum",
                per_sample_weights=self.weights,
                include_last_offset=True,
            )
            total = total + current
        return total / (layers + 1)


def normalize_adjacency(pairs: Matrix) -> Matrix:
    """Return the adjacency of users, then items; an edge is 1 / sqrt(degree product).

    Args:
        pairs: CSR ``float32 (n_users, n_items)`` of ones.

    Returns:
        CSR ``float32 (n_users + n_items, n_users + n_items)``; a node without edges has a row of
        zeros.

    >>> from scipy.sparse import csr_array
    >>> normalize_adjacency(csr_array(np.array([[1, 1, 1, 1]], "f4"))).toarray()[0]
    array([0. , 0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    from scipy.sparse import block_array, csr_array

    counts = np.maximum(np.diff(pairs.indptr), 1), np.maximum(pairs.sum(axis=0), 1)
    users, items = (1 / np.sqrt(count, dtype=np.float64) for count in counts)
    values = np.repeat(users, np.diff(pairs.indptr)) * items[pairs.indices]
    edges = csr_array((values.astype(np.float32), pairs.indices, pairs.indptr), shape=pairs.shape)
    empty = [csr_array((n, n), dtype=np.float32) for n in pairs.shape]
    matrix = block_array([[empty[0], edges], [edges.T, empty[1]]], format="csr")
    matrix.sort_indices()
    return matrix
