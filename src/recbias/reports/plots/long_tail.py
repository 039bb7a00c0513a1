"""Long-tail curves: how much of a model's recommendations goes to the most popular items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import Axes, Scale, choose_log_ticks
from recbias.reports.plots.drawing.label_placement import Spot, draw_labels, interpolate_points
from recbias.reports.plots.exposure import Exposure
from recbias.reports.views.headline import list_models
from recbias.reports.views.run_tables import RunTables

_LEFT, _TOP, _RIGHT, _HEIGHT = 48.0, 34.0, 468.0, 360.0
_HEAD = 0.2
_STEPS = 60
_REFERENCE = "training data"


def draw_long_tail(run: RunTables, exposure: Exposure, *, name: str) -> svg.Plot:
    """Return the plot of one dataset's exposure."""
    bottom = _HEIGHT - 54
    axes = Axes(
        Scale(1, max(exposure.n_items, 2), _LEFT, _RIGHT, log=True), Scale(0, 100, bottom, _TOP)
    )
    series = {model: number for number, model in enumerate(list_models(run))}
    shares = dict(sorted(exposure.models.items(), key=lambda item: series.get(item[0], 0)))
    lines = {model: f"curve {svg.format_colour(series.get(model, 0))}" for model in shares}
    texts = {model: f"halo c{series.get(model, 0) % svg.COLOURS}" for model in shares}
    if exposure.training is not None:
        shares = {_REFERENCE: exposure.training, **shares}
        lines[_REFERENCE], texts[_REFERENCE] = "reference", "halo note"
    curves = {}
    for model, column in shares.items():  # the curve at ranks that are equally far apart
        ranks = np.unique(np.geomspace(1, column.size, _STEPS).round().astype(int))
        curves[model] = [axes.at(rank, 100 * column[rank - 1]) for rank in ranks.tolist()]
    order = "recommendations" if exposure.training is None else "training interactions"
    by_order = f"by {order}, log scale"
    return svg.Plot(
        name=name,
        title="Long tail of recommended items",
        caption=_write_caption(exposure),
        height=_HEIGHT,
        body=join(
            axes.draw(choose_log_ticks(1, axes.x.high), unit="%"),
            svg.draw_title((4, 16), "Share of recommendations", "up to this item"),
            svg.draw_title((_RIGHT, _HEIGHT - 8), "Items, most popular first", by_order, "end"),
            *(
                svg.draw_polyline(curve, lines[model], _describe_head(model, shares[model]))
                for model, curve in curves.items()
            ),
            _draw_labels(curves, texts, bottom),
        ),
    )


def _draw_labels(
    curves: Mapping[str, Sequence[svg.Point]], classes: Mapping[str, str], bottom: float
) -> Safe:
    """Return the name of each curve beside it, where it covers other curves least."""
    labels = [svg.shorten(model, 22) for model in curves]
    return join(
        *draw_labels(
            [curve[len(curve) // 2] for curve in curves.values()],
            labels,
            (_LEFT + 4, _TOP, _RIGHT, bottom - 4),
            [classes[model] for model in curves],
            spots=list(map(_list_spots_beside, curves.values(), labels)),
            obstacles=[
                point for curve in curves.values() for point in interpolate_points(curve, 4)
            ],
        )
    )


def _list_spots_beside(curve: Sequence[svg.Point], label: str) -> list[Spot]:
    """Return spots along a curve: on its left and above, or on its right and below."""
    width = svg.estimate_width(label)
    spots = []
    for position, (x, y) in enumerate(curve):
        cost = 0.04 * abs(position - len(curve) / 2)
        spots.append(Spot(x - width - 6, y - 3, width, cost))
        spots.append(Spot(x + 8, y + 12, width, cost + 0.5))
    return spots


def _describe_head(model: str, shares: FloatArray) -> str:
    head = max(1, round(_HEAD * shares.size))
    return (
        f"{model}: {100 * shares[head - 1]:.1f}% go to the {head:,} most popular items "
        f"({_HEAD:.0%} of all)"
    )


def _write_caption(exposure: Exposure) -> str:
    caption = (
        "At each rank, the share of a model's recommendations that go to the items up to it. "
        "A curve further left recommends popular items more."
    )
    if exposure.training is None:
        return f"{caption} Items are sorted by the recommendations of all models."
    return f"{caption} The dotted curve is the share of the training interactions."
