"""Gaps of several groups: their intervals, their change between two models, and trends.

python studies/calibration/several_groups.py                # 1,000 worlds a row
python studies/calibration/several_groups.py --worlds 200   # quicker
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from tally import LEVEL, compute_band

from recbias.core.dataset import FloatArray
from recbias.statistics.groups import compute_moments, welch_anova
from recbias.statistics.spread import compare_spreads, compare_trend, estimate_spread, find_df

WORLDS = 1000

Sample = Callable[[np.random.Generator, FloatArray], FloatArray]
"""Values of standard deviation 1 around their means."""

VALUES: Mapping[str, Sample] = {
    "normal": lambda rng, means: rng.normal(means, 1.0),
    "skewed": lambda rng, means: means + rng.exponential(1.0, means.shape) - 1.0,
    "hits": lambda rng, means: (rng.random(means.shape) < 0.3).astype(np.float64),
}


def place_means(pattern: str, n_groups: int, gap: float) -> FloatArray:
    """The true means of the groups, whose largest difference is the gap."""
    at = np.arange(n_groups)
    return gap * np.asarray(
        {
            "equal": 0.0 * at,
            "one apart": (at == n_groups - 1) * 1.0,
            "two sets": (at >= n_groups // 2) * 1.0,
            "even steps": at / (n_groups - 1),
            "another apart": (at == 0) * 1.0,
        }[pattern]
    )


PATTERNS = (("equal", 0.0), ("one apart", 1.0), ("two sets", 1.0))
PATTERNS += (("even steps", 0.3), ("even steps", 1.0))
CHANGES = (
    (("equal", 0.0), ("equal", 0.0)),
    (("one apart", 0.5), ("one apart", 0.5)),
    (("even steps", 0.7), ("even steps", 0.7)),
    (("one apart", 0.5), ("another apart", 0.5)),
    (("equal", 0.0), ("one apart", 0.5)),
    (("equal", 0.0), ("even steps", 1.0)),
)


def cover_gap(pattern: tuple[str, float], values: str, sizes: list[int], n_worlds: int) -> float:
    """How often the interval of a gap holds the true one."""
    rng = np.random.default_rng([*sizes, n_worlds])
    codes, means = np.repeat(np.arange(len(sizes)), sizes), place_means(*_args(pattern, sizes))
    held = 0
    for _ in range(n_worlds):
        moments = compute_moments(VALUES[values](rng, means[codes]), codes, len(sizes))
        covariance = np.diag(moments.variance / moments.n)
        low, high, _ = estimate_spread(moments.mean, covariance, moments.n, rng)
        held += low <= pattern[1] <= high
    return held / n_worlds


def _args(pattern: tuple[str, float], sizes: list[int]) -> tuple[str, int, float]:
    return pattern[0], len(sizes), pattern[1]


def cover_change(
    patterns: tuple[tuple[str, float], tuple[str, float]], sizes: list[int], n_worlds: int
) -> tuple[float, float]:
    """How often the interval of a change holds the true one, and is significant.

    Half of the variance of a user is the same in both models.
    """
    rng, n = np.random.default_rng([*sizes, n_worlds]), np.array(sizes)
    codes = np.repeat(np.arange(n.size), n)
    means = np.stack([place_means(*_args(pattern, sizes)) for pattern in patterns])
    change, held, found = patterns[0][1] - patterns[1][1], 0, 0
    for _ in range(n_worlds):
        own = rng.normal(0.0, 0.5**0.5, codes.size)
        values = means[:, codes] + own + rng.normal(0.0, 0.5**0.5, (2, codes.size))
        groups = [values[:, codes == code] for code in range(n.size)]
        observed = np.stack([group.mean(axis=1) for group in groups], axis=1)
        parts = np.stack([np.cov(group) / group.shape[1] for group in groups], axis=2)
        covariance = np.block([[np.diag(part) for part in row] for row in parts])
        df = min(find_df(observed[at], parts[at, at], n) for at in (0, 1))
        test = compare_spreads(observed, covariance, df, LEVEL, rng)
        held += test["ci_low"] <= change <= test["ci_high"]
        found += test["p"] <= LEVEL
    return held / n_worlds, found / n_worlds


def reject_trend(step: float, values: str, sizes: list[int], n_worlds: int) -> tuple[float, float]:
    """How often the tests of a trend, and of any difference, are significant."""
    rng = np.random.default_rng([*sizes, n_worlds])
    names, codes = tuple(map(str, sizes)), np.repeat(np.arange(len(sizes)), sizes)
    trends, differences = 0, 0
    for _ in range(n_worlds):
        drawn = VALUES[values](rng, step * codes)
        trends += compare_trend(names, drawn, codes).p <= LEVEL
        differences += welch_anova(compute_moments(drawn, codes, len(sizes)))[-1] <= LEVEL
    return trends / n_worlds, differences / n_worlds


def tabulate_gaps(n_groups: int, n_worlds: int) -> Iterator[str]:
    designs = [(values, [n] * n_groups) for values in ("normal", "skewed") for n in (10, 30, 100)]
    designs.append(("normal", [10, 100, 30, 30, 100, 10, 30][:n_groups]))
    for pattern in PATTERNS:
        shares = (cover_gap(pattern, values, sizes, n_worlds) for values, sizes in designs)
        cells = [str(n_groups), pattern[0], f"{pattern[1]:g}", *(f"{x:.1%}" for x in shares)]
        yield f"| {' | '.join(cells)} |"


def tabulate_changes(n_groups: int, n_worlds: int) -> Iterator[str]:
    for pair in CHANGES:
        shares = [x for n in (30, 100) for x in cover_change(pair, [n] * n_groups, n_worlds)]
        cells = [str(n_groups), *map(_name, pair), *(f"{x:.1%}" for x in shares)]
        yield f"| {' | '.join(cells)} |"


def tabulate_trends(step: float, n_worlds: int) -> Iterator[str]:
    for values in VALUES if not step else ("normal", "skewed"):
        designs = ([5] * 3, [10] * 3, [30] * 5, [10, 100, 30])
        shares = [x for sizes in designs for x in reject_trend(step, values, sizes, n_worlds)]
        yield f"| {' | '.join([values, f'{step:g}', *(f'{x:.1%}' for x in shares)])} |"


def write_several_section(n_worlds: int = WORLDS) -> str:
    """The section of the page."""
    low, high = compute_band(n_worlds, 1 - LEVEL)
    rows = [ABOUT.format(worlds=n_worlds, intervals=f"{low:.1%} to {high:.1%}")]
    rows += [row for n in (3, 7) for row in tabulate_gaps(n, n_worlds)]
    rows += [CHANGE, *(row for n in (3, 7) for row in tabulate_changes(n, n_worlds))]
    rows += [TREND, *(row for step in (0.0, 0.2) for row in tabulate_trends(step, n_worlds))]
    return "\n".join([*rows, ""])


def _name(pattern: tuple[str, float]) -> str:
    return f"{pattern[0]}, {pattern[1]:g}" if pattern[1] else pattern[0]


ABOUT = """
## Gaps of several groups, their change, and trends

