from __future__ import annotations

import numpy as np
import pandas as pd

from recbias.core.evidence import Evidence
from recbias.core.queries import Queries
from recbias.metrics.templates.design import build_design
from support.worlds.evidence_worlds import make_evidence, make_lists
from support.worlds.template_worlds import (
    cross_couples,
    cross_names,
    make_names,
    make_prompt_queries,
)


def make_query_evidence(queries: Queries) -> Evidence:
    return make_evidence(make_lists([[0]] * len(queries)), queries=queries)


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


def test_the_design_of_some_units() -> None:
    design = build_design(LOCATIONS, "location").select(np.array([0, 2, 5]))
    assert design.ids.tolist() == ["t0", "t0", "t1"]
    assert design.group.tolist() == [0, 2, 2]


def test_names_and_templates_that_hold_something_are_counted() -> None:
    design = build_design(LOCATIONS, "location")  # two templates of three words
    occurs = np.array([[1, 0], [0, 0], [0, 0], [1, 0], [1, 1], [0, 0]], dtype=bool)
    n, rest = design.count_units(occurs)
    assert (n.tolist(), rest.tolist()) == ([2, 1], [0, 1])


def test_words_of_all_slots_that_hold_something_are_counted() -> None:
    design = build_design(
        make_query_evidence(cross_couples(1, firsts=2, seconds=1)), "orientation"
    )
    # first f00 f01 m00 m01, second f0 m0; held by f00|f0 and f00|m0: three words of six
    occurs = np.zeros((8, 1), dtype=bool)
    occurs[:2] = True
    n, rest = design.count_units(occurs)
    assert (n.tolist(), rest.tolist()) == ([3], [3])
    selected = design.select(np.arange(2))
    assert selected.words is not None
    assert selected.words.tolist() == [[0, 0], [0, 1]]


def test_weights_are_of_names_or_of_each_slot(rng: np.random.Generator) -> None:
    names = build_design(make_query_evidence(cross_names(make_names(3), 2)), "race")
    assert [weights.shape for weights in names.sample_weights(5, rng)] == [(5, 6)]
    pairs = build_design(make_query_evidence(cross_couples(1)), "orientation")
    assert [weights.shape for weights in pairs.sample_weights(5, rng)] == [(5, 96)] * 3
    assert pairs.crossing.shape == (16, 6)
    alike = np.ones((3, 5, 2))
    samples, df = pairs.combine_samples(np.ones(2), alike)
    assert (samples.tolist(), df.tolist()) == (np.ones((5, 2)).tolist(), [18, 18])
    _, df = names.combine_samples(np.ones(2), alike[:1])
    assert df.tolist() == [4, 4]
