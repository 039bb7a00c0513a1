"""Values over an assumption, and the value of it at which a conclusion turns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from recbias.reports import views
from recbias.reports.run import RunTables
from recbias.reports.views import Definition, Row
from recbias.reports.wording import format_value, to_line

_METRICS = ("position_bias", "examination_sensitivity", "propensity_sensitivity")
_TURNS = "turns"


@dataclass(frozen=True)
class Curve:
    """The values of a metric of one model over an assumption, and where its sign turns.

    ``axis`` is what is assumed; the points are its values with the rows of the estimates.
    """

    metric: Definition
    model: str
    axis: str
    points: tuple[tuple[float, Row], ...]
    turn: float

    def describe(self) -> str:
        """Return a sentence that says where the sign turns; blank for the bias by position."""
        if self.axis == "position":
            return ""
        first, sides = self.points[0][1], self._name_sides()
        if not (first["ci_low"] > 0 or first["ci_high"] < 0):
            return f"{sides} is not shown to differ from 0."
        sign = "positive" if first["value"] > 0 else "negative"
        what, end = "the exponent of the position bias is", 5
        if self.axis == "factor":
            what, end = "propensities are wrong by a factor of", 100
        if math.isnan(self.turn):
            return f"{sides} stays {sign} even if {what} {end}."
        return f"{sides} is {sign} unless {what} {format_value(self.turn, 2)} or more."

    def _name_sides(self) -> str:
        groups, model = self.metric.parameters.get("groups"), to_line(self.model)
        if not groups:
            return f"The gap of {model} to what was shown"
        count = self.metric.parameters.get("count")
        of = f" in {count}" if count else ""
        return f"The gap of {to_line(groups['a'])} to {to_line(groups['b'])}{of} with {model}"


def collect_curves(run: RunTables, dataset: str) -> Iterator[Curve]:
    """Yield the curves of a dataset that have a value."""
    for metric in views.collect_definitions(run).values():
        rows = views.list_headline(run).get((metric.title, dataset), ())
        if metric.name not in _METRICS:
            continue
        curves: dict[str, list[Row]] = {}
        for row in rows:
            if row["target"] and not math.isnan(row["value"]):
                place = ", ".join(filter(None, [row["model"], row["group"]]))
                curves.setdefault(place, []).append(row)
        for model, own in curves.items():
            targets = [str(row["target"]).partition("=") for row in own]
            points = tuple(
                (float(x or "nan"), row)
                for (axis, _, x), row in zip(targets, own, strict=True)
                if axis != _TURNS
            )
            turn = next((row["value"] for row in own if row["target"] == _TURNS), math.nan)
            if points:
                axis = next(axis for axis, *_ in targets if axis != _TURNS)
                yield Curve(metric, model, axis, points, turn)
