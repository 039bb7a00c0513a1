"""Adam for tables of vectors of which a batch reads a few rows: only these rows are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.ranking.tensors import Tensor
from recbias.models.training.row_adam_kernels import (
    DECAY,
    SETTLED,
    SQUARE_DECAY,
    make_idle_steps,
    make_steps,
)
from recbias.numerics.compiled.loops import CompiledOnce

_CURRENT: ContextVar[RowAdam | None] = ContextVar("row_adam", default=None)


def look_up(table: Tensor, codes: Tensor) -> Tensor:
    """Return rows of a table, ``(*codes.shape, d)``, through which gradients flow to the table."""
    optimizer = _CURRENT.get()
    if optimizer is not None and (rows := optimizer.read(table, codes)) is not None:
        return rows
    return table.index_select(0, codes.flatten()).unflatten(0, codes.shape)


class RowAdam:
    """Adam on tables that losses read by ``look_up`` only, in memory of the CPU.

        m = β1 m + (1 - β1) g,   v = β2 v + (1 - β2) g²
        p = p - η / (1 - β1^t) m / (sqrt(v / (1 - β2^t)) + 1e-8)

    A row outside the batch has the gradient 0 and still moves, as in ``torch.optim.Adam``. Its
    steps are made when it is next read: the values are the same, and a batch takes the time of its
    own rows, not of the table. After 200 steps without a gradient a row stays where it is, as the
    steps that follow would change it by less than 3e-8 η.

    Args:
        tables: ``float32 (n, d)`` tensors on the CPU, changed in place.
        learning_rate: η.

    Source:
        Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1.

    >>> import torch
    >>> table = torch.ones((3, 1), requires_grad=True)
    >>> optimizer = RowAdam([table], learning_rate=0.1)
    >>> with optimizer.record():
    ...     look_up(table, torch.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> [round(value, 4) for value in table.detach().flatten().tolist()]
    [1.0, 0.9, 1.0]
    """

    def __init__(self, tables: Sequence[Tensor], learning_rate: float) -> None:
        steps = np.arange(1, SETTLED + 1)
        self._rates = (learning_rate / (1 - DECAY**steps)).astype(np.float32)
        self._scales = (1 / np.sqrt(1 - SQUARE_DECAY**steps)).astype(np.float32)
        self._moments = {id(table): _Moments.create(table) for table in tables}
        self._n_steps = 0
        self._make_idle_steps = CompiledOnce(make_idle_steps)
        self._make_steps = CompiledOnce(make_steps)

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the rows that ``look_up`` reads in the block, and their gradients."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def read(self, table: Tensor, codes: Tensor) -> Tensor | None:
        """Return recorded rows of a table, or None if it is not one of the tables."""
        moments = self._moments.get(id(table))
        if moments is None:
            return None
        flat = codes.flatten()
        self._catch_up(moments, flat.numpy())
        rows = table.detach().index_select(0, flat).requires_grad_()
        moments.reads.append((flat, rows))
        return rows.unflatten(0, codes.shape)

    def step(self) -> None:
        """Move the rows that were read since the last step by their gradients."""
        self._n_steps += 1
        for moments in self._moments.values():
            reads = [(codes, rows.grad) for codes, rows in moments.reads if rows.grad is not None]
            moments.reads.clear()
            if not reads:
                continue
            codes = np.concatenate([codes.numpy() for codes, _ in reads])
            gradients = np.concatenate([gradient.numpy() for _, gradient in reads])
            batch = codes, gradients, moments.slots
            self._make_steps(moments.arrays(), batch, self._corrections())

    def flush(self) -> None:
        """Make the steps of all rows, so that the tables can be read."""
        for moments in self._moments.values():
            self._catch_up(moments, np.arange(len(moments.values)))

    def state(self) -> Sequence[Mapping[str, AnyArray]]:
        """Return the moments and numbers of steps of each table."""
        n_steps = np.array(self._n_steps)
        return [{"n_steps": n_steps, **moments.state()} for moments in self._moments.values()]

    def restore(self, states: Sequence[Mapping[str, AnyArray]]) -> None:
        """Continue from a state; the tables have the values of that time."""
        for moments, state in zip(self._moments.values(), states, strict=True):
            self._n_steps = int(state["n_steps"])
            for name, array in moments.state().items():
                array[...] = state[name]

    def _catch_up(self, moments: _Moments, codes: AnyArray) -> None:
        self._make_idle_steps(moments.arrays(), codes, self._corrections())

    def _corrections(self) -> tuple[AnyArray, AnyArray, int]:
        return self._rates, self._scales, self._n_steps


@dataclass(frozen=True, eq=False)
class _Moments:
    """A table with its moments, and for each row the last step with a gradient and of all."""

    values: AnyArray  # ``float32 (n, d)``, the memory of the tensor
    mean: AnyArray  # ``m``, ``float32 (n, d)``
    square: AnyArray  # ``v``, ``float32 (n, d)``
    last: AnyArray  # The last step with a gradient, ``int64[n]``; 0 if there was none
    done: AnyArray  # The last step that was made, ``int64[n]``
    slots: AnyArray  # -1, ``int64[n]``: where a row of a batch is in the sums of its gradients
    reads: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    @classmethod
    def create(cls, table: Tensor) -> _Moments:
        values = table.detach().numpy()
        last, done, slots = (np.full(len(values), start, dtype=np.int64) for start in (0, 0, -1))
        moments = np.zeros_like(values), np.zeros_like(values)
        return cls(values, *moments, last, done, slots)

    def arrays(self) -> tuple[AnyArray, ...]:
        return self.values, self.mean, self.square, self.last, self.done

    def state(self) -> Mapping[str, AnyArray]:
        names = ("mean", "square", "last", "done")
        return {name: getattr(self, name) for name in names}
