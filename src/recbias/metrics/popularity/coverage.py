"""How much of the catalogue the lists use, and how evenly: figures of all lists together.

They count how often each candidate (an item that could be recommended) stands in the lists. An
item outside the candidates, which only lists made elsewhere can hold, is left out. A query whose
list is empty counts as one that was asked. Their intervals and tests come from bootstrap samples
of the queries, the same for every model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.numerics.inequality import entropy, gini
from recbias.statistics.bootstrap.query_bootstrap import resample_sums
from recbias.statistics.intervals import normal_interval

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None

_NEEDS = frozenset({"lists"})


@dataclass(frozen=True, kw_only=True)
class ItemCoverage:
    """The share of the candidates that are recommended to anyone.

        ItemCoverage@k = |{ i : n_i > 0 }| / |C|

    C are the candidates, the items with a training interaction; n_i is the number of lists that
    hold candidate i. Undefined without a query or a candidate.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1; undefined without a query or a candidate.

    Source:
        Ge, Delgado-Battenfeld and Jannach, "Beyond accuracy: evaluating recommender systems by
        coverage and serendipity", RecSys 2010, catalog coverage.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = ""

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figure, with its bootstrap samples."""
        return _measured(evidence, _share_used, self.k)


@dataclass(frozen=True, kw_only=True)
class Gini:
    """How unevenly the recommendations are spread over the candidates.

        Gini@k = Σ_i (2 i - |C| - 1) n_i / (|C| Σ_i n_i),    n ascending, i from 1

    C are the candidates, the items with a training interaction; n_i is the number of lists that
    hold candidate i, 0 for those in none. 0 is all alike, near 1 is a few that have everything.
    Undefined where no list holds a candidate.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to 1 - 1/|C|; undefined where no list holds a candidate.

    Source:
        Gini, "Variabilità e mutabilità", 1912; for recommendations: Fleder and Hosanagar,
        "Blockbuster culture's next rise or fall", Management Science 2009.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = ""

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figure, with its bootstrap samples."""
        return _measured(evidence, gini, self.k)


@dataclass(frozen=True, kw_only=True)
class Entropy:
    """How many bits it takes to say which candidate a recommendation is of.

        Entropy@k = -Σ_i p_i log2 p_i,    p_i = n_i / Σ_j n_j,    0 log2 0 = 0

    n_i is the number of lists that hold candidate i (an item with a training interaction). 0 is
    one item for all, log2 of the number of candidates is all alike. The logarithm has base 2.
    Undefined where no list holds a candidate.

    Args:
        k: How much of each list is measured; by default all of it.

    Range:
        0 to log2 |C| bits; undefined where no list holds a candidate.

    Source:
        Shannon, "A mathematical theory of communication", 1948, section 6.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = ""

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the figure, with its bootstrap samples."""
        return _measured(evidence, _bits, self.k)


def _share_used(counts: AnyArray) -> FloatArray:
    return np.asarray(np.count_nonzero(counts, axis=-1) / counts.shape[-1])


def _bits(counts: AnyArray) -> FloatArray:
    return np.asarray(entropy(counts) / np.log(2.0))


def _measured(
    evidence: Evidence, figure: Callable[[AnyArray], FloatArray], k: int | None
) -> Sequence[Measurement]:
    """Return the one measurement of a figure of the counts ``(..., n_candidates)``."""
    used = _used(evidence, k)
    n_queries = used.shape[0]
    value, replicates = np.nan, np.full(evidence.n_bootstrap, np.nan)
    if all(used.shape):
        value = float(figure(np.bincount(used.indices, minlength=used.shape[1])))
        samples = resample_sums(used, evidence.n_bootstrap, evidence.bootstrap_seed)
        replicates = np.concatenate([np.empty(0), *(figure(counts) for counts in samples)])
    low, high = normal_interval(value, replicates)
    return [
        Measurement(
            value=value,
            n=0 if np.isnan(value) else n_queries,
            undefined=n_queries if np.isnan(value) else 0,
            ci_low=float(low),
            ci_high=float(high),
            replicates=replicates,
        )
    ]


def _used(evidence: Evidence, k: int | None) -> Matrix:
    """Return which candidates each list holds: CSR ``(q, n_candidates)`` of ones."""
    from scipy.sparse import csr_array

    items = evidence.ranked.items[:, :k]
    known = evidence.in_catalogue[:, :k]
    candidates = _candidates(evidence)
    held = known & candidates[np.where(known, items, 0)] if candidates.size else known
    strangers = int(np.count_nonzero(items >= 0)) - int(np.count_nonzero(held))
    if strangers:
        warn(f"{evidence.metric}: {strangers:,} places hold no candidate, and are left out")
    column = np.cumsum(candidates) - 1
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(held, axis=1))])
    ones = np.ones(starts[-1], dtype=np.int32)
    shape = (len(items), int(np.count_nonzero(candidates)))
    return csr_array((ones, column[items[held]], starts), shape=shape)


def _candidates(evidence: Evidence) -> BoolArray:
    if evidence.candidates is None:
        return np.ones(len(evidence.item_ids), dtype=bool)
    return evidence.candidates
