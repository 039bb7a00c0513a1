"""Whether intervals of values that human labels correct hold the truth, and how wide they are.

    python studies/calibration/audited_studies.py                # 1,000 worlds a row
    python studies/calibration/audited_studies.py --worlds 200   # quicker

A world has the lists of users who are drawn from a large population, items with a true label, the
label of a judge that errs, more often on items of one group's taste, and people who label a sample
of the items. The truth is the value of the whole population with the true labels of all items.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from tally import LEVEL, compute_band

from recbias.core.dataset import AnyArray, FloatArray
from recbias.statistics.prediction_powered import HumanLabels, compare_corrected, correct_lists

WORLDS, POPULATION, K = 1000, 20_000, 10


@dataclass(frozen=True)
class AuditedStudy:
    """Users, items and labels.

    Args:
        n_users: The users of a run; half of them are in each group.
        skew: The exponent of the popularity of the items.
        missed: The share of labelled items that the judge misses, and
        false: the share of other items that it labels.
        raters: How many people label each item, each wrong in 5 % of cases; 0: none ever is.
        labelled: The share of labelled items among those that one group prefers; 4/7 of it among
            the others.
        by_exposure: Whether the probability of an audit is proportional to the exposure.
    """

    metric: str
    n_users: int = 300
    n_items: int = 400
    n_audited: int = 100
    skew: float = 0.4
    missed: float = 0.1
    false: float = 0.05
    raters: int = 0
    labelled: float = 0.35
    by_exposure: bool = False


STUDIES = tuple(
    replace(study, metric=metric)
    for study in (
        AuditedStudy(""),
        AuditedStudy("", missed=0.3, false=0.2),
        AuditedStudy("", n_users=60, n_audited=250),
        AuditedStudy("", raters=3),
        AuditedStudy("", n_audited=350, raters=2),
        AuditedStudy("", skew=1.0, by_exposure=True),
        AuditedStudy("", n_audited=200, labelled=0.15, false=0.02),
        AuditedStudy("", labelled=0.08, false=0.005),
    )
    for metric in ("REC-ST", "HIT_BAD")
)


def score(metric: str, labels: FloatArray) -> AnyArray:
    """Return the value of each list."""
    if metric == "HIT_BAD":
        return np.asarray(1.0 - (1.0 - labels).prod(axis=1))
    weights = np.arange(labels.shape[1], 0.0, -1.0)
    return np.asarray(labels @ weights / weights.sum())


@cache
def make_population(n_items: int, skew: float) -> AnyArray:
    """Return lists of many users, whose first half prefers the first items a little."""
    rng = np.random.default_rng(0)
    lists = []
    for group in range(2):
        odds = -skew * np.log(np.arange(1, n_items + 1))[rng.permutation(n_items)]
        odds += 0.7 * (np.arange(n_items) < n_items / 2) * (group == 0)
        noisy = odds + rng.gumbel(size=(POPULATION // 2, n_items))
        lists.append(np.argsort(-noisy, axis=1)[:, :K])
    return np.concatenate(lists)


def draw_world(study: AuditedStudy, rng: np.random.Generator) -> list[tuple[float, ...]]:
    """Return the truth, the estimate, its interval, and the width by human labels alone.

    They are those of the mean of all users, and of the difference between the groups.
    """
    lists = make_population(study.n_items, study.skew)
    n, half = study.n_users // 2, POPULATION // 2
    users = np.concatenate([rng.integers(half, size=n), half + rng.integers(half, size=n)])
    is_half = np.arange(study.n_items) < study.n_items / 2
    truth = (rng.random(study.n_items) < study.labelled * np.where(is_half, 1.0, 4 / 7)).astype(
        np.float64
    )
    wrong = np.where(truth == 1, study.missed, study.false * (1 + is_half))
    judged = np.abs(truth - (rng.random(study.n_items) < wrong))
    exposure = np.bincount(lists[users].ravel(), minlength=study.n_items)
    probability = None
    is_audited = np.zeros(study.n_items, dtype=bool)
    if study.by_exposure:
        probability = np.clip(study.n_audited * (exposure + 1.0) / (exposure + 1.0).sum(), 0.05, 1)
        is_audited = rng.random(study.n_items) < probability
    else:
        is_audited[rng.choice(study.n_items, study.n_audited, replace=False)] = True
    labels, variance = truth, np.zeros(study.n_items)
    if study.raters:
        said = np.abs(truth - (rng.random((study.raters, study.n_items)) < 0.05))
        labels = said.mean(axis=0)
        within = float(said[:, is_audited].var(axis=0, ddof=1).mean())
        variance = np.full(study.n_items, within / study.raters)
        truth = truth * 0.95 + (1 - truth) * 0.05  # what the mean of many raters would be
    human = HumanLabels(np.where(is_audited, labels, np.nan), variance, probability)
    values = score(study.metric, truth[lists])
    truths = values.mean(), values[:half].mean() - values[half:].mean()
    codes = np.repeat([0, 1], n)
    intervals = []
    for predictions in (judged, np.zeros(study.n_items)):
        used = np.ones(users.size, dtype=bool)
        find = partial(score, study.metric)
        found = correct_lists(find, lists[users], used, predictions, human)
        whole = found.audit.summarize(found.values)
        parts = found.audit.estimate(found.values, codes, 2)
        (gap,) = compare_corrected(("a", "b"), parts, (np.array([0]), np.array([1])))
        intervals.append(
            [
                (whole.value, whole.ci_low, whole.ci_high),
                (gap.difference, gap.ci_low, gap.ci_high),
            ]
        )
    return [
        (true, *judge, people[2] - people[1])
        for true, judge, people in zip(truths, *intervals, strict=True)
    ]


def measure_coverage(study: AuditedStudy, n_worlds: int, seed: int = 1) -> list[dict[str, float]]:
    """Return the coverage, the bias in standard deviations, and the ratio of the widths."""
    rng = np.random.default_rng(seed)
    worlds = np.array([draw_world(study, rng) for _ in range(n_worlds)])
    rows = []
    for truth, value, low, high, alone in worlds.transpose(1, 2, 0):
        error = value - truth
        rows.append(
            {
                "coverage": float(((low <= truth) & (truth <= high)).mean()),
                "bias": float(error.mean() / error.std()),
                "narrower": float(np.median(alone / (high - low))),
            }
        )
    return rows


def write_audited_section(n_worlds: int = WORLDS) -> str:
    """The section of the page."""
    band = "{:.1%} to {:.1%}".format(*compute_band(n_worlds, 1 - LEVEL))
    rows = [ABOUT.format(worlds=n_worlds, band=band)]
    for study in STUDIES:
        for name, row in zip(("mean", "gap"), measure_coverage(study, n_worlds), strict=True):
            cells = (study.metric, name, _describe(study), f"{row['coverage']:.1%}")
            rows.append(f"| {' | '.join(cells)} | {row['bias']:.2f} | {row['narrower']:.2f} |")
    return "\n".join([*rows, ""])


def _describe(study: AuditedStudy) -> str:
    people = f"{study.raters} raters" if study.raters else "one label"
    sample = "by exposure" if study.by_exposure else "at random"
    return " | ".join(
        (
            f"{study.n_users} users",
            f"{study.labelled:.0%}",
            f"{study.n_audited} of {study.n_items} {sample}, {people}",
            f"{study.missed:.0%} and {study.false:.0%}",
        )
    )


ABOUT = """
## Labels that human labels correct

Stereotype exposure by a judge whose errors a sample of human labels corrects (`audited:`), in
{worlds:,} worlds a row. *Labelled* is the share of labelled items among those that one group
prefers. *Errors* are the shares of labelled items that the judge misses and of
others that it labels; the latter are twice as many among items that one group prefers. The truth
is the value of a population of 20,000 users with the true labels. *Bias* is in standard deviations
of the estimate; *narrower* is the width of the interval from the human labels alone divided by
that of the corrected one. 99% of the rows of an interval that covers exactly lie within {band}.
Some intervals of HIT_BAD, which is not linear in the labels, are too wide; a judge hardly narrows
them where nearly all lists have a hit, as with 35% labelled items. In the last rows people
contradict the judge once or twice in a sample: intervals are too narrow, and a run warns of it
below five times. This section alone: `python studies/calibration/audited_studies.py`.

| Metric | Of | Users | Labelled | Human labels | Errors | Coverage | Bias | Narrower |
|---|---|---|---:|---|---|---:|---:|---:|"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=WORLDS)
    print(write_audited_section(parser.parse_args().worlds))
