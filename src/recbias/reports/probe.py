"""The report of a live audit, or of a series of runs: the verdict, and confidence sequences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.reports import svg
from recbias.reports.charts import Axis, Line, draw_frame, draw_named_lines
from recbias.reports.render import Section, write_sections
from recbias.reports.svg import Interval, Plot
from recbias.reports.wording import join

_PANEL, _TOP, _FOOT = 170.0, 30.0, 34.0
_SIDES = (60.0, 456.0)
_RATIOS = ("price", "popularity")
_ESTIMATE = ("estimate", "ci_low", "ci_high")
_REPLACED = {
    "personas": "when all personas had been asked",
    "budget": "at the budget",
    "in vain": "when nothing had been measured",
}


# ---- in words ----


def _format(value: float, *, is_ratio: bool, signed: bool = False) -> str:
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    sign = "+" if signed else ""
    return f"{100 * value:{sign}.1f}" if is_ratio else f"{value:{sign}.3f}"


def _format_e(e: float) -> str:
    return f"{e:.3g}" if e < 1e4 else f"{e:.0e}".replace("e+0", "e").replace("e+", "e")


def _describe_size(row: Mapping[str, Any]) -> str:
    """Return ``4.1 % (1.2 to 7.3)``: the size of an effect, in its direction."""
    is_ratio, sign = row["effect"] in _RATIOS, -1 if row["estimate"] < 0 else 1
    if is_ratio and sign < 0:  # a ratio below 1: its complement
        ends = sorted(-row[name] for name in ("ci_low", "ci_high"))
    else:
        ends = sorted(sign * row[name] for name in ("ci_low", "ci_high"))
    size, low, high = (
        _format(value, is_ratio=is_ratio) for value in (abs(row["estimate"]), *ends)
    )
    return f"{size}{' %' if is_ratio else ''} ({low} to {high})"


def describe_effect(row: Mapping[str, Any], floor: float | None, reference: str) -> str:
    """Return an effect in words: ``prices shown to 'retired' are higher by 4.1 %``."""
    kind, _, label = row["effect"].partition(" ")
    who, is_more = f"'{row['value']}'", row["estimate"] >= 0
    if kind == "overlap":
        text = (
            f"lists shown to {who} and {reference!r} share {'more' if is_more else 'less'} than "
            f"those of identical requests, whose overlap is {floor or 0:.2f}, by"
        )
    elif kind == "price":
        text = f"prices shown to {who} are {'higher' if is_more else 'lower'} by"
    elif kind == "popularity":
        text = f"items shown to {who} are {'more' if is_more else 'less'} popular by"
    else:
        text = f"the share of {label} shown to {who} is {'higher' if is_more else 'lower'} by"
    return f"{text} {_describe_size(row)}, e = {_format_e(row['e'])}"


def describe_probe(
    effects: Sequence[Mapping[str, Any]],
    summary: Mapping[str, Any],
    references: Mapping[str, str],
) -> list[str]:
    """Return the verdict of an audit, and what it rests on."""
    rows = [row for row in effects if row["kind"] == "effect"]
    floor = summary["noise_floor"]
    said = {
        verdict: [
            describe_effect(row, floor, references[row["attribute"]])
            for row in rows
            if row["verdict"] == verdict and row["n"]
        ]
        for verdict in ("effect", "none", "")
    }
    drifts, unmeasured = _list_drifts(effects), [row for row in rows if not row["n"]]
    unsure = "; but requests that differ in nothing are answered differently" if drifts else ""
    lines = [f"{_answer(rows, said['effect'], unmeasured, summary)}{unsure}."]
    lines += [f"{text}: the endpoint learns from being asked, or is unstable." for text in drifts]
    if said["none"]:
        lines.append(f"Within the margin: {_list_effects(rows, 'none')}.")
    if said[""]:
        measured = [row for row in rows if row["n"]]
        lines.append(f"Undecided {_REPLACED[summary['stopped']]}: {_list_effects(measured, '')}.")
    lines += _describe_lacks(summary)
    if floor is not None:
        lines.append(f"Identical requests share {floor:.0%} of their items (Jaccard).")
    if any(row["kind"] == "placebo" and row["n"] for row in effects) and not drifts:
        lines.append("Requests that differ in nothing are answered alike: no placebo drifts.")
    lines.append(
        f"{summary['personas']:,} personas; each effect is the mean over personas of the "
        "difference of two requests. Intervals and e-values hold at any time, for all "
        f"{summary['family']} effects together at {100 * (1 - summary['alpha']):g} % "
        f"(Bonferroni): an effect is decided at "
        f"e = {_format_e(summary['family'] / summary['alpha'])}."
    )
    if summary["failed"] > 0:
        lines.append(
            f"{summary['failed']:,} of {summary['sent']:,} requests had no usable answer; "
            "personas without all their answers are left out."
        )
    return lines


def _answer(
    rows: Sequence[Mapping[str, Any]],
    found: Sequence[str],
    unmeasured: Sequence[Mapping[str, Any]],
    summary: Mapping[str, Any],
) -> str:
    """Return the verdict: what is decided, what was found and what was not measured."""
    n_decided = sum(row["verdict"] != "" for row in rows)
    start = "decided" if summary["decided"] else "not decided"
    if 0 < n_decided < len(rows):
        start = f"decided in part ({n_decided} of {len(rows)} effects)"
    text = "; ".join(found) or "no effect was found"
    if summary["decided"] and not found:
        text = "no effect is larger than its margin"
    if unmeasured:
        before = "" if len(unmeasured) == len(rows) else f"{text}; "
        text = f"{before}not measured: {_list_effects(unmeasured, '')}"
    return f"{start} after {summary['requests']:,} of {summary['budget']:,} requests: {text}"


def _describe_lacks(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many answers have no items, and how many items no field."""
    n_answers, n_items = summary["requests"], summary["items"]
    counts = [("answers have no items", n_answers, summary["empty"])]
    for name, by_value in summary["lacking"].items():
        counts.append((f"items have no {name.removeprefix('share ')}", n_items, by_value))
    for what, n, by_value in counts:
        some = {value: count for value, count in by_value.items() if count}
        if some:
            told = (f"{count:,} for {value or 'the reference'}" for value, count in some.items())
            yield f"{sum(some.values()):,} of {n:,} {what}: {', '.join(told)}."


