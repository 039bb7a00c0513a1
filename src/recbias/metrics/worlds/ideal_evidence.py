"""The ideal lists of the queries that a metric compares with."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import Codes
from recbias.core.dataset.odds import Odds
from recbias.core.outputs.evidence import Evidence
from recbias.core.outputs.ideal_lists import rank_ideal_lists
from recbias.metrics.popularity.item_popularity import build_history_matrix


def read_odds(evidence: Evidence) -> Odds:
    """Return the odds of the picks; MissingEvidence where they are not known."""
    evidence.need("odds")
    return evidence.odds  # type: ignore[return-value]


def rank_ideal(evidence: Evidence, k: int) -> Codes:
    """Return the ideal list of each query, ``int32[q, k]``: see ``rank_ideal_lists``."""
    candidates = evidence.candidates
    if candidates is None:
        candidates = np.ones(len(evidence.item_ids), dtype=bool)
    histories = build_history_matrix(evidence)
    return rank_ideal_lists(read_odds(evidence), evidence.queries.users, histories, candidates, k)
