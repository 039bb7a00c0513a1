"""SLIM: a sparse item-to-item regression with non-negative weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.arrays import Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.stage_context import warn
from recbias.models.ranking.item_weight_model import FittedItemWeights, ItemWeightModel
from recbias.numerics.sparse.elastic_net import Penalty, elastic_net
from recbias.numerics.sparse.products import compute_gram


@dataclass(frozen=True, kw_only=True)
class SLIM(ItemWeightModel):
    """Recommend by sparse, non-negative item-to-item weights that reconstruct the histories.

        minimise over w >= 0, w_j = 0:
        |x_j - X w|² / (2 n_users) + alpha l1_ratio |w|₁ + alpha (1 - l1_ratio) |w|² / 2

    for each column ``x_j`` of the binary user-item matrix ``X``; ``score(u, j) = x_u w``. The
    objective is that of scikit-learn's ElasticNet. Each item keeps its ``neighbors`` largest
    weights. A user without training items has an empty list.

    Args:
        alpha: Weight of the penalty.
        l1_ratio: Share of the L1 penalty, which makes the weights sparse.
        neighbors: Maximum number of weights per item.
        max_iter: Maximum number of passes of coordinate descent; a warning reports items that have
            not converged.
        tolerance: Stop when no weight of an item changes by more than this share of its largest.
        variant: ``elliot`` lets an item reconstruct itself (``w_j`` is not restricted to 0) and
            drops the smallest weight of each item, as that framework does.

    Source:
        Ning and Karypis, "SLIM: Sparse Linear Methods for Top-N Recommender Systems", ICDM 2011,
        equation 4; Friedman, Hastie and Tibshirani, "Regularization Paths for Generalized Linear
        Models via Coordinate Descent", J. Stat. Softw. 33(1), 2010, section 2.2.
    """

    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    alpha: Annotated[float, Gt(0)] = 0.03
    l1_ratio: Annotated[float, Ge(0), Le(1)] = 0.003
    neighbors: Annotated[int, Gt(0)] = 500
    max_iter: Annotated[int, Gt(0)] = 100
    tolerance: Annotated[float, Gt(0)] = 1e-4
    variant: Literal["paper", "elliot"] = "paper"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemWeights:
        """Run coordinate descent for all items at once."""
        matrix = data.train.binary
        total = self.alpha * max(matrix.shape[0], 1)
        is_elliot = self.variant == "elliot"
        weights, n_unconverged = elastic_net(
            compute_gram(matrix.T.tocsr()),
            Penalty(total * self.l1_ratio, total * (1 - self.l1_ratio)),
            keep=self.neighbors + is_elliot,
            max_iter=self.max_iter,
            tolerance=self.tolerance,
            allow_self=is_elliot,
        )
        if n_unconverged:
            warn(f"SLIM: {n_unconverged:,} items have not converged after {self.max_iter} passes")
        if is_elliot:
            weights = _drop_smallest_per_row(weights)
        return FittedItemWeights.from_matrix(weights.T.tocsr())


def _drop_smallest_per_row(weights: Matrix) -> Matrix:
    """Return a CSR matrix without the smallest entry of each row."""
    counts = np.diff(weights.indptr)
    rows = np.repeat(np.arange(counts.size), counts)
    ascending = np.lexsort((weights.data, rows))
    remaining = weights.copy()
    remaining.data[ascending[weights.indptr[:-1][counts > 0]]] = 0
    remaining.eliminate_zeros()
    return remaining
