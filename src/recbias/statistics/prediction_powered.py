"""Means of labels that err, corrected by a sample of human labels: prediction-powered inference.

A detector or judge labels every item, people label some. The mean of the predictions is precise
and biased, that of the human labels unbiased and imprecise; the first plus the mean error of the
predictions on the audited items (the *rectifier*) is unbiased, and precise if the judge is good.

Labels of lists. Let a_ui be what item i adds to the value of user u if it is labelled 1, m_u(x)
the value with labels x, h_i the human label (known for the audited items S, which are chosen with
the probability π_i), and f_i that of the judge. With p_i = ρ + λ f_i the corrected value of a user
is

    c_u = m_u(p) + Σ_{i in S} w_i a_ui (h_i - p_i)
    w_i = (1/π_i) Σ_j A_j / Σ_{j in S} A_j / π_j

where A_i is the mean of a_ui over the users: the exposure of the item. The mean over the users,
that over a group, and differences are those of c_u, so that everything is of one quantity. For a
value that is linear in the labels (REC-ST) this is prediction-powered inference with weights A:

    mean of c = T (λ f̄ + Σ_S A (h - λ f) / Σ_S A),    T = Σ_i A_i, f̄ = Σ_i A_i f_i / T

λ is tuned for power, as in PPI++: it minimises the variance over the audited items, and is between
0 (human labels alone) and 1. For values that are not linear (HIT_BAD, MRR_BAD) m_u(p) is the
expected value of independent labels with the probabilities p, and a_ui its slope: a first-order
correction. It is right where the errors of the judge on the items of one list are independent.
What is not linear in the human labels is added to c_u, and what the labels of the other items
would add to it varies with draws of them from p (``rest``).

Two samples vary: the users (n, with a value each), and the audited items, which all users share.
Given the users, the variance is that of a sum over a sample of items,

    V_items = m/(m - 2) Σ_S (1 - π_i) d_i² + Σ_S π_i (w_i A_i)² s_i²
    d_i = w_i A_i (h_i - p_i) - q_i R

with R = Σ_S w_i A_i (h_i - p_i), q_i the share of i in Σ_S A/π, and m = 1/Σ q², the effective
number of audited items, of which λ and ρ take two. s_i² is the variance of a mean of raters, which
a complete audit does not remove (two-stage sampling). The variance over the users is
Var(m_u(h))/n. The variance of c_u also holds the error of the audit, v_u by the same formula with
a_ui in place of A_i, which is subtracted (the intersection of two clusterings):

    V_users = (Σ_u (c_u - c̄)² - Σ_u v_u) / (n (n - 1)) + V_items / (n - 1),  at least 0
    V = V_users + V_items

For values that are not linear, V_users is less by Var_draws(rest_u) / n, averaged over the users:
V_items has it from the drawn labels of other items, which c_u does not vary with.

By the law of total variance the two add up. The audited items must be a random sample of the
catalogue or of the recommended items, or one with known probabilities.

Source:
    Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, "Prediction-powered inference", Science 2023;
    Angelopoulos, Duchi and Zrnic, "PPI++: efficient prediction-powered inference", 2023. The
    difference estimator and two-stage sampling: Särndal, Swensson and Wretman, "Model assisted
    survey sampling", 1992, chapters 4 and 6. Two ways: Cameron, Gelbach and Miller, "Robust
    inference with multiway clustering", J. Bus. Econ. Stat. 2011. That λ, the list values and the
    variance over users are joined in this way is ours; ``studies/calibration`` measures coverage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from recbias.core.dataset import AnyArray, Codes, FloatArray, Matrix
from recbias.core.measures import Contrast, Measurement

TEST = "prediction_powered"
"""The name of the test of two groups with corrected values."""

LEAST = 5
"""From this many audited items on, a value is corrected; with so many errors of the judge among
them, the intervals are as wide as they should be."""

_Z = 1.959963984540054


class PoweredMean(NamedTuple):
    """A mean with its standard error, and the weight λ of the predictions."""

    value: float
    error: float
    lam: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval, of the normal distribution."""
        return self.value - _Z * self.error, self.value + _Z * self.error


