"""The columns of the tables in a run folder."""

from __future__ import annotations

FIT_COLUMNS = ("dataset", "model", "seed", "fold")
"""Identify a fitted model."""

METRIC_KEY_COLUMNS = ("metric", "k", "group", "target")
"""Identify a value of a fitted model."""

VALUE_COLUMNS = ("value", "std", "n", "undefined", "ci_low", "ci_high")
"""The value of a metric, its spread and its interval."""

METRICS_COLUMNS = (*FIT_COLUMNS, *METRIC_KEY_COLUMNS, *VALUE_COLUMNS)
"""The columns of ``metrics.csv``."""

ROUND_COLUMNS = (*FIT_COLUMNS, "round", "interactions", *METRIC_KEY_COLUMNS, *VALUE_COLUMNS)
"""The columns of ``rounds.csv``; ``interactions`` is the number that the model is trained on."""

PAIR_COLUMNS = (
    *("n", "mean_a", "mean_b", "difference", "ci_low", "ci_high"),
    *("statistic", "df", "p", "effect_size"),
)
"""The columns that a test gives for each pair of systems."""

SIGNIFICANCE_COLUMNS = (
    *(*FIT_COLUMNS, *METRIC_KEY_COLUMNS, "test", "between", "a", "b"),
    *("n", "mean_a", "mean_b", "difference", "ci_low", "ci_high", "statistic", "df", "p"),
    *("p_adjusted", "correction", "family", "family_size", "alpha", "significant", "effect_size"),
)
"""The columns of ``significance.csv``."""

TRADEOFF_COLUMNS = (
    *("dataset", "model", "seed", "fold", "baseline", "reranker", "setting", "strength"),
    *("accuracy", "bias", "target", "n", "accuracy_before", "accuracy_after"),
    *("accuracy_lost", "accuracy_lost_low", "accuracy_lost_high", "bias_before", "bias_after"),
    *("bias_removed", "bias_removed_low", "bias_removed_high"),
    *("price", "price_low", "price_high"),
)
"""The columns of ``tradeoffs.csv``."""

ALL = "all"
"""The dataset, seed or fold of a row that holds the mean over all of them."""

POOLED = "pooled"
"""The dataset of a row that pools all datasets, beside the mean over them."""

DATASET = "(dataset)"
"""The model of a row that measures the dataset itself."""

LEARNING_CURVE = ("epoch", "step", "loss", "value")
"""The columns of a learning curve: the number of the epoch and of the step in the whole training,
from 1, the name of a loss, and its value."""
