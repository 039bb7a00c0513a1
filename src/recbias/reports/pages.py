"""The reports of explanations, multiverses, live audits and series of runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.reports import charts, svg
from recbias.reports.render import Section, replace_undefined, write_sections
from recbias.reports.run import to_records
from recbias.reports.svg import Plot, Scale
from recbias.reports.wording import Safe, join, join_names, tag

# ---- what a gap comes from ----

TITLES: Mapping[str, tuple[str, str]] = {
    "parts": (
        "What the groups differ in",
        "The part of the gap that each property accounts for: an association, not an effect.",
    ),
    "properties": ("Means of the properties", ""),
    "interventions": (
        "What happens when it is changed",
        "The gap before, the change by each intervention, and the gap after all of them.",
    ),
    "worst": ("Who is worst off", "Groups found in one half of the users, tested in the other."),
    "examples": ("Users of the worst group", ""),
    "changes": ("What would halve it", "The models of the run, the smallest gap first."),
}
"""The title of each table of an explanation, and what it shows."""


def draw_explanation(
    gap: Mapping[str, Any], parts: pd.DataFrame, interventions: pd.DataFrame, changes: pd.DataFrame
) -> dict[str, Plot]:
    """Return the plots of an explanation by the table that each shows."""
    plots = {}
    if "part" in parts and parts["part"].notna().any():
        plots["parts"] = _draw_parts(parts)
    if "effect" in interventions and interventions["effect"].notna().any():
        plots["interventions"] = _draw_interventions(interventions)
    if len(changes) > 1:
        plots["changes"] = _draw_frontier(gap, changes)
    return plots


def _mark(row: Mapping[str, Any], column: str, name: str, series: int = 0) -> charts.Mark:
    interval = charts.Interval.of_row(row, column)
    return charts.Mark(interval, series, f"{name}: {interval.describe(4)}")


def _draw_parts(parts: pd.DataFrame) -> Plot:
    """Return the part of each property by both methods, the largest first, and the rest."""
    methods = parts["method"].unique().tolist()
    marks: dict[str, list[charts.Mark]] = {}
    for row in to_records(parts):
        name, method = row["property"], row["method"]
        mark = _mark(row, "part", f"{name}, {method}", methods.index(method))
        marks.setdefault(name, []).append(mark)
    *known, rest = (charts.Row(name, tuple(own)) for name, own in marks.items())
    known.sort(key=lambda row: -abs(row.marks[0].interval.value))
    return charts.draw_rows(
        [*known, rest],
        charts.Axis("part of the gap", lines={0.0: "neutral"}),
        series=methods,
        line_label="nothing",
        name="parts",
        title="Parts of the gap",
        caption="Lines are 95% intervals. The parts of a method add up to the gap.",
    )


def _draw_interventions(interventions: pd.DataFrame) -> Plot:
    before, *changes, after = (
        charts.Row(row["change"], (_mark(row, "effect", row["change"]),))
        for row in to_records(interventions)
    )
    return charts.draw_rows(
        [charts.Row("the gap"), before, after, charts.Row("what each adds to it"), *changes],
        charts.Axis("gap, and its change", lines={0.0: "neutral"}),
        name="interventions",
        title="The gap when training is changed",
        caption="Lines are 95% intervals. The changes add up to the gap after less that before.",
    )


def _draw_frontier(gap: Mapping[str, Any], changes: pd.DataFrame) -> Plot:
    """Return the gap against the mean of each model; those that no other beats are filled."""
    dots = [
        charts.Dot(
            charts.Interval(row["mean"]),
            charts.Interval(row["gap"]),
            label=row["model"],
            title=f"{row['model']}: gap {row['gap']:.4f}, mean {row['mean']:.4f}",
            series=int(row["model"] == gap["model"]),
            kind="" if row["frontier"] else "open",
        )
        for row in to_records(changes)
    ]
    half = {gap["difference"] / 2: "neutral", 0.0: "zero"}
    return charts.draw_points(
        dots,
        charts.Axis(gap["metric"], "mean"),
        charts.Axis(f"gap by {gap['by']}", "without sign", lines=half),
        340.0,
        name="frontier",
        title="Gap against the mean",
        caption=(
            f"Each point is a model of the run, {gap['model']} in orange. No other beats the "
            "filled ones in both. Dashed: half the gap."
        ),
    )


def write_explanation(
    folder: Path,
    *,
    gap: Mapping[str, Any],
    sentences: Sequence[str],
    notes: Sequence[str],
    tables: Mapping[str, pd.DataFrame],
) -> None:
    """Write ``report.html``, ``report.md``, ``explanation.json`` and the plots into a folder.

    Args:
        folder: It is made where it does not exist.
        gap: The gap, as in ``Explanation``.
        sentences: What the report says; the first one is its title.
        notes: What was left out.
        tables: The tables by the keys of ``TITLES``.
    """
    plots = draw_explanation(gap, tables["parts"], tables["interventions"], tables["changes"])
    sections = [
        Section(title, tables[name], note, plots.get(name))
        for name, (title, note) in TITLES.items()
    ]
    write_sections(folder, sentences, notes, sections)
    records = {name: to_records(table) for name, table in tables.items()}
    document = {"sentences": [*sentences], "gap": dict(gap), **records, "notes": [*notes]}
    text = json.dumps(replace_undefined(document), indent=1, ensure_ascii=False)
    (folder / "explanation.json").write_text(text + "\n", encoding="utf-8")


# ---- how far a claim holds ----

_WIDTH, _LEFT, _RIGHT = 960.0, 250.0, 936.0
_CURVE, _ROW, _GAP = 230.0, 17.0, 14.0
_CLASSES = {"holds": "c0", "reversed": "c1", "not significant": "c7"}
_MOST_ROWS = 200
"""The largest number of universes that the page lists."""


def _draw_curve(universes: pd.DataFrame, choices: Sequence[str]) -> Plot:
    """Return the specification curve: estimates in order with intervals, and the options below.

    Each universe is one column; a dot marks the option that it has of each choice.
    """
    drawn = universes.dropna(subset=["estimate"]).sort_values("estimate", kind="stable")
    ends = drawn[["ci_low", "ci_high", "estimate"]].to_numpy().ravel()
    y = Scale(*svg.pad_range([*ends[np.isfinite(ends)], 0.0]), _CURVE, 34.0)
    x = Scale(0, len(drawn), _LEFT, _RIGHT)
    elements = [svg.draw_title((4, 16), "estimate of the claim", "with 95% intervals, in order")]
    for tick in y.choose_ticks():
        class_, at = "zero" if tick == 0 else "grid", y.at(tick)
        elements.append(svg.draw_line((_LEFT, at), (_RIGHT, at), class_))
        elements.append(svg.draw_text((_LEFT - 8, at + 4), svg.format_tick(tick), "tick end"))
    top, places = _CURVE + 26, dict[tuple[str, str], float]()
    for choice in choices:
        elements.append(svg.draw_title((4, top), svg.shorten(choice, 34)))
        for option in universes[choice].unique():
            top += _ROW
            places[choice, option] = top - 4
            elements.append(svg.draw_text((16, top), svg.shorten(option, 34), "note"))
        top += _ROW + _GAP
    for at, row in enumerate(to_records(drawn)):
        universe = _draw_universe(row, x.at(at), x.at(at + 1), y, places)
        elements.append(tag("g", *universe, class_="universe"))
    caption = (
        "Each column is one setting. Above, its estimate with its 95% interval: blue where the "
        "claim holds, orange where it is reversed, grey where it is not significant. Below, its "
        "options."
    )
    title = "Specification curve"
    return Plot("specification-curve", title, caption, top, join(*elements), width=_WIDTH)


def _draw_universe(
    row: Mapping[str, Any],
    left: float,
    right: float,
    y: Scale,
    places: Mapping[tuple[str, str], float],
) -> Iterator[Safe]:
    colour, middle, width = _CLASSES[row["verdict"]], (left + right) / 2, right - left
    own = {pair: top for pair, top in places.items() if row[pair[0]] == pair[1]}
    options = ", ".join(f"{choice}: {option}" for choice, option in own)
    title = f"{row['estimate']:.4f} ({row['ci_low']:.4f} to {row['ci_high']:.4f}), {options}"
    height = max(places.values()) + 8 - y.end
    size = {"x": left, "y": y.end, "width": width, "height": height, "fill_opacity": 0.0}
    yield svg.draw("rect", "column", title, **size)
    if np.isfinite(row["ci_low"]):
        ends = (middle, y.at(row["ci_low"])), (middle, y.at(row["ci_high"]))
        yield svg.draw_line(*ends, f"whisker {colour}")
    class_, radius = f"dot {colour}", min(max(width / 2.6, 0.8), 4.0)
    yield svg.draw_marker((middle, y.at(row["estimate"])), 0, class_, radius=2.6, title=title)
    yield from (svg.draw_marker((middle, top), 0, class_, radius=radius) for top in own.values())


def describe_multiverse(claim: str, summary: Mapping[str, Any]) -> Iterator[str]:
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
    of = ", each divided by its own standard deviation" * ("metric" in names)
    ends = zip(choices["ci_low"], choices["ci_high"], strict=True)
    shares = {
        "choice": choices["choice"],
        "share": choices["share"].map("{:.0%}".format),
        "95% interval": [f"{low:.0%} to {high:.0%}" for low, high in ends],
    }
    shown = universes[[*names, "estimate", "ci_low", "ci_high", "p", "verdict"]].head(_MOST_ROWS)
    sections = [
        Section("Specification curve", plot=_draw_curve(universes, names)),
        Section(f"Which choice decides: the variance of the estimates{of}", pd.DataFrame(shares)),
        Section("Settings that failed", failed.rename("settings").reset_index()),
        Section(f"Settings: {len(shown)} of {len(universes)}; universes.csv has all", shown),
    ]
    write_sections(
        folder, [summary["verdict"], *describe_multiverse(claim, summary)], (), sections
    )


# ---- live audits, in words ----

_RATIOS = ("price", "popularity")
_EFFECTS = {
    "overlap": (
        "lists shown to {who} and {reference!r} share {more} than those of identical requests, "
        "whose overlap is {floor:.2f}, by"
    ),
    "price": "prices shown to {who} are {higher} by",
    "popularity": "items shown to {who} are {more} popular by",
    "share": "the share of {label} shown to {who} is {higher} by",
}
_STOPPED = {
    "personas": "when all personas had been asked",
    "budget": "at the budget",
    "in vain": "when nothing had been measured",
}


def _format_e(e: float) -> str:
    return f"{e:.3g}" if e < 1e3 else f"{e:.0e}".replace("e+0", "e").replace("e+", "e")


def _describe_size(row: Mapping[str, Any]) -> str:
    """Return ``4.1 % (1.2 to 7.3), e = 240``: the size of an effect, in its direction."""
    sign = -1 if row["estimate"] < 0 else 1
    numbers = [abs(row["estimate"]), *sorted(sign * row[end] for end in ("ci_low", "ci_high"))]
    unit = " %" if row["effect"] in _RATIOS else ""
    size, low, high = (
        ("∞" if value > 0 else "-∞")
        if not math.isfinite(value)
        else f"{100 * value:.1f}"
        if unit
        else f"{value:.3f}"
        for value in numbers
    )
    return f"{size}{unit} ({low} to {high}), e = {_format_e(row['e'])}"


def describe_effect(row: Mapping[str, Any], floor: float | None, reference: str) -> str:
    """Return an effect in words: ``prices shown to 'retired' are higher by 4.1 %``."""
    kind, _, label = row["effect"].partition(" ")
    is_more = row["estimate"] >= 0
    text = _EFFECTS[kind].format(
        who=f"'{row['value']}'",
        reference=reference,
        label=label,
        floor=floor or 0,
        more="more" if is_more else "less",
        higher="higher" if is_more else "lower",
    )
    return f"{text} {_describe_size(row)}"


def describe_probe(
    effects: Sequence[Mapping[str, Any]],
    summary: Mapping[str, Any],
    references: Mapping[str, str],
) -> list[str]:
    """Return the verdict of an audit, and what it rests on."""
    rows = [row for row in effects if row["kind"] == "effect"]
    placebos = [row for row in effects if row["kind"] == "placebo" and row["n"]]
    floor, measured = summary["noise_floor"], [row for row in rows if row["n"]]
    drifts = [
        f"Of two identical requests, the later has a "
        f"{'higher' if row['estimate'] > 0 else 'lower'} {row['effect']} by {_describe_size(row)}"
        for row in placebos
        if row["verdict"] == "effect"
    ]
    found = [
        describe_effect(row, floor, references[row["attribute"]])
        for row in measured
        if row["verdict"] == "effect"
    ]
    within, undecided = (
        [row for row in measured if row["verdict"] == verdict] for verdict in ("none", "")
    )
    unsure = "; but requests that differ in nothing are answered differently" * bool(drifts)
    lines = [f"{_answer(rows, found, summary)}{unsure}."]
    lines += [f"{text}: the endpoint learns from being asked, or is unstable." for text in drifts]
    if within:
        lines.append(f"Within the margin: {_list_effects(within)}.")
    if undecided:
        lines.append(f"Undecided {_STOPPED[summary['stopped']]}: {_list_effects(undecided)}.")
    lines += _describe_lacks(summary)
    if floor is not None:
        lines.append(f"Identical requests share {floor:.0%} of their items (Jaccard).")
    if placebos and not drifts:
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
    rows: Sequence[Mapping[str, Any]], found: Sequence[str], summary: Mapping[str, Any]
) -> str:
    """Return the verdict: what is decided, what was found and what was not measured."""
    n_decided = sum(row["verdict"] != "" for row in rows)
    start = "decided" if summary["decided"] else "not decided"
    if 0 < n_decided < len(rows):
        start = f"decided in part ({n_decided} of {len(rows)} effects)"
    text = "; ".join(found) or "no effect was found"
    if summary["decided"] and not found:
        text = "no effect is larger than its margin"
    if unmeasured := [row for row in rows if not row["n"]]:
        before = "" if len(unmeasured) == len(rows) else f"{text}; "
        text = f"{before}not measured: {_list_effects(unmeasured)}"
    return f"{start} after {summary['requests']:,} of {summary['budget']:,} requests: {text}"


def _describe_lacks(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many answers have no items, and how many items no field."""
    counts = [("answers have no items", summary["requests"], summary["empty"])]
    for name, by_value in summary["lacking"].items():
        text = f"items have no {name.removeprefix('share ')}"
        counts.append((text, summary["items"], by_value))
    for what, n, by_value in counts:
        some = {value: count for value, count in by_value.items() if count}
        if some:
            told = (f"{count:,} for {value or 'the reference'}" for value, count in some.items())
            yield f"{sum(some.values()):,} of {n:,} {what}: {', '.join(told)}."


