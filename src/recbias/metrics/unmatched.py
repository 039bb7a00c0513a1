"""How many ranks of a list hold no item of the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from annotated_types import Gt

from recbias.core.arrays import FloatArray
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence

INVALID = "invalid."
"""The prefix of the labels of responses that count the invalid ranks for each reason."""


@dataclass(frozen=True, kw_only=True)
class Unmatched:
    """The number of ranks that hold no item of the catalogue.

        unmatched@k(u) = k - |{ranks of the list of u that hold an item of the catalogue}|

    Recommenders that rank the catalogue have 0, unless fewer than k candidates remain. If the
    model generates replies, there is also a value for each reason (``reason=watched``): the rank
    is ``format`` (not a title), ``watched`` before, ``repeated``, ``newer`` than allowed,
    ``unknown`` (not in the catalogue), or ``missing``. They sum to the total if k is the length of
    the lists, are not computed for a shorter cutoff, and are not tested. Undefined for a query
    without a list or reply; the total is undefined without a catalogue.

    Args:
        k: Cutoff; by default the length of the lists.

    Range:
        0 to k, in ranks.

    Source:
        Lichtenberg, Buchholz and Schwöbel, "Large language models as recommender systems: a study
        of popularity bias", Gen-IR at SIGIR 2024, section 4.2. The names of the reasons are ours.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

    k: Annotated[int, Gt(0)] | None = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query and their mean, then those of each reason."""
        lists, k = evidence.ranked, self.k or evidence.ranked.k
        counts = k - evidence.in_catalogue[:, :k].sum(axis=1).astype(np.float64)
        reasons = _read_reasons(evidence) if k == lists.k else {}
        has_reply = np.zeros(len(lists), dtype=bool)
        for values in reasons.values():
            has_reply |= ~np.isnan(values)
        counts[~(lists.filled.any(axis=1) | has_reply)] = np.nan
        if not len(evidence.item_ids):
            counts[:] = np.nan
        return [
            evidence.measure_queries(counts),
            *(
                replace(evidence.measure_queries(values), target=f"reason={reason}", units=None)
                for reason, values in reasons.items()
            ),
        ]


def _read_reasons(evidence: Evidence) -> dict[str, FloatArray]:
    """Return the number of invalid ranks of each query by reason; NaN without a reply."""
    responses = evidence.responses
    labels = pd.DataFrame() if responses is None else responses.labels
    columns = [str(name) for name in labels.columns if str(name).startswith(INVALID)]
    if responses is None or not columns:
        return {}
    rows = Vocabulary(responses.ids).find(evidence.queries.ids.ids)
    counts = {name: labels[name].to_numpy(dtype=np.float64) for name in columns}
    return {
        name.removeprefix(INVALID): np.append(values, np.nan)[rows]
        for name, values in counts.items()
    }
