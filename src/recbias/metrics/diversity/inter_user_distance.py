"""How different the lists of different users are: personalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.resampled_estimates import estimate_from_totals
from recbias.numerics.sparse.rows import build_rows


@dataclass(frozen=True, kw_only=True)
class InterUserDistance:
    """The mean distance between the lists of two users: how personal the lists are.

        D@k = 1 / ( m (m - 1) ) Σ_{u ≠ v} ( 1 - |L_u ∩ L_v| / k )
            = 1 - Σ_i n_i (n_i - 1) / ( k m (m - 1) )

    L_u is the list of user u cut at k, m the number of lists that are not empty, n_i the number of
    lists that hold item i: all pairs are counted exactly, without forming them. 0 is the same list
    for everybody, 1 is no item in common for any two users. Lists shorter than k share fewer
    items; the cosine, as in recmetrics, differs from this distance for them only. Undefined with
    fewer than two lists.

    Args:
        k: How many ranks of each list are evaluated; by default the length of the lists.

    Range:
        0 to 1; undefined with fewer than two lists.

    Source:
        Zhou, Kuscsik, Liu, Medo, Wakeling and Zhang, "Solving the apparent diversity-accuracy
        dilemma of recommender systems", PNAS 2010, personalization.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = ""

    k: Annotated[int, Gt(0)] | None = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        k = self.k or max(evidence.ranked.k, 1)
        items = evidence.ranked.items[:, :k]
        rows = items[(items >= 0).any(axis=1)]
        listed = rows >= 0
        n_codes = len(evidence.item_ids) + evidence.ranked.outside.size
        counts = build_rows(rows, listed, n_codes, np.int32(1))
        n_pairs = k * len(rows) * (len(rows) - 1)

        def estimate(sums: AnyArray) -> FloatArray:
            n = np.asarray(sums, dtype=np.float64)
            shared = np.einsum("...i,...i->...", n, n) - n.sum(axis=-1)
            return np.asarray(1.0 - shared / n_pairs if n_pairs else shared * np.nan)

        n_empty = len(items) - len(rows)
        return estimate_from_totals(evidence, counts, estimate, n_excluded=n_empty)
