from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from recbias.core.context import collect_warnings
from recbias.models import gpu
from recbias.models.gpu import gather_rows, rank_product_on_device
from recbias.models.ranking import rank_by_product
from support.models.recommending import make_random_data, query_all_users

CPU = torch.device("cpu")


@pytest.mark.parametrize("form", ["dense", "sparse", "sparse, made dense"])
def test_lists_are_those_of_the_product_of_arrays(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    data = make_random_data(rng)
    n_users, n_items = data.train.n_users, data.train.n_items
    left = csr_array((rng.random((n_users, 20)) < 0.3).astype(np.float32))
    # integers, so that sums are exact and ties frequent
    dense = rng.integers(-2, 3, (20, n_items)).astype(np.float32)
    right = dense if form == "dense" else csr_array(dense)
    if form == "sparse":
        monkeypatch.setattr(gpu, "DENSE_LIMIT", 0)
    queries = query_all_users(data)
    with collect_warnings() as warnings:
        expected = rank_by_product(left, right, queries, 9, data)
        lists = rank_product_on_device(left, right, queries, 9, data, CPU)
    np.testing.assert_array_equal(lists.items, expected.items)
    np.testing.assert_array_equal(lists.scores, expected.scores)
    assert len(warnings) % 2 == 0, "both warn of the same users"


def test_rows_without_entries_are_skipped() -> None:
    starts = torch.tensor([0, 0, 2, 2, 5])
    owners, positions = gather_rows(starts, torch.tensor([3, 0, 1, 2]))
    assert owners.tolist() == [0, 0, 0, 2, 2]
    assert positions.tolist() == [2, 3, 4, 0, 1]
