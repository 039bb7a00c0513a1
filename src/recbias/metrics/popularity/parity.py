"""Whether head and long tail are recommended alike: figures of all lists together.

They compare how likely an item of the head and one of the tail are to be recommended, over all
pairs of a query and a candidate (an item that could be recommended) that the user does not have.
Their intervals and tests come from bootstrap samples of the queries, the same for every model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.popularity.item_popularity import (
    Cutoff,
    histories_of,
    list_rows,
    popularity_of,
)
from recbias.metrics.popularity.long_tail import HeadOf, Share, tail_of
from recbias.statistics.bootstrap.query_bootstrap import resample_sums
from recbias.statistics.intervals import normal_interval


@dataclass(frozen=True, kw_only=True)
class PopREO:
    """Whether relevant items of the long tail are found as often as relevant ones of the head.

        PopREO@k = std(P_head, P_tail) / mean(P_head, P_tail)
        P_g = Σ_u |L_u ∩ R_u ∩ g| / Σ_u |R_u ∩ g|

    L_u is the list of user u cut at k, R_u the user's test items that could be recommended, g the
    head or the long tail. P_g is the chance that a relevant item of g is recommended; std divides
    by the number of groups, so the figure is |P_head - P_tail| / (P_head + P_tail): 0 is equal
    opportunity, 1 is one group that is never found. The head is the smallest set of most popular
    items that holds ``head`` of the interactions, or of the items. Undefined where a group
    has no relevant item, or neither is ever found.

    Args:
        head: The share that the head holds.
        head_of: What it is a share of: the ``interactions``, or the number of ``items``.
        popularity: A column of the items to take for the popularity, in place of the number of
            training interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    Range:
        0 to 1; undefined where a group has no relevant item or neither is ever found.

    Source:
        Zhu, Wang and Caverlee, "Measuring and mitigating item under-recommendation bias in
        personalized ranking systems", SIGIR 2020, REO, with popularity groups.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "train", "test"})
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = ""

    head: Share = 0.8
    head_of: HeadOf = "interactions"
    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a column of the items takes the place of counts."""
        return frozenset({"lists", "test", "items"}) if self.popularity else self.needs

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn where the items have no such column of numbers."""
        popularity_of(evidence, self.popularity)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figure, with its bootstrap samples."""
        evidence.need("test")
        groups, relevant = _groups(evidence, self), evidence.relevant
        found = list_rows(evidence, self.k).multiply(relevant != 0).tocsr() @ groups
        (could,) = _per_query(evidence, {"test items": relevant}, groups)
        return _measured(evidence, np.hstack([found, could]), _opportunity)


@dataclass(frozen=True, kw_only=True)
class PopRSP:
    """Whether items of the long tail are recommended as often as items of the head.

        PopRSP@k = std(P_head, P_tail) / mean(P_head, P_tail)
        P_g = Σ_u |L_u ∩ g| / Σ_u |g - H_u|

    L_u is the list of user u cut at k, H_u the user's training items, g the candidates (items with
    a training interaction) in the head or the long tail. P_g is the chance that an item of g that
    the user does not have is recommended; std divides by the number of groups, so the figure is
    |P_head - P_tail| / (P_head + P_tail): 0 is parity, 1 is one group that is never recommended.
    The head is the smallest set of most popular items that holds ``head`` of the interactions, or
    of the items. Undefined where a group has no such item, or no list holds one.

    Args:
        head: The share that the head holds.
        head_of: What it is a share of: the ``interactions``, or the number of ``items``.
        popularity: A column of the items to take for the popularity, in place of the number of
            training interactions.
        k: How much of each list is measured; by default all of it.

    Raises:
        MissingEvidence: A column is named, and there is no items table.
        UnknownColumn: The column is not there, or is not numeric.

    Range:
        0 to 1; undefined where a group has no item or no list holds one.

    Source:
        Zhu, Wang and Caverlee, "Measuring and mitigating item under-recommendation bias in
        personalized ranking systems", SIGIR 2020, RSP, with popularity groups.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "train"})
    direction: ClassVar[Direction] = "zero"
    unit: ClassVar[str] = ""

    head: Share = 0.8
    head_of: HeadOf = "interactions"
    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: those of the popularity, and the training items."""
        return self.needs | {"items"} if self.popularity else self.needs

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn where the items have no such column of numbers."""
        popularity_of(evidence, self.popularity)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figure, with its bootstrap samples."""
        groups = _groups(evidence, self)
        members = groups.sum(axis=0)

        def parity(counts: AnyArray) -> FloatArray:
            could = len(evidence.queries) * members - counts[..., 2:]
            return _unevenness(counts[..., :2], could)

        rows = {
            "items of the lists": list_rows(evidence, self.k),
            "items of the histories": histories_of(evidence),
        }
        return _measured(evidence, np.hstack(_per_query(evidence, rows, groups)), parity)


def _groups(evidence: Evidence, metric: PopREO | PopRSP) -> FloatArray:
    """Return which candidates are in the head and in the tail, ``float64[n_items, 2]``."""
    tail = tail_of(evidence, metric.popularity, metric.head, metric.head_of)
    evidence.need("train")
    candidates = evidence.candidates
    if candidates is None:
        candidates = evidence.popularity > 0
    groups = np.stack([tail == 0, tail == 1], axis=1) & candidates[:, None]
    return groups.astype(np.float64)


def _per_query(
    evidence: Evidence, rows: Mapping[str, Matrix], groups: FloatArray
) -> Sequence[FloatArray]:
    """Return how many items of head and tail the rows of each query hold, ``float64[q, 2]`` each.

    The others are counted in a warning; the rows are called as their keys say.
    """
    outside = groups.sum(axis=1) == 0
    for what, each in rows.items():
        left_out = int(np.count_nonzero(outside[each.indices]))
        if left_out:
            why = "are no candidates of known popularity, and are left out"
            warn(f"{evidence.metric}: {left_out:,} {what} {why}")
    return [each @ groups for each in rows.values()]


def _opportunity(counts: AnyArray) -> FloatArray:
    return _unevenness(counts[..., :2], counts[..., 2:])


def _unevenness(found: AnyArray, could: AnyArray) -> FloatArray:
    """Return std / mean of the shares of two groups, ``(..., 2)`` each, to ``float64[...]``."""
    found, could = np.broadcast_arrays(found, could)
    undefined = np.full(found.shape, np.nan)
    shares = np.divide(found, could, out=undefined, where=could > 0)
    mean = shares.mean(axis=-1)
    undefined = np.full(mean.shape, np.nan)
    return np.asarray(np.divide(shares.std(axis=-1), mean, out=undefined, where=mean > 0))


def _measured(
    evidence: Evidence, per_query: FloatArray, figure: Callable[[AnyArray], FloatArray]
) -> Sequence[Measurement]:
    """Return the one measurement of a figure of the summed counts ``(..., 4)``."""
    from scipy.sparse import csr_array

    n_queries = len(per_query)
    value, replicates = np.nan, np.full(evidence.n_bootstrap, np.nan)
    if n_queries:
        value = float(figure(per_query.sum(axis=0)))
        rows = csr_array(per_query)
        samples = resample_sums(rows, evidence.n_bootstrap, evidence.bootstrap_seed)
        replicates = np.concatenate([np.empty(0), *(figure(counts) for counts in samples)])
    low, high = normal_interval(value, replicates)
    undefined = bool(np.isnan(value))
    return [
        Measurement(
            value=value,
            n=0 if undefined else n_queries,
            undefined=n_queries if undefined else 0,
            ci_low=float(low),
            ci_high=float(high),
            replicates=replicates,
        )
    ]
