"""Draw the plots of docs/evidence from its tables: ``make pages``. Needs Python only."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

EVIDENCE = Path(__file__).parent / "evidence"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 380, 60, 150, 16, 46
FONT = 'font-family="sans-serif" font-size="13" fill="#1f2937"'
COLOURS = ("#3949ab", "#c2410c", "#15803d", "#7e22ce", "#0e7490", "#a16207", "#be123c", "#475569")
Row = dict[str, str]


def read_table(name: str) -> list[Row]:
    """Return the rows of a table."""
    with (EVIDENCE / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def read_number(cell: str) -> float:
    """Return the number that a cell begins with; NaN if there is none."""
    found = re.match(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?", cell.strip())
    return float(found[0].replace(",", "")) if found else math.nan


def draw(body: Iterable[str], x: str, y: str = "", height: int = HEIGHT) -> str:
    """Return an SVG with the names of its axes."""
    label = f'text-anchor="middle" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{height - 8}"'
    side = (
        f'<text transform="translate(14 {height / 2}) rotate(-90)" text-anchor="middle">{y}</text>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
            *body,
            f"<text {label}>{x}</text>",
            side if y else "",
            "</svg>\n",
        ]
    )


def scale(
    values: Sequence[float], low: float, high: float, *, log: bool = False
) -> Callable[[float], float]:
    """Return the place of a value between two ends."""
    change = math.log10 if log else float
    least, most = change(min(values)), change(max(values))
    return lambda value: low + (change(value) - least) / ((most - least) or 1) * (high - low)


def list_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from low to high."""
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
    first = math.ceil(low / step)
    return [round(step * number, 10) for number in range(first, math.floor(high / step) + 1)]


def draw_axes(xs: Sequence[float], ys: Sequence[float], height: int = HEIGHT) -> list[str]:
    """Return grid lines with numbers."""
    to_x, to_y = make_scales(xs, ys, height)
    end, middle = 'text-anchor="end"', 'text-anchor="middle"'
    across = [
        f'<path d="M{to_x(value):.1f} {TOP}V{height - BOTTOM}" stroke="#e5e7eb"/>'
        f'<text x="{to_x(value):.1f}" y="{height - BOTTOM + 16}" {middle}>{value:g}</text>'
        for value in list_ticks(min(xs), max(xs))
    ]
    upwards = [
        f'<path d="M{LEFT} {to_y(value):.1f}H{WIDTH - RIGHT}" stroke="#e5e7eb"/>'
        f'<text x="{LEFT - 6}" y="{to_y(value) + 4:.1f}" {end}>{value:g}</text>'
        for value in list_ticks(min(ys), max(ys))
    ]
    return [*across, *upwards]


