"""Comparison of gaps between groups in two runs: the effect of a mitigation on a bias."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.queries.groups import JOIN
from recbias.runner.comparison.run_comparison import (
    COLUMNS,
    KEY_COLUMNS,
    RunFrames,
    adjust_p_values,
    match_units,
    merge_metrics,
    select_changed,
)
from recbias.runner.comparison.shared_values import SharedUnits
from recbias.statistics.tests.unpaired import compute_moments, welch_contrasts

MAX_GROUPS = 10
"""Pairs of more groups than this are not compared."""

_EQUALITY = re.compile(r"(?P<label>[^<>=!]+)=(?!=)")
"""A value of a label: ``race=white``."""

_CONDITION = re.compile(r"[<>]=?|[=!]=|\sin\s*[\[(]")
"""Occurs in every condition: ``age >= 25``."""


def compare_gaps(runs: list[RunFrames], *, correction: str = "bonferroni") -> pd.DataFrame:
    """Return the gap between every two groups in each of two runs, and test its change.

        Δ = (m_b(g) - m_b(h)) - (m_a(g) - m_a(h)) = mean of d over g - mean of d over h

    m(g) is the metric value of group g, a mean over its units; d is the value of a unit in the
    later run b minus its value in run a. If g and h have different units (names), the test is
    Welch's t-test of the d of both groups; if they share their units (templates), Student's paired
    t-test. Values without the same units in both runs are excluded, values with the same address
    in both, and metrics with more than ``MAX_GROUPS`` groups. The p-value of Welch's test is NaN
    if d is constant within the groups.
    All tests of the table are one family.

    Returns:
        The columns of ``compare_runs``; ``group`` is ``g - h``, the values are the gaps.

    Raises:
        UnknownName: The correction does not exist.
    """
    rows = [row for a, b in combinations(runs, 2) for row in _compare_pair(a, b)]
    return adjust_p_values(pd.DataFrame(rows, columns=list(COLUMNS)), correction)


def _compare_pair(a: RunFrames, b: RunFrames) -> Iterator[dict[str, Any]]:
    metrics, units = select_changed(a, b, merge_metrics(a, b)), match_units(a, b)
    keys = metrics[KEY_COLUMNS].itertuples(index=False, name=None)
    groups = [
        {**row, "units": units[key], "label": label}
        for row, key in zip(metrics.to_dict("records"), keys, strict=True)
        if key in units and (label := _find_label(row, b))
    ]
    if not groups:
        return
    shared_keys = [*(name for name in KEY_COLUMNS if name != "group"), "label"]
    for _, family in pd.DataFrame(groups).groupby(shared_keys, sort=False):
        if len(family) <= MAX_GROUPS:
            for g, h in combinations(family.to_dict("records"), 2):
                yield _compare_groups(g, h)


def _find_label(row: Mapping[Hashable, Any], run: RunFrames) -> str:
    """Return the label or condition of a metric row's group, blank if it has none."""
    group = str(row["group"])
    return group and (run.groupings.get(row["metric"]) or extract_label(group))


def extract_label(group: str) -> str:
    """Return the label or condition of a group, blank if it is neither.

    >>> extract_label("race=white&gender=female"), extract_label("neutral")
    ('race&gender', '')
    >>> extract_label("gender=F&not age >= 25"), extract_label("age >= 25")
    ('gender&age >= 25', 'age >= 25')
    """
    parts = [_extract_part(part) for part in group.split(JOIN)]
    return JOIN.join(parts) if all(parts) else ""


def _extract_part(part: str) -> str:
    if (match := _EQUALITY.match(part)) is not None:
        return match["label"]
    return part.removeprefix("not ") if _CONDITION.search(part) else ""


def _compare_groups(g: dict[Any, Any], h: dict[Any, Any]) -> dict[str, Any]:
    gaps = {name: g[name] - h[name] for name in ("value_a", "value_b", "difference")}
    before, after = ([row["units"].values[run] for row in (h, g)] for run in (0, 1))
    changes = [new - old for old, new in zip(before, after, strict=True)]
    if g["units"].ids == h["units"].ids:
        test = SharedUnits(g["units"].ids, np.stack(changes)).test()
    else:
        test = _test_unpaired(changes[1], changes[0])
    return {**g, **gaps, **test, "group": f"{g['group']} - {h['group']}"}


def _test_unpaired(g: FloatArray, h: FloatArray) -> dict[str, Any]:
    codes = np.repeat([0, 1], [g.size, h.size])
    moments = compute_moments(np.concatenate([g, h]), codes, 2)
    (contrast,) = welch_contrasts(("g", "h"), moments, between="groups")
    return {name: getattr(contrast, name) for name in ("n", "ci_low", "ci_high", "p", "test")}
