"""How much of the catalogue the lists use, and how evenly: estimates from all lists together.

The counts are the number of lists that hold each candidate, an item that may be recommended. Items
that are not candidates, which only imported lists can hold, are excluded. A query with an empty
list counts as a query.

The value depends on the number of lists: few lists hold fewer items, and are distributed less
evenly by chance alone. Intervals refer to the value expected of as many lists, for other users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.popularity.item_popularity import Cutoff
from recbias.metrics.resampled_estimates import estimate_by_jackknife
from recbias.numerics.inequality import entropy, gini
from recbias.numerics.item_shares import cover
from recbias.numerics.sparse.deleted_rows import (
    cover_without_rows,
    entropy_without_rows,
    gini_without_rows,
)
from recbias.numerics.sparse.rows import build_rows


@dataclass(frozen=True, kw_only=True)
class CandidateMetric(InheritsSections):
    """A metric of how many lists hold each candidate.

    The value depends on the number of lists, also if the users of all of them are alike: compare
    values of equal numbers of lists. The interval refers to the value expected of as many lists of
    other users. Its standard error is that of the jackknife, which leaves out each list in turn,
    with Student's t; there is none for a single list, or if all samples have the same value, as
    those of equal lists.

    Args:
        k: How many ranks of each list are evaluated; by default all.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    unit: ClassVar[str] = ""
    without_rows: ClassVar[Callable[[Matrix], FloatArray]]
    """The value without each row of a CSR matrix of 0 and 1, ``float64[q]``."""
    is_step: ClassVar[bool] = False
    """Whether the metric counts what is above 0."""

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        counts = build_candidate_matrix(evidence, self.k)
        return estimate_by_jackknife(
            evidence, counts, self.estimate, type(self).without_rows, is_step=self.is_step
        )

    def estimate(self, counts: AnyArray) -> FloatArray:
        """Return the value of each row of counts, ``int[..., n_candidates]``."""
        raise NotImplementedError


class ItemCoverage(CandidateMetric):
    """The share of the candidates that are recommended to at least one user.

        ItemCoverage@k = |{ i : n_i > 0 }| / |C|

    C is the set of candidates, the items with a training interaction; n_i is the number of lists
    that hold candidate i. Also called aggregate diversity and, as a measure of fairness to items,
    QF. Undefined without a query or a candidate.

    Few lists hold fewer items than many: compare values of equal numbers of lists. The interval
    refers to the value expected of as many lists, of other users, and comes from the jackknife.

    Range:
        0 to 1; undefined without a query or a candidate.

    Source:
        Ge, Delgado-Battenfeld and Jannach, "Beyond accuracy: evaluating recommender systems by
        coverage and serendipity", RecSys 2010, catalog coverage.
    """

    direction: ClassVar[Direction] = "higher"
    without_rows = cover_without_rows
    is_step: ClassVar[bool] = True

    def estimate(self, counts: AnyArray) -> FloatArray:
        """Return the value of each row of counts, ``float64[...]``."""
        return cover(counts)


class Gini(CandidateMetric):
    """How unevenly the recommendations are distributed over the candidates.

        Gini@k = Σ_i (2 i - |C| - 1) n_i / (|C| Σ_i n_i),    n ascending, i from 1

    C is the set of candidates, the items with a training interaction; n_i is the number of lists
    that hold candidate i, possibly 0. The index is 0 if all candidates are recommended equally
    often and near 1 if a few receive all recommendations. Undefined if no list holds a candidate.

    Few lists are less even than many by chance alone: compare values of equal numbers of lists.
    The interval refers to the value expected of as many lists, of other users, and comes from the
    jackknife.

    Range:
        0 to 1 - 1/|C|; undefined if no list holds a candidate.

    Source:
        Gini, "Variabilità e mutabilità", 1912; for recommendations: Fleder and Hosanagar,
        "Blockbuster culture's next rise or fall", Management Science 2009.
    """

    direction: ClassVar[Direction] = "lower"
    without_rows = gini_without_rows

    def estimate(self, counts: AnyArray) -> FloatArray:
        """Return the value of each row of counts, ``float64[...]``."""
        return gini(counts)


def _compute_bits(counts: Matrix) -> FloatArray:
    return np.asarray(entropy_without_rows(counts) / np.log(2.0))


class Entropy(CandidateMetric):
    """The Shannon entropy, in bits, of the distribution of recommendations over the candidates.

        Entropy@k = -Σ_i p_i log2 p_i,    p_i = n_i / Σ_j n_j,    0 log2 0 = 0

    n_i is the number of lists that hold candidate i, an item with a training interaction. The
    entropy is 0 if all recommendations are of one item, and log2 of the number of candidates if
    all candidates are recommended equally often. Undefined if no list holds a candidate.

    Few lists are less even than many by chance alone: compare values of equal numbers of lists.
    The interval refers to the value expected of as many lists, of other users, and comes from the
    jackknife.

    Range:
        0 to log2 |C| bits; undefined if no list holds a candidate.

    Source:
        Shannon, "A mathematical theory of communication", 1948, section 6.
    """

    direction: ClassVar[Direction] = "higher"
    without_rows = _compute_bits

    def estimate(self, counts: AnyArray) -> FloatArray:
        """Return the value of each row of counts, ``float64[...]``."""
        return np.asarray(entropy(counts) / np.log(2.0))


def build_candidate_matrix(evidence: Evidence, k: int | None) -> Matrix:
    """Return which candidates each list holds: CSR ``(q, n_candidates)`` of ones."""
    items = evidence.ranked.items[:, :k]
    counted = evidence.in_catalogue[:, :k]
    candidates = evidence.candidates
    if candidates is None:
        candidates = np.ones(len(evidence.item_ids), dtype=bool)
    if candidates.size:
        counted = counted & candidates[np.where(counted, items, 0)]
    n_excluded = int(np.count_nonzero(items >= 0)) - int(np.count_nonzero(counted))
    if n_excluded:
        message = "positions of the lists hold an item that is not a candidate and are excluded"
        warn(f"{evidence.metric}: {n_excluded:,} {message}")
    columns = np.cumsum(candidates) - 1
    n_candidates = int(np.count_nonzero(candidates))
    columns = columns[np.where(counted, items, 0)] if n_candidates else items
    return build_rows(columns, counted, n_candidates, np.int32(1))
