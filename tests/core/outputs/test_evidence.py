from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core import evidence as evidence_module
from recbias.core.errors import MissingEvidence
from recbias.core.evidence import REMEDIES, Evidence, RankedLists, mark_contained
from support.worlds.evidence_worlds import (
    make_csr,
    make_evidence,
    make_lists,
    make_user_queries,
    make_vocabulary,
)
from support.worlds.small_worlds import make_interactions


def test_hits_mark_the_test_items_of_the_query() -> None:
    evidence = make_evidence(make_lists([[3, 1, 4], [1, 5]]), [[4, 3], [2]])
    assert evidence.hits.tolist() == [[True, False, True], [False, False, False]]


def test_relevant_items_are_counted_by_query() -> None:
    evidence = make_evidence(make_lists([[3], [1], [2]]), [[4, 3], [], [2]])
    assert evidence.n_relevant.tolist() == [2, 0, 1]


def test_popularity_counts_training_interactions() -> None:
    train = make_interactions([(0, 1), (1, 1), (1, 2)], n_items=4)
    assert make_evidence(make_lists([[1]]), train=train).popularity.tolist() == [0, 2, 1, 0]


def test_in_catalogue_marks_neither_padding_nor_outside_items() -> None:
    evidence = make_evidence(make_lists([[9, 10], [0]], outside=["new"]), n_items=10)
    assert evidence.in_catalogue.tolist() == [[True, False], [True, False]]


def test_an_outside_item_is_never_a_hit() -> None:
    # with 3 items, code 3 of query 0 must not be read as item 0 of query 1
    lists = make_lists([[3], [0]], outside=["new"])
    assert mark_contained(make_csr([[], [0]], 3), lists).tolist() == [[False], [True]]


def test_an_empty_position_is_never_a_hit() -> None:
    # -1 of query 1 must not be read as the last item of query 0, nor that of query 0 as any
    lists = make_lists([[0, 1], [], [2]])
    assert not mark_contained(make_csr([[2], [2], [0]], 3), lists).any()


@pytest.mark.parametrize("kind", sorted(REMEDIES))
def test_missing_evidence_names_the_metric_and_the_remedy(kind: str) -> None:
    evidence = Evidence(
        queries=make_user_queries(1), item_ids=make_vocabulary("i", 2), metric="nDCG"
    )
    with pytest.raises(MissingEvidence, match=f"nDCG needs {kind}") as caught:
        evidence.need(kind)
    assert caught.value.remedy == REMEDIES[kind]


@pytest.mark.parametrize("name", ["ranked", "hits", "n_relevant", "popularity"])
def test_properties_require_their_evidence(name: str) -> None:
    evidence = Evidence(queries=make_user_queries(1), item_ids=make_vocabulary("i", 2))
    with pytest.raises(MissingEvidence, match="the metric needs"):
        getattr(evidence, name)


def test_no_queries_give_no_hits() -> None:
    lists = RankedLists(np.empty((0, 5), np.int32), np.empty((0, 5), np.float32))
    assert mark_contained(make_csr([], 3), lists).shape == (0, 5)


@given(seed=st.integers(0, 2**32 - 1), cells=st.sampled_from([1, 7, 64, 2**23]))
def test_contained_items_do_not_depend_on_the_size_of_the_table(seed: int, cells: int) -> None:
    rng = np.random.default_rng(seed)
    n_queries, n_items, k = rng.integers(1, 9, size=3)
    relevant = [np.flatnonzero(rng.random(n_items) < 0.4).tolist() for _ in range(int(n_queries))]
    n_outside = int(rng.integers(0, 3))
    items = rng.integers(-1, n_items + n_outside, size=(n_queries, k)).astype(np.int32)
    outside = np.array([f"x{item}" for item in range(n_outside)], dtype=object)
    lists = RankedLists(items, np.zeros(items.shape, np.float32), outside)
    expected = [
        [item in test_items for item in row]
        for row, test_items in zip(items.tolist(), relevant, strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence_module, "_TABLE_CELLS", cells)
        assert mark_contained(make_csr(relevant, int(n_items)), lists).tolist() == expected
