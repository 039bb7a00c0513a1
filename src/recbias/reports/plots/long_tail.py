"""The long-tail curve: how much of what a model recommends goes to the most popular items."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.reports.markup import Safe, join, one_line, tag
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.point_labels import Spot, placed
from recbias.reports.plots.exposure import Exposure
from recbias.reports.views.headline import models
from recbias.reports.views.run_tables import RunTables

_LEFT, _TOP, _RIGHT = 48.0, 34.0, 468.0
_HEAD = 0.2
_STEPS = 60
_REFERENCE = "training data"


def tail(run: RunTables, found: Exposure, *, name: str) -> svg.Figure:
    """Return the figure of one dataset's exposure."""
    height = 360.0
    wide = svg.Scale(1, max(found.n_items, 2), _LEFT, _RIGHT, log=True)
    high = svg.Scale(0, 100, height - 54, _TOP)
    places = {model: place for place, model in enumerate(models(run))}
    curves = {
        model: _points(shares, wide, high)
        for model, shares in sorted(found.models.items(), key=lambda each: places.get(each[0], 0))
    }
    drawn = [
        svg.path(
            points,
            tag("title", _words(model, found.models[model])),
            class_=f"curve {svg.colour(places.get(model, 0))}",
        )
        for model, points in curves.items()
    ]
    kinds = {model: f"c{places.get(model, 0) % svg.COLOURS}" for model in curves}
    if found.training is not None:
        reference = _points(found.training, wide, high)
        said = tag("title", _words(_REFERENCE, found.training))
        drawn.insert(0, svg.path(reference, said, class_="reference"))
        curves = {_REFERENCE: reference, **curves}
        kinds[_REFERENCE] = "said"
    axes = join(
        svg.y_axis(high, svg.ticks(0, 100), left=_LEFT, right=_RIGHT, unit="%"),
        svg.x_axis(wide, svg.log_ticks(1, max(found.n_items, 2)), top=_TOP, bottom=height - 54),
    )
    return svg.Figure(
        name=name,
        title="Long tail of recommended items",
        caption=_caption(found),
        width=svg.WIDTH,
        height=height,
        body=join(axes, _titles(found, height), *drawn, _names(curves, kinds, high)),
    )


def _points(shares: FloatArray, wide: svg.Scale, high: svg.Scale) -> list[tuple[float, float]]:
    """Return the curve at ranks that are equally far apart on the axis."""
    ranks = np.unique(np.geomspace(1, shares.size, _STEPS).round().astype(int))
    return [(wide.at(rank), high.at(100 * shares[rank - 1])) for rank in ranks.tolist()]


def _titles(found: Exposure, height: float) -> Safe:
    order = "by recommendations" if found.training is None else "by training interactions"
    return join(
        svg.heading((4, 16), "Share of recommendations", "up to this item"),
        svg.heading(
            (_RIGHT, height - 8), "Items, most popular first", f"{order}, log scale", "end"
        ),
    )


def _names(
    curves: dict[str, list[tuple[float, float]]], kinds: dict[str, str], high: svg.Scale
) -> Safe:
    """Return each curve's name beside it, where it covers other curves least."""
    marks = np.array([point for points in curves.values() for point in _dense(points)])
    labels = {model: svg.shortened(model, 22) for model in curves}
    options = [_beside(points, labels[model]) for model, points in curves.items()]
    spots = placed(options, marks, (_LEFT + 4, _TOP, _RIGHT, high.start - 4))
    return join(
        *(
            svg.text((spot.x, spot.y), labels[model], f"halo {kinds[model]}")
            for model, spot in zip(curves, spots, strict=True)
        )
    )


def _dense(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return points of a curve close enough together to tell what a label covers."""
    xs, ys = zip(*points, strict=True)
    grid = np.linspace(xs[0], xs[-1], 140)
    return list(zip(grid.tolist(), np.interp(grid, xs, ys).tolist(), strict=True))


def _beside(points: list[tuple[float, float]], said: str) -> list[Spot]:
    """Return spots along a curve: before it and above, or behind it and below."""
    width = svg.width_of(said)
    found = []
    for number, (x, y) in enumerate(points):
        edge = 0.04 * abs(number - len(points) / 2)
        found.append(Spot(x - width - 6, y - 3, width, cost=edge))
        found.append(Spot(x + 8, y + 12, width, cost=edge + 0.5))
    return found


def _words(model: str, shares: FloatArray) -> str:
    head = max(1, round(_HEAD * shares.size))
    return (
        f"{one_line(model)}: {100 * shares[head - 1]:.1f}% go to the {head:,} most popular items "
        f"({_HEAD:.0%} of all)"
    )


def _caption(found: Exposure) -> str:
    said = (
        "Read upwards from a rank: the share of a model's recommendations that go to the items "
        "up to it. A curve further left recommends popular items more."
    )
    if found.training is None:
        return f"{said} Items stand by how often all models recommend them."
    return f"{said} The dotted curve is the same share of the training interactions."
