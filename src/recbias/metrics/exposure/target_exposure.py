"""The exposure of items by query, with the exposure that ideal rankings give them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from recbias.core.arrays import FloatArray, Matrix
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.exposure.browsing import (
    BrowsingModel,
    mark_candidates,
    select_histories,
    select_relevant,
    sum_rows,
    weigh_ranks,
)
from recbias.metrics.exposure.item_groups import ItemGroups
from recbias.metrics.exposure.list_samples import ListSamples
from recbias.numerics.sparse.rows import split_rows


@dataclass(frozen=True, eq=False)
class TargetExposure:
    """The exposure of the items under ideal rankings, and what the lists give them.

    Args:
        exposure: The exposure of each item, CSR ``(q, n)``; the mean over its lists. Sums over
            groups are arrays if there are few groups.
        relevant: The relevant items, and ``histories`` the items that the query cannot be
            recommended, CSR ``(q, n)`` of ones.
        candidates: Which items may be recommended to anybody, 0 or 1, ``float64[n]``.
        best: The exposure of each relevant item in an ideal ranking, ``float64[q]``; ``rest`` that
            of each other candidate.
    """

    exposure: Matrix
    relevant: Matrix
    histories: Matrix
    candidates: FloatArray
    best: FloatArray
    rest: FloatArray

    def __len__(self) -> int:
        return int(self.best.size)

    def sum_members(self, groups: ItemGroups) -> TargetExposure:
        """Return the same for groups of items: the sums over their members."""
        return replace(
            self,
            exposure=groups.add_members(self.exposure),
            relevant=groups.add_members(self.relevant),
            histories=groups.add_members(self.histories),
            candidates=groups.sizes,
        )

    def split(self, size: int) -> Iterator[TargetExposure]:
        """Yield blocks of ``size`` queries."""
        matrices = (self.exposure, self.relevant, self.histories)
        blocks = zip(*(split_rows(matrix, size) for matrix in matrices), strict=True)
        for start, (exposure, relevant, histories) in zip(
            range(0, len(self), size), blocks, strict=True
        ):
            best, rest = self.best[start : start + size], self.rest[start : start + size]
            yield TargetExposure(exposure, relevant, histories, self.candidates, best, rest)

    def disparity(self) -> FloatArray:
        """Return the sum of the squared exposures of each query, ``float64[q]``."""
        return sum_rows(self.exposure**2)

    def relevance(self) -> FloatArray:
        """Return the product of exposure and target exposure of each query, ``float64[q]``."""
        to_relevant = sum_rows(self.exposure * self.relevant)
        to_history = sum_rows(self.exposure * self.histories)
        to_others = self.exposure @ self.candidates - to_history - to_relevant
        return np.asarray(self.best * to_relevant + self.rest * to_others)

    def target_square(self) -> FloatArray:
        """Return the sum of the squared target exposures of each query, ``float64[q]``."""
        more = self.relevant * (self.best - self.rest)[:, None]
        difference = more - self.histories * self.rest[:, None]
        crossed: FloatArray = 2.0 * self.rest * (difference @ self.candidates)
        return (
            self.rest**2 * (self.candidates @ self.candidates) + crossed + sum_rows(difference**2)
        )


def build_target_exposure(
    evidence: Evidence,
    exposure: Matrix,
    samples: ListSamples,
    browsing: BrowsingModel,
    gamma: float,
) -> TargetExposure:
    """Return the exposure of each item by query, with its target.

    ``best`` and ``rest`` are NaN for a query without a relevant item. Test items that are no
    candidates are counted in a warning.
    """
    relevant = select_relevant(evidence)
    n_excluded = int(evidence.n_relevant.sum()) - int(relevant.nnz)
    if n_excluded:
        message = "test items cannot be recommended and are not relevant"
        warn(f"{evidence.metric}: {n_excluded:,} {message}")
    shape = exposure.shape
    n_outside = shape[1] - len(evidence.item_ids)
    relevant, histories = (
        samples.unite(_widen(rows, shape)) for rows in (relevant, select_histories(evidence))
    )
    candidates = np.append(mark_candidates(evidence), np.zeros(n_outside, dtype=bool))
    n_relevant = np.diff(relevant.indptr)
    n_candidates = np.count_nonzero(candidates) - np.diff(histories.indptr)
    n_others = np.maximum(n_candidates - n_relevant, 0)
    totals = np.append(0.0, np.cumsum(weigh_ranks(browsing, gamma, int(candidates.sum()))))
    first = totals[n_relevant]
    last = totals[np.minimum(n_relevant + n_others, totals.size - 1)] - first
    undefined = n_relevant == 0
    best = np.where(undefined, np.nan, first / np.maximum(n_relevant, 1))
    rest = np.where(undefined, np.nan, last / np.maximum(n_others, 1))
    return TargetExposure(
        samples.average(exposure), relevant, histories, candidates.astype(np.float64), best, rest
    )


def _widen(rows: Matrix, shape: tuple[int, int]) -> Matrix:
    from scipy.sparse import csr_array

    return csr_array((rows.data, rows.indices, rows.indptr), shape=shape)
