"""Comparison of gaps between groups in two runs: the effect of a mitigation on a bias."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.queries.groups import JOIN
from recbias.runner.results.run_comparison import (
    COLUMNS,
    KEY_COLUMNS,
    RunFrames,
    SharedUnits,
    adjust_p_values,
    match_units,
    merge_metrics,
)
from recbias.statistics.tests.unpaired import compute_moments, welch_contrasts

MAX_GROUPS = 10
"""Pairs of more groups than this are not compared."""


def compare_gaps(runs: list[RunFrames], *, correction: str = "bonferroni") -> pd.DataFrame:
    """Return the gap between every two groups in each of two runs, and test its change.

        Δ = (m_a(g) - m_a(h)) - (m_b(g) - m_b(h)) = mean of d over g - mean of d over h

    m(g) is the metric value of group g, a mean over its units; d is the value of a unit in run a
    minus its value in run b. If g and h have different units (names), the test is Welch's t-test
    of the d of both groups; if they share their units (templates), Student's paired t-test.
    Values without the same units in both runs are excluded, and metrics with more than
    ``MAX_GROUPS`` groups. The p-value of Welch's test is NaN if d is constant within the groups.
    All tests of the table are one family.

    Returns:
        The columns of ``compare_runs``; ``group`` is ``g - h``, the values are the gaps.

    Raises:
        UnknownName: The correction does not exist.
    """
    rows = [row for a, b in combinations(runs, 2) for row in _compare_pair(a, b)]
    return adjust_p_values(pd.DataFrame(rows, columns=list(COLUMNS)), correction)


def _compare_pair(a: RunFrames, b: RunFrames) -> Iterator[dict[str, Any]]:
    metrics, units = merge_metrics(a, b), match_units(a, b)
    keys = metrics[KEY_COLUMNS].itertuples(index=False, name=None)
    groups = [
        {**row, "units": units[key], "label": _extract_label(str(row["group"]))}
        for row, key in zip(metrics.to_dict("records"), keys, strict=True)
        if key in units and _extract_label(str(row["group"]))
    ]
    if not groups:
        return
    shared_keys = [*(name for name in KEY_COLUMNS if name != "group"), "label"]
    for _, family in pd.DataFrame(groups).groupby(shared_keys, sort=False):
        if len(family) <= MAX_GROUPS:
            for g, h in combinations(family.to_dict("records"), 2):
                yield _compare_groups(g, h)


def _extract_label(group: str) -> str:
    """Return the label of a group, blank if it is not a value of a label.

    >>> _extract_label("race=white&gender=female"), _extract_label("neutral")
    ('race&gender', '')
    """
    conditions = group.split(JOIN)
    if not all("=" in condition for condition in conditions):
        return ""
    return JOIN.join(condition.partition("=")[0] for condition in conditions)


def _compare_groups(g: dict[Any, Any], h: dict[Any, Any]) -> dict[str, Any]:
    gaps = {name: g[name] - h[name] for name in ("value_a", "value_b", "difference")}
    changes = [row["units"].values[0] - row["units"].values[1] for row in (g, h)]
    if g["units"].ids == h["units"].ids:
        n, p = SharedUnits(g["units"].ids, np.stack(changes)).test()
    else:
        codes = np.repeat([0, 1], [change.size for change in changes])
        moments = compute_moments(np.concatenate(changes), codes, 2)
        (contrast,) = welch_contrasts(("g", "h"), moments, between="groups")
        n, p = int(contrast.n or 0), contrast.p
    return {**g, **gaps, "group": f"{g['group']} - {h['group']}", "n": n, "p": p}
