"""Candidate lists of a few users, for re-rankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes, TrainingData
from recbias.core.evidence import RankedLists
from recbias.core.plugins import Candidates
from support.worlds.small_worlds import make_interactions


def make_candidates(
    items: Sequence[Sequence[int]],
    histories: Sequence[Sequence[int]],
    scores: Sequence[Sequence[float]] | None = None,
    **columns: Sequence[Any],
) -> Candidates:
    """Return the candidates of each user, best first, with the user's training items.

    Scores fall evenly from 1 to 0 unless they are given; ``columns`` are those of the items.
    """
    pairs = [(user, item) for user, own in enumerate(histories) for item in own]
    n_items = len(next(iter(columns.values()))) if columns else 10
    train = make_interactions(pairs, n_users=len(items), n_items=n_items)
    frame = pd.DataFrame({name: [*cells] for name, cells in columns.items()})
    codes = np.array(items, dtype=np.int32)
    even = np.broadcast_to(np.linspace(1, 0, codes.shape[1]), codes.shape)
    values = np.array(even if scores is None else scores, dtype=np.float32)
    values = np.where(codes < 0, np.float32(np.nan), values).astype(np.float32)
    outside = np.array(["x", "y"], dtype=object)
    data = TrainingData(train, items=Attributes(train.item_ids, frame) if columns else None)
    return Candidates(RankedLists(codes, values, outside), train.binary, data)
