"""How many items have how many interactions, and the power law fitted to it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.reports.figures import svg
from recbias.reports.frame import RunTables
from recbias.reports.pictures import rows
from recbias.reports.pictures.canvas import Canvas, x_axis, y_axis
from recbias.reports.pictures.colours import SERIES
from recbias.reports.pictures.picture import Picture
from recbias.reports.rounding import count

FEWEST_ITEMS = 10
_LEFT, _TOP, _RIGHT, _HEIGHT = 66.0, 34.0, 456.0, 360.0
_BINS = 22


def popularity(run: RunTables, dataset: str, name: rows.Namer) -> Iterator[Picture]:
    """Yield the histogram of a dataset's training interactions per item."""
    counts = _counts(run, dataset)
    if np.count_nonzero(counts) >= FEWEST_ITEMS and np.unique(counts[counts > 0]).size > 1:
        yield _picture(counts, name("popularity"))


def _counts(run: RunTables, dataset: str) -> FloatArray:
    """Return the interactions of each item, ``float64[n_items]``, in the first seed and fold."""
    held = run.popularity
    if held is None:
        return np.empty(0)
    here = held[held["dataset"] == dataset]
    for column in ("seed", "fold"):
        here = here[here[column] == here[column].iloc[0]] if len(here) else here
    return here["interactions"].to_numpy(dtype=np.float64)


def edges_of(counts: FloatArray) -> FloatArray:
    """Return whole edges of bins that are about equally wide in ratio.

    >>> edges_of(np.array([1.0, 4.0, 9.0])).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    """
    ends = np.geomspace(counts.min(), counts.max() + 1, _BINS + 1)
    edges: FloatArray = np.unique(np.round(ends))
    return edges


def _picture(counts: FloatArray, name: str) -> Picture:
    some = counts[counts > 0]
    edges = edges_of(some)
    inside, _ = np.histogram(some, edges)
    density = inside / np.diff(edges) / some.size
    low = float(density[density > 0].min())
    wide = svg.Scale(float(edges[0]), float(edges[-1]), _LEFT, _RIGHT, log=True)
    bottom = _HEIGHT - 54
    high = svg.Scale(low / 3, float(density.max()) * 1.6, bottom, _TOP, log=True)
    sheet = Canvas(svg.WIDTH, _HEIGHT)
    y_axis(sheet, high, svg.log_ticks(high.low, high.high), (_LEFT, _RIGHT))
    x_axis(sheet, wide, _ticks(wide), (_TOP, bottom))
    for at, (n, value) in enumerate(zip(inside.tolist(), density.tolist(), strict=True)):
        if n:
            left, right = wide.at(edges[at]), wide.at(edges[at + 1])
            top = high.at(value)
            sheet.box(
                (left + 0.5, top),
                (right - left - 1, bottom - top),
                SERIES[4],
                gid=f"bin-{at}",
                words=f"{count(n, 'item')} with {edges[at]:,.0f} to {edges[at + 1] - 1:,.0f}",
            )
    sheet.text((8, 16), "Share of items with just so many", bold=True)
    said = "Training interactions of an item"
    sheet.text((_RIGHT, _HEIGHT - 10), said, bold=True, anchor="right")
    title = "Popularity of the items"
    return sheet.picture(name=name, title=title, caption=_caption(counts))


def _ticks(scale: svg.Scale) -> list[float]:
    found = svg.log_ticks(scale.low, scale.high)
    if len(found) > 1:
        return found
    return [each for each in svg.ticks(scale.low, scale.high) if each > 0]


def _caption(counts: FloatArray) -> str:
    some = counts[counts > 0]
    said = [
        f"How many training interactions the {count(some.size, 'item')} have, on log scales.",
        f"Half have at most {np.median(some):,.0f}, the most popular {some.max():,.0f}.",
    ]
    if some.size < counts.size:
        said.append(f"{count(counts.size - some.size, 'item')} without any are not drawn.")
    return " ".join(said)
