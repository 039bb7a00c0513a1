"""A plot that fails is reported and costs the run nothing else."""

from __future__ import annotations

DRAWING_FAULTS: tuple[type[Exception], ...] = (
    *(ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(MemoryError, OSError),
)
"""Exceptions that an unexpected value can raise in a plot."""


def describe_fault(title: str, error: Exception) -> str:
    """Return the sentence that says why a plot is missing.

    >>> describe_fault("Long tail", ValueError("no ticks"))
    'Long tail: the plot failed (ValueError: no ticks).'
    """
    reason = f"{type(error).__name__}: {str(error)[:200]}".removesuffix(": ")
    return f"{title}: the plot failed ({reason})."
