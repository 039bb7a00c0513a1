"""The page of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from remarks import ABOUT, BETWEEN, INSIDE, INTERVALS, REMARKS
from tally import BAND, LEVEL, TESTS, Key, Line, World, band

OUT = {-1: "**{}** ▼", 0: "{}", 1: "**{}** ▲"}
"""How a share below, inside and above its band is written."""

MODELS = " of models"
COMPARED = (*TESTS, "paired_bootstrap")


def written(lines: Mapping[Key, Line], worlds: Sequence[World], n_seeds: int) -> str:
    """The page: intervals, tests inside a model, and comparisons of models."""
    told = {world.name: world.told for world in worlds}
    kept = {key: each for key, each in lines.items() if not np.isnan(each.held).all()}
    numbers = {
        "seeds": n_seeds,
        "share": f"{BAND:.0%}",
        "intervals": _span(*band(n_seeds, 1 - LEVEL)),
        "tests": _span(*band(n_seeds, LEVEL)),
        "outside": sum(_side(key, each) != 0 for key, each in kept.items()),
        "rows": len(kept),
        "by_chance": round((1 - BAND) * len(kept)),
    }
    made = [ABOUT.format(**numbers), INTERVALS]
    for world in _worlds(kept, "interval"):
        of_world = {key: each for key, each in kept.items() if key[:2] == (world, "interval")}
        made += [_heading(world), f"Planted: {told[world]}.\n", *_intervals(of_world)]
    inside = {key: each for key, each in kept.items() if _is_inside(key)}
    made += [INSIDE]
    for world in _worlds(inside, "test"):
        of_world = {key: each for key, each in inside.items() if key[0] == world}
        made += [_heading(world), *_tests(of_world)]
    made += [BETWEEN]
    between = {key: each for key, each in kept.items() if key[3].endswith(MODELS)}
    for world in _worlds(between, "test"):
        of_world = {key: each for key, each in between.items() if key[0] == world}
        made += [_heading(world), *_comparisons(of_world)]
    return "\n".join([*made, ""])


def _worlds(lines: Mapping[Key, Line], kind: str) -> list[str]:
    return list(dict.fromkeys(key[0] for key in lines if key[1] == kind))


def _is_inside(key: Key) -> bool:
    return key[1] == "test" and not key[3].endswith(MODELS)


def _heading(world: str) -> str:
    return f"\n### {world[0].upper()}{world[1:]}\n"


def _intervals(lines: Mapping[Key, Line]) -> list[str]:
    made = ["| Metric | Figure | Planted | Mean estimate | Held | Remark |"]
    made += ["|---|---|---:|---:|---:|---|"]
    for key, line in lines.items():
        low, high = min(line.truths), max(line.truths)
        alike = math.isclose(low, high, abs_tol=1e-12)
        planted = _number(low) if alike else f"{_number(low)} to {_number(high)}"
        mean = _number(float(np.nanmean(line.values)))
        cells = (key[2], key[3], planted, mean, _share(key, line), _remark(key))
        made.append(_row(cells))
    return made


def _tests(lines: Mapping[Key, Line]) -> list[str]:
    made = ["| Metric | Test | Tests a seed | Significant | Remark |", "|---|---|---:|---:|---|"]
    for key, line in lines.items():
        cells = (key[2], key[3], f"{max(line.truths):.0f}", _share(key, line), _remark(key))
        made.append(_row(cells))
    return made


def _comparisons(lines: Mapping[Key, Line]) -> list[str]:
    tests = [each for each in COMPARED if any(key[3] == each + MODELS for key in lines)]
    made = [_row(("Metric", *tests, "Remark"))]
    made += [_row(("---", *["---:"] * len(tests), "---"))]
    for study in dict.fromkeys(key[2] for key in lines):
        own = {key[3].removesuffix(MODELS): (key, lines[key]) for key in lines if key[2] == study}
        shares = [_share(*own[each]) if each in own else "" for each in tests]
        remarks = dict.fromkeys(_remark(key) for key, _ in own.values())
        made.append(_row((study, *shares, " ".join(filter(None, remarks)))))
    return made


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _share(key: Key, line: Line) -> str:
    held = np.array(line.held)
    known = held[~np.isnan(held)]
    short = f" of {known.size}" if known.size < held.size else ""
    return OUT[_side(key, line)].format(f"{known.mean():.1%}") + short


def _side(key: Key, line: Line) -> int:
    held = np.array(line.held)
    known = held[~np.isnan(held)]
    low, high = band(known.size, 1 - LEVEL if key[1] == "interval" else LEVEL)
    share = float(known.mean())
    return -1 if share < low - 1e-9 else int(share > high + 1e-9)


def _remark(key: Key) -> str:
    world, kind, study, figure = key
    found = [
        each.text
        for each in REMARKS
        if each.kind in kind
        and world.startswith(each.world)
        and (each.study == study if each.exactly else each.study in study)
        and each.figure in figure
    ]
    return " ".join(found)


def _span(low: float, high: float) -> str:
    return f"{low:.1%} to {high:.1%}"


def _number(value: float) -> str:
    return f"{value + 0.0:.4g}"
