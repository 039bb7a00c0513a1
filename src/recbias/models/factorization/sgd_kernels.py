"""Steps of stochastic gradient descent by single samples, in order, as the papers have them.

Each takes the samples, arrays of one length; the tables of ``FactorTables.arrays``, which it moves
in place; and settings of ``float32``, the learning rate first. Each returns the sum of the losses,
every one before its step, without what ``reg`` adds. They are made to be ``compiled``.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray

Settings: TypeAlias = tuple[Any, ...]
Arrays: TypeAlias = tuple[AnyArray, ...]

ZERO, ONE = np.float32(0), np.float32(1)


def pairwise(samples: Arrays, tables: Arrays, settings: Settings) -> float:
    """Step down ``-ln σ(x) + (reg_user |p|² + reg_i |q_i|² + reg_j |q_j|² + reg_b (...)) / 2``.

    ``x = p · (q_i - q_j) + b_i - b_j``; the gradient of ``-ln σ(x)`` by x is ``-σ(-x)``.
    """
    users, positives, negatives = samples
    p, q, _, bias, _ = tables
    rate, reg_user, reg_positive, reg_negative, reg_bias = settings
    keep_user, keep_bias = ONE - rate * reg_user, ONE - rate * reg_bias
    keep_positive, keep_negative = ONE - rate * reg_positive, ONE - rate * reg_negative
    total = 0.0
    for s in range(users.size):
        i, j = np.uintp(positives[s]), np.uintp(negatives[s])
        user, better, worse = p[np.uintp(users[s])], q[i], q[j]
        margin = bias[i, 0] - bias[j, 0]
        for f in range(user.size):
            margin += user[f] * (better[f] - worse[f])
        small = math.exp(-abs(margin))
        total += math.log1p(small) + max(-margin, ZERO)
        pull = rate * (small if margin > ZERO else ONE) / (ONE + small)
        for f in range(user.size):
            a, b, c = user[f], better[f], worse[f]
            user[f] = keep_user * a + pull * (b - c)
            better[f] = keep_positive * b + pull * a
            worse[f] = keep_negative * c - pull * a
        bias[i, 0] = keep_bias * bias[i, 0] + pull
        bias[j, 0] = keep_bias * bias[j, 0] - pull
    return total


def logistic(samples: Arrays, tables: Arrays, settings: Settings) -> float:
    """Step down ``-y ln σ(s) - (1 - y) ln σ(-s) + reg (b² + b_u² + b_i² + |p|² + |q|²) / 2``.

    ``s = b + b_u + b_i + p · q``; the gradient of the cross-entropy by s is ``σ(s) - y``.
    """
    users, items, labels = samples
    p, q, of_user, of_item, offset = tables
    rate, reg = settings
    total, keep = 0.0, ONE - rate * reg
    for s in range(users.size):
        u, i = np.uintp(users[s]), np.uintp(items[s])
        user, item = p[u], q[i]
        score = offset[0] + of_user[u, 0] + of_item[i, 0]
        for f in range(user.size):
            score += user[f] * item[f]
        small = math.exp(-abs(score))
        total += math.log1p(small) + max(score, ZERO) - labels[s] * score
        pull = rate * (labels[s] - (ONE if score > ZERO else small) / (ONE + small))
        for f in range(user.size):
            a, c = user[f], item[f]
            user[f] = keep * a + pull * c
            item[f] = keep * c + pull * a
        of_user[u, 0] = keep * of_user[u, 0] + pull
        of_item[i, 0] = keep * of_item[i, 0] + pull
        offset[0] = keep * offset[0] + pull
    return total


def squared(samples: Arrays, tables: Arrays, settings: Settings) -> float:
    """Step down ``((r - s)² + reg (|p|² + |q|² + b_u² + b_i²)) / 2``.

    ``s = mean + b_u + b_i + p · q``, without biases where the tables have none.
    """
    users, items, values = samples
    p, q, of_user, of_item, _ = tables
    rate, reg, mean = settings
    total, keep, biased = 0.0, ONE - rate * reg, of_item.size > 0
    for s in range(users.size):
        u, i = np.uintp(users[s]), np.uintp(items[s])
        user, item, score = p[u], q[i], mean
        if biased:
            score += of_user[u, 0] + of_item[i, 0]
        for f in range(user.size):
            score += user[f] * item[f]
        error = values[s] - score
        total += error * error
        pull = rate * error
        for f in range(user.size):
            a, c = user[f], item[f]
            user[f] = keep * a + pull * c
            item[f] = keep * c + pull * a
        if biased:
            of_user[u, 0] = keep * of_user[u, 0] + pull
            of_item[i, 0] = keep * of_item[i, 0] + pull
    return total / 2
