from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import FloatArray
from recbias.core.evidence import Evidence
from recbias.metrics.templates.design import Design, build_design
from recbias.metrics.templates.estimates import (
    PermutationResults,
    list_comparisons,
    list_rest_comparisons,
    run_permutation_tests,
)
from recbias.statistics.paired import SignFlip
from support.worlds.template_worlds import (
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
    make_prompt_queries,
)


def make_name_design(n: int, n_templates: int = 2) -> tuple[Evidence, Design]:
    queries = cross_names(make_names(n), n_templates)
    of = make_prompt_evidence(queries, [[0]] * len(queries), make_priced_items(["$"]))
    return of, build_design(of, "race")


def make_location_design(words: int, n_templates: int) -> tuple[Evidence, Design]:
    rows = [
        {"template": f"t{t:02d}", "location": f"l{word:02d}"}
        for word in range(words)
        for t in range(n_templates)
    ]
    queries = make_prompt_queries(pd.DataFrame(rows, dtype=object))
    of = make_prompt_evidence(queries, [[0]] * len(queries), make_priced_items(["$"]))
    return of, build_design(of, "location")


def run_tests(
    of: Evidence, design: Design, values: FloatArray, **fields: Any
) -> PermutationResults:
    comparisons = fields.pop("comparisons", list_comparisons(len(design.groups.names)))
    return run_permutation_tests(
        of, design, values, comparisons, np.subtract, **{"n_permutations": 2000, **fields}
    )


def test_names_are_relabelled_by_hand() -> None:
    of, design = make_name_design(2)
    # black 5 and 4, white 1 and 2: of 6 labellings {5, 4} and {1, 2} are as far apart
    outcomes = run_tests(of, design, np.array([[5.0], [4.0], [1.0], [2.0]]))
    assert outcomes.statistic.tolist() == [[3.0]]
    assert outcomes.p.tolist() == [[pytest.approx(2 / 6)]]
    assert outcomes.n.tolist() == [4]


def test_templates_as_units_are_the_sign_flip_test(rng: np.random.Generator) -> None:
    of, design = make_location_design(2, 7)
    values = rng.normal(size=(14, 1))
    by_template = values[:, 0].reshape(7, 2).T
    theirs = SignFlip().pairs(by_template, rng)["p"]
    outcomes = run_tests(of, design, values)
    assert outcomes.p[0].tolist() == pytest.approx(theirs.tolist())
    assert outcomes.n.tolist() == [7]


def test_each_against_the_rest_exchanges_within_templates(rng: np.random.Generator) -> None:
    of, design = make_location_design(12, 3)
    values = rng.normal(size=(36, 1))
    values[design.group == 4] += 50
    outcomes = run_tests(of, design, values)
    assert outcomes.p.shape == (12, 1)
    # 12³ = 1,728 labellings, of which that one alone takes all three: exact
    assert outcomes.p[4, 0] == pytest.approx(1 / 1728)
    alone = run_tests(of, design, values, comparisons=[list_rest_comparisons(range(12))[7]])
    assert outcomes.p[7, 0] == pytest.approx(alone.p[0, 0])


def test_pairs_of_unequal_sizes_are_each_tested_as_alone(rng: np.random.Generator) -> None:
    words = {f"{number:02d}": {"race": "aabbbcccc"[number]} for number in range(9)}
    queries = cross_names(words, 2)
    of = make_prompt_evidence(queries, [[0]] * len(queries), make_priced_items(["$"]))
    design, values = build_design(of, "race"), rng.normal(size=(9, 2))
    outcomes = run_tests(of, design, values)
    for index, side in enumerate(list_comparisons(3)):
        alone = run_tests(of, design, values, comparisons=[side])
        assert outcomes.p[index].tolist() == alone.p[0].tolist()
