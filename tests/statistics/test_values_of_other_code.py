"""Inequality of groups equals what other code computes, run outside the project.

- Between and within groups, mean absolute difference, worst quarter: ``compute_group_scores`` of
  theresiavr/stairway-to-fairness, commit dedc56d, the code of Rampisela et al., RecSys 2025.
- Atkinson index of all queries: ``atkinson`` of PySAL inequality 1.1.2.
- Cross entropy: ``generalized_entropy_index`` of aif360 0.6.1 of the means of the groups with
  alpha -1, which is the generalised cross entropy with beta 2 and a uniform distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes
from recbias.core.grouping import group_by
from recbias.core.measures import Measurement, UnitScores
from recbias.statistics.inequality import GroupInequality
from support.seeded_cases.cases import SeededCase
from support.seeded_cases.evidence import assert_equal_to_other_code
from support.worlds.evidence_worlds import make_vocabulary


@pytest.mark.parametrize(
    "kind",
    ["atkinson", "atkinson_within", "atkinson_total", "cross_entropy", "mad", "worst_quarter"],
)
def test_inequality_of_groups(kind: Any) -> None:
    index = GroupInequality(kind=kind, direction="higher", n_samples=2)

    def compute(case: SeededCase) -> float:
        ids = make_vocabulary("u", len(case.scores))
        table = Attributes(ids, pd.DataFrame({"group": case.groups}), "query")
        scores = UnitScores("user", ids.ids, np.array(case.scores))
        groups = group_by(table, "group", split_cells=True)
        measurement = Measurement.from_units(scores)
        return index.measure(measurement, groups, np.random.default_rng(0)).value

    assert_equal_to_other_code(kind, compute)
