"""The columns of the tables of a run folder, each written down once."""

from __future__ import annotations

PLACE = ("dataset", "model", "seed", "fold")
"""Whose figure it is."""

WHAT = ("metric", "k", "group", "target")
"""Which figure of a model it is."""

FIGURE = ("value", "std", "n", "undefined", "ci_low", "ci_high")
"""The figure itself."""

METRICS = (*PLACE, *WHAT, *FIGURE)
"""The columns of ``metrics.csv``."""

PAIR = (
    *("n", "mean_a", "mean_b", "difference", "ci_low", "ci_high"),
    *("statistic", "df", "p", "effect_size"),
)
"""What a test says of a pair, one number each."""

SIGNIFICANCE = (
    *(*PLACE, *WHAT, "test", "between", "a", "b"),
    *("n", "mean_a", "mean_b", "difference", "ci_low", "ci_high", "statistic", "df", "p"),
    *("p_adjusted", "correction", "family", "family_size", "alpha", "significant", "effect_size"),
)
"""The columns of ``significance.csv``."""

ALL = "all"
"""Stands in the place of a dataset, seed or fold for the mean over them."""

POOLED = "pooled"
"""Stands in the place of a dataset for all of them together, beside the mean of their figures."""

DATASET = "(dataset)"
"""Stands in the place of a model where a dataset is measured by itself."""
