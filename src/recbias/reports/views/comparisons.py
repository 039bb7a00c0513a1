"""The comparisons of a run, grouped by metric, test and correction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

from recbias.core.measurements.scores import Direction, to_loss
from recbias.reports.views.definitions import Definition, collect_definitions, format_title
from recbias.reports.views.headline import get_place, select_headline
from recbias.reports.views.rounding import format_count
from recbias.reports.views.run_tables import RunTables, to_records

Row = Mapping[str, Any]

_GROUP_BY = [
    *("dataset", "seed", "fold", "metric", "k", "test", "between"),
    *("correction", "family", "alpha", "part"),
]
_PART = ("group", "target")
_ESTIMATE = ("dataset", "seed", "fold", "metric", "k", *_PART)

_TESTS = {
    "paired_t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "sign_flip": "sign-flip permutation test",
    "chi_squared": "chi-squared test",
    "fisher_exact": "Fisher's exact test",
    "paired_bootstrap": "paired bootstrap",
    "welch_t": "Welch's t-test",
    "overlap_t": "t-test of groups that share units",
    "uncertain_t": "t-test of groups known as probabilities",
    "permutation": "permutation test",
    "rank_sum": "Wilcoxon rank-sum test",
    "random_direction": "test against random directions",
    "welch_anova": "Welch's analysis of variance",
}
_CORRECTIONS = {"bonferroni": "Bonferroni", "holm": "Holm", "bh": "Benjamini-Hochberg"}
_FAMILIES = {"metric": "over {} per metric", "report": "over all {} of the run"}


@dataclass(frozen=True, eq=False)
class Comparisons:
    """All comparisons on a metric by one test and correction, in one dataset, seed and fold.

    Args:
        title: The metric, ``nDCG@10``.
        metric: Its heading.
        direction: Which values are better.
        place: Dataset, seed and fold.
        test: The test's name.
        between: What was compared: ``models``, ``groups``, ...
        part: The query label and item attribute value they are restricted to, blank for all.
        rows: Rows of ``significance.csv``.
    """

    title: str
    metric: str
    direction: Direction
    place: tuple[str, str, str]
    test: str
    between: str
    part: str
    rows: tuple[Row, ...]

    @property
    def compares_models(self) -> bool:
        """Whether models are compared with each other."""
        return self.between.startswith("model")

    @property
    def significant(self) -> int:
        """The number of significant comparisons."""
        return sum(map(is_significant, self.rows))

    @property
    def n_tested(self) -> int:
        """The number of comparisons that have a p-value."""
        return sum(not math.isnan(row["p_adjusted"]) for row in self.rows)

    @property
    def heading(self) -> str:
        """The metric and the part of the queries and items."""
        return ", ".join(filter(None, [self.metric, self.part]))

    def names(self) -> list[str]:
        """Return what is compared, in order of appearance."""
        return list(dict.fromkeys(str(row[side]) for side in ("a", "b") for row in self.rows))

    def method(self) -> str:
        """Return the test, the correction and the corrected family as text."""
        return describe_methods([self])


def describe_methods(comparisons: Sequence[Comparisons]) -> str:
    """Return the tests, corrections and families of comparisons as text, without repetition."""
    kinds: dict[tuple[str, str, float], list[Comparisons]] = {}
    for comparison in comparisons:
        row = comparison.rows[0]
        kinds.setdefault((row["correction"], row["family"], row["alpha"]), []).append(comparison)
    return "; ".join(map(_describe_correction, kinds.values()))


def describe_test(name: str) -> str:
    """Return the name of a test as text, with the settings that tell it from others of the run.

    >>> describe_test("sign_flip(permutations=99)")
    'sign-flip permutation test (permutations=99)'
    """
    start, opening, settings = name.partition("(")
    return f"{_TESTS[start]} {opening}{settings}".strip() if start in _TESTS else name


def _describe_correction(comparisons: Sequence[Comparisons]) -> str:
    """Return the tests of comparisons that share correction, family and alpha."""
    row = comparisons[0].rows[0]
    names = dict.fromkeys(comparison.test for comparison in comparisons)
    tests = " and ".join(map(describe_test, names))
    alpha = f"alpha {row['alpha']:g}"
    if all(math.isnan(row.get("p", 0.0)) for item in comparisons for row in item.rows):
        return f"{tests}, no p-value"
    if row["correction"] in {"", "none"}:
        return f"{tests}, no correction, {alpha}"
    correction = _CORRECTIONS.get(row["correction"], row["correction"])
    sizes = {comparison.rows[0]["family_size"] for comparison in comparisons}
    family = _FAMILIES.get(row["family"], "over {}").format(_format_sizes(sizes))
    family = "over one comparison" if sizes == {1.0} else family
    return f"{tests}, {correction} {family}, {alpha}"


def _format_sizes(sizes: set[float]) -> str:
    """Return the sizes of families as text: ``3 to 84 comparisons``."""
    defined = sorted(size for size in sizes if not math.isnan(size))
    if not defined:
        return "n comparisons"
    largest = format_count(defined[-1], "comparison")
    return largest if defined[0] == defined[-1] else f"{defined[0]:,.0f} to {largest}"


def is_significant(row: Row) -> bool:
    """Return whether a row of ``significance.csv`` is significant."""
    return str(row["significant"]).casefold() in {"true", "1"}


def find_better_side(row: Row, direction: Direction) -> str:
    """Return ``a`` or ``b``, whichever mean is better, or blank if neither is shown to be.

    Where the direction is ``zero``, two means that differ may be equally far from 0 on opposite
    sides: |a| and |b| differ only if both a - b and a + b differ from 0. The test of the row
    covers the difference; the sum counts as different from 0 if it exceeds ``reach``.

    The effect size of a rank test may contradict the means, which a few users can dominate. Then
    neither side is better.

    >>> find_better_side({"mean_a": 0.2, "mean_b": 0.1}, "higher")
    'a'
    >>> find_better_side({"mean_a": 0.2, "mean_b": -0.21, "reach": 0.02}, "zero")
    ''
    """
    a, b = to_loss(row["mean_a"], direction), to_loss(row["mean_b"], direction)
    if row.get("effect_size", math.nan) * (row["mean_a"] - row["mean_b"]) < 0:
        return ""
    if direction == "zero" and not abs(row["mean_a"] + row["mean_b"]) > row["reach"]:
        return ""
    return "a" if a < b else "b" if b < a else ""


@lru_cache(maxsize=2)
def collect_comparisons(run: RunTables) -> tuple[Comparisons, ...]:
    """Return the headline comparisons: between models first, then by order of the metrics."""
    if run.significance.empty:
        return ()
    definitions = collect_definitions(run)
    half_widths = {
        (*_identify(row), row["model"]): (row["ci_high"] - row["ci_low"]) / 2
        for row in to_records(run.metrics)
    }
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in _select_rows(run):
        key = tuple(str(row[name]) for name in _GROUP_BY)
        groups.setdefault(key, []).append(_add_reach(row, half_widths))
    comparisons = []
    for rows in groups.values():
        row = rows[0]
        title = format_title(row["metric"], row["k"])
        metric = definitions.get(title) or Definition(title, title)
        kind = row["test"], row["between"], row["part"]
        place = get_place(row)
        comparisons.append(
            Comparisons(title, metric.heading, metric.direction, place, *kind, tuple(rows))
        )
    order = {title: number for number, title in enumerate(definitions)}
    comparisons.sort(
        key=lambda item: (not item.compares_models, order.get(item.title, len(order)))
    )
    return tuple(comparisons)


def _select_rows(run: RunTables) -> Iterator[Row]:
    """Yield the headline rows of ``significance.csv`` with ``part``, those of models first.

    Of the tests within models, only those of metrics by group are made over seeds and folds.
    """
    of_models = run.significance["between"].str.startswith("model").to_numpy(dtype=bool)
    for row in to_records(select_headline(run, run.significance[of_models])):
        yield {**row, "part": " ".join(row[name] for name in _PART).strip()}
    within = run.significance[~of_models]
    for _, rows in within.groupby(["metric", "k"], sort=False, dropna=False):
        for row in to_records(select_headline(run, rows)):
            yield {**row, "part": ""}


def find_wins(comparisons: Comparisons) -> dict[str, set[str]]:
    """Return, for each model, the models that it is significantly better than."""
    wins: dict[str, set[str]] = {name: set() for name in comparisons.names()}
    for row in filter(is_significant, comparisons.rows):
        if side := find_better_side(row, comparisons.direction):
            wins[row[side]].add(row["b" if side == "a" else "a"])
    return wins


def _add_reach(row: Row, half_widths: Mapping[tuple[str, ...], float]) -> Row:
    """Return a row with ``reach``: an upper bound of the corrected half width of a + b.

    The standard error of a sum is at most the sum of the standard errors.
    """
    key = _identify(row)
    widths = [half_widths.get((*key, row[side]), math.nan) for side in ("a", "b")]
    tests = 1.0 if row["correction"] in {"", "none"} else max(row["family_size"], 1.0)
    level = -NormalDist().inv_cdf(row["alpha"] / 2 / tests) / NormalDist().inv_cdf(0.975)
    return {**row, "reach": level * sum(widths)}


def _identify(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in _ESTIMATE)
