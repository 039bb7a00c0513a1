"""Gaps over seeds and folds, gaps of small groups, and runs that share some of their queries.

python studies/calibration/gap_studies.py                # 4,000 worlds a row
python studies/calibration/gap_studies.py --worlds 500   # quicker
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from tally import LEVEL, compute_band

from recbias.config.specs import Grouping
from recbias.core.dataset import FloatArray
from recbias.core.measures import Measurement, UnitScores
from recbias.metrics.popularity import PopREO
from recbias.runner.grouping import GroupMeasurements
from recbias.runner.results import ModelMeasurement, pool_summaries
from recbias.runner.verdicts import decide
from recbias.runs.compare import RunFrames, compare_runs, pair_runs

WORLDS = 2000
MEAN = 0.4
"""The mean value of the second group."""

LIMIT = 0.0001
"""The limit of a check that a fair world should not fail."""

Sample = Callable[[np.random.Generator, FloatArray], FloatArray]


def sample_gains(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Values within 0 and 1, such as nDCG."""
    return rng.beta(3.0 * means, 3.0 * (1.0 - means))


def sample_normal(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    return rng.normal(means, 0.1)


def sample_hits(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    return (rng.random(means.shape) < means).astype(np.float64)


@dataclass(frozen=True)
class GapStudy:
    """Users of two groups, and their values in each seed or fold.

    Args:
        folds: How the values come about: ``seeds`` of the same users, ``folds`` in which 30% of
            the values of each user are undefined, or disjoint ``samples`` of users.
    """

    name: str
    sizes: tuple[int, int]
    n_folds: int = 1
    folds: str = "seeds"
    sample: Sample = sample_gains
    gap: str = "difference"

    def draw(self, rng: np.random.Generator, effect: float) -> list[Measurement]:
        """The groups of each seed or fold of one world."""
        users = np.concatenate([np.full(n, code) for code, n in enumerate(self.sizes)])
        means = np.where(users == 0, MEAN + effect, MEAN)
        own = np.clip(means + rng.uniform(-0.1, 0.1, users.size), 0.01, 0.99)
        expected = own if self.n_folds > 1 else means
        rows: list[Measurement] = []
        part = rng.permutation(users.size) % self.n_folds
        for fold in range(self.n_folds):
            values = self.sample(rng, expected)
            if self.folds == "folds":
                values[rng.random(users.size) < 0.3] = math.nan
            for code in (0, 1):
                inside = users == code
                if self.folds == "samples":
                    inside &= part == fold
                ids = np.flatnonzero(inside).astype(str).astype(object)
                units = UnitScores("user", ids, values[inside], self.sample is sample_hits)
                rows.append(Measurement.from_units(units, group=f"g{code}"))
        return rows

    def get_truth(self, effect: float) -> float:
        """The true gap."""
        high, low = MEAN + effect, MEAN
        return {"difference": high - low, "ratio": low / high, "std": (high - low) / 2**0.5}[
            self.gap
        ]


SEVERAL = tuple(
    GapStudy(f"{n} {folds}", (60, 60), n, folds.split()[0], gap=gap)
    for gap in ("difference", "ratio", "std")
    for n, folds in (
        (3, "seeds"),
        (10, "seeds"),
        (5, "folds"),
        (5, "samples of users"),
    )
)
SMALL = tuple(
    GapStudy(f"{sizes[0]} + {sizes[1]}", sizes, sample=sample, gap=gap)
    for gap, sample in (
        ("difference", sample_normal),
        ("ratio", sample_normal),
        ("difference", sample_gains),
        ("difference", sample_hits),
    )
    for sizes in ((2, 2), (3, 3), (5, 5), (10, 10), (5, 50))
)
VALUES: dict[Sample, str] = {sample_normal: "normal", sample_gains: "nDCG", sample_hits: "hits"}


@dataclass
class Outcome:
    """Estimates, and whether intervals hold the truth, for equal groups and a planted effect."""

    estimates: list[float]
    holds_0: list[bool]
    failed: list[bool]
    holds_effect: list[bool]


def simulate(study: GapStudy, n_worlds: int, effect: float) -> Outcome:
    rng = np.random.default_rng([*study.sizes, study.n_folds, n_worlds])
    grouping = Grouping("g", study.gap)  # type: ignore[arg-type]
    pooling = GroupMeasurements("metric", grouping)
    outcome = Outcome([], [], [], [])
    for _ in range(n_worlds):
        for planted in (0.0, effect):
            gap = pooling.pool(study.draw(rng, planted), 0)
            if math.isnan(gap.ci_low):
                continue
            ends, truth = (gap.ci_low, gap.ci_high), study.get_truth(planted)
            holds = ends[0] <= truth <= ends[1]
            if planted:
                outcome.holds_effect.append(holds)
                continue
            limits = (1.0 - LIMIT, math.inf) if study.gap == "ratio" else (-math.inf, LIMIT)
            outcome.estimates.append(gap.value)
            outcome.holds_0.append(holds)
            outcome.failed.append(decide(gap.value, ends, limits) == "fail")
    return outcome


def simulate_head_and_tail(n_seeds: int, n_worlds: int) -> list[bool]:
    """Whether the interval of PopREO over seeds holds 0 where head and tail are equal."""
    rng, covered = np.random.default_rng(n_seeds), []
    metric = PopREO()
    spec = type("Spec", (), {"plugin": metric, "label": "PopREO", "cutoff": None})()
    for _ in range(n_worlds):
        hits = rng.random((n_seeds, 2, 200)) < 0.3
        counts = rng.multinomial(200, np.full(200, 1 / 200), size=200) / 200.0
        shares = [np.vstack([seed.mean(axis=1), counts @ seed.T]) for seed in hits]
        rows = [
            ModelMeasurement(
                *("d", "m", number, 1, spec),
                Measurement(
                    0.0, 200, 0, ci_low=0.0, parts=dict(zip(("head", "tail"), seed.T, strict=True))
                ),
                bounds=(0.0, 1.0),
            )
            for number, seed in enumerate(shares)
        ]
        (pooled,) = pool_summaries(rows, {"seed": "all"})
        covered.append(pooled.measurement.ci_low <= 0.0)
    return covered


def simulate_runs(n_shared: int, n_worlds: int, effect: float) -> tuple[list[bool], list[bool]]:
    """Whether the interval of a comparison holds the true change and the printed difference.

    Each run has 20 queries besides the shared ones, and the later one has another order of rows.
    The other queries of the earlier run have larger values.
    """
    rng = np.random.default_rng([n_shared, n_worlds])
    holds_truth, holds_difference = [], []
    keys = {"dataset": "d", "model": "m", "seed": 1, "fold": 1, "metric": "nDCG", "k": 10.0}
    keys |= {"group": "", "target": ""}
    for _ in range(n_worlds):
        level = rng.uniform(0.2, 0.5, n_shared)
        runs = []
        for label, others, change in (("a", 0.6, 0.0), ("b", 0.2, effect)):
            means = np.concatenate([level + change, np.full(20, others)])
            ids = [f"u{at}" for at in range(n_shared)] + [f"{label}{at}" for at in range(20)]
            values = rng.beta(5.0 * means, 5.0 * (1.0 - means))
            order = rng.permutation(len(ids))
            units = pd.DataFrame({"unit_id": np.array(ids)[order], "value": values[order], **keys})
            runs.append(RunFrames(label, pd.DataFrame([keys | {"value": values.mean()}]), units))
        row = compare_runs(pair_runs(runs)).iloc[0]
        holds_truth.append(bool(row["ci_low"] <= effect <= row["ci_high"]))
        holds_difference.append(bool(row["ci_low"] <= row["difference"] <= row["ci_high"]))
    return holds_truth, holds_difference


def write_gap_section(n_worlds: int = WORLDS) -> str:
    """The section of the page."""
    low, high = compute_band(n_worlds, 1 - LEVEL)
    rows = [ABOUT.format(worlds=n_worlds, intervals=f"{low:.1%} to {high:.1%}"), HEAD]
    for study in (*SEVERAL, *SMALL):
        outcome = simulate(study, n_worlds, 0.2)
        place = f"{study.sizes[0]} + {study.sizes[1]}"
        over = study.name if study.n_folds > 1 else "1 seed"
        cells = [study.gap, VALUES[study.sample], place, over]
        cells += [
            f"{np.mean(outcome.estimates):.4f}",
            _mark(outcome.holds_0, n_worlds),
            f"{np.mean(outcome.failed):.1%}",
            _mark(outcome.holds_effect, n_worlds),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    rows += [HEAD_AND_TAIL]
    rows += [
        f"| {n} | {_mark(simulate_head_and_tail(n, n_worlds), n_worlds)} |" for n in (1, 3, 10)
    ]
    rows += [COMPARE]
    for n_shared in (6, 40):
        for effect in (0.0, 0.05):
            truth, difference = simulate_runs(n_shared, n_worlds // 4, effect)
            shares = _mark(truth, n_worlds // 4), f"{np.mean(difference):.1%}"
            rows.append(f"| {n_shared} | {effect:g} | {' | '.join(shares)} |")
    return "\n".join([*rows, ""])


def _mark(hits: Sequence[bool], n_worlds: int) -> str:
    low, high = compute_band(len(hits), 1 - LEVEL)
    share = float(np.mean(hits))
    text = f"{share:.1%}" if low <= share <= high else f"**{share:.1%}** "
    text += "▲" if share > high else "▼" if share < low else ""
    return text + (f" of {len(hits):,}" if len(hits) < n_worlds else "")


ABOUT = """
## Gaps of few users, over seeds and folds, and between runs

Two groups of users, whose values are equal on average (*equal groups*) or differ by 0.2, in
{worlds:,} simulated datasets. Over several seeds and folds the gap is that of the mean of each
user, and its interval that of Welch's test of these means; the mean of the gaps of all seeds,
which have no sign, would be above 0 by chance. *Folds* lack 30% of the values of each user;
*samples of users* are disjoint. *Check fails* is the share of equal groups in which a check
`gap: difference, at_most: 0.0001` (ratio: at least 0.9999) fails. 99% of the rows of a calibrated
method lie within {intervals}; others are marked as above.

The interval of a gap ends at 0 (that of a ratio at 1), and a gap has no sign: where the true gap
is not far above its standard error, an estimate with the wrong sign counts as near, and up to
97.5% of the intervals hold the truth. With fewer than 5 values in a group a run warns: the
interval is wide, and its coverage depends on the distribution. Hits of 0 and 1 have Newcombe's
interval, of which exactly 93.8% hold 0 with 5 + 5 values and 88.5% with 2 + 2 (hit rates of 0.4).
Few skewed values beside many (5 + 50) are not near a normal distribution. This section alone:
`python studies/calibration/gap_studies.py`.
"""
HEAD = (
    "| Gap | Values | Users | Over | Mean estimate, equal groups | Coverage, equal groups | Check "
    "fails | Coverage, 0.2 |\n|---|---|---|---|---:|---:|---:|---:|"
)
HEAD_AND_TAIL = """
PopREO of head and tail, which are recommended equally often, and its interval by the bootstrap.
Over seeds it is that of the mean probability of head and tail:

| Seeds | Interval holds 0 |
|---:|---:|"""
COMPARE = """
`compare` of two runs, in a quarter as many datasets: they share some queries and have 20 others
each, in another order, and the value of each shared query changes by the true change. Difference
and interval are over the shared queries:

| Shared queries | True change | Coverage | Interval holds the printed difference |
|---:|---:|---:|---:|"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=WORLDS)
    print(write_gap_section(parser.parse_args().worlds))
