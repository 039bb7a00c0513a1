"""Evidence of the seeded cases, and the values that other code computed for them.

``values_of_other_code.json`` has the value of each measure for the seeds 0, 1, ..., the mean over
the queries if each has one. The tests that read it state the code, its version and the functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes
from recbias.core.evidence import Embeddings, Evidence
from support.seeded_cases.cases import SeededCase, make_seeded_case
from support.worlds.evidence_worlds import (
    make_evidence,
    make_lists,
    make_user_queries,
    make_vocabulary,
)
from support.worlds.small_worlds import make_interactions

VALUES: dict[str, list[float]] = json.loads(
    Path(__file__).with_name("values_of_other_code.json").read_text(encoding="utf-8")
)


def make_case_evidence(
    case: SeededCase,
    lists: Sequence[Sequence[int]],
    *,
    relevant: Sequence[Sequence[int]] | None = None,
    histories: Sequence[Sequence[int]] | None = None,
) -> Evidence:
    """Return lists of a case; by default with its relevant items and histories."""
    histories = case.histories if histories is None else histories
    rows = [(user, item) for user, items in enumerate(histories) for item in items]
    genres = ["|".join(genres) for genres in case.genres]
    frame = pd.DataFrame({"genre": genres, "maker": case.makers})
    return make_evidence(
        make_lists(lists),
        case.relevant if relevant is None else relevant,
        n_items=case.n_items,
        train=make_interactions(rows, n_users=len(histories), n_items=case.n_items),
        queries=make_user_queries(len(lists)),
        items=Attributes(make_vocabulary("i", case.n_items), frame),
        candidates=np.ones(case.n_items, dtype=bool),
        embeddings=Embeddings(None, np.array(case.vectors, dtype=np.float32)),
        n_bootstrap=2,
    )


def assert_equal_to_other_code(name: str, compute: Callable[[SeededCase], Any]) -> None:
    """Check a value of each case against that which other code computed."""
    values = [compute(make_seeded_case(seed)) for seed in range(len(VALUES[name]))]
    assert values == pytest.approx(VALUES[name], abs=1e-11)
