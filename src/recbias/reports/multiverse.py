"""The report of a multiverse: the verdict, the specification curve, the share of each choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.reports import svg
from recbias.reports.render import Section, write_sections
from recbias.reports.run import to_records
from recbias.reports.svg import (
    Plot,
    Scale,
    draw_circle,
    draw_line,
    draw_rectangle,
    draw_text,
    draw_title,
)
from recbias.reports.wording import Safe, join, tag

_WIDTH, _LEFT, _RIGHT = 960.0, 250.0, 24.0
_CURVE, _ROW, _GAP = 230.0, 17.0, 14.0
_CLASSES = {"holds": "c0", "reversed": "c1", "not significant": "c7"}
_MOST_ROWS = 200
"""The largest number of universes that the page lists."""


def draw_curve(universes: pd.DataFrame, choices: Sequence[str]) -> Plot:
    """Return the specification curve: estimates in order with intervals, and the options below.

    Each universe is one column; a dot marks the option that it has of each choice.
    """
    drawn = universes.dropna(subset=["estimate"]).sort_values("estimate", kind="stable")
    ends = drawn[["ci_low", "ci_high", "estimate"]].to_numpy().ravel()
    low, high = svg.pad_range([*ends[np.isfinite(ends)], 0.0])
    y, x = Scale(low, high, _CURVE, 34.0), Scale(0, len(drawn), _LEFT, _WIDTH - _RIGHT)
    elements = [draw_title((4, 16), "estimate of the claim", "with 95% intervals, in order")]
    for tick in svg.choose_ticks(low, high):
        kind = "zero" if tick == 0 else "grid"
        elements.append(draw_line((_LEFT, y.at(tick)), (_WIDTH - _RIGHT, y.at(tick)), kind))
        elements.append(draw_text((_LEFT - 8, y.at(tick) + 4), svg.format_tick(tick), "tick end"))
    top, places = _CURVE + 26, dict[tuple[str, str], float]()
    for choice in choices:
        elements.append(draw_title((4, top), svg.shorten(choice, 34)))
        for option in dict.fromkeys(universes[choice]):
            top += _ROW
            places[choice, option] = top - 4
            elements.append(draw_text((16, top), svg.shorten(option, 34), "note"))
        top += _ROW + _GAP
    for at, row in enumerate(to_records(drawn)):
        column = (x.at(at), x.at(at + 1))
        elements.append(tag("g", *_draw_universe(row, column, y, places), class_="universe"))
    caption = (
        "Each column is one setting. Above, its estimate with its 95% interval: blue where the "
        "claim holds, orange where it is reversed, grey where it is not significant. Below, its "
        "options."
    )
    title = "Specification curve"
    return Plot("specification-curve", title, caption, top, join(*elements), width=_WIDTH)


def _draw_universe(
    row: Mapping[str, Any],
    column: tuple[float, float],
    y: Scale,
    places: Mapping[tuple[str, str], float],
) -> Iterator[Safe]:
    colour, middle, width = _CLASSES[row["verdict"]], sum(column) / 2, column[1] - column[0]
    own = {
        (choice, option): top for (choice, option), top in places.items() if row[choice] == option
    }
    options = ", ".join(f"{choice}: {option}" for choice, option in own)
    title = f"{row['estimate']:.4f} ({row['ci_low']:.4f} to {row['ci_high']:.4f}), {options}"
    height = max(places.values()) + 8 - y.end
    yield draw_rectangle((column[0], y.end), (width, height), "column", title, fill_opacity=0)
    if np.isfinite(row["ci_low"]):
        ends = (middle, y.at(row["ci_low"])), (middle, y.at(row["ci_high"]))
        yield draw_line(*ends, f"whisker {colour}")
    yield draw_circle((middle, y.at(row["estimate"])), 2.6, f"dot {colour}", title)
    radius = min(max(width / 2.6, 0.8), 4.0)
    yield from (draw_circle((middle, top), radius, f"dot {colour}") for top in own.values())


def list_sentences(claim: str, summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a report says below its first line."""
    yield f"Claim: {claim}."
    n = summary["universes"] - summary["failed"]
    yield (
        f"The estimate has the claimed direction in {summary['claimed_direction']:,} of {n:,} "
        f"settings; its median is {summary['median_estimate']:.4g}."
    )
    if summary["joint_p"]:
        p = {name: f"{value:.3g}" for name, value in summary["joint_p"].items()}
        yield (
            f"Joint test over {summary['pooled']:,} equivalent settings, with "
            f"{summary['permutations']:,} permutations by unit (one-sided p): mean z "
            f"{p['mean_z']}, median z {p['median_z']}, share significant {p['significant']}."
        )
    turns = dict(summary["turns"] or {})
    if turns:
        old, new = turns.pop("verdict")
        changes = "; ".join(f"{name}: {a} -> {b}" for name, (a, b) in turns.items())
        yield f"The nearest setting that turns the verdict from {old} to {new}: {changes}."
    else:
        yield "No setting turns the verdict of the first one."


_percent = "{:.0%}".format


def write_multiverse(
    folder: Path,
    *,
    claim: str,
    summary: Mapping[str, Any],
    choices: pd.DataFrame,
    universes: pd.DataFrame,
    names: Sequence[str],
) -> None:
    """Write ``report.html``, ``report.md`` and the specification curve into a folder."""
    failed = universes.loc[universes["verdict"] == "failed", "problem"].value_counts()
    intervals = [
        f"{_percent(low)} to {_percent(high)}"
        for low, high in zip(choices["ci_low"], choices["ci_high"], strict=True)
    ]
    of = (
        "estimates, each divided by its own standard deviation"
        if "metric" in names
        else "estimates"
    )
    shares = {
        "choice": choices["choice"],
        "share": choices["share"].map("{:.0%}".format),
    }
    shown = universes[[*names, "estimate", "ci_low", "ci_high", "p", "verdict"]].head(_MOST_ROWS)
    sections = [
        Section("Specification curve", plot=draw_curve(universes, names)),
        Section(
            f"Which choice decides: the variance of the {of}",
            pd.DataFrame({**shares, "95% interval": intervals}),
        ),
        Section("Settings that failed", failed.rename("settings").reset_index()),
        Section(f"Settings: {len(shown)} of {len(universes)}; universes.csv has all", shown),
    ]
    sentences = [summary["verdict"], *list_sentences(claim, summary)]
    write_sections(folder, sentences, (), sections)
