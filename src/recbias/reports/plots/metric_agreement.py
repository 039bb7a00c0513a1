"""How far the metrics of a run put its models in the same order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from recbias.numerics.rank_agreement import Agreement, kendall_tau
from recbias.reports.markup import Safe, join, tag
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.papers import plot_rows as rows
from recbias.reports.views.definitions import definitions
from recbias.reports.views.run_tables import RunTables

FEWEST_MODELS, FEWEST_METRICS, MOST_METRICS = 4, 3, 16
STEPS = 9
"""Colours from -1 to 1: ``figure.css`` has ``step-0`` to ``step-8``."""

_TOP, _LONGEST = 8.0, 30


def agreement(run: RunTables, dataset: str, *, name: str) -> svg.Figure | None:
    """Return the matrix of Kendall's tau-b between metrics, None below 4 models or 3 metrics."""
    figures = _figures(run, dataset)
    metrics = list(figures)[:MOST_METRICS]
    models = list(dict.fromkeys(model for each in metrics for model in figures[each]))
    if len(metrics) < FEWEST_METRICS or len(models) < FEWEST_MODELS:
        return None
    table = [[figures[each].get(model, math.nan) for each in metrics] for model in models]
    found = kendall_tau(np.array(table))
    labels = [svg.shortened(each, _LONGEST) for each in metrics]
    widest = max(map(svg.width_of, labels))
    start = 12 + widest
    size = min(60.0, max(34.0, (svg.WIDTH - start - 8) / len(metrics)))
    side = size * len(metrics)
    foot = _TOP + side + 20 + 0.68 * widest
    names = [
        svg.text((start - 8, _TOP + (at + 0.5) * size + 4.5), label, "end")
        for at, label in enumerate(labels)
    ]
    tilted = [_below(each, start + (at + 0.5) * size, side) for at, each in enumerate(labels)]
    return svg.Figure(
        name=name,
        title="Do the metrics order the models alike?",
        caption=" ".join(
            filter(
                None,
                [
                    _caption(metrics, found, len(figures) - len(metrics)),
                    rows.undrawn(run, definitions(run).values(), dataset, group="", target=""),
                ],
            )
        ),
        width=max(float(svg.WIDTH), start + side + 8),
        height=foot + 28,
        body=join(*names, *tilted, _cells(metrics, found, (start, size)), _key(foot + 12)),
    )


def _figures(run: RunTables, dataset: str) -> dict[str, Mapping[str, float]]:
    """Return each metric's figure for each model, for metrics of enough models.

    Gaps between groups are not among them: they say something else of a metric that is.
    """
    found: dict[str, Mapping[str, float]] = {}
    for known in definitions(run).values():
        if "gap" in known.parameters:
            continue
        own = rows.rows_for(run, known, dataset)
        whole = {
            row["model"]: row["value"] for row in own if not row["group"] and not row["target"]
        }
        if len(whole) >= FEWEST_MODELS:
            found[known.title] = whole
    return found


def step(value: float) -> int:
    """Return the place of the colour of a figure from -1 to 1.

    >>> step(-1.0), step(0.0), step(0.6), step(1.0)
    (0, 4, 6, 8)
    """
    return round((min(max(value, -1.0), 1.0) + 1) * (STEPS - 1) / 2)


def _cells(metrics: Sequence[str], found: Agreement, place: tuple[float, float]) -> Safe:
    start, size = place
    drawn = []
    for down, across in itertools.permutations(range(len(metrics)), 2):
        value, n = float(found.tau[down, across]), int(found.n[down, across])
        known = not math.isnan(value) and n >= FEWEST_MODELS
        said = svg.tick_text(round(value, 2)) if known else "n/a"
        words = f"{metrics[down]} and {metrics[across]}: tau-b {said} over {n} models"
        x, y = start + across * size, _TOP + down * size
        shade = step(value) if known else STEPS // 2
        drawn.append(_square((x, y, size), f"step-{shade}", tag("title", words)))
        ink = "mid on-dark" if shade in {0, STEPS - 1} else "mid"
        drawn.append(svg.text((x + size / 2, y + size / 2 + 4.5), said.replace("0.", "."), ink))
    return join(*drawn)


def _square(at: tuple[float, float, float], class_: str, *inside: object) -> Safe:
    x, y, size = at
    return tag(
        "rect",
        *inside,
        x=svg.number(x + 1),
        y=svg.number(y + 1),
        width=svg.number(size - 2),
        height=svg.number(size - 2),
        rx=2,
        class_=class_,
    )


def _below(label: str, x: float, side: float) -> Safe:
    y = svg.number(_TOP + side + 16)
    turned = f"rotate(-40 {svg.number(x + 4)} {y})"
    return svg.text((x + 4, _TOP + side + 16), label, "end", transform=turned)


def _key(y: float) -> Safe:
    left = 80.0
    squares = [_square((left + at * 18, y - 13, 18), f"step-{at}") for at in range(STEPS)]
    right = left + 18 * STEPS
    return join(
        svg.text((left - 8, y), "opposite", "end"),
        *squares,
        svg.text((right + 8, y), "the same order"),
    )


def _caption(metrics: Sequence[str], found: Agreement, left: int) -> str:
    pairs = list(itertools.combinations(range(len(metrics)), 2))
    counts = [int(found.n[pair]) for pair in pairs]
    n = f"{max(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    said = [
        f"Kendall's tau-b between {len(metrics)} metrics over {n} models.",
        "1 is the same order of the models, -1 the opposite, 0 no relation.",
        "The figures are compared as they are, whichever way is better.",
    ]
    known = {
        (metrics[a], metrics[b]): float(found.tau[a, b])
        for a, b in pairs
        if not math.isnan(found.tau[a, b]) and found.n[a, b] >= FEWEST_MODELS
    }
    if len(known) > 1:
        most, least = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
        said.append(f"Most alike: {most[0]} and {most[1]} ({known[most]:.2f});")
        said.append(f"least: {least[0]} and {least[1]} ({known[least]:.2f}).")
    if len(known) < len(pairs):
        said.append("n/a: a metric is the same for all models, or too few models have both.")
    if left:
        said.append(f"{left} more metrics are not drawn.")
    return " ".join(said)
