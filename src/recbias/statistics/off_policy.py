"""Off-policy evaluation: the value of a policy from a log of another one.

Each estimator is a sum over the rows of a log divided by another sum, so that users can be the
clusters of its interval. ``weights`` are π(a | x) / p, the probability of the shown item under the
policy divided by that under which it was shown.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from recbias.core.dataset import AnyArray, FloatArray

Estimator: TypeAlias = Literal["ips", "snips", "direct", "dr", "iips", "rips", "sips", "slate_pi"]

SLATE_ESTIMATORS = frozenset({"iips", "rips", "sips", "slate_pi"})
"""The estimators of the reward of a request, the sum over its items; the others are of a row."""

WEIGHTED = ("ips", "snips", "dr", *sorted(SLATE_ESTIMATORS))
"""The estimators with weights of importance; ``direct`` has none."""


class Terms(NamedTuple):
    """What each row adds to the numerator, the denominator and the error of fitted values."""

    numerators: FloatArray
    denominators: FloatArray
    errors: FloatArray | None = None


def estimate_rows(
    estimator: Estimator,
    weights: FloatArray,
    rewards: FloatArray,
    expected: FloatArray,
    expected_shown: FloatArray,
) -> Terms:
    """Return the terms of an estimator of the mean reward of a row.

        ips     Σ w r / n            snips   Σ w r / Σ w
        direct  Σ q_π / n            dr      Σ ( q_π + w (r - q) ) / n

    For ``direct``, where q is the mean of the rewards of each item and w the ratio of the shares
    of the items, w (r - q) are the terms by which the variance of q counts: ``errors``. They add
    up to 0 over the log, but not over a group of users, to whose value they add nothing.

    Args:
        estimator: One that is not of ``SLATE_ESTIMATORS``.
        weights: w, ``float64[n]``.
        rewards: r, ``float64[n]``.
        expected: q_π = Σ_a π(a | x) q(x, a), the expected reward under the policy.
        expected_shown: q(x, a) of the item that was shown.

    >>> w, r, q = np.array([2.0, 0.5]), np.array([1.0, 0.0]), np.array([0.5, 0.5])
    >>> terms = estimate_rows("snips", w, r, q, q)
    >>> float(terms.numerators.sum() / terms.denominators.sum())
    0.8

    Source:
        Swaminathan and Joachims, NeurIPS 2015 (snips); Dudík, Langford and Li, ICML 2011 (dr).
    """
    ones = np.ones(rewards.size)
    if estimator == "ips":
        return Terms(weights * rewards, ones)
    if estimator == "snips":
        return Terms(weights * rewards, weights)
    errors = np.asarray(weights * (rewards - expected_shown))
    if estimator == "direct":
        return Terms(expected, ones, errors)
    return Terms(np.asarray(expected + errors), ones)


def estimate_slates(
    estimator: Estimator, weights: FloatArray, rewards: FloatArray, requests: AnyArray
) -> Terms:
    """Return the terms of an estimator of the sum of the rewards of a request.

        iips      Σ_l w_l r_l                     rewards depend on the item and its position
        rips      Σ_l ( Π_(j <= l) w_j ) r_l      and on the items above it
        sips      ( Π_l w_l ) Σ_l r_l             and on all items
        slate_pi  ( 1 + Σ_l (w_l - 1) ) Σ_l r_l   their sum is a sum of effects of the items

    ``w_l`` is the weight of the item at position l. Each is unbiased where rewards depend on the
    items as stated, and positions were filled independently of each other.

    Args:
        estimator: One of ``SLATE_ESTIMATORS``.
        weights: w, ``float64[n]``, in the order of the positions of each request.
        rewards: r, ``float64[n]``.
        requests: The request of each row; its rows stand together, ``int[n]``.

    >>> w, r = np.array([2.0, 0.5, 1.0]), np.array([0.0, 1.0, 1.0])
    >>> [float(sum(estimate_slates(name, w, r, np.array([0, 0, 0])).numerators))
    ...  for name in ("iips", "rips", "sips", "slate_pi")]
    [1.5, 2.0, 2.0, 3.0]

    Source:
        Li et al., KDD 2018 (iips); McInerney et al., KDD 2020 (rips); Swaminathan et al., NeurIPS
        2017 (slate_pi); implemented for independent positions as in Vlassis et al., ICML 2021.
    """
    is_first = np.diff(requests, prepend=requests[:1] - 1) != 0
    if estimator == "iips":
        factors = weights
    elif estimator == "slate_pi":
        starts = np.flatnonzero(is_first)
        sums = np.add.reduceat(weights - 1, starts)
        factors = np.repeat(1 + sums, np.diff(starts, append=requests.size))
    else:
        factors = _multiply(weights, requests, whole=estimator == "sips")
    return Terms(np.asarray(factors * rewards), is_first.astype(np.float64))


def _multiply(values: FloatArray, requests: AnyArray, *, whole: bool) -> FloatArray:
    """Return the product of the values of the request up to each row, or of the whole request."""
    starts = np.flatnonzero(np.diff(requests, prepend=requests[:1] - 1))
    lengths = np.diff(starts, append=requests.size)
    products = values.astype(np.float64)
    ranks = np.arange(requests.size) - np.repeat(starts, lengths)
    for rank in range(1, int(lengths.max(initial=0))):
        rows = np.flatnonzero(ranks == rank)
        products[rows] *= products[rows - 1]
    return np.repeat(products[starts + lengths - 1], lengths) if whole else products


def lose_mass(estimator: Estimator, mass: FloatArray, requests: AnyArray) -> FloatArray:
    """Return the probability that an estimator knows nothing of the reward of a row.

    Args:
        estimator: The estimator.
        mass: The probability that the policy shows what the log never shows there, ``float64[n]``.
        requests: The request of each row; its rows stand together, ``int[n]``.

    >>> lose_mass("rips", np.array([0.5, 0.5]), np.array([0, 0])).tolist()
    [0.5, 0.75]
    """
    if estimator in {"rips", "sips"}:
        return 1.0 - _multiply(1.0 - mass, requests, whole=estimator == "sips")
    if estimator == "slate_pi":
        whole = _multiply((mass == 0).astype(np.float64), requests, whole=True)
        return 1.0 - whole
    return mass
