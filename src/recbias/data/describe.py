"""Descriptive statistics of a dataset, for ``recbias data describe``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.dataset import (
    SENTENCE_PARTS,
    SEPARATOR,
    Attributes,
    Dataset,
    FloatArray,
    Interactions,
    Reviews,
    Sentences,
    encode_pairs,
)
from recbias.statistics.inequality import fit_power_law, gini, head, zipf_exponent

_QUANTILES = {"min": 0.0, "25%": 0.25, "median": 0.5, "75%": 0.75, "max": 1.0}
_HEAD = 0.2
"""The share of the items that is the head of the popularity curve."""
_MAX_DISTINCT = 20  # the largest number of distinct numbers that are counted one by one
_MAX_VALUES = 10
"""The number of most frequent values of a text column."""


def describe(dataset: Dataset, labels: Sequence[pd.DataFrame] = ()) -> dict[str, Any]:
    """Compute statistics of a dataset: counts, ratings, popularity, attributes, reviews.

    Items and users without interactions have the count 0; an undefined statistic is NaN.

    Args:
        dataset: The dataset.
        labels: The columns of detectors, one row per item each.

    Returns:
        ``counts`` (users, items, interactions, duplicates, sparsity and the counts of the reader),
        ``times`` (first and last day), ``ratings`` (the count of each value; None if there are
        more than 20), ``per_user`` and ``per_item`` (quantiles and mean of the interactions),
        ``popularity`` (share of the interactions with the 20% most popular items, Gini index over
        all items, power law of the popularity distribution, P(x) ~ x^-exponent for x from some
        popularity, and Zipf exponent of popularity over rank), ``users`` and ``items`` (for each
        column its missing cells and most frequent values, or its quantiles), ``labels`` (for each
        column of 0 and 1 the number of items that are labelled, not labelled and without a label,
        and the labelled share of the others; for a graded one its quantiles), ``reviews``,
        ``sentences`` (number, length and labels of each part). A dataset that has nothing but
        sentences has only ``counts`` and ``sentences``, a log of impressions only ``log`` (counts,
        shares, and which questions it can answer), ``users`` and ``items``.
    """
    rows = dataset.interactions
    if "impressions" in dataset.counts:
        return {
            "log": _describe_log(dataset),
            "users": _describe_columns(dataset.users),
            "items": _describe_columns(dataset.items),
        }
    if dataset.sentences is not None and not rows.n_users and not rows.n_items:
        return {"counts": dataset.counts, "sentences": _describe_sentences(dataset.sentences)}
    return {
        "counts": _count(rows) | dataset.counts,
        "times": _describe_times(rows),
        "ratings": _count_ratings(rows),
        "per_user": _summarize(rows.user_counts()),
        "per_item": _summarize(rows.item_counts()),
        "popularity": _describe_popularity(rows.item_counts()),
        "users": _describe_columns(dataset.users),
        "items": _describe_columns(dataset.items),
        "labels": _describe_labels(labels),
        "reviews": _describe_reviews(dataset.reviews),
        "sentences": _describe_sentences(dataset.sentences),
    }


def _describe_log(dataset: Dataset) -> dict[str, Any]:
    """Return the size of a log of impressions, and which questions it can answer."""
    counts, prefix = dataset.counts, "_variant "
    n, positions = counts["impressions"], counts.get("positions", 0)
    variants = {
        key[len(prefix) :]: count for key, count in counts.items() if key.startswith(prefix)
    }
    places = len(dataset.item_ids) * max(positions, 1)
    has_propensities = counts.get("with_propensity", 0) == n
    return {
        "impressions": n,
        "requests": counts["requests"],
        "users": len(dataset.user_ids),
        "items": len(dataset.item_ids),
        "positions": positions,
        "share with a reward": counts["rewarded"] / n,
        "share with a propensity": counts.get("with_propensity", 0) / n,
        "share of the items and positions that were shown": counts["_cells"] / places,
        "variants": variants or None,
        "answers": {
            "what was shown and clicked": "yes",
            "whether clicked items stood above others": (
                "yes"
                if positions > 1 and counts["requests"] < n
                else "no: requests have one item, or there are no positions"
            ),
            "whether a variant is better, and for whom": (
                "yes" if len(variants) > 1 else "no: there are not two variants"
            ),
            "what a candidate would get": (
                "yes" if has_propensities else "only by estimator: direct, without propensities"
            ),
        },
    }


def _count(rows: Interactions) -> dict[str, float]:
    keys = np.sort(encode_pairs(rows))
    duplicates = int((keys[1:] == keys[:-1]).sum())
    cells = rows.n_users * rows.n_items
    density = (len(rows) - duplicates) / cells if cells else math.nan
    return {
        "users": rows.n_users,
        "items": rows.n_items,
        "interactions": len(rows),
        "duplicates": duplicates,
        "users_without_interactions": int((rows.user_counts() == 0).sum()),
        "items_without_interactions": int((rows.item_counts() == 0).sum()),
        "sparsity": 1.0 - density,
    }


def _describe_times(rows: Interactions) -> dict[str, str] | None:
    if rows.times is None or not rows.times.size:
        return None
    times = np.array([rows.times.min(), rows.times.max()], dtype="datetime64[s]")
    return dict(zip(("first", "last"), np.datetime_as_string(times, "D").tolist(), strict=True))


def _count_ratings(rows: Interactions) -> dict[float, int] | None:
    values, counts = np.unique(rows.values, return_counts=True)
    if values.size > _MAX_DISTINCT:
        return None
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _summarize(values: npt.NDArray[Any]) -> dict[str, float]:
    """Return the quantiles and the mean, NaN without values."""
    if not values.size:
        return dict.fromkeys([*_QUANTILES, "mean"], math.nan)
    quantiles = np.quantile(values, list(_QUANTILES.values())).tolist()
    return dict(zip(_QUANTILES, quantiles, strict=True)) | {"mean": float(values.mean())}


def _describe_popularity(counts: npt.NDArray[np.int64]) -> dict[str, Any]:
    head_count = counts[head(counts, _HEAD, of="items")].sum()
    law = fit_power_law(counts)
    return {
        "head_share": float(head_count / counts.sum()) if counts.sum() else math.nan,
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


def _describe_columns(table: Attributes | None) -> dict[str, Any] | None:
    if table is None:
        return None
    return {name: _describe_column(table.frame[name]) for name in table.names}


def _describe_labels(labels: Sequence[pd.DataFrame]) -> dict[str, Any] | None:
    """Return the counts of each label; None without labels."""
    return {
        str(name): _count_label(frame[name].to_numpy(dtype=np.float64))
        for frame in labels
        for name in frame.columns
    } or None


def _count_label(label: FloatArray) -> dict[str, Any]:
    values = label[~np.isnan(label)]
    missing = label.size - values.size
    if not np.isin(values, (0.0, 1.0)).all():
        return {"missing": missing, "numbers": _summarize(values)}
    n_labelled = int(values.sum())
    return {
        "labelled": n_labelled,
        "not labelled": values.size - n_labelled,
        "missing": missing,
        "labelled share": n_labelled / values.size if values.size else math.nan,
    }


def _describe_column(column: pd.Series[Any]) -> dict[str, Any]:
    missing = int(column.isna().sum())
    if column.dtype.kind == "f":
        numbers = column.dropna().to_numpy()
        distinct, counts = np.unique(numbers, return_counts=True)
        if distinct.size > _MAX_DISTINCT:
            return {"missing": missing, "numbers": _summarize(numbers)}
        values = {f"{value:g}": int(count) for value, count in zip(distinct, counts, strict=True)}
        return {"missing": missing, "distinct": len(values), "values": values}
    cells = column.dropna().astype(str).str.split(SEPARATOR, regex=False).explode()
    value_counts = cells.value_counts(sort=True)
    values = {str(value): int(count) for value, count in value_counts.head(_MAX_VALUES).items()}
    return {"missing": missing, "distinct": len(value_counts), "values": values}


def _describe_reviews(reviews: Reviews | None) -> dict[str, Any] | None:
    if reviews is None:
        return None
    lengths = np.array([len(text) for text in reviews.texts], dtype=np.int64)
    return {
        "reviews": len(reviews),
        "empty": int((lengths == 0).sum()),
        "characters": _summarize(lengths),
    }


def _describe_sentences(sentences: Sentences | None) -> dict[str, Any] | None:
    if sentences is None:
        return None
    parts = {part: sentences.take_part(part) for part in SENTENCE_PARTS}
    return {
        name: {
            "sentences": len(part),
            "characters": _summarize(np.array([len(text) for text in part.texts])),
            "group": _describe_column(part.frame["group"]),
            **{label: _describe_column(part.frame[label]) for label in part.labels},
        }
        for name, part in parts.items()
        if len(part)
    }
