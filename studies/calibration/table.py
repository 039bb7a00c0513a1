"""The page of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from remarks import ABOUT, BETWEEN, DETECTED, INSIDE, INTERVALS, REMARKS
from tally import BAND, LEVEL, TESTS, Key, Line, World, compute_band

OUT = {-1: "**{}** ▼", 0: "{}", 1: "**{}** ▲"}
"""How a share below, inside and above its band is written."""

MODELS = " of models"
COMPARED = (*TESTS, "paired_bootstrap")


def write_page(lines: Mapping[Key, Line], worlds: Sequence[World], n_seeds: int) -> str:
    """The page: intervals, tests inside a model, and comparisons of models."""
    truths = {world.name: world.truth_source for world in worlds}
    detects = {
        (world.name, test): null for world in worlds for test, null in world.detects.items()
    }
    detected = {key: line for key, line in lines.items() if (key[0], key[3]) in detects}
    lines = {key: line for key, line in lines.items() if key not in detected}
    defined = {key: line for key, line in lines.items() if not np.isnan(line.hits).all()}
    sides = [(-1) ** (key[1] == "test") * _find_side(key, line) for key, line in defined.items()]
    numbers = {
        "seeds": n_seeds,
        "share": f"{BAND:.0%}",
        "intervals": _format_span(*compute_band(n_seeds, 1 - LEVEL)),
        "tests": _format_span(*compute_band(n_seeds, LEVEL)),
        "outside": len(sides) - sides.count(0),
        "liberal": sides.count(-1),
        "cautious": sides.count(1),
        "rows": len(defined),
        "by_chance": round((1 - BAND) * len(defined)),
    }
    sections = [ABOUT.format(**numbers), INTERVALS]
    for world in _list_worlds(defined, "interval"):
        of_world = {key: line for key, line in defined.items() if key[:2] == (world, "interval")}
        sections += [
            _format_heading(world),
            f"True value: {truths[world]}.\n",
            *_tabulate_intervals(of_world),
        ]
    inside = {key: line for key, line in defined.items() if _is_inside(key)}
    sections += [INSIDE]
    for world in _list_worlds(inside, "test"):
        of_world = {key: line for key, line in inside.items() if key[0] == world}
        sections += [_format_heading(world), *_tabulate_tests(of_world)]
    sections += [DETECTED]
    for world in _list_worlds(detected, "test"):
        of_world = {key: line for key, line in detected.items() if key[0] == world}
        nulls = [detects[world, key[3]] for key in of_world]
        sections += [_format_heading(world), *_tabulate_detected(of_world, nulls)]
    sections += [BETWEEN]
    between = {key: line for key, line in defined.items() if key[3].endswith(MODELS)}
    for world in _list_worlds(between, "test"):
        of_world = {key: line for key, line in between.items() if key[0] == world}
        sections += [_format_heading(world), *_tabulate_comparisons(of_world)]
    return "\n".join([*sections, ""])


def _list_worlds(lines: Mapping[Key, Line], kind: str) -> list[str]:
    return list(dict.fromkeys(key[0] for key in lines if key[1] == kind))


def _is_inside(key: Key) -> bool:
    return key[1] == "test" and not key[3].endswith(MODELS)


def _format_heading(world: str) -> str:
    return f"\n### {world[0].upper()}{world[1:]}\n"


def _tabulate_intervals(lines: Mapping[Key, Line]) -> list[str]:
    rows = ["| Metric | Estimate | True value | Mean estimate | Coverage | Remark |"]
    rows += ["|---|---|---:|---:|---:|---|"]
    for key, line in lines.items():
        low, high = min(line.truths), max(line.truths)
        alike = math.isclose(low, high, abs_tol=1e-12)
        planted = (
            _format_number(low) if alike else f"{_format_number(low)} to {_format_number(high)}"
        )
        mean = _format_number(float(np.nanmean(line.values)))
        cells = (key[2], key[3], planted, mean, _format_share(key, line), _find_remark(key, line))
        rows.append(_format_row(cells))
    return rows


def _tabulate_tests(lines: Mapping[Key, Line]) -> list[str]:
    rows = [
        "| Metric | Test | Tests per sample | Significant | Remark |",
        "|---|---|---:|---:|---|",
    ]
    for key, line in lines.items():
        cells = (
            key[2],
            key[3],
            f"{max(line.truths):.0f}",
            _format_share(key, line),
            _find_remark(key, line),
        )
        rows.append(_format_row(cells))
    return rows


def _tabulate_detected(lines: Mapping[Key, Line], nulls: Sequence[str]) -> list[str]:
    rows = ["| Metric | Test | Null hypothesis | Significant | Remark |", "|---|---|---|---:|---|"]
    for (key, line), null in zip(lines.items(), nulls, strict=True):
        share = float(np.nanmean(line.hits))
        rows.append(_format_row((key[2], key[3], null, f"{share:.1%}", _find_remark(key, line))))
    return rows


def _tabulate_comparisons(lines: Mapping[Key, Line]) -> list[str]:
    tests = [test for test in COMPARED if any(key[3] == test + MODELS for key in lines)]
    rows = [_format_row(("Metric", *tests, "Remark"))]
    rows += [_format_row(("---", *["---:"] * len(tests), "---"))]
    for study in dict.fromkeys(key[2] for key in lines):
        study_lines = {
            key[3].removesuffix(MODELS): (key, lines[key]) for key in lines if key[2] == study
        }
        shares = [
            _format_share(*study_lines[test]) if test in study_lines else "" for test in tests
        ]
        remarks = dict.fromkeys(
            _find_remark(*key_and_line) for key_and_line in study_lines.values()
        )
        rows.append(_format_row((study, *shares, " ".join(filter(None, remarks)))))
    return rows


def _format_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _format_share(key: Key, line: Line) -> str:
    hits = np.array(line.hits)
    defined = hits[~np.isnan(hits)]
    short = f" of {defined.size}" if defined.size < hits.size else ""
    return OUT[_find_side(key, line)].format(f"{defined.mean():.1%}") + short


def _find_side(key: Key, line: Line) -> int:
    hits = np.array(line.hits)
    defined = hits[~np.isnan(hits)]
    low, high = compute_band(defined.size, 1 - LEVEL if key[1] == "interval" else LEVEL)
    share = float(defined.mean())
    return -1 if share < low - 1e-9 else int(share > high + 1e-9)


def _find_remark(key: Key, line: Line) -> str:
    world, kind, study, figure = key
    is_outside = _find_side(key, line) != 0
    texts = [
        remark.text
        for remark in REMARKS
        if remark.kind in kind
        and world.startswith(remark.world)
        and (remark.study == study if remark.exactly else remark.study in study)
        and remark.figure in figure
        and (is_outside or not remark.if_outside)
    ]
    return " ".join(texts)


def _format_span(low: float, high: float) -> str:
    return f"{low:.1%} to {high:.1%}"


def _format_number(value: float) -> str:
    return f"{value + 0.0:.4g}"
