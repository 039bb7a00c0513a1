"""The steps of ``RowAdam`` on rows of a table, to be compiled by ``compile_loop``.

The tables are the values, both moments, and for each row the last step with a gradient and the
last step that was made; all are updated in place. The corrections are the learning rate over
``1 - β1^t`` and ``1 / sqrt(1 - β2^t)`` for t = 1, 2, ... and the number of steps so far.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray

Arrays: TypeAlias = tuple[AnyArray, ...]

DECAY, SQUARE_DECAY = 0.9, 0.999
"""β1 and β2, which are those of torch."""

IDLE = 200
"""After how many steps without a gradient a row stays where it is."""

SETTLED = 20_000
"""After how many steps the corrections are those of infinitely many, in ``float32``."""

B1, B2, EPS = np.float32(DECAY), np.float32(SQUARE_DECAY), np.float32(1e-8)
A1, A2 = np.float32(1 - DECAY), np.float32(1 - SQUARE_DECAY)  # 1 - B2 is off by 5e-5 in float32


def make_idle_steps(tables: Arrays, codes: AnyArray, corrections: tuple[Any, ...]) -> None:
    """Make the steps without a gradient that rows have not made yet."""
    values, means, squares, last, done = tables
    rates, scales, n_steps = corrections
    for code in codes:
        row = np.uintp(code)
        stop = min(n_steps, last[row] + IDLE)
        if last[row] == 0 or stop <= done[row]:
            continue
        vector, mean, square = values[row], means[row], squares[row]
        for step in range(done[row], stop):
            index = np.uintp(min(step, SETTLED - 1))
            rate, scale = rates[index], scales[index]
            for f in range(vector.size):
                m, v = B1 * mean[f], B2 * square[f]
                mean[f], square[f] = m, v
                vector[f] -= rate * m / (np.sqrt(v) * scale + EPS)
        done[row] = stop


def make_steps(tables: Arrays, batch: Arrays, corrections: tuple[Any, ...]) -> None:
    """Make the step of the rows of a batch by the sums of their gradients, which are changed.

    The batch has the codes of the rows, their gradients, and -1 for each row of the table.
    """
    values, means, squares, last, done = tables
    codes, gradients, slots = batch
    rates, scales, n_steps = corrections
    index = np.uintp(min(n_steps, SETTLED) - 1)
    rate, scale = rates[index], scales[index]
    for position in range(codes.size):
        first = slots[np.uintp(codes[position])]
        if first < 0:
            slots[np.uintp(codes[position])] = position
        else:
            gradients[np.uintp(first)] += gradients[position]
    for position in range(codes.size):
        row = np.uintp(codes[position])
        if slots[row] != position:
            continue
        slots[row] = -1
        vector, mean, square, gradient = values[row], means[row], squares[row], gradients[position]
        n_idle = n_steps - 1 - done[row]  # steps without a gradient after the row was left
        rest = np.float32(SQUARE_DECAY**n_idle)
        memory = B1 if n_idle == 0 else np.float32(0)
        for f in range(vector.size):
            g = gradient[f]
            m, v = memory * mean[f] + A1 * g, B2 * rest * square[f] + A2 * g * g
            mean[f], square[f] = m, v
            vector[f] -= rate * m / (np.sqrt(v) * scale + EPS)
        last[row] = done[row] = n_steps
