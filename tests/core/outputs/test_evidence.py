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
    make_user_queries,
    make_vocabulary,
)


@pytest.mark.parametrize("kind", sorted(REMEDIES))
def test_missing_evidence_names_the_metric_and_the_remedy(kind: str) -> None:
    evidence = Evidence(
        queries=make_user_queries(1), item_ids=make_vocabulary("i", 2), metric="nDCG"
    )
    with pytest.raises(MissingEvidence, match=f"nDCG needs {kind}") as caught:
        evidence.need(kind)
    assert caught.value.remedy == REMEDIES[kind]


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
