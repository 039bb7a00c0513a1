"""The space that a model has learned, on two axes: sets of users and items, and the direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.errors import MissingEvidence
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.canvas import Canvas, Point, x_axis, y_axis
from recbias.reports.plots.drawing.colours import INK, look
from recbias.reports.plots.drawing.label_placement import spread
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.papers import plot_rows as rows
from recbias.reports.plots.papers.forest import reach
from recbias.reports.views.run_tables import RunTables

PLUGIN = "latent_projection"
MOST_POINTS = 2400
_AXES = ("PC1", "PC2")
_LEFT, _TOP, _RIGHT, _FOOT = 52.0, 34.0, 468.0, 54.0


def projection(run: RunTables, dataset: str, name: rows.Namer) -> Iterator[Picture]:
    """Yield a picture for each projection and model.

    Raises:
        MissingEvidence: It was asked for and nothing has a place on both axes.
    """
    for known in rows.metrics_of(run, PLUGIN):
        places, note = rows.split_drawable(_places(rows.units_of(run, known, dataset)), "x", "y")
        if places.empty:
            raise MissingEvidence(f"{known.title} has no point with both components")
        models = rows.in_order(run, places["model"].unique().tolist())
        for model in models[: rows.MOST_MODELS]:
            file = name(f"projection-{model}")
            own = places[places["model"] == model]
            picture = _picture(own, model, left=models[rows.MOST_MODELS :], name=file)
            yield rows.add_note(picture, note and f"Of all models, {note}")


def _places(found: pd.DataFrame) -> pd.DataFrame:
    """Return one row a point: ``model``, ``group``, ``x`` and ``y``."""
    first, second = (found[found["target"] == axis] for axis in _AXES)
    keys = ["model", "group", "unit_id"]
    both = first.merge(second, on=keys, suffixes=("_x", "_y"))
    return both.rename(columns={"value_x": "x", "value_y": "y"})[[*keys, "x", "y"]]


def _picture(found: pd.DataFrame, model: str, *, left: Sequence[str], name: str) -> Picture:
    sets = {
        str(group): part[["x", "y"]].to_numpy(np.float64)
        for group, part in found.groupby("group", sort=False)
    }
    centres = {group: points.mean(axis=0) for group, points in sets.items()}
    thinned = {group: _thinned(points, len(found)) for group, points in sets.items()}
    sheet = Canvas(svg.WIDTH, 440.0 + 20 * ((len(sets) + 2) // 3))
    top = _TOP + 20 * ((len(sets) + 2) // 3)
    wide, high = _scales(np.vstack(list(sets.values())), (top, sheet.height - _FOOT))
    y_axis(sheet, high, svg.ticks(high.low, high.high, 5), (_LEFT, _RIGHT))
    x_axis(sheet, wide, svg.ticks(wide.low, wide.high, 5), (top, high.start))
    for place, (group, points) in enumerate(thinned.items()):
        at = [(wide.at(x), high.at(y)) for x, y in points.tolist()]
        colour, marker = look(place)
        words = f"{group}: {len(sets[group]):,} points"
        sheet.dots(
            at,
            colour,
            marker,
            size=4.5,
            edge="none",
            alpha=0.55,
            gid=f"set-{place}",
            words=words,
        )
    ends = direction(list(sets))
    spots = {group: (wide.at(x), high.at(y)) for group, (x, y) in centres.items()}
    if ends is not None:
        sheet.arrow(spots[ends[0]], spots[ends[1]], INK, gid="direction")
    _centres(sheet, spots, (top, high.start), _along(spots, ends))
    sheet.text((8, top - 14), "second component", bold=True)
    sheet.text((_RIGHT, sheet.height - 10), "first component", bold=True, anchor="right")
    _legend(sheet, sets)
    return sheet.picture(
        name=name,
        title=f"Latent space of {model}",
        caption=_caption(sets, centres, ends, left),
    )


def _thinned(points: FloatArray, total: int) -> FloatArray:
    """Return every n-th point where there are more than can be told apart."""
    return points[:: max(1, -(-total // MOST_POINTS))]


def _scales(points: FloatArray, span: tuple[float, float]) -> tuple[svg.Scale, svg.Scale]:
    """Return scales on which one unit is as long across as upwards."""
    top, bottom = span
    ends = [reach(points[:, axis].tolist()) for axis in (0, 1)]
    room = _RIGHT - _LEFT, bottom - top
    unit = max((high - low) / have for (low, high), have in zip(ends, room, strict=True))
    centre = [(low + high) / 2 for low, high in ends]
    half = [unit * have / 2 for have in room]
    return (
        svg.Scale(centre[0] - half[0], centre[0] + half[0], _LEFT, _RIGHT),
        svg.Scale(centre[1] - half[1], centre[1] + half[1], bottom, top),
    )


def direction(groups: Sequence[str]) -> tuple[str, str] | None:
    """Return the two sets that the direction runs between: the first two of one label.

    >>> direction(["gender=F", "gender=M", "genres=Romance"])
    ('gender=M', 'gender=F')
    """
    by_label: dict[str, list[str]] = {}
    for each in groups:
        by_label.setdefault(each.partition("=")[0], []).append(each)
    pair = next((each for each in by_label.values() if len(each) > 1), None)
    return None if pair is None else (pair[1], pair[0])


def _along(spots: Mapping[str, Point], ends: tuple[str, str] | None) -> list[Point]:
    """Return places along the arrow."""
    if ends is None:
        return []
    across, down = (
        np.linspace(a, b, 25).tolist() for a, b in zip(spots[ends[0]], spots[ends[1]], strict=True)
    )
    return list(zip(across, down, strict=True))


def _centres(
    sheet: Canvas, spots: Mapping[str, Point], span: Point, arrow: Sequence[Point]
) -> None:
    for place, at in enumerate(spots.values()):
        colour, marker = look(place)
        sheet.dots([at], colour, marker, size=13, edge=INK, edge_width=1.6, gid=f"centre-{place}")
    labels = [svg.shortened(each, 26) for each in spots]
    found = spread(list(spots.values()), labels, (_LEFT, span[0], _RIGHT, span[1]), also=arrow)
    for label, spot in zip(labels, found, strict=True):
        if spot is not None:
            size = svg.width_of(label) + 6, 17.0
            sheet.box((spot.x - 3, spot.y - 12.5), size, "#ffffff", alpha=0.8)
            sheet.text((spot.x, spot.y), label, bold=True)


def _legend(sheet: Canvas, sets: Mapping[str, FloatArray]) -> None:
    for place, (group, points) in enumerate(sets.items()):
        down, across = divmod(place, 3)
        x, y = 12 + across * 156, 16 + down * 20
        colour, marker = look(place)
        sheet.dots([(x, y - 4)], colour, marker, size=8)
        sheet.text((x + 9, y), svg.shortened(f"{group} ({len(points):,})", 19))


def _caption(
    sets: Mapping[str, FloatArray],
    centres: Mapping[str, FloatArray],
    ends: tuple[str, str] | None,
    left: Sequence[str],
) -> str:
    said = [
        "Vectors on the first two principal components; a unit is as long across as upwards.",
        "Large marks are the means of the sets.",
    ]
    if ends is not None:
        away = float(np.hypot(*(centres[ends[1]] - centres[ends[0]])))
        said.append(f"The arrow runs from the mean of {ends[0]} to that of {ends[1]}, {away:.3g}.")
    if sum(map(len, sets.values())) > MOST_POINTS:
        said.append(f"Of {sum(map(len, sets.values())):,} points every n-th is drawn.")
    if left:
        said.append(f"Also measured: {rows.listed(left)}.")
    return " ".join(said)