def estimate_mean(
    labels: FloatArray,
    predictions: FloatArray,
    unlabelled: FloatArray,
    lam: float | None = None,
    weights: FloatArray | None = None,
    unlabelled_weights: FloatArray | None = None,
) -> PoweredMean:
    """Return the mean of a label that people gave to some units and a judge to all.

        θ = λ mean(f') + mean(h - λ f),    se² = λ² var(f') / N + var(h - λ f) / n
        λ = cov(h, f) / ((1 + n/N) var(f, f')), between 0 and 1

    λ = 1 is prediction-powered inference, λ = 0 the mean of the human labels alone, the default
    that of PPI++, with the smallest variance. ``weights`` are divided by their mean.

    Args:
        labels: The human labels h, ``float64[n]``.
        predictions: The judge's f of the same units.
        unlabelled: The judge's f' of the other units, ``float64[N]``.
        lam: λ.
        weights: Those of the labelled units.
        unlabelled_weights: Those of the others.

    >>> h, f = np.array([1.0, 0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 1.0])
    >>> round(estimate_mean(h, f, np.array([1.0, 0.0, 0.0, 0.0]), lam=1.0).value, 4)
    0.0

    Source:
        Angelopoulos et al., Science 2023 and arXiv:2311.01453, as in the package ``ppi-python``.
    """
    w, v = (
        np.ones(size) if given is None else given / given.mean()
        for size, given in ((labels.size, weights), (unlabelled.size, unlabelled_weights))
    )
    if lam is None:
        centre = float((v * unlabelled).mean() + (w * (labels - predictions)).mean())
        of_labels, of_judge = w * (labels - centre), w * (predictions - centre)
        pooled = np.concatenate([of_judge, v * (unlabelled - centre)])
        variance = (1.0 + labels.size / unlabelled.size) * float(pooled.var(ddof=1))
        shared = float(((of_labels - of_labels.mean()) * (of_judge - of_judge.mean())).mean())
        lam = min(max(shared / variance, 0.0), 1.0) if variance > 0 else 0.0
    rectifier = w * (labels - lam * predictions)
    parts = (lam * v * unlabelled).var() / unlabelled.size, rectifier.var() / labels.size
    value = float((lam * v * unlabelled).mean() + rectifier.mean())
    return PoweredMean(value, math.sqrt(sum(parts)), lam)


@dataclass(frozen=True, eq=False)
class CorrectedMeans:
    """The means of groups, with the two parts of their covariance; see the module.

    Args:
        users: V_users of each group, ``float64[g]``.
        within: What was taken from it, as it is in V_items.
        audited: The part of ``items`` that is of the audited items alone.
        items: V_items and its covariances, ``float64[g, g]``.
        influences: What each audited item and its raters add to the errors, ``float64[g, 2 m]``.
        scaled: The deviations of the users, with the variance V_users, ``float64[u]``.
    """

    n: AnyArray
    means: FloatArray
    users: FloatArray
    within: FloatArray
    audited: FloatArray
    items: FloatArray
    influences: FloatArray
    scaled: FloatArray
    item_df: float
    n_audited: int
    n_items: int

    def describe(self, *sides: int) -> dict[str, float]:
        """Return the parts of the variance of a mean, or of a difference, and what they are of."""
        signs = np.array([1.0, -1.0][: len(sides)])
        labels = float(signs @ self.items[np.ix_(sides, sides)] @ signs)
        parts = {"users": float(self.users[[*sides]].sum()), "labels": labels}
        return {"items": self.n_items, "audited": self.n_audited, **parts}

    @property
    def covariance(self) -> FloatArray:
        """That of the means, ``float64[g, g]``: groups share the audited items."""
        return self.items + np.diag(self.users)

    def measure_error(self, a: int, b: int | None = None) -> tuple[float, float]:
        """Return the standard error of a mean or of a difference, and Satterthwaite's df."""
        sides = [a] if b is None else [a, b]
        items, users = self.describe(*sides)["labels"], self.users[sides]
        signs = np.array([1.0, -1.0][: len(sides)])
        least = float(signs @ self.audited[np.ix_(sides, sides)] @ signs)
        total = max(float(users.sum()) + items, least)
        squares = float((users**2 / np.maximum(self.n[sides] - 1, 1)).sum())
        squares += items**2 / self.item_df
        return math.sqrt(total), total**2 / squares if squares > 0 else math.nan