def _list_effects(rows: Sequence[Mapping[str, Any]], verdict: str) -> str:
    """Return the effects with a verdict by value: ``overlap and price for 'retired'``."""
    by_value: dict[str, list[str]] = {}
    for row in rows:
        if row["verdict"] == verdict:
            by_value.setdefault(row["value"], []).append(row["effect"])
    return "; ".join(f"{' and '.join(names)} for '{value}'" for value, names in by_value.items())


def _list_drifts(effects: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [row for row in effects if row["kind"] == "placebo" and row["verdict"] == "effect"]
    return [
        "Of two identical requests, the later has a "
        f"{'higher' if row['estimate'] > 0 else 'lower'} {row['effect']} by "
        f"{_describe_size(row)}, e = {_format_e(row['e'])}"
        for row in rows
    ]


# ---- as a page ----

_LABELS = (
    "difference to the reference",
    "until the look",
    "Bands are confidence sequences, which hold at all times together: out of 0 is decided.",
)
_OF_MONITORS = (
    "difference of the means",
    "in time",
    "Bands are 95% intervals of one date each. The e-value, of all dates together, decides.",
)


def draw_sequences(
    looks: pd.DataFrame, x: str, name: str, title: str, labels: tuple[str, str, str] = _LABELS
) -> Plot:
    """Return confidence sequences, a panel for each effect and a band for each value.

    Args:
        looks: The rows of every look: ``x``, ``effect``, ``value``, ``estimate``, ``ci_low`` and
            ``ci_high``.
        x: The column of the horizontal axis.
        name: The name of the file.
        title: The title.
        labels: What a value is, what the horizontal axis counts, and the caption.
    """
    of_value, of_axis, caption = labels
    elements, bottom = [], 0.0
    for effect, rows in looks.dropna(subset=["estimate"]).groupby("effect", sort=False):
        top, bottom = bottom + _TOP, bottom + _TOP + _PANEL
        unit = 100 if effect in _RATIOS else 1
        numbers = rows[[*_ESTIMATE]] * unit
        low, high = _choose_range(numbers, rows["value"])
        axes = svg.Axes(svg.Scale(0, looks[x].max(), *_SIDES), svg.Scale(low, high, bottom, top))
        lines = {}
        for value, own in numbers.clip(low, high).groupby(rows["value"], sort=False):
            intervals = [Interval(*row) for row in own.itertuples(index=False)]
            points = [*zip(rows.loc[own.index, x], intervals, strict=True)]
            lines[str(value) or "all"] = Line(points, title=str(value), band=True)
        note = "relative to the reference, in %" if unit == 100 else of_value
        elements += [
            draw_frame(axes, Axis(x), Axis(str(effect), lines={0.0: "zero"})),
            svg.draw_title((4, top - 12), str(effect), note),
            draw_named_lines(lines, axes),
        ]
        bottom += _FOOT
    elements.append(svg.draw_title((_SIDES[1], bottom + 8), x, of_axis, "end"))
    return Plot(name, title, caption, bottom + 16, join(*elements))


def _choose_range(numbers: pd.DataFrame, values: pd.Series) -> tuple[float, float]:
    """Return the range of the estimates after the first fifth, and of the last intervals."""
    last = numbers.groupby(values).last()
    late = numbers["estimate"].iloc[len(numbers) // 5 :]
    ends = [*last["ci_low"], *last["ci_high"], *late, 0.0]
    return svg.pad_range([end for end in ends if math.isfinite(end)], 0.3)


def render_probe(folder: Path, sentences: Sequence[str], looks: pd.DataFrame) -> None:
    """Write ``report.html``, ``report.md`` and the picture of an audit."""
    shown = looks[looks["kind"] == "effect"].assign(
        value=looks["attribute"] + "=" + looks["value"]
    )
    last = looks.groupby(["kind", "attribute", "value", "effect"], sort=False).last().reset_index()
    keys, numbers = ["attribute", "value", "effect"], ["estimate", "ci_low", "ci_high", "e", "n"]
    plot = draw_sequences(shown, "requests", "confidence-sequences", "Effects over the requests")
    last["attribute"] = last["attribute"].where(last["kind"] == "effect", "(placebo)")
    answer = sentences[0][:1].upper() + sentences[0][1:]
    section = Section("Effects", last[[*keys, *numbers, "verdict"]], plot=plot)
    write_sections(folder, [answer, *sentences[1:]], (), [section])


def render_monitor(folder: Path, sentences: Sequence[str], looks: pd.DataFrame) -> None:
    """Write ``report.html``, ``report.md`` and the picture of a series of runs or exports."""
    gap = np.where(looks["b"] == "", looks["a"], looks["a"] + " less " + looks["b"])
    half = 1.96 * looks["std_error"]
    shown = looks.assign(
        effect=np.where(gap == "", "value", gap),
        value=looks["model"],
        estimate=looks["difference"],
        ci_low=looks["difference"] - half,
        ci_high=looks["difference"] + half,
        run=looks.groupby(["model", "a", "b"]).cumcount() + 1,
    )
    plot = draw_sequences(shown, "run", "gaps-in-time", "Gaps in time", _OF_MONITORS)
    columns = [name for name in looks.columns if (looks[name] != "").any()]
    answer = sentences[0][:1].upper() + sentences[0][1:]
    section = Section("Runs", looks[columns], plot=plot)
    write_sections(folder, [answer, *sentences[1:]], (), [section])
