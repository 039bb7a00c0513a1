"""The comparisons of a run, in the families that people read together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from recbias.core.scores import Direction
from recbias.reports.definitions import badness, definitions, title_of
from recbias.reports.frame import RunTables, rows_of
from recbias.reports.slices import headline

Row = Mapping[str, Any]

_BY = ["dataset", "seed", "fold", "metric", "k", "test", "between"]
_OF_MODELS = ["group", "target"]

_TESTS = {
    "paired_t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "sign_flip": "sign-flip permutation test",
    "paired_bootstrap": "paired bootstrap",
}
_CORRECTIONS = {"bonferroni": "Bonferroni", "holm": "Holm", "bh": "Benjamini-Hochberg"}
_FAMILIES = {
    "metric": "over the {} comparisons of a metric",
    "report": "over all {} comparisons of the run",
}


@dataclass(frozen=True, eq=False)
class Comparisons:
    """All comparisons on one metric by one test, in one dataset, seed and fold.

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
        row = self.rows[0]
        test = _TESTS.get(self.test, self.test)
        alpha = f"alpha {row['alpha']:g}"
        if row["correction"] in {"", "none"}:
            return f"{test}, no correction, {alpha}"
        correction = _CORRECTIONS.get(row["correction"], row["correction"])
        known = not math.isnan(row["family_size"])
        size = f"{row['family_size']:,.0f}" if known else "n"
        family = _FAMILIES.get(row["family"], "over {}").format(size)
        return f"{test}, {correction} {family}, {alpha}"


def is_significant(row: Row) -> bool:
    """Return whether a row of ``significance.csv`` says so."""
    return str(row["significant"]).casefold() in {"true", "1"}


def better_side(row: Row, direction: Direction) -> str:
    """Return ``a`` or ``b``, whichever mean is better, or blank where neither is.

    >>> better_side({"mean_a": 0.2, "mean_b": 0.1}, "higher")
    'a'
    """
    a, b = badness(row["mean_a"], direction), badness(row["mean_b"], direction)
    return "a" if a < b else "b" if b < a else ""


@lru_cache(maxsize=2)
def comparisons(run: RunTables) -> tuple[Comparisons, ...]:
    """Return the headline's comparisons, those between models first, in the metrics' order."""
    if run.significance.empty:
        return ()
    known = definitions(run)
    frame = headline(run, run.significance)
    of_models = frame["between"].str.startswith("model").to_numpy(dtype=bool)
    part = frame[_OF_MODELS].agg(" ".join, axis=1).str.strip()
    frame = frame.assign(part=np.where(of_models, part, ""))
    found: list[Comparisons] = []
    for _, rows in frame.groupby([*_BY, "part"], sort=False, dropna=False):
        records = tuple(rows_of(rows))
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
