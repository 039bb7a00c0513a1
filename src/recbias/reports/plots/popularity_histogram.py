"""The distribution of training interactions over items, and the power law that fits its tail."""

from __future__ import annotations

import math

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.numerics.power_law import PowerLaw, fit_power_law, zipf_exponent
from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Axes, Scale, choose_log_ticks
from recbias.reports.views.rounding import format_count
from recbias.reports.views.run_tables import RunTables

FEWEST_ITEMS = 10
_LEFT, _TOP, _RIGHT, _HEIGHT = 64.0, 34.0, 456.0, 360.0
_BINS = 22


def draw_popularity(run: RunTables, dataset: str, *, name: str) -> svg.Plot | None:
    """Return the histogram of a dataset's training interactions per item, in its first fold.

    None if the run has no popularity table, or too few items or distinct values.
    """
    counts = _read_counts(run, dataset)
    positive = counts[counts > 0]
    if positive.size < FEWEST_ITEMS or np.unique(positive).size < 2:
        return None
    edges = make_edges(positive)
    n_items, _ = np.histogram(positive, edges)
    density = n_items / np.diff(edges) / positive.size
    least, most = float(density[density > 0].min()), float(density.max())
    axes = Axes(
        Scale(float(edges[0]), float(edges[-1]), _LEFT, _RIGHT, log=True),
        Scale(least / 2, most * 1.6, _HEIGHT - 54, _TOP, log=True),
    )
    law = fit_power_law(counts)
    return svg.Plot(
        name=name,
        title="Popularity of the items",
        caption=_write_caption(counts, law),
        height=_HEIGHT,
        body=join(
            axes.draw(_choose_ticks(axes.x), choose_log_ticks(axes.y.low, axes.y.high)),
            svg.draw_title((4, 16), "Share of items", "per number of interactions, log scale"),
            svg.draw_title((_RIGHT, _HEIGHT - 8), "Training interactions", "log scale", "end"),
            _draw_bars(edges, n_items, density, axes),
            _draw_law(law, positive, axes),
        ),
    )


def _read_counts(run: RunTables, dataset: str) -> FloatArray:
    """Return the interactions of each item, ``float64[n_items]``, in the first seed and fold."""
    if run.popularity is None:
        return np.empty(0)
    frame = run.popularity[run.popularity["dataset"] == dataset]
    for column in ("seed", "fold"):
        frame = frame[frame[column] == frame[column].iloc[0]] if len(frame) else frame
    counts: FloatArray = frame["interactions"].to_numpy(dtype=np.float64)
    return counts[np.isfinite(counts)]


def make_edges(counts: FloatArray) -> FloatArray:
    """Return the edges of bins: whole numbers with about equal ratios.

    >>> make_edges(np.array([1.0, 4.0, 9.0])).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    """
    ends = np.geomspace(counts.min(), counts.max() + 1, _BINS + 1)
    edges: FloatArray = np.unique(np.round(ends))
    return edges


def _draw_bars(edges: FloatArray, n_items: FloatArray, density: FloatArray, axes: Axes) -> Safe:
    bars = []
    for position in np.flatnonzero(n_items).tolist():
        left, right = axes.x.at(edges[position]), axes.x.at(edges[position + 1])
        top = axes.y.at(density[position])
        low, high = edges[position], edges[position + 1] - 1
        title = f"{format_count(n_items[position], 'item')} with {low:,.0f} to {high:,.0f}"
        size = max(right - left - 1, 0.5), axes.y.start - top
        bars.append(svg.draw_rectangle((left + 0.5, top), size, "bar", title))
    return join(*bars)


def _draw_law(law: PowerLaw, counts: FloatArray, axes: Axes) -> Safe:
    """Return the power law as a line over the items to which it was fitted."""
    if math.isnan(law.exponent):
        return Safe("")
    from scipy.special import zeta

    ends = np.array([law.xmin, counts.max()])
    share = law.n / counts.size * ends**-law.exponent / zeta(law.exponent, law.xmin)
    (x, y), (last_x, last_y) = (
        axes.at(end, value) for end, value in zip(ends.tolist(), share.tolist(), strict=True)
    )
    if last_y > axes.y.start:
        last_x = x + (last_x - x) * (axes.y.start - y) / (last_y - y)
        last_y = axes.y.start
    title = f"power law, exponent {law.exponent:.2f}, from {law.xmin:,.0f} interactions on"
    return svg.draw_polyline([(x, y), (last_x, last_y)], "curve fit", title)


def _choose_ticks(scale: Scale) -> list[float]:
    """Return powers of ten; if there are few, also twice and five times each."""
    ticks = choose_log_ticks(scale.low, scale.high)
    if len(ticks) > 2:
        return ticks
    first, last = math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high))
    ticks = [factor * 10.0**power for power in range(first, last) for factor in (1, 2, 5)]
    return [tick for tick in ticks if scale.low <= tick <= scale.high]


def _write_caption(counts: FloatArray, law: PowerLaw) -> str:
    positive = counts[counts > 0]
    sentences = [
        f"The number of training interactions of {format_count(positive.size, 'item')}.",
        f"Half have at most {np.median(positive):,.0f}, the most popular {positive.max():,.0f}.",
    ]
    if not math.isnan(law.exponent):
        sentences.append(
            f"The line is the power law with exponent {law.exponent:.2f}, fitted to the "
            f"{format_count(law.n, 'item')} with at least {law.xmin:,.0f}. "
            f"By rank, popularity falls with exponent {zipf_exponent(counts):.2f}."
        )
    if positive.size < counts.size:
        n_unused = format_count(counts.size - positive.size, "item")
        sentences.append(f"{n_unused} without interactions are not drawn.")
    return " ".join(sentences)