def make_scales(
    xs: Sequence[float], ys: Sequence[float], height: int = HEIGHT
) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Return the places of both axes."""
    return scale(xs, LEFT, WIDTH - RIGHT), scale(ys, height - BOTTOM, TOP)


def draw_points(
    points: Sequence[tuple[str, float, float]],
    x: str,
    y: str,
    *,
    joined: bool = False,
    diagonal: bool = False,
) -> str:
    """Return points with names; those of one name are joined, and named once."""
    points = [point for point in points if not math.isnan(point[1] + point[2])]
    xs, ys = [point[1] for point in points], [point[2] for point in points]
    if diagonal:
        xs = ys = [*xs, *ys]
    to_x, to_y = make_scales(xs, ys)
    body = draw_axes(xs, ys)
    if diagonal:
        ends = f"M{to_x(min(xs)):.1f} {to_y(min(xs)):.1f}L{to_x(max(xs)):.1f} {to_y(max(xs)):.1f}"
        body.append(f'<path d="{ends}" stroke="#9ca3af" stroke-dasharray="4"/>')
    names = [*dict.fromkeys(point[0] for point in points)]
    used: list[tuple[float, float]] = []
    for at, name in enumerate(names):
        colour = COLOURS[at % len(COLOURS)]
        places = [(to_x(px), to_y(py)) for label, px, py in points if label == name]
        if joined:
            path = "L".join(f"{px:.1f} {py:.1f}" for px, py in places)
            body.append(f'<path d="M{path}" fill="none" stroke="{colour}"/>')
        body += [
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="{colour}"/>' for px, py in places
        ]
        px, py = places[-1]
        while any(abs(py - uy) < 13 and abs(px - ux) < 90 for ux, uy in used):
            py += 4
        used.append((px, py))
        body.append(
            f'<text x="{px + 7:.1f}" y="{py + 4:.1f}" fill="{colour}">{escape(name)}</text>'
        )
    return draw(body, x, y)


def draw_bars(bars: Sequence[tuple[str, float]], x: str, *, line: float | None = None) -> str:
    """Return horizontal bars, one a row, with their values."""
    left, row = 300, 19
    height = row * len(bars) + TOP + BOTTOM
    to_x = scale([0, *(value for _, value in bars)], left, WIDTH - 60)
    body = []
    for at, (name, value) in enumerate(bars):
        y = TOP + at * row
        body.append(
            f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{left}" y="{y + 2}" width="{to_x(value) - left:.1f}" '
            f'height="{row - 5}" fill="{COLOURS[0]}"/>'
            f'<text x="{to_x(value) + 5:.1f}" y="{y + 13}">{value:g}</text>'
        )
    if line is not None:
        body.append(f'<path d="M{to_x(line):.1f} {TOP}V{height - BOTTOM}" stroke="{COLOURS[1]}"/>')
    return draw(body, x, height=height)


def draw_histogram(
    values: Sequence[float], band: tuple[float, float], low: float, high: float, x: str
) -> str:
    """Return how many values (in %) fall on each half of a percent, and the band of chance."""
    step = 0.5
    inside = [min(max(value, low), high - step / 2) for value in values if not math.isnan(value)]
    counts = [0] * round((high - low) / step)
    for value in inside:
        counts[int((value - low) / step)] += 1
    xs, ys = [low, high], [0, max(counts)]
    to_x, to_y = make_scales(xs, ys)
    width = to_x(band[1]) - to_x(band[0])
    green = f'height="{HEIGHT - BOTTOM - TOP}" fill="#dcfce7"'
    body = [
        f'<rect x="{to_x(band[0]):.1f}" y="{TOP}" width="{width:.1f}" {green}/>',
        *draw_axes(xs, ys),
    ]
    for at, count in enumerate(counts):
        start, end = to_x(low + at * step), to_x(low + (at + 1) * step)
        body.append(
            f'<rect x="{start + 1:.1f}" y="{to_y(count):.1f}" width="{end - start - 2:.1f}" '
            f'height="{to_y(0) - to_y(count):.1f}" fill="{COLOURS[0]}"/>'
        )
    body.append(f'<text x="{WIDTH - RIGHT + 8}" y="{TOP + 14}">green: 99% of</text>')
    body.append(f'<text x="{WIDTH - RIGHT + 8}" y="{TOP + 30}">calibrated rows</text>')
    return draw(body, x, "rows")


def read_columns(rows: Sequence[Row], *names: str) -> list[float]:
    """Return the numbers of columns, one after the other."""
    return [read_number(row.get(name, "")) for row in rows for name in names]


def draw_calibration() -> dict[str, str]:
    """Return the histograms of the calibration."""
    tests = read_table("calibration-tests-inside-one-model")
    models = read_table("calibration-comparisons-of-two-models")
    power = read_table("calibration-power")
    coverage = read_columns(read_table("calibration-intervals"), "Coverage")
    columns = ("paired_t", "wilcoxon", "sign_flip", "paired_bootstrap")
    significant = "tests that are significant without an effect, %"
    return {
        "calibration-intervals": draw_histogram(
            coverage, (93.1, 96.7), 90, 100, "intervals that contain the true value, %"
        ),
        "calibration-tests-inside-one-model": draw_histogram(
            read_columns(tests, "Significant"), (3.3, 6.9), 0, 10, significant
        ),
        "calibration-comparisons-of-two-models": draw_histogram(
            read_columns(models, *columns), (3.3, 6.9), 0, 10, significant
        ),
        "calibration-power": draw_histogram(
            read_columns(power, "Significant"),
            (78.3, 81.6),
            70,
            100,
            "planted differences that are found, %",
        ),
    }


def draw_runs() -> dict[str, str]:
    """Return the plots of measured runs."""
    jobs = [row for row in read_table("whole-jobs") if row["tool"] != "recbias"]
    versions = [row for row in read_table("re-ranking") if row["version"]]
    measures = {row["measure"]: row for row in read_table("all-measures-ml-1m")}
    models = [name for name in measures["nDCG"] if name not in {"measure", "Random"}]
    growth = [
        row for row in read_table("growth") if row["stage"].startswith(("fit", "load", "split"))
    ]
    sizes = ("1000000", "3200000", "10000000", "32000000")
    return {
        "whole-jobs": draw_bars(
            [
                (
                    f"{row['job'].replace('MostPop, ItemKNN, ', '3 models to ')}, {row['tool']}",
                    read_number(row["ratio"]),
                )
                for row in jobs
            ],
            "CPU seconds of the job over those of recbias (line: equal)",
            line=1,
        ),
        "re-ranking": draw_points(
            [
                (
                    row["version"].partition(",")[0],
                    read_number(row["popularity removed"]),
                    read_number(row["nDCG@10 lost"]),
                )
                for row in versions
            ],
            "popularity bias removed (log_popularity_difference)",
            "nDCG@10 lost",
            joined=True,
        ),
        "all-measures-ml-1m": draw_points(
            [
                (
                    name,
                    read_number(measures["log_popularity_difference"][name]),
                    read_number(measures["nDCG"][name]),
                )
                for name in models
            ],
            "log_popularity_difference@10 (0: as popular as the histories)",
            "nDCG@10",
        ),
        "growth": draw_points(
            [
                (row["stage"], math.log10(float(size)), math.log10(read_number(row[size])))
                for row in growth
                for size in sizes
                if row[size]
            ],
            "ratings, powers of 10",
            "CPU seconds, powers of 10",
            joined=True,
        ),
        "gpu": draw_bars(
            [
                (
                    f"{row['part'].partition(' (')[0]}, {row['way'].replace('ours, ', '')}",
                    read_number(row["ours / way"]),
                )
                for row in read_table("gpu")
                if row["ours / way"] != "1.00"
            ],
            "rate of recbias over that of the other way (line: equal)",
            line=1,
        ),
        "training-epoch": draw_bars(
            [
                (
                    f"{row['model'].partition(' (')[0]}, {tool}",
                    round(read_number(row[tool]) / read_number(row["seconds"]), 2),
                )
                for row in read_table("training-epoch")
                for tool in ("RecBole", "Cornac")
                if row[tool]
            ],
            "CPU seconds of an epoch over those of recbias (line: equal)",
            line=1,
        ),
        "neighbours": draw_bars(
            [
                (f"{row['data'].split(' ')[0]} interactions, {part}", read_number(row[column]))
                for row in read_table("neighbours")
                for part, column in (
                    ("ItemKNN fit", "ratio of fits"),
                    ("lists", "ratio of lists"),
                    ("UserKNN fit", "ratio of UserKNN"),
                )
            ],
            "CPU seconds of implicit over those of recbias (line: equal)",
            line=1,
        ),
    }


def draw_papers() -> dict[str, str]:
    """Return published values against measured ones."""
    plots = {}
    for name, published, measured in (
        ("children-a3-elliot", "published", "measured"),
        ("children-a3", "published", "measured"),
        ("children-a5", "REC-ST published", "REC-ST published: measured"),
    ):
        points = [
            (row["model"], read_number(row[published]), read_number(row[measured]))
            for row in read_table(name)
            if row["model"] not in {"Random", "MostPop"}
        ]
        plots[name] = draw_points(
            points, "published", "measured here (dashed: equal)", diagonal=True
        )
    return plots


if __name__ == "__main__":
    for title, svg in (draw_calibration() | draw_runs() | draw_papers()).items():
        (EVIDENCE / "plots" / f"{title}.svg").write_text(svg, encoding="utf-8")
