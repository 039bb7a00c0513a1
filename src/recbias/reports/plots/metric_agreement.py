"""Rank correlation between metrics: whether they order the models of a run alike."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from recbias.numerics.rank_agreement import Agreement, kendall_tau
from recbias.reports.markup import Safe, join
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import format_tick
from recbias.reports.plots.drawing.matrix import Matrix, draw_square
from recbias.reports.views.definitions import collect_definitions
from recbias.reports.views.run_tables import RunTables

FEWEST_MODELS, FEWEST_METRICS, MOST_METRICS = 4, 3, 16
STEPS = 9
"""Colours from -1 to 1: ``plot.css`` has ``step-0`` to ``step-8``."""

_LONGEST, _SIZES = 30, (34.0, 60.0)


def draw_metric_agreement(run: RunTables, dataset: str, *, name: str) -> svg.Plot | None:
    """Return the matrix of Kendall's tau-b between metrics; None below 4 models or 3 metrics."""
    values = _collect_values(run, dataset)
    metrics = list(values)[:MOST_METRICS]
    models = list(dict.fromkeys(model for metric in metrics for model in values[metric]))
    if len(metrics) < FEWEST_METRICS or len(models) < FEWEST_MODELS:
        return None
    table = [[values[metric].get(model, math.nan) for metric in metrics] for model in models]
    agreement = kendall_tau(np.array(table))
    matrix = Matrix(metrics, _LONGEST, _SIZES)
    caption = _write_caption(metrics, agreement, len(values) - len(metrics))
    note = rows.describe_undrawn(
        run, collect_definitions(run).values(), dataset, group="", target=""
    )
    return svg.Plot(
        name=name,
        title="Do the metrics order the models alike?",
        caption=" ".join(filter(None, [caption, note])),
        width=matrix.width,
        height=matrix.foot + 28,
        body=join(
            matrix.draw_labels(),
            *_draw_cells(matrix, metrics, agreement),
            _draw_key(matrix.foot + 12),
        ),
    )


def _collect_values(run: RunTables, dataset: str) -> dict[str, Mapping[str, float]]:
    """Return each metric's value for each model, for metrics that enough models have.

    Gaps between groups are excluded: a gap repeats a metric that is in the matrix.
    """
    values: dict[str, Mapping[str, float]] = {}
    for metric in collect_definitions(run).values():
        if "gap" in metric.parameters:
            continue
        by_model = {
            row["model"]: row["value"]
            for row in rows.list_rows(run, metric, dataset)
            if not row["group"] and not row["target"]
        }
        if len(by_model) >= FEWEST_MODELS:
            values[metric.title] = by_model
    return values


def choose_step(value: float) -> int:
    """Return the number of the colour of a value from -1 to 1.

    >>> choose_step(-1.0), choose_step(0.0), choose_step(0.6), choose_step(1.0)
    (0, 4, 6, 8)
    """
    return round((min(max(value, -1.0), 1.0) + 1) * (STEPS - 1) / 2)


def _draw_cells(matrix: Matrix, metrics: Sequence[str], agreement: Agreement) -> list[Safe]:
    cells = []
    for row, column in itertools.permutations(range(len(metrics)), 2):
        tau, n = float(agreement.tau[row, column]), int(agreement.n[row, column])
        defined = _is_defined(agreement, (row, column))
        text = format_tick(round(tau, 2)) if defined else "n/a"
        title = f"{metrics[row]} and {metrics[column]}: tau-b {text} over {n} models"
        step = choose_step(tau) if defined else STEPS // 2
        ink = "mid on-dark" if step in {0, STEPS - 1} else "mid"
        look = (text.replace("0.", "."), ink)
        cells.append(matrix.draw_cell((row, column), f"step-{step}", title, look))
    return cells


def _is_defined(agreement: Agreement, pair: tuple[int, int]) -> bool:
    return not math.isnan(agreement.tau[pair]) and agreement.n[pair] >= FEWEST_MODELS


def _draw_key(y: float) -> Safe:
    left = 16 + svg.estimate_width("opposite")
    return join(
        svg.draw_text((left - 8, y), "opposite", "end"),
        *(draw_square((left + n * 18, y - 13), 18, f"step-{n}") for n in range(STEPS)),
        svg.draw_text((left + 18 * STEPS + 8, y), "the same order"),
    )


def _write_caption(metrics: Sequence[str], agreement: Agreement, omitted: int) -> str:
    pairs = list(itertools.combinations(range(len(metrics)), 2))
    counts = [int(agreement.n[pair]) for pair in pairs]
    n = f"{max(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    sentences = [
        f"Kendall's tau-b between {len(metrics)} metrics over {n} models.",
        "1 is the same order of the models, -1 the reverse, 0 no relation.",
        "Values are compared as they are, whichever direction is better.",
    ]
    taus = {
        f"{metrics[a]} and {metrics[b]}": float(agreement.tau[a, b])
        for a, b in pairs
        if _is_defined(agreement, (a, b))
    }
    if len(taus) > 1:
        most, least = max(taus, key=taus.__getitem__), min(taus, key=taus.__getitem__)
        ends = f"Highest: {most} ({taus[most]:.2f}); lowest: {least} ({taus[least]:.2f})."
        sentences.append(ends)
    if len(taus) < len(pairs):
        sentences.append("n/a: a metric is equal for all models, or too few models have both.")
    if omitted:
        sentences.append(f"{omitted} more metrics are not drawn.")
    return " ".join(sentences)
