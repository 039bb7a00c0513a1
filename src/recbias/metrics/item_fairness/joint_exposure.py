"""Exposure of individual items compared with what their relevance entitles them to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Interval

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.popularity.counted_popularity import scale_rows
from recbias.metrics.resampled_estimates import build_estimate
from recbias.numerics.sparse.columns import select_columns
from recbias.numerics.sparse.rows import build_rows
from recbias.statistics.bootstrap.query_bootstrap import resample_squares


@dataclass(frozen=True, kw_only=True)
class _JointExposure(InheritsSections):
    """A metric of the difference between the exposure of each candidate and its target.

    Args:
        gamma: The probability that a user who has seen an item goes on to the next rank.
        k: How many ranks of each list are evaluated; by default all.

    Source:
        Wu, Mitra, Ma, Diaz and Liu, "Joint multisided exposure fairness for recommendation",
        SIGIR 2022; browsing model: Moffat and Zobel, "Rank-biased precision for measurement of
        retrieval effectiveness", ACM TOIS 2008.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "test"})

    gamma: Annotated[float, Interval(gt=0, lt=1)] = 0.8
    k: Annotated[int, Gt(0)] | None = None

    def _build_differences(self, evidence: Evidence) -> tuple[Matrix, FloatArray]:
        """Return exposure minus target, CSR ``(q, candidates)``, and the relevant candidates.

        The number of the relevant candidates of each query is ``float64[q]``.
        """
        from scipy.sparse import csr_array

        evidence.need("test")
        codes = _list_candidates(evidence)
        relevant = select_columns(evidence.relevant, codes)
        relevant = csr_array(
            ((relevant.data != 0).astype(np.float64), relevant.indices, relevant.indptr),
            shape=relevant.shape,
        )
        n_relevant = np.asarray(relevant.sum(axis=1), dtype=np.float64)
        targets = (1 - self.gamma**n_relevant) / ((1 - self.gamma) * np.maximum(n_relevant, 1.0))
        items, in_catalogue = (
            evidence.ranked.items[:, : self.k],
            evidence.in_catalogue[:, : self.k],
        )
        column = np.full(len(evidence.item_ids) + 1, -1)
        column[codes] = np.arange(codes.size)
        columns = column[np.where(in_catalogue, items, -1)]
        counted = columns >= 0
        n_excluded = int(np.count_nonzero(items >= 0)) - int(np.count_nonzero(counted))
        if n_excluded:
            message = (
                "positions of the lists hold an item that is not a candidate and are excluded"
            )
            warn(f"{evidence.metric}: {n_excluded:,} {message}")
        exposures = self.gamma ** np.arange(items.shape[1])
        exposure = build_rows(columns, counted, codes.size, exposures)
        return exposure - scale_rows(relevant, targets), n_relevant


def _list_candidates(evidence: Evidence) -> AnyArray:
    """Return the codes of the items that may be recommended."""
    if evidence.candidates is None:
        return np.arange(len(evidence.item_ids))
    return np.flatnonzero(evidence.candidates)


class IndividualExposure(_JointExposure):
    """Mean squared difference between the exposure of items to a user and its target (II-F).

        II-F@k(u) = ( 1 / |C| ) Σ_{i in C} ( E_ui - E*_ui )²
        E_ui = γ^(r - 1) at rank r of the list of u, else 0
        E*_ui = (1 - γ^R) / ( R (1 - γ) ) for the R relevant candidates of u, else 0

    C is the set of candidates, the items with a training interaction. The target is the mean
    exposure of the relevant items over all orders of an ideal list. A single list cannot give
    equal exposure to two items, so that 0 is reached only with one relevant item and an empty
    rest; a stochastic model comes closer. The authors' code counts exposure from γ, not from 1,
    which multiplies the value by γ², and includes queries without a relevant item, with targets of
    0; that of Rampisela et al. (WWW 2025) includes them too, but counts from 1. Undefined for a
    query without a relevant candidate.

    Range:
        0 or more; undefined for a query without a relevant candidate.
    """

    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        differences, n_relevant = self._build_differences(evidence)
        np.square(differences.data, out=differences.data)
        squares = np.asarray(differences.sum(axis=1), dtype=np.float64)
        undefined = np.full(squares.shape, np.nan)
        n = differences.shape[1]
        values = np.divide(squares, max(n, 1), out=undefined, where=n_relevant > 0)
        return [evidence.measure_queries(values)]


class OverallExposure(_JointExposure):
    """Mean squared difference between the exposure of items to all users and its target (AI-F).

        AI-F@k = ( 1 / |C| ) Σ_{i in C} ( ( 1 / m ) Σ_u ( E_ui - E*_ui ) )²
        E_ui = γ^(r - 1) at rank r of the list of u, else 0
        E*_ui = (1 - γ^R) / ( R (1 - γ) ) for the R relevant candidates of u, else 0

    C is the set of candidates, the items with a training interaction, m the number of queries with
    a relevant candidate. An item that is shown too little to one user and too much to another is
    treated fairly: AI-F is at most ``II-F``. Fewer users make the value larger by chance alone.
    The authors' code counts exposure from γ, not from 1, which multiplies the value by γ², and
    includes queries without a relevant item, with targets of 0; that of Rampisela et al.
    (WWW 2025) includes them too, but counts from 1. Undefined without a query with a relevant
    candidate.

    Range:
        0 or more; undefined without a query with a relevant candidate.
    """

    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = ""

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        differences, n_relevant = self._build_differences(evidence)
        rows = differences if n_relevant.all() else differences[np.flatnonzero(n_relevant > 0)]
        value, replicates = np.nan, np.full(evidence.n_bootstrap, np.nan)
        if all(rows.shape):
            scale = rows.shape[0] ** 2 * rows.shape[1]
            value = float(np.square(rows.sum(axis=0)).sum()) / scale
            seed = evidence.bootstrap_seed
            replicates = resample_squares(rows, evidence.n_bootstrap, seed) / scale
        return [build_estimate(value, replicates, rows.shape[0], n_relevant.size)]
