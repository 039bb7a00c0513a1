"""Gaps and shares of exposure equal what other code computes, run outside the project.

- EE-D, EE-R and EE-L of makers, and of several lists for each person: ``target_exposures``,
  ``treatment_exposures`` and, of all members of a group, ``exposure`` of diazf/expeval, commit
  d943b3e, with RBP and 0.8, and without the bounds.
- exposure_gap: ``disparate_exposure`` of raresboza/thesis_lost_in_translation, commit 0754b74,
  after Gómez et al.; provider_gap: the mean of its absolute values over all groups, which is the
  same for lists of one length.
- AWRF: ``AWRFMetric.qr_awrf`` of fair-trec/trec2022-fair-public, commit 227e284, with the
  exposure 1 / log2(r + 1) in place of its own, in bits.
- IAA: ``unfairness`` of BoiseState/rank-fairness-metrics, commit a357139, the code of Raj and
  Ekstrand, SIGIR 2022, with each item as a group, divided by the number of items; the attention of
  each list and the relevance of each query sum to 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from recbias.core.dataset import Attributes
from recbias.metrics.exposure import (
    AWRF,
    AmortizedAttention,
    ExpectedExposureDisparity,
    ExpectedExposureLoss,
    ExpectedExposureRelevance,
    ExposureGap,
    ProviderGap,
)
from support.seeded_cases.cases import SeededCase
from support.seeded_cases.evidence import assert_equal_to_other_code, make_case_evidence
from support.worlds.exposure_worlds import measure_one

EXPECTED_EXPOSURE = [
    ("EE-D", ExpectedExposureDisparity),
    ("EE-R", ExpectedExposureRelevance),
    ("EE-L", ExpectedExposureLoss),
]


@pytest.mark.parametrize(("name", "kind"), EXPECTED_EXPOSURE)
def test_expected_exposure_of_groups(name: str, kind: Any) -> None:
    def compute(case: SeededCase) -> float:
        evidence = make_case_evidence(case, case.short_lists, histories=[[]] * len(case.lists))
        return measure_one(kind(gamma=0.8, attribute="maker"), evidence).value

    assert_equal_to_other_code(f"{name}, makers", compute)


@pytest.mark.parametrize(("name", "kind"), EXPECTED_EXPOSURE)
def test_expected_exposure_of_several_lists(name: str, kind: Any) -> None:
    def compute(case: SeededCase) -> float:
        relevant = dict(zip(reversed(case.people), reversed(case.relevant), strict=True))
        evidence = make_case_evidence(
            case,
            case.short_lists,
            relevant=[relevant[person] for person in case.people],
            histories=[[]] * len(case.lists),
        )
        labels = pd.DataFrame({"person": [str(person) for person in case.people]})
        queries = evidence.queries
        queries = replace(queries, labels=Attributes(queries.ids, labels, "query"))
        evidence = replace(evidence, queries=queries)
        return measure_one(kind(gamma=0.8, samples_of="person"), evidence).value

    assert_equal_to_other_code(f"{name}, several lists", compute)


def test_gap_of_a_group_from_its_share_of_the_catalogue() -> None:
    metric = ExposureGap(attribute="maker", only=("a",))
    assert_equal_to_other_code(
        "exposure_gap, maker a",
        lambda case: measure_one(metric, make_case_evidence(case, case.short_lists)).value,
    )


def test_mean_gap_of_all_providers() -> None:
    metric = ProviderGap(attribute="maker")
    assert_equal_to_other_code(
        "provider_gap",
        lambda case: measure_one(metric, make_case_evidence(case, case.lists)).value,
    )


def test_attention_weighted_rank_fairness() -> None:
    metric = AWRF(attribute="maker", browsing="dcg")
    assert_equal_to_other_code(
        "AWRF", lambda case: measure_one(metric, make_case_evidence(case, case.short_lists)).value
    )


def test_inequity_of_amortized_attention() -> None:
    metric = AmortizedAttention(gamma=0.8)
    assert_equal_to_other_code(
        "IAA", lambda case: measure_one(metric, make_case_evidence(case, case.short_lists)).value
    )
