"""A dataset in plain numbers, for ``recbias data describe``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.dataset.dataset import Dataset, Reviews
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import pair_keys
from recbias.numerics.inequality import gini, head
from recbias.numerics.power_law import fit_power_law, zipf_exponent

QUANTILES = {"min": 0.0, "25%": 0.25, "median": 0.5, "75%": 0.75, "max": 1.0}
HEAD = 0.2
"""The share of the items that is the head of the popularity curve."""
MOST_RATINGS = 20
MOST_VALUES = 10


def describe(dataset: Dataset) -> dict[str, Any]:
    """Return the figures of a dataset: counts, ratings, popularity, attributes, reviews.

    An item or user without interactions counts as one with 0; a figure that is undefined is NaN.

    Returns:
        ``counts`` (users, items, interactions, duplicates, sparsity and what was counted while
        reading), ``times`` (first and last day), ``ratings`` (how often each value occurs; None
        where there are more than 20), ``per_user`` and ``per_item`` (quantiles and mean of the
        interactions), ``popularity`` (share of the interactions that the most popular 20% of the
        items hold, the Gini index over all items, the power law of their distribution, P(x) ~
        x^-exponent from some popularity on, and the Zipf exponent of popularity over rank),
        ``users`` and ``items`` (for each column its missing cells and most frequent values, or its
        quantiles), ``reviews``.
    """
    rows = dataset.interactions
    return {
        "counts": _counts(rows) | dataset.counts,
        "times": _times(rows),
        "ratings": _ratings(rows),
        "per_user": _spread(rows.user_counts()),
        "per_item": _spread(rows.item_counts()),
        "popularity": _popularity(rows.item_counts()),
        "users": _columns(dataset.users),
        "items": _columns(dataset.items),
        "reviews": _reviews(dataset.reviews),
    }


def _counts(rows: Interactions) -> dict[str, float]:
    keys = np.sort(pair_keys(rows))
    duplicates = int((keys[1:] == keys[:-1]).sum())
    cells = rows.n_users * rows.n_items
    filled = (len(rows) - duplicates) / cells if cells else math.nan
    return {
        "users": rows.n_users,
        "items": rows.n_items,
        "interactions": len(rows),
        "duplicates": duplicates,
        "users_without_interactions": int((rows.user_counts() == 0).sum()),
        "items_without_interactions": int((rows.item_counts() == 0).sum()),
        "sparsity": 1.0 - filled,
    }


def _times(rows: Interactions) -> dict[str, str] | None:
    if rows.times is None or not rows.times.size:
        return None
    first, last = (np.datetime64(int(each), "s") for each in (rows.times.min(), rows.times.max()))
    return {"first": str(first.astype("datetime64[D]")), "last": str(last.astype("datetime64[D]"))}


def _ratings(rows: Interactions) -> dict[float, int] | None:
    values, counts = np.unique(rows.values, return_counts=True)
    if values.size > MOST_RATINGS:
        return None
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _spread(values: npt.NDArray[Any]) -> dict[str, float]:
    """Return the quantiles and the mean of some numbers, NaN where there are none."""
    if not values.size:
        return dict.fromkeys([*QUANTILES, "mean"], math.nan)
    found = np.quantile(values, list(QUANTILES.values())).tolist()
    return dict(zip(QUANTILES, found, strict=True)) | {"mean": float(values.mean())}


def _popularity(counts: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return how the interactions are spread over the items, and how heavy the tail is."""
    in_head = counts[head(counts, HEAD, of="items")].sum()
    law = fit_power_law(counts)
    return {
        "head_share": float(in_head / counts.sum()) if counts.sum() else math.nan,
        "gini": float(gini(counts)),
        "power_law": {
            "exponent": law.exponent,
            "pareto_coefficient": law.pareto,
            "from_popularity": law.xmin,
            "items": law.n,
            "ks_distance": law.ks,
        },
        "zipf_exponent": zipf_exponent(counts),
    }


def _columns(table: Attributes | None) -> dict[str, Any] | None:
    if table is None:
        return None
    return {name: _column(table.frame[name]) for name in table.names}


def _column(column: pd.Series[Any]) -> dict[str, Any]:
    missing = int(column.isna().sum())
    if column.dtype.kind == "f":
        numbers = column.dropna().to_numpy()
        distinct = np.unique(numbers)
        if distinct.size > MOST_RATINGS:
            return {"missing": missing, "numbers": _spread(numbers)}
        values = {f"{each:g}": int((numbers == each).sum()) for each in distinct}
        return {"missing": missing, "distinct": len(values), "values": values}
    cells = column.dropna().astype(str).str.split(SEPARATOR, regex=False).explode()
    counted = cells.value_counts(sort=True)
    most = counted.head(MOST_VALUES)
    values = {str(name): int(count) for name, count in most.items()}
    return {"missing": missing, "distinct": len(counted), "values": values}


def _reviews(reviews: Reviews | None) -> dict[str, Any] | None:
    if reviews is None:
        return None
    lengths = np.array([len(each) for each in reviews.texts], dtype=np.int64)
    return {
        "reviews": len(reviews),
        "empty": int((lengths == 0).sum()),
        "characters": _spread(lengths),
    }