@dataclass(frozen=True, eq=False)
class Audit:
    """What the audited items add to the corrected values of units: w_i a_ui (h_i - p_i).

    Args:
        errors: CSR ``(units, items)``.
        noise: CSR of √π_i w_i a_ui s_i, the error of the raters.
        shares: q_i, the share of the exposure of the audited items, ``float64[items]``.
        sampled: π_i, ``float64[items]``.
        rest: What is not linear in the values of drawn labels, ``float64[units, draws]``.
    """

    errors: Matrix
    noise: Matrix
    shares: FloatArray
    sampled: FloatArray
    rest: FloatArray

    def take(self, rows: AnyArray) -> Self:
        """Return the audit of some of the units, by position."""
        parts = self.errors[rows], self.noise[rows], self.shares, self.sampled, self.rest[rows]
        return type(self)(*parts)

    @classmethod
    def stack(cls, audits: Sequence[Self]) -> Self:
        """Return the audit of the units of all parts: groups, or seeds and folds."""
        from scipy.sparse import vstack

        columns = {name: [vars(audit)[name] for audit in audits] for name in vars(audits[0])}
        errors, noise = (vstack(columns[name], format="csr") for name in ("errors", "noise"))
        shares, sampled = (np.mean(columns[name], axis=0) for name in ("shares", "sampled"))
        return cls(errors, noise, shares, sampled, np.vstack(columns["rest"]))

    def average(self, weights: FloatArray, codes: AnyArray, n_units: int) -> Self:
        """Return the audit of a weighted sum of the values of each unit, ``codes[rows]``."""
        from scipy.sparse import csr_array

        cells = (codes, np.arange(codes.size))
        sums = csr_array((weights, cells), (n_units, codes.size))
        errors, noise, rest = (sums @ part for part in (self.errors, self.noise, self.rest))
        return type(self)(errors, noise, self.shares, self.sampled, rest)

    @property
    def item_df(self) -> float:
        """The effective number of audited items, less 2 for λ and ρ."""
        squares = self.shares**2
        return max(float(squares.sum() ** 2 / (squares**2).sum()) - 2.0, 1.0)

    def estimate(self, values: FloatArray, codes: AnyArray, n_groups: int) -> CorrectedMeans:
        """Return the means of groups of ``values[u]``; a value that is NaN is excluded."""
        from scipy.sparse import csr_array

        rows = np.flatnonzero((codes >= 0) & ~np.isnan(values))
        groups, used = codes[rows], values[rows]
        n = np.bincount(groups, minlength=n_groups)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.bincount(groups, used, minlength=n_groups) / n
            weights = csr_array((1.0 / n[groups], (groups, rows)), (n_groups, values.size))
            errors, noise = (
                np.asarray((weights @ part).toarray()) for part in (self.errors, self.noise)
            )
            m = max(1.0 / float((self.shares**2).sum()), 2.5)
            scale = np.sqrt((1.0 - self.sampled) * m / (m - 2.0))
            centred = errors - errors.sum(axis=1, keepdims=True) * self.shares
            rest = np.asarray(weights @ np.nan_to_num(self.rest)) / math.sqrt(_DRAWS)
            influences = np.hstack([centred * scale, noise, rest])
            items = influences @ influences.T
            own = self.errors.power(2) @ scale**2 + np.asarray(self.noise.power(2).sum(axis=1))
            deviations = used - means[groups]
            raw, audited = (
                np.bincount(groups, part, minlength=n_groups) / (n * (n - 1.0))
                for part in (deviations**2, own[rows])
            )
            of_rest = (rest**2).sum(axis=1)
            users = np.maximum(raw - audited + (np.diag(items) - of_rest) / (n - 1.0), 0.0)
            spread = np.nan_to_num(self.rest[rows]) - rest[groups] * math.sqrt(_DRAWS)
            within = np.bincount(groups, (spread**2).sum(axis=1), minlength=n_groups)
            within = np.minimum(within / (_DRAWS * n * (n - 1.0)), of_rest)
            scaled = np.zeros(values.size)
            shrink = np.sqrt(np.maximum(users - within, 0.0) / raw * n / (n - 1.0))[groups]
            scaled[rows] = np.nan_to_num(deviations * shrink / n[groups])
        is_used = self.shares > 0
        n_items = round(float((1.0 / self.sampled[is_used]).sum()))
        counts = int(is_used.sum()), n_items
        of_audited = influences[:, : 2 * self.shares.size]
        parts = (
            users - within,
            within,
            of_audited @ of_audited.T,
            items,
            influences,
            scaled,
            self.item_df,
        )
        return CorrectedMeans(n, means, *parts, *counts)

    def summarize(self, values: FloatArray) -> Measurement:
        """Return the mean of corrected values, with its interval and samples.

        The interval of a value that is not linear holds the θ with

            (value - θ)² ≤ t² (V_items + V_users θ (1 - θ) / (value (1 - value)))

        as Wilson's of a share. Below 0.1 and above 0.9, V_users is at least that of a share: few
        units without a hit, or with one, make their variance seem smaller.
        """
        from scipy.special import stdtrit

        codes = np.zeros(values.size, dtype=np.int64)
        plain, joint = Measurement.from_values(values), self.estimate(values, codes, 1)
        if plain.n < 2 or np.count_nonzero(self.shares) < LEAST:
            return Measurement(math.nan, 0, values.size)
        error, df = joint.measure_error(0)
        half = float(stdtrit(df, 0.975)) * error
        low, high = plain.value - half, plain.value + half
        if self.rest.shape[1] and half > 0:
            low, high = _find_score_interval(joint, min(max(plain.value, 0.0), 1.0), half / error)
            low, high = min(low, plain.value), max(high, plain.value)  # of a value beyond 0 or 1
        return Measurement(
            *(plain.value, plain.n, plain.undefined, plain.std),
            ci_low=low,
            ci_high=high,
            replicates=resample_corrected(joint, codes, _SAMPLES)[:, 0],
            df=df,
        )


