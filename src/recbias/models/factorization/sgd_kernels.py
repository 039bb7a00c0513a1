"""Loops of SGD steps on single samples, in order, to be compiled by ``compile_loop``.

Each kernel takes the samples, arrays of one length; the tables of ``FactorTables.arrays``, which
it updates in place; and ``float32`` settings that start with the learning rate. It returns the sum
of the losses, each computed before its step and without the penalty.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.numerics.compiled.prefetch import prefetch_row

Settings: TypeAlias = tuple[Any, ...]
Arrays: TypeAlias = tuple[AnyArray, ...]

ZERO, ONE = np.float32(0), np.float32(1)
AHEAD = 6
"""So many samples before its step, the vectors of a sample are brought into the cache."""

FACTORS = 32
"""Number of losses whose sum is one logarithm of a product; each factor is from 1 to 2."""


def step_bpr(samples: Arrays, tables: Arrays, settings: Settings) -> float:
    """Minimise ``-ln σ(x) + (reg_user |p|² + reg_i |q_i|² + reg_j |q_j|² + reg_b (...)) / 2``.

    ``x = p · (q_i - q_j) + b_i - b_j``; the gradient of ``-ln σ(x)`` by x is ``-σ(-x)``.
    """
    users, positives, negatives = samples
    p, q, _, bias, _ = tables
    rate, reg_user, reg_positive, reg_negative, reg_bias = settings
    decay_user, decay_bias = ONE - rate * reg_user, ONE - rate * reg_bias
    decay_positive, decay_negative = ONE - rate * reg_positive, ONE - rate * reg_negative
    total, product = 0.0, 1.0
    for s in range(users.size):
        ahead = min(s + AHEAD, users.size - 1)
        prefetch_row(p, users[ahead])
        prefetch_row(q, positives[ahead])
        prefetch_row(q, negatives[ahead])
        i, j = np.uintp(positives[s]), np.uintp(negatives[s])
        user, positive, negative = p[np.uintp(users[s])], q[i], q[j]
        margin = bias[i, 0] - bias[j, 0]
        for f in range(user.size):
            margin += user[f] * (positive[f] - negative[f])
        small = math.exp(-abs(margin))
        total += max(-margin, ZERO)
        product *= 1.0 + small
        if s % FACTORS == FACTORS - 1:
            total += math.log(product)
            product = 1.0
        pull = rate * (small if margin > ZERO else ONE) / (ONE + small)
        for f in range(user.size):
            a, b, c = user[f], positive[f], negative[f]
            user[f] = decay_user * a + pull * (b - c)
            positive[f] = decay_positive * b + pull * a
            negative[f] = decay_negative * c - pull * a
        bias[i, 0] = decay_bias * bias[i, 0] + pull
        bias[j, 0] = decay_bias * bias[j, 0] - pull
    return total + math.log(product)


def step_logistic(samples: Arrays, tables: Arrays, settings: Settings) -> float:
    """Minimise ``-y ln σ(s) - (1 - y) ln σ(-s) + reg (b² + b_u² + b_i² + |p|² + |q|²) / 2``.

    ``s = b + b_u + b_i + p · q``; the gradient of the cross-entropy by s is ``σ(s) - y``.
    """
    users, items, labels = samples
    p, q, user_bias, item_bias, offset = tables
    rate, reg = settings
    total, decay = 0.0, ONE - rate * reg
    for s in range(users.size):
        ahead = min(s + AHEAD, users.size - 1)
        prefetch_row(p, users[ahead])
        prefetch_row(q, items[ahead])
        u, i = np.uintp(users[s]), np.uintp(items[s])
        user, item = p[u], q[i]
        score = offset[0] + user_bias[u, 0] + item_bias[i, 0]
        for f in range(user.size):
            score += user[f] * item[f]
        small = math.exp(-abs(score))
        total += math.log1p(small) + max(score, ZERO) - labels[s] * score
        pull = rate * (labels[s] - (ONE if score > ZERO else small) / (ONE + small))
        for f in range(user.size):
            a, c = user[f], item[f]
            user[f] = decay * a + pull * c
            item[f] = decay * c + pull * a
        user_bias[u, 0] = decay * user_bias[u, 0] + pull
        item_bias[i, 0] = decay * item_bias[i, 0] + pull
        offset[0] = decay * offset[0] + pull
    return total


def step_squared(samples: Arrays, tables: Arrays, settings: Settings) -> float:
    """Minimise ``((r - s)² + reg (|p|² + |q|² + b_u² + b_i²)) / 2``.

    ``s = mean + b_u + b_i + p · q``, without biases if the tables have none.
    """
    users, items, values = samples
    p, q, user_bias, item_bias, _ = tables
    rate, reg, mean = settings
    total, decay, has_bias = 0.0, ONE - rate * reg, item_bias.size > 0
    for s in range(users.size):
        ahead = min(s + AHEAD, users.size - 1)
        prefetch_row(p, users[ahead])
        prefetch_row(q, items[ahead])
        u, i = np.uintp(users[s]), np.uintp(items[s])
        user, item, score = p[u], q[i], mean
        if has_bias:
            score += user_bias[u, 0] + item_bias[i, 0]
        for f in range(user.size):
            score += user[f] * item[f]
        error = values[s] - score
        total += error * error
        pull = rate * error
        for f in range(user.size):
            a, c = user[f], item[f]
            user[f] = decay * a + pull * c
            item[f] = decay * c + pull * a
        if has_bias:
            user_bias[u, 0] = decay * user_bias[u, 0] + pull
            item_bias[i, 0] = decay * item_bias[i, 0] + pull
    return total / 2
