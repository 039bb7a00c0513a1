from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray
from recbias.core.errors import UnknownColumn
from recbias.core.evidence import Evidence
from recbias.core.queries import Queries
from recbias.metrics.templates.design import (
    Design,
    build_design,
    count_attribute_values,
    read_item_levels,
)
from recbias.metrics.templates.metrics import (
    PermutationResults,
    list_comparisons,
    list_rest_comparisons,
    run_permutation_tests,
)
from recbias.statistics.paired import SignFlip
from support.worlds.evidence_worlds import make_evidence, make_lists
from support.worlds.template_worlds import (
    cross_couples,
    cross_names,
    make_names,
    make_priced_items,
    make_prompt_evidence,
    make_prompt_queries,
)


def make_query_evidence(queries: Queries) -> Evidence:
    return make_evidence(make_lists([[0]] * len(queries)), queries=queries)


def make_table_evidence(rows: list[tuple[str, str, str]]) -> Evidence:
    """Queries of (template, race, name)."""
    frame = pd.DataFrame(rows, columns=["template", "race", "name"], dtype=object)
    return make_query_evidence(make_prompt_queries(frame))


LOCATIONS = make_query_evidence(
    make_prompt_queries(
        pd.DataFrame(
            [
                {"template": t, "kind": "location", "location": word}
                for word in ("school", "bank", "farm")
                for t in ("t1", "t0")
            ],
            dtype=object,
        )
    )
)


def test_names_are_the_units_where_each_value_has_several() -> None:
    design = build_design(make_query_evidence(cross_names(make_names(2), 3)), "race")
    assert design.unit == "name"
    assert not design.paired
    assert design.ids.tolist() == ["b00", "b01", "w00", "w01"]
    assert design.group.tolist() == [0, 0, 1, 1]
    assert design.sentences.tolist() == [3, 3, 3, 3]
    assert design.stratum.tolist() == [0, 0, 0, 0]
    assert design.cluster_strata.tolist() == [0, 0, 1, 1]
    assert design.df == 2


def test_templates_are_the_units_where_a_value_has_one_word() -> None:
    design = build_design(LOCATIONS, "location")
    assert design.unit == "template"
    assert design.paired
    assert design.ids.tolist() == ["t0", "t0", "t0", "t1", "t1", "t1"]
    assert design.group.tolist() == [0, 1, 2, 0, 1, 2]
    assert design.stratum.tolist() == design.cluster.tolist() == [0, 0, 0, 1, 1, 1]
    assert (design.cluster_strata.tolist(), design.df) == ([0, 0], 1)


def test_queries_without_templates_are_units_of_their_own() -> None:
    frame = pd.DataFrame({"gender": ["F", "M", None, "F"]}, dtype=object)
    with collect_warnings() as warnings:
        design = build_design(make_query_evidence(make_prompt_queries(frame)), "gender")
    assert design.unit == "prompt"
    assert design.ids.tolist() == ["q0", "q1", "q3"]
    assert design.queries.tolist() == [0, 1, -1, 2]
    assert warnings == [
        "the metric: 1 queries carry no gender and are excluded",
        "the metric: gender=M has one prompt and no variance: no interval, no reliable test",
    ]


@pytest.mark.filterwarnings("ignore:the metric:UserWarning")
def test_names_of_queries_without_templates_can_be_named() -> None:
    frame = pd.DataFrame({"race": list("aabb"), "name": list("xyzz")}, dtype=object)
    design = build_design(make_query_evidence(make_prompt_queries(frame)), "race", words="name")
    assert design.ids.tolist() == ["x", "y", "z"]
    assert design.sentences.tolist() == [1, 1, 2]


def test_labels_are_exchanged_among_names_of_the_same_templates() -> None:
    nested = [(t, race, f"{race}{t}{n}") for t in ("t0", "t1") for race in "ab" for n in "12"]
    design = build_design(make_table_evidence(nested), "race")
    assert design.unit == "name"
    assert design.ids.tolist() == ["at01", "at02", "at11", "at12", "bt01", "bt02", "bt11", "bt12"]
    assert design.stratum.tolist() == [1, 1, 0, 0, 1, 1, 0, 0]


def test_values_asked_with_different_sentences_are_said() -> None:
    # t0: two names of a, one of b; t1: one of a, two of b
    rows = [("t0", race, name) for race, name in ("av", "aw", "bx")]
    rows += [("t1", race, name) for race, name in ("ay", "bz", "bu")]
    with collect_warnings() as warnings:
        design = build_design(make_table_evidence(rows), "race")
    assert design.stratum.tolist() == [0, 1, 1, 1, 0, 0]  # u, v, w, x, y, z
    assert len(warnings) == 1
    assert "the values of race occur in different sentences" in warnings[0]


def test_words_that_are_shared_without_every_combination_have_no_test_and_it_is_said() -> None:
    queries = cross_couples(2)
    rows = queries.labels.frame.index[queries.labels.frame["first"] != "f00"]
    whole = build_design(make_query_evidence(queries.take(np.asarray(rows))), "orientation")
    assert whole.words is not None  # 15 by 6
    with collect_warnings() as warnings:
        design = build_design(make_query_evidence(queries.take(np.arange(1, 192))), "orientation")
    assert (design.words, design.df) == (None, 0)
    assert design.stratum.tolist() == list(range(96))
    assert "share words, and not every combination occurs in the same templates" in warnings[0]
    assert "there is no interval and no test" in warnings[0]


def test_templates_must_be_there_to_be_units() -> None:
    frame = pd.DataFrame({"gender": ["F", "M"]}, dtype=object)
    with pytest.raises(UnknownColumn, match="no column 'template'") as caught:
        build_design(make_query_evidence(make_prompt_queries(frame)), "gender", "template")
    assert caught.value.where == "units"


ITEMS = make_priced_items(["$", "$$", None, "$"], categories=["A|B", "B", "A", None])


def make_world(lists: list[list[int]], **fields: Any) -> Any:
    return make_prompt_evidence(cross_names(make_names(1), 2), lists, ITEMS, **fields)


def test_an_item_of_several_values_counts_for_each() -> None:
    of = make_world([[0], [1], [2], [0]])
    slot_counts = count_attribute_values(
        of, build_design(of, "race", "name"), "categories", k=None
    )
    assert slot_counts.counts.tolist() == [[1, 2], [2, 1]]
    assert slot_counts.positions.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("cells", "levels"),
    [
        (["$", "$$$", None], [1, 3, np.nan]),
        (["££", "£"], [2, 1]),
        ([1.5, np.nan], [1.5, np.nan]),
        (["3", "10"], [3, 10]),
    ],
)
def test_levels_are_signs_or_numbers(cells: list[Any], levels: list[float]) -> None:
    of = make_prompt_evidence(cross_names(make_names(1), 1), [[0], [0]], make_priced_items(cells))
    assert read_item_levels(of, "price").tolist() == pytest.approx(levels, nan_ok=True)


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
