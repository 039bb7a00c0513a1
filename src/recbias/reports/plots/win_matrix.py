"""Every model against every other on one metric: who is better, and whether it is significant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from recbias.core.measurements.scores import badness
from recbias.reports.markup import Safe, join, one_line, tag
from recbias.reports.plots.drawing import svg
from recbias.reports.views.comparisons import Comparisons, better_side, is_significant
from recbias.reports.views.rounding import decimals, p_value, shown

Row = Mapping[str, Any]

_TOP = 8.0


def matrix(found: Comparisons, *, name: str) -> svg.Figure:
    """Return the figure of the comparisons between models on one metric."""
    names = by_mean(found)
    labels = [svg.shortened(each, 18) for each in names]
    margin = 12 + max(svg.width_of(each) for each in labels)
    size = min(52.0, max(17.0, (svg.WIDTH - margin - 8) / len(names)))
    side = size * len(names)
    pairs = {(row["a"], row["b"]): row for row in found.rows}
    cells = [
        _cell(found, pairs, (a, b), (margin + across * size, _TOP + down * size, size))
        for down, a in enumerate(names)
        for across, b in enumerate(names)
        if a != b
    ]
    tilted = [_below(label, margin + (at + 0.5) * size, side) for at, label in enumerate(labels)]
    rows = [
        svg.text((margin - 8, _TOP + (at + 0.5) * size + 4.5), label, "end")
        for at, label in enumerate(labels)
    ]
    foot = _TOP + side + 20 + 0.68 * max(svg.width_of(each) for each in labels)
    return svg.Figure(
        name=name,
        title=f"{found.title}: every model against every other",
        caption=_caption(found),
        width=max(svg.WIDTH, margin + side + 8),
        height=foot + 26,
        body=join(*cells, *rows, *tilted, _legend(found, foot + 12)),
    )


def by_mean(found: Comparisons) -> list[str]:
    """Return the models, the best mean first; the highest where neither way is better."""
    means = {str(row["a"]): row["mean_a"] for row in found.rows}
    means |= {str(row["b"]): row["mean_b"] for row in found.rows}
    direction = "higher" if found.direction == "none" else found.direction

    def place(model: str) -> tuple[bool, float]:
        bad = badness(means[model], direction)
        return math.isnan(bad), 0.0 if math.isnan(bad) else bad

    return sorted(found.names(), key=place)


def _cell(
    found: Comparisons,
    pairs: Mapping[tuple[str, str], Row],
    pair: tuple[str, str],
    square: tuple[float, float, float],
) -> Safe:
    """Return the square of the row's model against the column's."""
    a, b = pair
    row = pairs.get((a, b)) or pairs.get((b, a))
    if row is None:
        return Safe("")
    side = better_side(row, "higher" if found.direction == "none" else found.direction)
    wins = bool(side) and row[side] == a
    sure = is_significant(row)
    kind = ("better" if wins else "worse") if side else "same"
    x, y, size = square
    drawn = tag(
        "rect",
        tag("title", _words(row, a, b)),
        x=svg.number(x + 1),
        y=svg.number(y + 1),
        width=svg.number(size - 2),
        height=svg.number(size - 2),
        rx=2,
        class_=kind if sure or not side else f"maybe-{kind}",
    )
    if not sure or not side:
        return drawn
    sign = "+" if wins else "\N{MINUS SIGN}"
    return join(drawn, svg.text((x + size / 2, y + size / 2 + 4.5), sign, "sign"))


def _words(row: Row, a: str, b: str) -> str:
    """Return the comparison in words, seen from ``a``."""
    turn = 1 if row["a"] == a else -1
    places = decimals([row["mean_a"], row["mean_b"]])
    means = (row["mean_a"], row["mean_b"])[::turn]
    said = f"{one_line(a)} {shown(means[0], places)}, {one_line(b)} {shown(means[1], places)}"
    verdict = "significant" if is_significant(row) else "not significant"
    ends = sorted(turn * row[each] for each in ("ci_low", "ci_high"))
    interval = ""
    if not any(map(math.isnan, ends)):
        interval = f" (95% interval {shown(ends[0], places)} to {shown(ends[1], places)})"
    difference = shown(turn * row["difference"], places)
    corrected = p_value(row["p_adjusted"])
    return f"{said}: difference {difference}{interval}, corrected p {corrected}, {verdict}"


def _below(label: str, x: float, side: float) -> Safe:
    y = _TOP + side + 14
    turned = f"rotate(-45 {svg.number(x)} {svg.number(y)})"
    return svg.text((x, y), label, "end", transform=turned)


def _legend(found: Comparisons, y: float) -> Safe:
    good, bad = ("higher", "lower") if found.direction == "none" else ("better", "worse")
    entries = [("better", f"{good}"), ("worse", f"{bad}"), ("maybe-better", "not significant")]
    x, drawn = 8.0, []
    for kind, said in entries:
        drawn.append(
            tag(
                "rect",
                x=svg.number(x),
                y=svg.number(y - 10),
                width=12,
                height=12,
                rx=2,
                class_=kind,
            )
        )
        x += 18
        if kind.startswith("maybe"):
            drawn.append(
                tag(
                    "rect",
                    x=svg.number(x - 2),
                    y=svg.number(y - 10),
                    width=12,
                    height=12,
                    rx=2,
                    class_="maybe-worse",
                )
            )
            x += 16
        drawn.append(svg.text((x, y), said, "said"))
        x += svg.width_of(said, 12) + 16
    return join(*drawn)


def _caption(found: Comparisons) -> str:
    way = "higher" if found.direction == "none" else "better"
    return (
        f"The row's model against the column's: + where it is significantly {way}, \N{MINUS SIGN} "
        f"where the other is, pale where the difference is not significant "
        f"({found.method()})."
    )
