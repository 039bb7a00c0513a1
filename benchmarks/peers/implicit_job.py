"""Models of implicit, whose own evaluation makes the lists once more: numpy measures them."""

from __future__ import annotations

import warnings
from typing import Any

import job_files as files
import numpy as np
from implicit.als import AlternatingLeastSquares
from implicit.nearest_neighbours import CosineRecommender
from scipy.sparse import csr_matrix


def make_model(name: str) -> Any:
    if name == "ItemKNN":
        return CosineRecommender(K=files.NEIGHBORS)
    return AlternatingLeastSquares(
        factors=files.FACTORS,
        regularization=files.ALS["reg"],
        alpha=files.ALS["alpha"],
        iterations=int(files.ALS["epochs"]),
        random_state=files.SEED,
    )


def measure(items: Any, relevant: Any) -> tuple[float, float]:
    """Return the means of nDCG and Recall over the users with test rows."""
    hits = np.take_along_axis(relevant, np.maximum(items, 0), 1) & (items >= 0)
    discounts = 1 / np.log2(np.arange(files.K) + 2)
    counts = relevant.sum(axis=1)
    tested = counts > 0
    ideal = np.cumsum(discounts)[np.minimum(counts[tested], files.K) - 1]
    recall = hits.sum(axis=1)[tested] / counts[tested]
    return ((hits @ discounts)[tested] / ideal).mean(), recall.mean()


def main() -> None:
    arguments = files.read_arguments()
    train, test = files.read_rows(arguments.split)
    users, rows = np.unique(train.user_id, return_inverse=True)
    items, columns = np.unique(train.item_id, return_inverse=True)
    shape = (users.size, items.size)
    matrix = csr_matrix((np.ones(len(train), np.float32), (rows, columns)), shape)
    relevant = np.zeros(shape, dtype=bool)
    known = test[test.user_id.isin(users) & test.item_id.isin(items)]
    places = np.searchsorted(users, known.user_id), np.searchsorted(items, known.item_id)
    relevant[places] = True
    warnings.filterwarnings("ignore", module="implicit")  # it converts a matrix of its own
    for name in arguments.models:
        model = make_model(name)
        model.fit(matrix, show_progress=False)
        lists, scores = model.recommend(np.arange(users.size), matrix, N=files.K)
        unseen = scores > np.finfo(np.float32).min  # it fills short lists with seen items
        files.write_metrics(name, *measure(np.where(unseen, lists, -1), relevant))
        files.write_lists(name, users, list(map(np.compress, unseen, items[lists])))


if __name__ == "__main__":
    main()
