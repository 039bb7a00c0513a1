"""Which item attribute values go with which labels, on two labels at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.drawing import svg
from recbias.reports.plots.drawing.canvas import Canvas, x_axis, y_axis
from recbias.reports.plots.drawing.colours import AXIS, INK, PAPER, SERIES
from recbias.reports.plots.drawing.interval import Interval
from recbias.reports.plots.drawing.label_placement import spread
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.papers import plot_rows as rows
from recbias.reports.plots.papers.forest import reach
from recbias.reports.views.definitions import Definition
from recbias.reports.views.run_tables import RunTables

PLUGIN = "association"
MOST_PAIRS = 3
_LEFT, _TOP, _RIGHT, _FOOT = 52.0, 34.0, 468.0, 62.0
POSITIVE = ("female", "white")
"""Label values that take the positive end, as in the paper; else the first one does."""

_OF_THE_LABEL = ("label", "positive", "words", "units")
"""Settings that two metrics may differ in and still share a picture."""


@dataclass(frozen=True)
class Side:
    """One axis: a label against another.

    Args:
        known: The metric.
        plus: The label of the positive end.
        minus: The label of the negative end.
        at: The figure of each model and attribute value.
        neutral: Where there is no association.
    """

    known: Definition
    plus: str
    minus: str
    at: Mapping[tuple[str, str], Interval]
    neutral: float

    @property
    def label(self) -> str:
        """What queries are told apart by."""
        return str(self.known.parameters.get("label", self.plus))


@dataclass(frozen=True)
class Point:
    """An attribute value: its figures on both axes."""

    target: str
    x: Interval
    y: Interval


def associations(run: RunTables, dataset: str, name: rows.Namer) -> Iterator[Picture]:
    """Yield a picture for two metrics of association over the same attribute, and each model.

    Raises:
        MissingEvidence: There are two such metrics and no attribute value has both figures.
    """
    sides = [_side(run, each, dataset) for each in rows.metrics_of(run, PLUGIN)]
    together = _together(run)
    pairs = [each for each in itertools.combinations(sides, 2) if _alike(*each, together)]
    for x, y in pairs[:MOST_PAIRS]:
        models = rows.in_order(run, (model for model, _ in x.at if _points(x, y, model)))
        if not models:
            found = f"no attribute value has both {x.known.title} and {y.known.title}"
            raise MissingEvidence(found)
        for model in models[: rows.MOST_MODELS]:
            file = name(f"association-{x.label}-{y.label}-{model}")
            picture = _picture((x, y), model, left=models[rows.MOST_MODELS :], name=file)
            note = rows.undrawn(run, [x.known, y.known], dataset, model=model)
            yield rows.add_note(picture, note)


def _side(run: RunTables, known: Definition, dataset: str) -> Side:
    found = [row for row in rows.rows_for(run, known, dataset) if row["target"]]
    labels = rows.parts_of(run, known, dataset, "group") or [""]
    labels = sorted(labels, key=lambda each: rows.value_of(each) not in POSITIVE)
    plus = labels[0]
    minus = rows.value_of(labels[1]) if len(labels) == 2 else f"less {rows.value_of(plus)}"
    at = {
        (row["model"], row["target"]): rows.interval(row) for row in found if row["group"] == plus
    }
    neutral = 1.0 if "ratio" in known.parameters.values() else 0.0
    return Side(known, rows.value_of(plus) or known.title, minus, at, neutral)


def _together(run: RunTables) -> Mapping[str, frozenset[str]] | None:
    """Return the labels that queries carry beside each label, None where a run does not say."""
    found: dict[str, frozenset[str]] = {}
    for each in run.manifest.get("queries", []):
        for label, others in (each.get("labels") or {}).items():
            found[label] = found.get(label, frozenset()) | frozenset(others)
    return found or None


def _alike(x: Side, y: Side, together: Mapping[str, frozenset[str]] | None) -> bool:
    """Return whether two metrics are the same but for their labels, of which queries have both."""
    first, second = (
        {key: each for key, each in side.known.parameters.items() if key not in _OF_THE_LABEL}
        for side in (x, y)
    )
    labels = x.label, y.label
    if first != second or labels[0] == labels[1]:
        return False
    return together is None or labels[1] in together.get(labels[0], frozenset())


def _points(x: Side, y: Side, model: str) -> list[Point]:
    return [
        Point(target, figure, y.at[model, target])
        for (name, target), figure in x.at.items()
        if name == model and (model, target) in y.at
    ]


def _picture(sides: tuple[Side, Side], model: str, *, left: Sequence[str], name: str) -> Picture:
    x, y = sides
    points = _points(x, y, model)
    sheet = Canvas(svg.WIDTH, 420.0 + 8 * max(0, min(len(points), 60) - 12))
    bottom = sheet.height - _FOOT
    wide = svg.Scale(*_reach(x, [each.x for each in points]), _LEFT, _RIGHT)
    high = svg.Scale(*_reach(y, [each.y for each in points]), bottom, _TOP)
    y_axis(sheet, high, svg.ticks(high.low, high.high), (_LEFT, _RIGHT))
    x_axis(sheet, wide, svg.ticks(wide.low, wide.high), (_TOP, bottom))
    middle = wide.at(x.neutral), high.at(y.neutral)
    sheet.line([(middle[0], _TOP), (middle[0], bottom)], AXIS, width=1.2)
    sheet.line([(_LEFT, middle[1]), (_RIGHT, middle[1])], AXIS, width=1.2)
    _ends(sheet, x, y)
    lost = _marks(sheet, points, sides, (wide, high))
    attribute = rows.heads([each.target for each in points]) or "attribute values"
    title = f"{attribute.capitalize()} by {x.label} and {y.label}: {model}"
    return sheet.picture(name=name, title=title, caption=_caption(sides, points, left, lost))


def _reach(side: Side, figures: Sequence[Interval]) -> tuple[float, float]:
    values = [each.value for each in figures]
    return reach([side.neutral, *values])


def _ends(sheet: Canvas, x: Side, y: Side) -> None:
    """Write what each end of each axis stands for."""
    foot = sheet.height - 14
    left, right, below, above = (svg.shortened(each, 24) for each in _named(x, y))
    sheet.text((_LEFT, foot), f"← {left}", bold=True)
    sheet.text((_RIGHT, foot), f"{right} →", bold=True, anchor="right")
    sheet.text((8, 16), f"↑ {above}", bold=True)
    sheet.text((8, sheet.height - _FOOT + 32), f"↓ {below}", bold=True)


def _named(x: Side, y: Side) -> tuple[str, str, str, str]:
    """Return what the ends of both axes are called, with the labels where they are alike."""
    if x.plus != y.plus:
        return x.minus, x.plus, y.minus, y.plus
    ends = [(f"{each.label} {each.minus}", f"{each.label} {each.plus}") for each in (x, y)]
    return (*ends[0], *ends[1])


def _marks(
    sheet: Canvas,
    points: Sequence[Point],
    sides: tuple[Side, Side],
    scales: tuple[svg.Scale, svg.Scale],
) -> int:
    """Draw points and labels, and return how many labels found no place."""
    wide, high = scales
    at = [(wide.at(each.x.value), high.at(each.y.value)) for each in points]
    labels = [svg.shortened(rows.value_of(each.target), 22) for each in points]
    frame = (4.0, _TOP - 4, _RIGHT + 8, sheet.height - _FOOT - 2)
    spots = spread(at, labels, frame)
    for place, spot in zip(at, spots, strict=True):
        if spot is not None and spot.far:
            end = min(max(place[0], spot.x), spot.x + spot.width), spot.y - 4
            sheet.line([place, end], AXIS, width=0.8)
    for number, (point, place) in enumerate(zip(points, at, strict=True)):
        sure = _sure(point.x, sides[0]) or _sure(point.y, sides[1])
        sheet.dots(
            [place],
            SERIES[0] if sure else PAPER,
            "o",
            size=7.5,
            edge=PAPER if sure else SERIES[0],
            edge_width=0.9 if sure else 1.5,
            gid=f"point-{number}",
            words=f"{point.target}: {rows.said(point.x)} across, {rows.said(point.y)} upwards",
        )
    for number, (spot, label) in enumerate(zip(spots, labels, strict=True)):
        if spot is not None:
            sheet.text((spot.x, spot.y), label, gid=f"label-{number}", colour=INK)
    return sum(each is None for each in spots)


def _sure(figure: Interval, side: Side) -> bool:
    """Return whether an interval leaves out that there is no association; true without one."""
    if len(figure.ends()) < 3:
        return True
    return not figure.low <= side.neutral <= figure.high


def _caption(
    sides: tuple[Side, Side], points: Sequence[Point], left: Sequence[str], lost: int
) -> str:
    x, y = sides
    _, right, _, above = _named(x, y)
    said = [
        f"An attribute value further right is recommended more under {right},",
        f"one further up more under {above}; at {x.neutral:g} there is no difference.",
    ]
    said.append(_furthest(x, {each.target: each.x for each in points}))
    said.append(_furthest(y, {each.target: each.y for each in points}))
    if not all(_sure(each.x, x) or _sure(each.y, y) for each in points):
        said.append(f"Open points: both 95% intervals hold {x.neutral:g}.")
    if lost:
        said.append(f"{lost} labels found no place; the table has them.")
    if left:
        said.append(f"The table has {rows.listed(left)} too.")
    return " ".join(said)


def _furthest(side: Side, figures: Mapping[str, Interval]) -> str:
    target = max(figures, key=lambda each: abs(figures[each].value - side.neutral))
    words = f"{rows.value_of(target)}, {rows.said(figures[target])}"
    return f"Furthest on {side.known.title}: {words}."
