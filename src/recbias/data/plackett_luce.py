"""Sampling of picks without replacement from the Plackett-Luce model."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.odds import Odds
from recbias.core.stage_context import report_progress

CELLS = 2**21
"""The number of (user, item) cells sampled at once."""

MAX_LOG_ODDS_GAP = 80.0
"""The largest gap in log-odds to the best item: the exponential of more overflows float32."""


def sample_without_replacement(
    odds: Odds, n_picks: AnyArray, rng: np.random.Generator
) -> tuple[AnyArray, AnyArray]:
    """Sample the picks of each user by the Plackett-Luce model.

    Every pair gets an arrival time Exp(1) / exp(log-odds); a user picks the earliest items. The
    number of picks of each user is ``n_picks``, ``int64[n_users]``.

    Returns:
        The users and the items of the picks, ordered by user and item.
    """
    gaps = odds.by_type.max(axis=1, keepdims=True) - odds.by_type
    slowness = np.exp(np.minimum(gaps, MAX_LOG_ODDS_GAP), dtype=np.float32)
    n_users, n_items = odds.types.size, slowness.shape[1]
    block_size = max(1, CELLS // n_items)
    users, items = [], []
    for start in range(0, n_users, block_size):
        block = slice(start, start + block_size)
        counts = n_picks[block]
        arrival = rng.standard_exponential((counts.size, n_items), dtype=np.float32)
        arrival *= slowness[odds.types[block]]
        most = int(counts.max())
        earliest = np.sort(np.partition(arrival, most - 1, axis=1)[:, :most], axis=1)
        last = earliest[np.arange(counts.size), counts - 1]
        block_users, block_items = np.nonzero(arrival <= last[:, None])
        users.append(block_users + start)
        items.append(block_items)
        report_progress("sample the demo dataset", start + counts.size, n_users)
    return np.concatenate(users), np.concatenate(items)
