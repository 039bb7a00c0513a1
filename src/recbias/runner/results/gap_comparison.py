"""How far two groups are apart in one run and in another: what a mitigation changed in a bias."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.queries.groups import JOIN
from recbias.runner.results.run_comparison import (
    COLUMNS,
    SAME,
    RunFrames,
    SharedUnits,
    adjusted,
    figures_of_both,
    units_of_both,
)
from recbias.statistics.tests.unpaired import compute_moments, welch_contrasts

MOST_GROUPS = 10
"""Of more groups than these not every two are compared."""


def compare_gaps(runs: list[RunFrames], *, correction: str = "bonferroni") -> pd.DataFrame:
    """Return how far every two groups are apart in each of two runs, and whether that changed.

        Δ = (m_a(g) - m_a(h)) - (m_b(g) - m_b(h)) = mean of d over g - mean of d over h

    m(g) is the figure of group g, a mean over its units (names); d is what the value of a unit in
    the first run is more than its own value in the second, so that a unit is compared with itself.
    Where g and h have units of their own (names), the test is Welch's t-test between the d of
    both; where they share their units (templates), Student's paired t-test of them. Figures
    without units in both runs, the same in both, are left out, and figures of more than
    ``MOST_GROUPS`` groups. The p of Welch's test is NaN where d does not differ within the groups.
    The family of the correction is every test of the table.

    Returns:
        The columns of ``compare_runs``; ``group`` is ``g - h``, the values are the gaps.

    Raises:
        UnknownName: There is no such correction.
    """
    rows = [row for a, b in combinations(runs, 2) for row in _rows(a, b)]
    return adjusted(pd.DataFrame(rows, columns=list(COLUMNS)), correction)


def _rows(a: RunFrames, b: RunFrames) -> Iterator[dict[str, Any]]:
    both, units = figures_of_both(a, b), units_of_both(a, b)
    found = [
        {**row, "units": units[key], "label": _label(str(row["group"]))}
        for row, key in zip(
            both.to_dict("records"), both[SAME].itertuples(index=False, name=None), strict=True
        )
        if key in units and _label(str(row["group"]))
    ]
    together = [*(name for name in SAME if name != "group"), "label"]
    for _, part in pd.DataFrame(found).groupby(together, sort=False) if found else ():
        if len(part) <= MOST_GROUPS:
            yield from (_row(g, h) for g, h in combinations(part.to_dict("records"), 2))


def _label(group: str) -> str:
    """Return what a group is a value of; blank where it is of no label.

    >>> _label("race=white&gender=female"), _label("neutral")
    ('race&gender', '')
    """
    parts = [each.partition("=") for each in group.split(JOIN)]
    return JOIN.join(name for name, _, _ in parts) if all(sign for _, sign, _ in parts) else ""


def _row(g: dict[Any, Any], h: dict[Any, Any]) -> dict[str, Any]:
    gaps = {name: g[name] - h[name] for name in ("value_a", "value_b", "difference")}
    n, p = _test(g["units"], h["units"])
    return {**g, **gaps, "group": f"{g['group']} - {h['group']}", "n": n, "p": p}


def _test(g: SharedUnits, h: SharedUnits) -> tuple[int, float]:
    """Return the number of units, and p."""
    changes = [each.values[0] - each.values[1] for each in (g, h)]
    if g.ids == h.ids:
        return SharedUnits(g.ids, np.stack(changes)).test()
    codes = np.repeat([0, 1], [each.size for each in changes])
    found = compute_moments(np.concatenate(changes), codes, 2)
    (test,) = welch_contrasts(("g", "h"), found, between="groups")
    return int(test.n or 0), test.p
