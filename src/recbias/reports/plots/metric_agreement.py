"""The matrix of rank correlations between metrics."""

from __future__ import annotations

import itertools
import math

from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import format_tick
from recbias.reports.plots.drawing.matrix import Matrix, draw_square
from recbias.reports.views.metric_agreement import MetricAgreement, compute_metric_agreement
from recbias.reports.views.run_tables import RunTables

STEPS = 9
"""Colours from -1 to 1: ``plot.css`` has ``step-0`` to ``step-8``."""

_LONGEST, _SIZES = 30, (34.0, 60.0)


def draw_metric_agreement(run: RunTables, dataset: str, *, name: str) -> svg.Plot | None:
    """Return the matrix of Kendall's tau-b between metrics; None below 4 models or 3 metrics."""
    result = compute_metric_agreement(run, dataset)
    if result is None:
        return None
    matrix = Matrix(result.metrics, _LONGEST, _SIZES)
    return svg.Plot(
        name=name,
        title="Do the metrics order the models alike?",
        caption=_write_caption(result),
        width=matrix.width,
        height=matrix.foot + 28,
        body=join(
            matrix.draw_labels(),
            *_draw_cells(matrix, result),
            _draw_key(matrix.foot + 12),
        ),
    )


def choose_step(value: float) -> int:
    """Return the number of the colour of a value from -1 to 1.

    >>> choose_step(-1.0), choose_step(0.0), choose_step(0.6), choose_step(1.0)
    (0, 4, 6, 8)
    """
    return round((min(max(value, -1.0), 1.0) + 1) * (STEPS - 1) / 2)


def _draw_cells(matrix: Matrix, result: MetricAgreement) -> list[Safe]:
    cells, metrics = [], result.metrics
    for row, column in itertools.permutations(range(len(metrics)), 2):
        tau, n = result.get_tau((row, column)), int(result.agreement.n[row, column])
        defined = not math.isnan(tau)
        text = format_tick(round(tau, 2)) if defined else "n/a"
        title = f"{metrics[row]} and {metrics[column]}: tau-b {text} over {n} models"
        step = choose_step(tau) if defined else STEPS // 2
        ink = "mid on-dark" if step in {0, STEPS - 1} else "mid"
        look = (text.replace("0.", "."), ink)
        cells.append(matrix.draw_cell((row, column), f"step-{step}", title, look))
    return cells


def _draw_key(y: float) -> Safe:
    left = 16 + svg.estimate_width("opposite")
    return join(
        svg.draw_text((left - 8, y), "opposite", "end"),
        *(draw_square((left + n * 18, y - 13), 18, f"step-{n}") for n in range(STEPS)),
        svg.draw_text((left + 18 * STEPS + 8, y), "the same order"),
    )


def _write_caption(result: MetricAgreement) -> str:
    metrics, pairs = result.metrics, result.list_pairs()
    sentences = [
        f"Kendall's tau-b between {len(metrics)} metrics over {result.describe_models()} models.",
        "1 is the same order of the models, -1 the reverse, 0 no relation.",
        "Values are compared as they are, whichever direction is better.",
    ]
    taus = {f"{metrics[a]} and {metrics[b]}": result.get_tau((a, b)) for a, b in pairs}
    taus = {names: tau for names, tau in taus.items() if not math.isnan(tau)}
    if len(taus) > 1:
        most, least = max(taus, key=taus.__getitem__), min(taus, key=taus.__getitem__)
        ends = f"Highest: {most} ({taus[most]:.2f}); lowest: {least} ({taus[least]:.2f})."
        sentences.append(ends)
    if len(taus) < len(pairs):
        sentences.append("n/a: a metric is equal for all models, or too few models have both.")
    if result.omitted:
        sentences.append(f"{result.omitted} more metrics are not drawn.")
    return " ".join([*sentences, *result.describe_excluded()])
