"""A plot that cannot be drawn costs nothing but itself."""

from __future__ import annotations

from collections.abc import Callable

from recbias.reports.plots.drawing.svg import Figure

DRAWING_FAULTS: tuple[type[Exception], ...] = (
    *(ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(MemoryError, OSError),
)
"""What a fault of a plot, or of the library that draws it, is raised as."""


def draw_or_tell(
    what: str, draw: Callable[[], Figure | None], faults: list[str]
) -> tuple[Figure, ...]:
    """Return the figure, if there is one; where it fails, why is added to the faults."""
    try:
        figure = draw()
    except DRAWING_FAULTS as error:
        faults.append(describe_fault(what, error))
        return ()
    return () if figure is None else (figure,)


def describe_fault(what: str, error: Exception) -> str:
    """Return why a plot is not there, in a sentence.

    >>> describe_fault("Long tail", ValueError("no ticks"))
    'Long tail: it could not be drawn (ValueError: no ticks).'
    """
    reason = f"{type(error).__name__}: {str(error)[:200]}".removesuffix(": ")
    return f"{what}: it could not be drawn ({reason})."
