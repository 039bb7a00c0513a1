"""RowAdam against Adam on all rows, in double precision and by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.models.training import RowAdam, look_up

torch = pytest.importorskip("torch")

RATE = 0.01


def make_table(n_rows: int, size: int = 2) -> Any:
    values = np.linspace(-0.1, 0.1, n_rows * size, dtype=np.float32).reshape(n_rows, size)
    return torch.tensor(values, requires_grad=True)


def train(table: Any, batches: Sequence[Sequence[int]], optimizer: Any, read: Any) -> None:
    """Make a step per batch towards targets that depend on the rows of the batch."""
    for number, batch in enumerate(batches):
        codes = torch.tensor(batch, dtype=torch.int64)
        targets = torch.tensor([0.3 * np.sin(number + code) for code in batch])
        optimizer.zero_grad()
        (read(table, codes).sum(1) - targets).square().sum().backward()
        optimizer.step()


class Steps:
    """RowAdam with the calls of an optimizer of torch; flushes after some steps."""

    def __init__(self, optimizer: RowAdam, flushed: frozenset[int] = frozenset()) -> None:
        self.optimizer, self.flushed, self.n_steps = optimizer, flushed, 0

    def zero_grad(self) -> None:
        """Do nothing: rows are new in each batch."""

    def read(self, table: Any, codes: Any) -> Any:
        with self.optimizer.record():
            return look_up(table, codes)

    def step(self) -> None:
        self.optimizer.step()
        self.n_steps += 1
        if self.n_steps in self.flushed:
            self.optimizer.flush()


def train_rows(
    table: Any, batches: Sequence[Sequence[int]], flushed: frozenset[int] = frozenset()
) -> Any:
    steps = Steps(RowAdam([table], RATE), flushed)
    train(table, batches, steps, steps.read)
    steps.optimizer.flush()
    return table.detach().numpy()


def train_densely(table: Any, batches: Sequence[Sequence[int]]) -> Any:
    exact = table.detach().double().requires_grad_()
    optimizer = torch.optim.Adam([exact], lr=RATE)
    train(exact, batches, optimizer, lambda rows, codes: rows.index_select(0, codes))
    return exact.detach().numpy()


def test_an_idle_row_moves_by_its_moments() -> None:
    # gradient 1 in step 1: m = 0.1, v = 0.001, both corrected to 1: a move by the rate
    # step 2: m = 0.09 / (1 - 0.81) = 0.473684, v = 0.000999 / (1 - 0.998001) = 0.499750
    # a move by 0.473684 / sqrt(0.499750) = 0.670059 rates
    table = torch.zeros((3, 1), requires_grad=True)
    optimizer = RowAdam([table], RATE)
    with optimizer.record():
        look_up(table, torch.tensor([1])).sum().backward()
    optimizer.step()
    assert table.flatten().tolist() == pytest.approx([0, -RATE, 0])
    with optimizer.record():
        look_up(table, torch.tensor([0])).sum().backward()
    optimizer.step()
    optimizer.flush()
    assert table[1].item() == pytest.approx(-1.670059 * RATE, rel=1e-5)


BATCHES = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4), max_size=12)


@given(BATCHES)
def test_steps_are_those_of_adam_on_all_rows(batches: list[list[int]]) -> None:
    exact = train_densely(make_table(5), batches)
    np.testing.assert_allclose(train_rows(make_table(5), batches), exact, rtol=0, atol=1e-6)
