"""How much of what an ideal list offers to its user a list offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence, mark_contained
from recbias.core.outputs.ideal_lists import weigh_lists
from recbias.metrics.popularity.item_popularity import Cutoff, build_history_matrix
from recbias.metrics.worlds.ideal_evidence import rank_ideal, read_odds


@dataclass(frozen=True, kw_only=True)
class RelativeUtility:
    """The odds of a pick from a list, relative to those of a pick from the ideal list.

        U@k = Σ_{i in L_u} w_ui / Σ_{i in L*_u} w_ui

    w_ui are the odds that user u picks item i, known in a synthetic world; L_u is the list of u
    cut at k, and L*_u the ideal one: the k candidates with the highest odds that are not in the
    history. 1 is as good as ideal. Unlike nDCG it needs no test set, so it stays comparable while
    users accept items over rounds of feedback. An item of the history, or outside the catalogue,
    counts 0. Where all items are equally likely every full list is ideal. Undefined for a query
    that is not a user, or without an ideal list.

    Args:
        k: How many ranks of each list are evaluated; by default the length of the lists.

    Range:
        0 to 1; undefined for a query that is not a user.

    Source:
        Chaney, Stewart and Engelhardt, "How algorithmic confounding in recommendation systems
        increases homogeneity and decreases utility", RecSys 2018, utility relative to ideal.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "odds", "train"})
    direction: ClassVar[Direction] = "higher"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        odds, users = read_odds(evidence), evidence.queries.users
        lists = evidence.ranked.truncate(self.k or evidence.ranked.k)
        weights = weigh_lists(odds, users, lists.items)
        weights[mark_contained(build_history_matrix(evidence), lists)] = 0.0
        totals = weigh_lists(odds, users, rank_ideal(evidence, lists.k)).sum(axis=1)
        undefined = np.full(totals.shape, np.nan)
        shares = np.divide(weights.sum(axis=1), totals, out=undefined, where=totals > 0)
        return [evidence.measure_queries(shares)]
