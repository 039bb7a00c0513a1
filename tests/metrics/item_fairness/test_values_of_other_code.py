"""Fairness to individual items equals what the authors' code computes, run outside the project.

The measures of counts, II-F and AI-F are those of ``FairWORel`` and ``IIF_AIF`` in
``RecBole/recbole/evaluator/metrics.py`` of theresiavr/DPFR-recsys-evaluation, commit c870eee, with
gamma 0.8 and without rounding. II-F and AI-F of lists of several lengths, with queries that have
no relevant item, are from ``II_F`` and ``AI_F_mask`` of haolun-wu/JMEFairness, commit 04dda0d,
where such queries are held out by the indicator.
"""

from __future__ import annotations

from typing import Any

import pytest

from recbias.metrics.item_fairness import (
    CorrectedEntropy,
    CorrectedFSat,
    CorrectedGini,
    CorrectedJain,
    CorrectedQF,
    FSat,
    IndividualExposure,
    Jain,
    OverallExposure,
)
from recbias.metrics.popularity import Gini, ItemCoverage
from support.seeded_cases.evidence import assert_equal_to_other_code, make_case_evidence
from support.worlds.exposure_worlds import measure_one


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("Jain", Jain()),
        ("ItemCoverage", ItemCoverage()),
        ("Gini", Gini()),
        ("FSat", FSat()),
        ("corrected_Jain", CorrectedJain()),
        ("corrected_QF", CorrectedQF()),
        ("corrected_Entropy", CorrectedEntropy()),
        ("corrected_Gini", CorrectedGini()),
        ("corrected_FSat", CorrectedFSat()),
        ("II-F", IndividualExposure()),
        ("AI-F", OverallExposure()),
    ],
)
def test_values_equal_those_of_the_authors_of_the_corrections(name: str, metric: Any) -> None:
    assert_equal_to_other_code(
        name, lambda case: measure_one(metric, make_case_evidence(case, case.lists)).value
    )


@pytest.mark.parametrize(
    ("name", "metric"),
    [("II-F, judged", IndividualExposure()), ("AI-F, judged", OverallExposure())],
)
def test_joint_exposure_equals_that_of_its_authors(name: str, metric: Any) -> None:
    assert_equal_to_other_code(
        name,
        lambda case: (
            measure_one(
                metric, make_case_evidence(case, case.short_lists, relevant=case.judged)
            ).value
        ),
    )
