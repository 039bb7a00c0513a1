"""What the accuracy metrics of recommended lists share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from annotated_types import Gt

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None


@dataclass(frozen=True, kw_only=True)
class ListAccuracy:
    """A function of ``hit_scores`` as a metric: one value per query.

    Args:
        k: Cutoff; by default the length of the lists.
    """

    unit: ClassVar[str] = "query"
    score: ClassVar[Callable[..., FloatArray]]
    """The function of ``hit_scores``."""
    is_share: ClassVar[bool] = False
    """Whether the values are 0 or 1."""

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query and their mean."""
        cutoff = self.k or max(evidence.ranked.k, 1)
        values = type(self).score(evidence.hits, evidence.n_relevant, cutoff)
        queries = evidence.queries
        scores = UnitScores(queries.unit, queries.ids.ids, values, self.is_share)
        return [Measurement.from_units(scores)]