def _list_effects(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return effects by value: ``overlap and price for 'retired'``."""
    by_value: dict[str, list[str]] = {}
    for row in rows:
        by_value.setdefault(row["value"], []).append(row["effect"])
    return "; ".join(f"{join_names(names)} for '{value}'" for value, names in by_value.items())


# ---- live audits, as a page ----

_PANEL = 240.0
_OF_PROBES = (
    "difference to the reference",
    "until the look",
    "Bands are confidence sequences, which hold at all times together: out of 0 is decided.",
)
_OF_MONITORS = (
    "difference of the means",
    "in time",
    "Bands are 95% intervals of one date each. The e-value, of all dates together, decides.",
)


def _draw_sequences(
    looks: pd.DataFrame, x: str, name: str, title: str, labels: tuple[str, str, str]
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
    panels = []
    for effect, rows in looks.dropna(subset=["estimate"]).groupby("effect", sort=False):
        is_ratio = effect in _RATIOS
        numbers = rows[["estimate", "ci_low", "ci_high"]] * (100 if is_ratio else 1)
        span = _choose_range(numbers, rows["value"])
        lines = {}
        for value, own in numbers.clip(*span).groupby(rows["value"], sort=False):
            intervals = [charts.Interval(*row) for row in own.itertuples(index=False)]
            points = [*zip(rows.loc[own.index, x], intervals, strict=True)]
            lines[str(value) or "all"] = charts.Line(points, title=str(value), band=True)
        note = "relative to the reference, in %" if is_ratio else of_value
        across = charts.Axis(x, of_axis, span=(0, looks[x].max()))
        up = charts.Axis(str(effect), note, lines={0.0: "zero"}, span=span)
        panels.append(charts.draw_lines(lines, across, up, _PANEL, name="", title="", caption=""))
    return charts.stack_plots(panels, name=name, title=title, caption=caption)


def _choose_range(numbers: pd.DataFrame, values: pd.Series) -> tuple[float, float]:
    """Return the range of the estimates after the first fifth, and of the last intervals."""
    last = numbers.groupby(values).last()
    late = numbers["estimate"].iloc[len(numbers) // 5 :]
    ends = [*last["ci_low"], *last["ci_high"], *late, 0.0]
    return svg.pad_range([end for end in ends if math.isfinite(end)], 0.3)


def render_probe(folder: Path, sentences: Sequence[str], looks: pd.DataFrame) -> None:
    """Write ``report.html``, ``report.md`` and the picture of an audit."""
    keys, numbers = ["attribute", "value", "effect"], ["estimate", "ci_low", "ci_high", "e", "n"]
    shown = looks[looks["kind"] == "effect"]
    shown = shown.assign(value=shown["attribute"] + "=" + shown["value"])
    title = "Effects over the requests"
    plot = _draw_sequences(shown, "requests", "confidence-sequences", title, _OF_PROBES)
    last = looks.groupby(["kind", *keys], sort=False).last().reset_index()
    last["attribute"] = last["attribute"].where(last["kind"] == "effect", "(placebo)")
    _write_audit(folder, sentences, "Effects", last[[*keys, *numbers, "verdict"]], plot)


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
    plot = _draw_sequences(shown, "run", "gaps-in-time", "Gaps in time", _OF_MONITORS)
    columns = [name for name in looks.columns if (looks[name] != "").any()]
    _write_audit(folder, sentences, "Runs", looks[columns], plot)


def _write_audit(
    folder: Path, sentences: Sequence[str], title: str, table: pd.DataFrame, plot: Plot
) -> None:
    answer = sentences[0][:1].upper() + sentences[0][1:]
    write_sections(folder, [answer, *sentences[1:]], (), [Section(title, table, plot=plot)])
