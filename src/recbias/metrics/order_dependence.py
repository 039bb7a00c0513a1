"""How much a re-ranking depends on the order in which the candidates are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence

RANK = "rank."
"""The prefix of the labels of responses with the rank of each candidate."""

FIRST_SLOT = "first_slot"
"""The label of responses that tells whether the candidate that is shown first ranks first."""

BLOCK_CELLS = 2**22
"""The largest number of pairs of candidates, over queries, that are compared at once."""


@dataclass(frozen=True, kw_only=True)
class OrderAgreement:
    """How well the rankings agree that a model makes of one set of candidates in several orders.

        agreement(u) = mean over pairs of orders j < l of τ(ranking j, ranking l)
        τ = (concordant - discordant pairs of candidates) / (pairs of candidates)

    1 means that the order of presentation has no influence; rankings that follow a random order
    of presentation have an expected value of 0. A candidate that a reply leaves out has the rank
    that the model gives it, after those that the reply names: many of them raise the agreement.
    Undefined for a query with fewer than two rankings, and for models that do not reorder
    candidates.

    Range:
        -1 to 1; the mean over many orders is not below -1 / (orders - 1).

    Source:
        Kendall, "A New Measure of Rank Correlation", Biometrika 30, 1938.

    >>> compute_agreement(np.array([[[1.0, 2, 3], [1, 3, 2], [1, 2, 3]]])).round(3).tolist()
    [0.556]
    """

    needs: ClassVar[frozenset[str]] = frozenset({"responses"})
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query and their mean."""
        return [evidence.measure_queries(compute_agreement(read_labels(evidence, RANK)))]


@dataclass(frozen=True, kw_only=True)
class FirstSlotShare:
    """How often the candidate that is shown first is ranked first.

        share(u) = |{orders whose first rank is the candidate shown first}| / |{orders}|

    Without an influence of the position, the expected value is 1 / the number of candidates, as
    the orders are random. Orders whose reply names no candidate do not count. Undefined for a
    query without any ranking, and for models that do not reorder candidates.

    Range:
        0 to 1.

    Source:
        The bias of position of Hou et al., "Large Language Models are Zero-Shot Rankers for
        Recommender Systems", ECIR 2024, section 3.3. The measure is ours.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"responses"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = "query"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query and their mean."""
        first = read_labels(evidence, FIRST_SLOT)
        counts = (~np.isnan(first)).sum(axis=(1, 2))
        shares = np.full(len(first), np.nan)
        np.divide(np.nansum(first, axis=(1, 2)), counts, out=shares, where=counts > 0)
        return [evidence.measure_queries(shares)]


def read_labels(evidence: Evidence, prefix: str) -> FloatArray:
    """Return the labels of the responses to each query and order whose names have a prefix.

    The array is ``float64[q, orders, labels]``, with NaN where there is no response; it has no
    orders and labels if the responses have no such labels.
    """
    evidence.need("responses")
    responses, n_queries = evidence.responses, len(evidence.queries)
    labels = responses.labels  # type: ignore[union-attr]  # needed above
    names = [name for name in labels.columns if str(name).startswith(prefix)]
    if not names or "order" not in labels:
        return np.full((n_queries, 0, 0), np.nan)
    orders = labels["order"].to_numpy(dtype=np.int64) - 1
    rows = evidence.queries.ids.find(responses.ids)  # type: ignore[union-attr]
    values = np.full((n_queries, int(orders.max(initial=-1)) + 1, len(names)), np.nan)
    present = rows >= 0
    values[rows[present], orders[present]] = labels[names].to_numpy(dtype=np.float64)[present]
    return values


def compute_agreement(ranks: FloatArray) -> FloatArray:
    """Return the mean of Kendall's tau over the pairs of rankings of each query, ``float64[q]``.

    With s the signs of the differences of all pairs of candidates, in m rankings:

        mean τ = (Σ_pairs (Σ_j s_j)² - Σ_pairs Σ_j s_j²) / ((m - 1) Σ_pairs Σ_j s_j²)

    Args:
        ranks: The rank of each candidate in each ranking, without ties, ``float64[q, m, n]``; NaN
            where there is no ranking, and for queries with fewer candidates.

    Returns:
        NaN for fewer than two rankings, or two candidates.
    """
    n_queries, _, n = ranks.shape
    left, right = np.triu_indices(n, k=1)
    means = np.full(n_queries, np.nan)
    size = max(1, BLOCK_CELLS // max(left.size, 1))
    for start in range(0, n_queries, size):
        block = ranks[start : start + size]
        sums, squares = np.zeros((len(block), left.size)), np.zeros(len(block))
        for ranking in block.transpose(1, 0, 2):
            signs = np.nan_to_num(np.sign(ranking[:, left] - ranking[:, right]))
            sums += signs
            squares += (signs**2).sum(axis=1)
        scale = (count_rankings(block) - 1) * squares
        agreement = (sums**2).sum(axis=1) - squares
        np.divide(agreement, scale, out=means[start : start + size], where=scale > 0)
    return means


def count_rankings(ranks: FloatArray) -> FloatArray:
    """Return the number of rankings of each query that are not NaN, ``float64[q]``.

    >>> count_rankings(np.array([[[1.0, 2], [np.nan, np.nan], [2, 1]]])).tolist()
    [2.0]
    """
    counts: FloatArray = (~np.isnan(ranks)).any(axis=2).sum(axis=1).astype(np.float64)
    return counts