def _find_score_interval(joint: CorrectedMeans, value: float, t: float) -> tuple[float, float]:
    """Return the interval of a value; see ``Audit.summarize``."""
    users, within, items = (
        float(each.ravel()[0]) for each in (joint.users, joint.within, joint.items)
    )
    n, spread = int(joint.n[0]), value * (1.0 - value)
    if abs(value - 0.5) > _NEAR_END:
        users = max(users + within, spread / n) - within
    rest = items + min(users, 0.0)
    slope = t**2 * (max(users, 0.0) / spread if spread > 0 else 1.0 / n)
    centre = (value + slope / 2.0) / (1.0 + slope)
    half = math.sqrt(max(centre**2 - (value**2 - t**2 * rest) / (1.0 + slope), 0.0))
    return centre - half, centre + half


def resample_corrected(means: CorrectedMeans, codes: AnyArray, n_samples: int) -> FloatArray:
    """Return the means with random errors of both kinds, ``float64[b, g]``.

    Each user and each audited item has a normal multiplier, which all models share.
    """
    users, items = (np.random.default_rng(kind) for kind in (1, 2))
    multipliers = items.standard_normal((n_samples, means.influences.shape[1]))
    samples = means.means + multipliers @ means.influences.T
    for start in range(0, codes.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        normal = users.standard_normal((n_samples, codes[part].size), dtype=np.float32)
        for group in range(means.means.size):
            samples[:, group] += normal @ (means.scaled[part] * (codes[part] == group))
    return np.asarray(samples)


def compare_corrected(
    names: Sequence[str], joint: CorrectedMeans, pairs: tuple[AnyArray, AnyArray]
) -> list[Contrast]:
    """Return the t-tests of pairs of groups, by the two-way variance of their difference."""
    from scipy.special import stdtr, stdtrit

    tests = []
    for a, b in zip(*(side.tolist() for side in pairs), strict=True):
        difference = float(joint.means[a] - joint.means[b])
        error, df = joint.measure_error(a, b)
        t = difference / error if error > 0 else math.nan
        half = float(stdtrit(df, 0.975)) * error if error > 0 else math.nan
        test = Contrast(
            *("groups", names[a], names[b], TEST, int(joint.n[a] + joint.n[b])),
            *(float(joint.means[a]), float(joint.means[b]), difference, t),
            *(float(2.0 * stdtr(df, -abs(t))), df, difference - half, difference + half),
        )
        tests.append(test)
    return tests


_BLOCK = 2**13
"""The number of users with a multiplier in memory."""

_SAMPLES = 1000
_NEAR_END = 0.4

_DRAWS = 32
"""How often the labels of all items are drawn."""


class HumanLabels(NamedTuple):
    """The labels that people gave to a sample of the items.

    Args:
        labels: 0 to 1, NaN for items that nobody labelled, ``float64[n_items]``.
        variance: The variance of each label as a mean of raters.
        probability: The probability by which each audited item was chosen; None if they are a
            random sample of the items that the values depend on.
    """

    labels: FloatArray
    variance: FloatArray
    probability: FloatArray | None = None


class Correction(NamedTuple):
    """Corrected values, their errors, λ, and the number of audited items with another label."""

    values: FloatArray
    audit: Audit
    lam: float
    n_wrong: int


def correct_lists(
    score: Callable[[FloatArray], AnyArray],
    items: Codes,
    defined: AnyArray,
    predictions: FloatArray,
    human: HumanLabels,
) -> Correction:
    """Return the corrected value of each list; see the module.

    Args:
        score: The value of each list from the labels at its ranks, ``float64[q, k]``, 0 where
            there is none: linear in each label.
        items: The item at each rank, ``int[q, k]``; -1 where none has a prediction.
        defined: Which lists have a value, ``bool[q]``.
        predictions: The judge's label of each item, 0 to 1, ``float64[n_items]``.
        human: The human labels.
    """
    from scipy.sparse import csr_array

    n_items = predictions.size
    audited, at = np.flatnonzero(~np.isnan(human.labels)), np.full(n_items + 1, -1)
    at[audited] = np.arange(audited.size)
    present = (items >= 0) & defined[:, None]
    slopes = _find_slopes(score, np.zeros(items.shape), present)  # of a label on its own
    exposure = np.bincount(items[present], slopes[present], n_items) / max(defined.sum(), 1)
    weights, shares, sampled = _weigh(exposure, audited, human.probability)
    lam, level = _tune(human.labels[audited], predictions[audited], shares, sampled)
    labels = np.append(level + lam * predictions, 0.0)
    others = _find_slopes(score, np.full(items.shape, 0.5), present)
    if is_curved := not np.allclose(slopes, others):
        labels = np.clip(labels, 0.0, 1.0)  # probabilities, whose products are expected values
        slopes = _find_slopes(score, np.where(present, labels[items], 0.0), present)
    expected = np.where(present, labels[items], 0.0)
    values = np.where(defined, np.asarray(score(expected), dtype=np.float64), np.nan)
    rows, ranks = np.nonzero(present & (at[items] >= 0))
    columns = at[items[rows, ranks]]
    gains = weights[columns] * slopes[rows, ranks]
    shape = (len(items), audited.size)
    errors = csr_array(
        (gains * (human.labels - labels[:-1])[audited][columns], (rows, columns)), shape
    )
    spread = np.sqrt(human.variance[audited] * sampled)
    noise = csr_array((gains * spread[columns], (rows, columns)), shape)
    rest = np.zeros((len(items), 0))
    values = values + np.asarray(errors.sum(axis=1))
    if is_curved:
        known = labels.copy()
        known[audited] = human.labels[audited]
        uniform = np.random.default_rng(3).random((_DRAWS, n_items + 1))
        drawn = [known, *(np.where(known == labels, draw < labels, known) for draw in uniform)]
        found = (np.where(present, each[items], 0.0) for each in drawn)
        parts = [score(each) - ((each - expected) * slopes).sum(axis=1) for each in found]
        values += parts[0] - score(expected)
        rest = np.stack(parts[1:], axis=1) - parts[0][:, None]
    is_wrong = np.abs(human.labels - predictions)[audited] >= 0.5
    n_wrong = int(np.count_nonzero(is_wrong & (shares > 0)))
    return Correction(values, Audit(errors, noise, shares, sampled, rest), lam, n_wrong)


def _find_slopes(
    score: Callable[[FloatArray], AnyArray], labels: FloatArray, present: AnyArray
) -> FloatArray:
    """Return how much the value of a list changes with the label at each rank, ``[q, k]``."""
    slopes = np.zeros(labels.shape)
    for rank in range(labels.shape[1]):
        ends = []
        for label in (0.0, 1.0):
            changed = labels.copy()
            changed[:, rank] = label
            ends.append(np.asarray(score(changed), dtype=np.float64))
        slopes[:, rank] = np.where(present[:, rank], ends[1] - ends[0], 0.0)
    return slopes


def _weigh(
    exposure: FloatArray, audited: AnyArray, probability: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return w, q and π of the audited items; all 0 where none of them is exposed."""
    own = exposure[audited]
    n_used, n_exposed = int(np.count_nonzero(own)), int(np.count_nonzero(exposure))
    sampled = np.full(audited.size, n_used / max(n_exposed, 1))
    if probability is not None:
        sampled = probability[audited]
    inverse = 1.0 / np.maximum(sampled, 1e-12)
    total = float((own * inverse).sum())
    if total == 0:
        return (zeros := np.zeros(audited.size)), zeros, sampled
    return inverse * float(exposure.sum()) / total, own * inverse / total, sampled


def _tune(
    human: FloatArray, predictions: FloatArray, shares: FloatArray, sampled: FloatArray
) -> tuple[float, float]:
    """Return λ, which minimises the variance over the audited items, and ρ: Σ q (h - p) = 0."""
    h, f = (values - float(shares @ values) for values in (human, predictions))
    weights = shares**2 * np.maximum(1.0 - sampled, 1e-6)
    spread = float(weights @ f**2)
    lam = min(max(float(weights @ (h * f)) / spread, 0.0), 1.0) if spread > 0 else 0.0
    return lam, float(shares @ (human - lam * predictions))
