"""How stereotyped the recommendation lists of each user are: a box plot of the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.errors import MissingEvidence
from recbias.reports.markup import Safe, join
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.axes import MARGIN, Scale, draw_row_axis
from recbias.reports.plots.drawing.markers import DIAMOND, draw_marker
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables

PLUGIN = "REC-ST"
_ROW, _TOP, _LONGEST = 30.0, 34.0, 22


@dataclass(frozen=True)
class Box:
    """Quartiles, ends of the whiskers, mean and number of values."""

    low: float
    q1: float
    median: float
    q3: float
    high: float
    mean: float
    n: int


def compute_box(values: FloatArray) -> Box:
    """Return the box of values; whiskers reach the last value within 1.5 interquartile ranges.

    >>> compute_box(np.array([0.0, 1.0, 2.0, 3.0, 14.0]))
    Box(low=0.0, q1=1.0, median=2.0, q3=3.0, high=3.0, mean=4.0, n=5)
    """
    q1, median, q3 = (float(value) for value in np.quantile(values, (0.25, 0.5, 0.75)))
    reach = 1.5 * (q3 - q1)
    inside = values[(values >= q1 - reach) & (values <= q3 + reach)]
    low, high = float(inside.min()), float(inside.max())
    return Box(low, q1, median, q3, high, float(values.mean()), int(values.size))


def draw_stereotypes(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[svg.Plot]:
    """Yield a plot for each metric of stereotype exposure, query group and target.

    Raises:
        MissingEvidence: A metric is defined for no user.
    """
    for metric in rows.find_metrics(run, PLUGIN):
        if metric.parameters.get("gap") is not None:
            continue
        units = rows.read_units(run, metric, dataset)
        if rows.split_drawable(units, "value")[0].empty:
            raise MissingEvidence(f"{metric.heading} has no value of a user")
        for (group, target), part in units.groupby(["group", "target"], sort=False):
            frame, note = rows.split_drawable(part, "value")
            boxes = {
                str(model): compute_box(values.to_numpy(np.float64))
                for model, values in frame.groupby("model", sort=False)["value"]
            }
            if boxes:
                suffix = ", ".join(filter(None, [str(group), str(target)]))
                name = name_file(f"exposure-{metric.title}-{suffix}")
                yield rows.add_note(_draw_plot(metric, boxes, suffix, name), note)


def _draw_plot(metric: Definition, boxes: Mapping[str, Box], suffix: str, name: str) -> svg.Plot:
    ranked = sorted(boxes, key=lambda model: (boxes[model].mean, model))
    height = _TOP + _ROW * len(ranked) + 64
    scale = _make_scale(boxes)
    note = rows.describe_direction(metric)
    elements = [draw_row_axis(scale, _TOP, metric.heading, note, height), _draw_key()]
    labels = svg.shorten_all(ranked, _LONGEST)
    for position, (model, label) in enumerate(zip(ranked, labels, strict=True)):
        y = _TOP + (position + 0.5) * _ROW
        elements += [
            svg.draw_text((scale.start - 10, y + 4.5), label, "end"),
            svg.draw_text((svg.WIDTH - MARGIN, y + 4.5), _format_count(boxes[model]), "tick end"),
            _draw_box(boxes[model], model, scale, y),
        ]
    return svg.Plot(
        name=name,
        title=f"{metric.heading} of each user's list" + (f", {suffix}" if suffix else ""),
        caption=_write_caption(metric, boxes, ranked),
        height=height,
        body=join(*elements),
    )


def _make_scale(boxes: Mapping[str, Box]) -> Scale:
    low = min(box.low for box in boxes.values())
    high = max(max(box.high, box.mean) for box in boxes.values())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    labels = max(map(svg.estimate_width, svg.shorten_all(boxes, _LONGEST)))
    counts = max(svg.estimate_width(_format_count(box)) for box in boxes.values())
    return Scale(low, high, 18 + labels, svg.WIDTH - MARGIN - counts - 14)


def _format_count(box: Box) -> str:
    return f"n {box.n:,}"


def _draw_box(box: Box, model: str, scale: Scale, y: float) -> Safe:
    title = (
        f"{model}: mean {box.mean:.3f}, median {box.median:.3f}, half of the users between "
        f"{box.q1:.3f} and {box.q3:.3f}, n {box.n:,}"
    )
    q1, median, q3 = (scale.at(value) for value in (box.q1, box.median, box.q3))
    elements = []
    for end, quartile in ((scale.at(box.low), q1), (scale.at(box.high), q3)):
        elements += [
            svg.draw_line((end, y), (quartile, y), "interval c0"),
            svg.draw_line((end, y - 4), (end, y + 4), "interval c0"),
        ]
    return join(
        *elements,
        svg.draw_rectangle((q1, y - 9), (max(q3 - q1, 0.5), 18), "box", title),
        svg.draw_line((median, y - 9), (median, y + 9), "median"),
        draw_marker((scale.at(box.mean), y), DIAMOND, "mean", radius=3.8),
    )


def _draw_key() -> Safe:
    return join(
        draw_marker((12, 12), DIAMOND, "mean", radius=3.8),
        svg.draw_text((21, 16), "mean"),
        svg.draw_line((76, 5), (76, 20), "median"),
        svg.draw_text((84, 16), "median"),
    )


def _write_caption(metric: Definition, boxes: Mapping[str, Box], ranked: Sequence[str]) -> str:
    unit = "user" if metric.unit in {"", "query"} else metric.unit
    sentences = [
        f"Each box holds the middle half of a model's values of each {unit};",
        "whiskers reach the last value within 1.5 times its length. Models are sorted by mean.",
    ]
    first, last = ranked[0], ranked[-1]
    if first != last:
        sentences.append(
            f"Lowest mean: {first} ({boxes[first].mean:.3f}); highest: {last} "
            f"({boxes[last].mean:.3f})."
        )
    return " ".join(sentences)
