from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import UnknownColumn
from recbias.core.evidence import Evidence
from recbias.core.queries import Queries
from recbias.metrics.templates.design import (
    build_design,
)
from support.worlds.evidence_worlds import make_evidence, make_lists
from support.worlds.template_worlds import (
    cross_couples,
    cross_names,
    make_names,
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
