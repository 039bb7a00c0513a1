"""Values of the seeded cases equal those that other code computed outside the project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from recbias.core.dataset import Attributes
from recbias.core.evidence import Evidence
from recbias.registry import REGISTRIES
from support.seeded_cases.cases import SeededCase
from support.seeded_cases.evidence import assert_equal_to_other_code, make_case_evidence
from support.worlds.evidence_worlds import measure_one


def make_lists(case: SeededCase, *, lists: str = "lists", **parts: str) -> Evidence:
    """Return lists of a case with other parts of it."""
    given = {name: getattr(case, part) for name, part in parts.items()}
    return make_case_evidence(case, getattr(case, lists), **given)


def make_short(case: SeededCase) -> Evidence:
    return make_lists(case, lists="short_lists")


def make_without_histories(case: SeededCase) -> Evidence:
    return make_case_evidence(case, case.short_lists, histories=[[]] * len(case.lists))


def make_samples(case: SeededCase) -> Evidence:
    """Return several lists of each person, whose relevant items are those of the first list."""
    first = dict(zip(reversed(case.people), reversed(case.relevant), strict=True))
    relevant, lists = [first[person] for person in case.people], case.short_lists
    evidence = make_case_evidence(case, lists, relevant=relevant, histories=[[]] * len(lists))
    labels = pd.DataFrame({"person": [str(person) for person in case.people]})
    queries = evidence.queries
    return replace(
        evidence, queries=replace(queries, labels=Attributes(queries.ids, labels, "query"))
    )


def make_judged(case: SeededCase) -> Evidence:
    return make_lists(case, lists="short_lists", relevant="judged")


MAKER = {"attribute": "maker"}
SAMPLES = {"samples_of": "person"}
CASES: list[tuple[str, dict[str, Any], Callable[..., Evidence]]] = [
    ("intra_list_distance, genres", {"attribute": "genre"}, make_short),
    ("intra_list_distance, vectors", {}, make_short),
    ("self_information", {"corrected": False}, make_short),
    *((name, {}, make_lists) for name in ("inter_user_distance", "unexpectedness", "serendipity")),
    *((name, {}, make_lists) for name in ("Jain", "ItemCoverage", "Gini", "FSat")),
    *((f"corrected_{name}", {}, make_lists) for name in ("Jain", "QF", "Entropy", "Gini", "FSat")),
    *((name, {}, make_lists) for name in ("II-F", "AI-F")),
    *((name, {}, make_judged) for name in ("II-F, judged", "AI-F, judged")),
    (
        "calibration_kl",
        {"attribute": "genre"},
        lambda case: make_lists(case, histories="profiles"),
    ),
    (
        "calibration_js",
        MAKER,
        lambda case: make_lists(case, lists="short_lists", histories="profiles"),
    ),
    *((f"EE-{part}, makers", {"gamma": 0.8, **MAKER}, make_without_histories) for part in "DRL"),
    *((f"EE-{part}, several lists", {"gamma": 0.8, **SAMPLES}, make_samples) for part in "DRL"),
    ("exposure_gap, maker a", {**MAKER, "only": ("a",)}, make_short),
    ("provider_gap", MAKER, make_lists),
    ("AWRF", {**MAKER, "browsing": "dcg"}, make_short),
    ("IAA", {"gamma": 0.8}, make_short),
]


@pytest.mark.parametrize(("name", "settings", "make"), CASES, ids=[name for name, *_ in CASES])
def test_values_equal_those_of_other_code(
    name: str, settings: dict[str, Any], make: Callable[..., Evidence]
) -> None:
    metric: Any = REGISTRIES["metrics"].load(name.partition(", ")[0])(**settings)
    assert_equal_to_other_code(name, lambda case: measure_one(metric, make(case)).value)
