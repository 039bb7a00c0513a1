"""How many items have how many interactions, and the power law that fits the most popular."""

from __future__ import annotations

import math

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.numerics.power_law import PowerLaw, fit_power_law, zipf_exponent
from recbias.reports.markup import Safe, join, tag
from recbias.reports.plots.drawing import svg
from recbias.reports.views.rounding import count
from recbias.reports.views.run_tables import RunTables

FEWEST_ITEMS = 10
_LEFT, _TOP, _RIGHT, _HEIGHT = 64.0, 34.0, 456.0, 360.0
_BINS = 22


def popularity(run: RunTables, dataset: str, *, name: str) -> svg.Figure | None:
    """Return the histogram of a dataset's training interactions per item, in its first fold.

    None where the run does not say, or there are too few items or values for a distribution.
    """
    counts = _counts(run, dataset)
    some = counts[counts > 0]
    if some.size < FEWEST_ITEMS or np.unique(some).size < 2:
        return None
    edges = edges_of(some)
    inside, _ = np.histogram(some, edges)
    density = inside / np.diff(edges) / some.size
    bottom = _HEIGHT - 54
    wide = svg.Scale(float(edges[0]), float(edges[-1]), _LEFT, _RIGHT, log=True)
    least = float(density[density > 0].min())
    high = svg.Scale(least / 2, float(density.max()) * 1.6, bottom, _TOP, log=True)
    law = fit_power_law(counts)
    axes = join(
        svg.y_axis(high, svg.log_ticks(high.low, high.high), left=_LEFT, right=_RIGHT),
        svg.x_axis(wide, _ticks(wide), top=_TOP, bottom=bottom),
    )
    titles = join(
        svg.heading((4, 16), "Share of items", "with just so many, log scale"),
        svg.heading((_RIGHT, _HEIGHT - 8), "Training interactions", "log scale", "end"),
    )
    bars = _bars(edges, inside, density, (wide, high))
    return svg.Figure(
        name=name,
        title="Popularity of the items",
        caption=_caption(counts, law),
        width=svg.WIDTH,
        height=_HEIGHT,
        body=join(axes, titles, bars, _fit(law, some, (wide, high))),
    )


def _counts(run: RunTables, dataset: str) -> FloatArray:
    """Return the interactions of each item, ``float64[n_items]``, in the first seed and fold."""
    held = run.popularity
    if held is None:
        return np.empty(0)
    here = held[held["dataset"] == dataset]
    for column in ("seed", "fold"):
        here = here[here[column] == here[column].iloc[0]] if len(here) else here
    counts: FloatArray = here["interactions"].to_numpy(dtype=np.float64)
    return counts[np.isfinite(counts)]


def edges_of(counts: FloatArray) -> FloatArray:
    """Return whole edges of bins that are about equally wide in ratio.

    >>> edges_of(np.array([1.0, 4.0, 9.0])).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    """
    ends = np.geomspace(counts.min(), counts.max() + 1, _BINS + 1)
    edges: FloatArray = np.unique(np.round(ends))
    return edges


def _bars(
    edges: FloatArray, inside: FloatArray, density: FloatArray, scales: tuple[svg.Scale, svg.Scale]
) -> Safe:
    wide, high = scales
    drawn = []
    for at in np.flatnonzero(inside).tolist():
        left, right = wide.at(edges[at]), wide.at(edges[at + 1])
        top = high.at(density[at])
        said = f"{count(inside[at], 'item')} with {edges[at]:,.0f} to {edges[at + 1] - 1:,.0f}"
        bar = tag(
            "rect",
            tag("title", said),
            x=svg.number(left + 0.5),
            y=svg.number(top),
            width=svg.number(max(right - left - 1, 0.5)),
            height=svg.number(high.start - top),
            class_="bar",
        )
        drawn.append(bar)
    return join(*drawn)


def _fit(law: PowerLaw, some: FloatArray, scales: tuple[svg.Scale, svg.Scale]) -> Safe:
    """Return the law as a line over the items that it describes."""
    if math.isnan(law.exponent):
        return Safe("")
    from scipy.special import zeta

    wide, high = scales
    ends = np.array([law.xmin, some.max()])
    share = law.n / some.size * ends**-law.exponent / zeta(law.exponent, law.xmin)
    x, y = [wide.at(each) for each in ends.tolist()], [high.at(each) for each in share.tolist()]
    if y[1] > high.start:
        x[1] = x[0] + (x[1] - x[0]) * (high.start - y[0]) / (y[1] - y[0])
        y[1] = high.start
    points = list(zip(x, y, strict=True))
    said = f"power law, exponent {law.exponent:.2f}, from {law.xmin:,.0f} interactions on"
    return svg.path(points, tag("title", said), class_="curve fit")


def _ticks(scale: svg.Scale) -> list[float]:
    """Return powers of ten, with twice and five times them where there are few."""
    found = svg.log_ticks(scale.low, scale.high)
    if len(found) > 2:
        return found
    first, last = math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high))
    finer = [times * 10.0**power for power in range(first, last) for times in (1, 2, 5)]
    return [each for each in finer if scale.low <= each <= scale.high]


def _caption(counts: FloatArray, law: PowerLaw) -> str:
    some = counts[counts > 0]
    said = [
        f"How many training interactions the {count(some.size, 'item')} have.",
        f"Half have at most {np.median(some):,.0f}, the most popular {some.max():,.0f}.",
    ]
    if not math.isnan(law.exponent):
        said += [
            f"The line is the power law with exponent {law.exponent:.2f},",
            f"which fits the {count(law.n, 'item')} with at least {law.xmin:,.0f} best.",
            f"By rank, popularity falls with exponent {zipf_exponent(counts):.2f}.",
        ]
    if some.size < counts.size:
        said.append(f"{count(counts.size - some.size, 'item')} without any are not drawn.")
    return " ".join(said)