Users of 3 or 7 groups whose values have the standard deviation 1, in {worlds:,} simulated datasets
a cell. The true means are equal, one group is apart from the others, there are two sets of equal
groups, or the means rise in even steps. Coverage of the interval of `gap: difference`, for groups
of 10, 30 and 100 users, of normal and of skewed (exponential) values, and for groups of 10, 30 and
100 users in one dataset. 99% of the cells of an interval that covers exactly lie within
{intervals}. The interval is exact where all groups are equal or two stand apart; where several
groups are near the largest and the smallest, it must allow for each of them, and covers more. Few
skewed values are not near a normal distribution. This section alone:
`python studies/calibration/several_groups.py`.

| Groups | Means | True gap | Normal, 10 | 30 | 100 | Skewed, 10 | 30 | 100 | Unequal sizes |
|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"""
CHANGE = """
The change of the gap between two models of the same users, with half of the variance in common:
coverage of its interval, and how often it is significant. The true gaps are those of the two
columns; where they are equal, a significant change is an error.

| Groups | Model a | Model b | Coverage, 30 | Significant | 100 | Significant |
|---:|---|---|---:|---:|---:|---:|"""
TREND = """
The test of a trend of Jonckheere and Terpstra, and Welch's analysis of variance beside it, where
the mean of each group is above that of the one before by the step: 0 where nothing is planted.

| Values | Step | Trend, 3 x 5 | ANOVA | 3 x 10 | ANOVA | 5 x 30 | ANOVA | 10 + 100 + 30 | ANOVA |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=WORLDS)
    print(write_several_section(parser.parse_args().worlds))
