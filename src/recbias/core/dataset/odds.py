"""The log-odds of the picks of users in a synthetic world, where they are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.attributes import Attributes


@dataclass(frozen=True, eq=False)
class Odds:
    """Log-odds of picks, ``float64[n_types, n_items]``, and the user types, ``int[n_users]``."""

    by_type: FloatArray
    types: AnyArray


@runtime_checkable
class KnowsOdds(Protocol):
    """A synthetic dataset in which the log-odds of every pick are known.

    Its metrics may need ``odds``, and it may be asked for rounds of feedback.
    """

    def compute_odds(self, users: Attributes, items: Attributes) -> Odds:
        """Return the log-odds by which these users pick these items."""
