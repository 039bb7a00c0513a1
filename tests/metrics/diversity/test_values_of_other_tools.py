"""Diversity and novelty equal what other libraries compute, run outside the project.

- Intra-list distance: ``user_diversity`` of recommenders 1.2.1 with ``item_feature_vector``, of
  indicators of the genres and of vectors.
- Inter-user distance: ``personalization`` of recmetrics 0.1.5, of lists of one length.
- Self-information: ``MeanInvUserFreq`` of RecTools 0.19.0.
- Unexpectedness: 1 - ``Intersection`` of RecTools with the lists of its ``PopularModel``, which
  leaves out the history; serendipity: its ``Precision`` with the relevant items that these lists
  do not hold. All items differ in popularity.
"""

from __future__ import annotations

from typing import Any

import pytest

from recbias.metrics.diversity import (
    InterUserDistance,
    IntraListDistance,
    SelfInformation,
    Serendipity,
    Unexpectedness,
)
from support.seeded_cases.evidence import assert_equal_to_other_code, make_case_evidence
from support.worlds.exposure_worlds import measure_one


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("intra_list_distance, genres", IntraListDistance(attribute="genre")),
        ("intra_list_distance, vectors", IntraListDistance()),
        ("self_information", SelfInformation()),
    ],
)
def test_lists_of_several_lengths(name: str, metric: Any) -> None:
    assert_equal_to_other_code(
        name, lambda case: measure_one(metric, make_case_evidence(case, case.short_lists)).value
    )


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("inter_user_distance", InterUserDistance()),
        ("unexpectedness", Unexpectedness()),
        ("serendipity", Serendipity()),
    ],
)
def test_lists_of_one_length(name: str, metric: Any) -> None:
    assert_equal_to_other_code(
        name, lambda case: measure_one(metric, make_case_evidence(case, case.lists)).value
    )
