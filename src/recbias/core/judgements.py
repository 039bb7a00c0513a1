"""How good a model is while it is still trained, told to whoever may stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Judge: TypeAlias = Callable[[int, float], None]
"""Called with (epoch, figure); raises ``Pruned`` to end the training."""

_judge: ContextVar[Judge | None] = ContextVar("judge", default=None)


class Pruned(Exception):
    """The training is ended because other settings were better at this epoch."""


@contextmanager
def judging(judge: Judge) -> Iterator[None]:
    """Tell ``judge`` the figure of each epoch of what is trained inside this block."""
    token = _judge.set(judge)
    try:
        yield
    finally:
        _judge.reset(token)


def is_judged() -> bool:
    """Return whether somebody wants to know."""
    return _judge.get() is not None


def judged(epoch: int, figure: float) -> None:
    """Say how good the model is after an epoch; more is better.

    Raises:
        Pruned: It need not be trained further.
    """
    judge = _judge.get()
    if judge is not None:
        judge(epoch, figure)
