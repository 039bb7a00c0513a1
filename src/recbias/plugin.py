"""The names that authors of plug-ins need, as ``docs/plugins-of-your-own.md`` shows.

A plug-in is a frozen dataclass; its fields are its settings, and its docstring holds the formula::

    from recbias.plugin import Evidence, Measurement, dataclass, np

    @dataclass(frozen=True, kw_only=True)
    class Length:
        '''The number of recommended items.

            length = |list|
        '''

        needs, direction, unit = frozenset({"lists"}), "none", "query"

        def measure(self, evidence: Evidence) -> list[Measurement]:
            return [evidence.measure_queries(evidence.ranked.filled.sum(axis=1).astype(float))]

``Evidence`` holds what a metric reads: ``ranked.items`` is ``int32[q, k]`` (item codes, -1 at the
end of a short list), ``relevant`` a sparse 0/1 matrix ``(q, n_items)``, ``popularity`` is
``float64[n_items]``. ``measure_queries`` takes ``float64[q]``, NaN where undefined. Models return
``RankedLists``; ``rank_by_scores`` and ``rank_by_product`` make them from scores and embeddings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Ge, Gt, Le, Lt

from recbias.core.context import (
    Checkpoints,
    record_fact,
    report_progress,
    report_validation,
    track_progress,
    warn,
)
from recbias.core.dataset import (
    AnyArray,
    Attributes,
    BoolArray,
    Codes,
    Dataset,
    FloatArray,
    Ids,
    Interactions,
    Matrix,
    Odds,
    Queries,
    Reviews,
    Split,
    TrainingData,
    Vocabulary,
)
from recbias.core.errors import (
    BrokenContract,
    MalformedLine,
    MissingEvidence,
    MissingExtra,
    MissingFile,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    UserError,
    WrongType,
)
from recbias.core.evidence import (
    Embeddings,
    Evidence,
    Predictions,
    RankedLists,
    Responses,
    SentenceScores,
)
from recbias.core.measures import Contrast, Direction, Measurement, UnitScores
from recbias.core.plugins import Candidates, InputFile, ModelName, Output, State
from recbias.models.ranking import rank_by_product, rank_by_scores
from recbias.statistics.paired import Alpha, Correction, Family, compute_pair_moments

__all__ = ["Alpha", "Annotated", "AnyArray", "Attributes", "BoolArray", "BrokenContract"]
__all__ += [
    "Candidates",
    "Checkpoints",
    "ClassVar",
    "Codes",
    "Contrast",
    "Correction",
    "Dataset",
    "Direction",
]
__all__ += ["Embeddings", "Evidence", "Family", "FloatArray", "Ge", "Gt", "Ids", "InputFile"]
__all__ += ["Interactions", "Le", "Literal", "Lt", "MalformedLine", "Matrix", "Measurement"]
__all__ += ["MissingEvidence", "MissingExtra", "MissingFile", "ModelName"]
__all__ += ["NothingLeft", "Odds"]
__all__ += ["OutOfRange", "Output", "Predictions", "Queries", "RankedLists", "Responses"]
__all__ += ["Reviews", "SentenceScores", "Split", "State", "TrainingData", "UnitScores"]
__all__ += ["UnknownColumn", "UserError", "Vocabulary", "WrongType", "compute_pair_moments"]
__all__ += ["dataclass", "np", "pd", "rank_by_product", "rank_by_scores", "record_fact"]
__all__ += ["report_progress", "report_validation", "track_progress", "warn"]
