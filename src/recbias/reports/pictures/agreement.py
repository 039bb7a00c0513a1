"""How far the metrics of a run put its models in the same order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.reports.definitions import Definition, definitions
from recbias.reports.figures import svg
from recbias.reports.frame import RunTables
from recbias.reports.pictures import rows
from recbias.reports.pictures.canvas import Canvas
from recbias.reports.pictures.colours import STEPS, step
from recbias.reports.pictures.picture import Picture

FEWEST_MODELS, FEWEST_METRICS, MOST_METRICS = 4, 3, 16
_TOP, _LONGEST = 10.0, 30


def agreement(run: RunTables, dataset: str, name: rows.Namer) -> Iterator[Picture]:
    """Yield the matrix of Kendall's tau-b, where there are models and metrics enough."""
    figures = _figures(run, dataset)
    metrics = list(figures)[:MOST_METRICS]
    models = {model for each in metrics for model in figures[each]}
    if len(metrics) >= FEWEST_METRICS and len(models) >= FEWEST_MODELS:
        held = {each: figures[each] for each in metrics}
        yield _picture(held, len(figures) - len(metrics), name("metric-agreement"))


def _figures(run: RunTables, dataset: str) -> dict[str, Mapping[str, float]]:
    """Return each metric's figure for each model, for metrics of enough models."""
    found: dict[str, Mapping[str, float]] = {}
    for known in definitions(run).values():
        whole = _whole(run, known, dataset)
        if len(whole) >= FEWEST_MODELS:
            found[known.title] = whole
    return found


def _whole(run: RunTables, known: Definition, dataset: str) -> dict[str, float]:
    found = rows.rows_for(run, known, dataset)
    plain = [row for row in found if not row["group"] and not row["target"]]
    return {row["model"]: row["value"] for row in plain}


def tau(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[float, int]:
    """Return Kendall's tau-b over the models that have both figures, and how many those are."""
    both = [each for each in a if each in b]
    if len(both) < FEWEST_MODELS:
        return math.nan, len(both)
    first, second = ([each[model] for model in both] for each in (a, b))
    return _kendall(np.array(first), np.array(second)), len(both)


def _kendall(a: FloatArray, b: FloatArray) -> float:
    """Return Kendall's tau-b; NaN where a side is all ties."""
    first, second = (np.sign(each[:, None] - each[None, :]) for each in (a, b))
    free = math.sqrt(float(np.abs(first).sum()) * float(np.abs(second).sum()))
    return float((first * second).sum()) / free if free else math.nan


def _picture(figures: Mapping[str, Mapping[str, float]], left: int, name: str) -> Picture:
    metrics = list(figures)
    pairs = {(a, b): tau(figures[a], figures[b]) for a, b in itertools.combinations(metrics, 2)}
    labels = [svg.shortened(each, _LONGEST) for each in metrics]
    widest = max(svg.width_of(each, 12.0) for each in labels)
    size = min(64.0, max(34.0, (svg.WIDTH - widest - 24) / len(metrics)))
    start = widest + 14
    slanted = 0.72 * widest + 14
    width = max(float(svg.WIDTH), start + size * len(metrics) + 10)
    side = size * len(metrics)
    sheet = Canvas(width, _TOP + side + slanted + 40)
    for at, label in enumerate(labels):
        centre = _TOP + (at + 0.5) * size + 4.5
        sheet.text((start - 8, centre), label, anchor="right")
        place = start + (at + 0.5) * size + 4, _TOP + side + 16
        sheet.text(place, label, anchor="right", turn=40)
    _cells(sheet, metrics, pairs, (start, size))
    _key(sheet, start)
    return sheet.picture(
        name=name,
        title="Do the metrics order the models alike?",
        caption=_caption(metrics, pairs, left),
    )


def _cells(
    sheet: Canvas,
    metrics: Sequence[str],
    pairs: Mapping[tuple[str, str], tuple[float, int]],
    place: tuple[float, float],
) -> None:
    start, size = place
    for down, across in itertools.product(range(len(metrics)), repeat=2):
        if down == across:
            continue
        a, b = metrics[min(down, across)], metrics[max(down, across)]
        value, n = pairs[a, b]
        fill, ink = step(0.0 if math.isnan(value) else value)
        x, y = start + across * size, _TOP + down * size
        said = "n/a" if math.isnan(value) else svg.tick_text(round(value, 2))
        words = f"{a} and {b}: tau-b {said} over {n} models"
        gid = f"cell-{down}-{across}"
        sheet.box((x + 1, y + 1), (size - 2, size - 2), fill, gid=gid, words=words)
        sheet.text(
            (x + size / 2, y + size / 2 + 4.5),
            said,
            anchor="center",
            colour=ink,
            size=13.0 if size > 40 else 11.0,
        )


def _key(sheet: Canvas, start: float) -> None:
    foot = sheet.height - 12
    sheet.text((start, foot), "opposite", anchor="right")
    for at, colour in enumerate(STEPS):
        sheet.box((start + 10 + at * 18, foot - 11), (17, 13), colour)
    sheet.text((start + 18 * len(STEPS) + 18, foot), "the same order")


def _caption(
    metrics: Sequence[str], pairs: Mapping[tuple[str, str], tuple[float, int]], left: int
) -> str:
    counts: FloatArray = np.array([n for _, n in pairs.values()], dtype=np.float64)
    low, high = int(counts.min()), int(counts.max())
    n = f"{high}" if low == high else f"{low} to {high}"
    said = [
        f"Kendall's tau-b between {len(metrics)} metrics over {n} models.",
        "1 is the same order of the models, -1 the opposite, 0 no relation.",
        "The figures are compared as they are, whichever way is better.",
    ]
    known = {pair: value for pair, (value, _) in pairs.items() if not math.isnan(value)}
    if len(known) > 1:
        most, least = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
        said.append(
            f"Most alike: {most[0]} and {most[1]} ({known[most]:.2f}); least: {least[0]} and "
            f"{least[1]} ({known[least]:.2f})."
        )
    if len(known) < len(pairs):
        said.append("n/a: a metric is the same for all models, or too few models have both.")
    if left:
        said.append(f"{left} more metrics are not drawn.")
    return " ".join(said)
