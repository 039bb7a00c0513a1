"""Every model against every other on one metric: which is better, and whether significantly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from recbias.core.measurements.scores import Direction, to_loss
from recbias.reports.markup import Safe, join, to_line
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.matrix import Matrix, draw_square
from recbias.reports.views.comparisons import Comparisons, find_better_side, is_significant
from recbias.reports.views.rounding import (
    count_decimals,
    format_interval,
    format_p_value,
    format_value,
)

Row = Mapping[str, Any]

_LONGEST, _SIZES = 20, (17.0, 52.0)


def draw_win_matrix(comparisons: Comparisons, *, name: str) -> svg.Plot:
    """Return the plot of the comparisons between models on one metric."""
    models = sort_by_mean(comparisons)
    matrix = Matrix(models, _LONGEST, _SIZES)
    rows = {(row["a"], row["b"]): row for row in comparisons.rows}
    direction = _choose_direction(comparisons)
    cells = []
    for row, column in itertools.permutations(range(len(models)), 2):
        pair = models[row], models[column]
        comparison = rows.get(pair) or rows.get(pair[::-1])
        if comparison is not None:
            title = _describe_pair(comparison, *pair)
            look = _choose_cell_look(comparison, pair[0], direction)
            cells.append(matrix.draw_cell((row, column), look[0], title, look[1]))
    return svg.Plot(
        name=name,
        title=f"{comparisons.heading}: every model against every other",
        caption=_write_caption(comparisons),
        width=matrix.width,
        height=matrix.foot + 26,
        body=join(*cells, matrix.draw_labels(), _draw_legend(comparisons, matrix.foot + 12)),
    )


def sort_by_mean(comparisons: Comparisons) -> list[str]:
    """Return the models by their mean: the best first, without a direction the highest first."""
    means = {str(row[side]): row[f"mean_{side}"] for side in "ab" for row in comparisons.rows}
    direction = _choose_direction(comparisons)

    def sort_key(model: str) -> tuple[bool, float]:
        bad = to_loss(means[model], direction)
        return math.isnan(bad), 0.0 if math.isnan(bad) else bad

    return sorted(comparisons.names(), key=sort_key)


def _choose_direction(comparisons: Comparisons) -> Direction:
    return "higher" if comparisons.direction == "none" else comparisons.direction


def _choose_cell_look(row: Row, model: str, direction: Direction) -> tuple[str, tuple[str, str]]:
    """Return the class of a cell, and its sign with its class, blank without significance."""
    side = find_better_side(row, direction)
    if not side:
        return "same", ("", "")
    wins = row[side] == model
    kind = "better" if wins else "worse"
    if not is_significant(row):
        return f"maybe-{kind}", ("", "")
    return kind, ("+" if wins else "\N{MINUS SIGN}", "sign")


def _describe_pair(row: Row, a: str, b: str) -> str:
    """Return the comparison in words, from the side of ``a``."""
    sign = 1 if row["a"] == a else -1
    digits = count_decimals([row["mean_a"], row["mean_b"]])
    means = [format_value(mean, digits) for mean in (row["mean_a"], row["mean_b"])[::sign]]
    low, high = sorted(sign * row[end] for end in ("ci_low", "ci_high"))
    interval = format_interval(low, high, digits)
    interval = interval and f" ({interval})"
    difference = format_value(sign * row["difference"], digits)
    corrected = format_p_value(row["p_adjusted"])
    return (
        f"{to_line(a)} {means[0]}, {to_line(b)} {means[1]}: {difference}{interval}, p {corrected}"
    )


def _draw_legend(comparisons: Comparisons, y: float) -> Safe:
    better, worse = ("higher", "lower") if comparisons.direction == "none" else ("better", "worse")
    pale = ("maybe-better", "maybe-worse")
    x, elements = 7.0, []
    for label, classes in ((better, ("better",)), (worse, ("worse",)), ("not significant", pale)):
        for class_ in classes:
            elements.append(draw_square((x, y - 11), 14, class_))
            x += 16
        elements.append(svg.draw_text((x + 3, y), label, "note"))
        x += svg.estimate_width(label) + 20
    return join(*elements)


def _write_caption(comparisons: Comparisons) -> str:
    better = "higher" if comparisons.direction == "none" else "better"
    return (
        f"The row's model against the column's: + if the row's is significantly {better}, "
        f"\N{MINUS SIGN} if the column's is, pale if the difference is not significant "
        f"({comparisons.method()}). A cell's tooltip has both means, their difference with its "
        "95% interval, and the adjusted p."
    )
