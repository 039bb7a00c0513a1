"""How stereotyped the lists of each user are: a box a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.errors import MissingEvidence
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.canvas import Canvas, x_axis
from recbias.reports.plots.drawing.colours import FILL, INK, PAPER, QUIET, SERIES
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.papers import plot_rows as rows
from recbias.reports.plots.papers.forest import TALL, aside_of, title_at
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables

PLUGIN = "REC-ST"
_ROW, _TOP, _MARGIN, _LONGEST = 30.0, 34.0, 14.0, 22


@dataclass(frozen=True)
class Box:
    """What a box shows: quartiles, the reach of the whiskers, and the mean."""

    low: float
    quarter: float
    median: float
    three: float
    high: float
    mean: float
    n: int


def box_of(values: FloatArray) -> Box:
    """Return the box of values; whiskers reach the last value within 1.5 times the box.

    >>> box_of(np.array([0.0, 1.0, 2.0, 3.0, 14.0]))
    Box(low=0.0, quarter=1.0, median=2.0, three=3.0, high=3.0, mean=4.0, n=5)
    """
    quarter, median, three = (float(each) for each in np.quantile(values, (0.25, 0.5, 0.75)))
    reach = 1.5 * (three - quarter)
    inside = values[(values >= quarter - reach) & (values <= three + reach)]
    ends = float(inside.min()), float(inside.max())
    return Box(ends[0], quarter, median, three, ends[1], float(values.mean()), int(values.size))


def stereotypes(run: RunTables, dataset: str, name: rows.Namer) -> Iterator[Picture]:
    """Yield a picture for each metric of stereotype exposure and each of its parts.

    Raises:
        MissingEvidence: It was asked for and is defined for no user.
    """
    for known in rows.metrics_of(run, PLUGIN):
        if known.parameters.get("gap") is not None:
            continue
        found = rows.units_of(run, known, dataset)
        if rows.split_drawable(found, "value")[0].empty:
            raise MissingEvidence(f"{known.title} has no value of a user")
        for (group, target), whole in found.groupby(["group", "target"], sort=False):
            part, note = rows.split_drawable(whole, "value")
            if part.empty:
                continue
            values = part.groupby("model", sort=False)["value"]
            boxes = {str(model): box_of(each.to_numpy(np.float64)) for model, each in values}
            behind = ", ".join(filter(None, [str(group), str(target)]))
            file = name(f"exposure-{known.title}-{behind}")
            yield rows.add_note(_picture(known, boxes, behind, file), note)


def _picture(known: Definition, boxes: Mapping[str, Box], behind: str, name: str) -> Picture:
    ranked = sorted(boxes, key=lambda model: (boxes[model].mean, model))
    sheet = Canvas(svg.WIDTH, _TOP + _ROW * len(ranked) + 60)
    labels = [svg.shortened(each, _LONGEST) for each in ranked]
    counts = [f"n {boxes[each].n:,}" for each in ranked]
    start = 18 + max(svg.width_of(each, 12.5) for each in labels)
    end = sheet.width - _MARGIN - max(svg.width_of(each, 12.5) for each in counts) - 6
    low = min(each.low for each in boxes.values())
    high = max(max(each.high, each.mean) for each in boxes.values())
    scale = svg.Scale(*((low, high) if high > low else (low - 0.5, high + 0.5)), start, end)
    bottom = _TOP + _ROW * len(ranked)
    ticks = svg.ticks(scale.low, scale.high, 7)
    x_axis(sheet, scale, ticks, (_TOP, bottom + 6))
    if sheet.height > TALL:
        for each in ticks:
            said = svg.tick_text(each)
            sheet.text((scale.at(each), _TOP - 6), said, colour=QUIET, anchor="center")
    for at, model in enumerate(ranked):
        y = _TOP + (at + 0.5) * _ROW
        sheet.text((start - 10, y + 4.5), labels[at], anchor="right")
        sheet.text((sheet.width - _MARGIN, y + 4.5), counts[at], anchor="right", colour=QUIET)
        _box(sheet, boxes[model], scale, (y, at, model))
    _key(sheet)
    title_at(sheet, known.title, aside_of(known), sheet.height - 10)
    title = f"{known.title} of each user's list" + (f", {behind}" if behind else "")
    return sheet.picture(name=name, title=title, caption=_caption(known, boxes, ranked))


def _box(sheet: Canvas, found: Box, scale: svg.Scale, place: tuple[float, int, str]) -> None:
    y, number, model = place
    words = (
        f"{model}: mean {found.mean:.3f}, median {found.median:.3f}, half of the users between "
        f"{found.quarter:.3f} and {found.three:.3f}, n {found.n:,}"
    )
    left, right = scale.at(found.quarter), scale.at(found.three)
    for end, side in ((found.low, left), (found.high, right)):
        sheet.line([(scale.at(end), y), (side, y)], SERIES[0], width=1.4)
        sheet.line([(scale.at(end), y - 4), (scale.at(end), y + 4)], SERIES[0], width=1.4)
    sheet.box(
        (left, y - 9),
        (max(right - left, 0.5), 18),
        FILL,
        edge=SERIES[0],
        gid=f"box-{number}",
        words=words,
    )
    middle = scale.at(found.median)
    sheet.line([(middle, y - 9), (middle, y + 9)], SERIES[0], width=2.4)
    mean = [(scale.at(found.mean), y)]
    sheet.dots(mean, PAPER, "D", size=7, edge=INK, edge_width=1.3, gid=f"mean-{number}")


def _key(sheet: Canvas) -> None:
    sheet.dots([(12, 12)], PAPER, "D", size=7, edge=INK, edge_width=1.3)
    sheet.text((21, 16), "mean")
    sheet.line([(76, 5), (76, 20)], SERIES[0], width=2.4)
    sheet.text((84, 16), "median")


def _caption(known: Definition, boxes: Mapping[str, Box], ranked: Sequence[str]) -> str:
    unit = "user" if known.unit in {"", "query"} else known.unit
    said = [
        f"Each box holds the middle half of a model's values of each {unit};",
        "whiskers reach the last value within 1.5 times its length. Models stand by their mean.",
    ]
    first, last = ranked[0], ranked[-1]
    if first != last:
        said.append(
            f"Lowest mean: {first} ({boxes[first].mean:.3f}); highest: {last} "
            f"({boxes[last].mean:.3f})."
        )
    return " ".join(said)
