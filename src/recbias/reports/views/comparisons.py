"""The comparisons of a run, in the families that people read together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.measurements.scores import Direction, to_loss
from recbias.reports.views.definitions import definitions, title_of
from recbias.reports.views.headline import headline
from recbias.reports.views.run_tables import RunTables, rows_of

Row = Mapping[str, Any]

_BY = [
    *("dataset", "seed", "fold", "metric", "k", "test", "between"),
    *("correction", "family", "alpha"),
]
_OF_MODELS = ["group", "target"]
_FIGURE = ("dataset", "seed", "fold", "metric", "k", "group", "target")

_TESTS = {
    "paired_t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "sign_flip": "sign-flip permutation test",
    "paired_bootstrap": "paired bootstrap",
    "welch_t": "Welch's t-test",
    "permutation": "permutation test",
    "rank_sum": "Wilcoxon rank-sum test",
    "random_direction": "test against random directions",
    "welch_anova": "Welch's analysis of variance",
}
_CORRECTIONS = {"bonferroni": "Bonferroni", "holm": "Holm", "bh": "Benjamini-Hochberg"}
_FAMILIES = {
    "metric": "over the {} {} of a metric",
    "report": "over all {} {} of the run",
}


@dataclass(frozen=True, eq=False)
class Comparisons:
    """All comparisons on one metric by one test and correction, in one dataset, seed and fold.

    Args:
        title: The metric, ``nDCG@10``.
        direction: Which way is better.
        place: Dataset, seed and fold.
        test: The test's name.
        between: What was compared: ``models``, ``groups``, ...
        part: The query label and item attribute value the figures are of, blank for all.
        rows: Rows of ``significance.csv``.
    """

    title: str
    direction: Direction
    place: tuple[str, str, str]
    test: str
    between: str
    part: str
    rows: tuple[Row, ...]

    @property
    def of_models(self) -> bool:
        """Whether models were compared with one another."""
        return self.between.startswith("model")

    @property
    def significant(self) -> int:
        """How many comparisons are significant."""
        return sum(is_significant(row) for row in self.rows)

    def names(self) -> list[str]:
        """Return what was compared, in order of appearance."""
        return list(dict.fromkeys(str(row[side]) for side in ("a", "b") for row in self.rows))

    def method(self) -> str:
        """Return the test, its correction and the family that was corrected, in words."""
        return in_words([self])


def in_words(found: Sequence[Comparisons]) -> str:
    """Return the tests of some comparisons, their corrections and families, each once."""
    kinds: dict[tuple[str, str, float], list[Comparisons]] = {}
    for each in found:
        row = each.rows[0]
        kinds.setdefault((row["correction"], row["family"], row["alpha"]), []).append(each)
    return "; ".join(_kind(each) for each in kinds.values())


def _kind(found: Sequence[Comparisons]) -> str:
    """Return the tests of comparisons that are corrected alike."""
    row = found[0].rows[0]
    tests = " and ".join(dict.fromkeys(_TESTS.get(each.test, each.test) for each in found))
    alpha = f"alpha {row['alpha']:g}"
    if row["correction"] in {"", "none"}:
        return f"{tests}, no correction, {alpha}"
    correction = _CORRECTIONS.get(row["correction"], row["correction"])
    sizes = sorted({each.rows[0]["family_size"] for each in found})
    known = [f"{each:,.0f}" for each in sizes if not math.isnan(each)]
    size = " to ".join(dict.fromkeys([known[0], known[-1]])) if known else "n"
    noun = "comparison" if known == ["1"] else "comparisons"
    family = _FAMILIES.get(row["family"], "over {} {}").format(size, noun)
    return f"{tests}, {correction} {family}, {alpha}"


def is_significant(row: Row) -> bool:
    """Return whether a row of ``significance.csv`` says so."""
    return str(row["significant"]).casefold() in {"true", "1"}


def better_side(row: Row, direction: Direction) -> str:
    """Return ``a`` or ``b``, whichever mean is better, or blank where neither is known to be.

    Where nearer to 0 is better, means that differ may be as far from 0, on either side of it:
    |a| and |b| differ only where both a - b and a + b are not 0. The row's own test is of the
    difference; the sum counts as different from 0 where it is larger than ``reach``.

    A test of ranks may point the other way than the means: a few users can turn a mean. Then
    neither is better.

    >>> better_side({"mean_a": 0.2, "mean_b": 0.1}, "higher")
    'a'
    >>> better_side({"mean_a": 0.2, "mean_b": -0.21, "reach": 0.02}, "zero")
    ''
    """
    a, b = to_loss(row["mean_a"], direction), to_loss(row["mean_b"], direction)
    if row.get("effect_size", math.nan) * (row["mean_a"] - row["mean_b"]) < 0:
        return ""
    if direction == "zero" and not abs(row["mean_a"] + row["mean_b"]) > row["reach"]:
        return ""
    return "a" if a < b else "b" if b < a else ""


@lru_cache(maxsize=2)
def comparisons(run: RunTables) -> tuple[Comparisons, ...]:
    """Return the headline's comparisons, those between models first, in the metrics' order."""
    if run.significance.empty:
        return ()
    known = definitions(run)
    between_models = run.significance["between"].str.startswith("model").to_numpy(dtype=bool)
    halves_of = [run.significance[each] for each in (between_models, ~between_models)]
    frame = pd.concat([headline(run, each) for each in halves_of if len(each)])
    of_models = frame["between"].str.startswith("model").to_numpy(dtype=bool)
    part = frame[_OF_MODELS].agg(" ".join, axis=1).str.strip()
    frame = frame.assign(part=np.where(of_models, part, ""))
    found: list[Comparisons] = []
    halves = _half_widths(run)
    for _, rows in frame.groupby([*_BY, "part"], sort=False, dropna=False):
        records = tuple(_reaching(row, halves) for row in rows_of(rows))
        first = records[0]
        title = title_of(first["metric"], first["k"])
        found.append(
            Comparisons(
                title=title,
                direction=known[title].direction if title in known else "none",
                place=(first["dataset"], first["seed"], first["fold"]),
                test=first["test"],
                between=first["between"],
                part=first["part"],
                rows=records,
            )
        )
    order = {title: number for number, title in enumerate(known)}
    return tuple(
        sorted(found, key=lambda each: (not each.of_models, order.get(each.title, len(order))))
    )


def beaten(found: Comparisons) -> dict[str, set[str]]:
    """Return, for each model, the models that it is significantly better than."""
    wins: dict[str, set[str]] = {name: set() for name in found.names()}
    for row in filter(is_significant, found.rows):
        side = better_side(row, found.direction)
        if side:
            wins[row[side]].add(row["b" if side == "a" else "a"])
    return wins


def _half_widths(run: RunTables) -> dict[tuple[Any, ...], float]:
    """Return half of the 95% interval of every figure of a model."""
    return {
        (*(_told(row[name]) for name in _FIGURE), row["model"]): (row["ci_high"] - row["ci_low"])
        / 2
        for row in rows_of(run.metrics)
    }


def _reaching(row: Row, halves: Mapping[tuple[Any, ...], float]) -> Row:
    """Return a row with its ``reach``: no less than the corrected half interval of a + b.

    The standard error of a sum is at most the sum of the standard errors.
    """
    where = tuple(_told(row[name]) for name in _FIGURE)
    both = [halves.get((*where, row[side]), math.nan) for side in ("a", "b")]
    tests = 1.0 if row["correction"] in {"", "none"} else max(row["family_size"], 1.0)
    level = -NormalDist().inv_cdf(row["alpha"] / 2 / tests) / NormalDist().inv_cdf(0.975)
    return {**row, "reach": level * sum(both)}


def _told(value: object) -> str:
    return str(value)
