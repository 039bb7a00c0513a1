"""recbias: the bench on which people measure how biased a recommender is.

``recbias.run(spec)`` does what the command does; ``recbias.load(folder)`` opens a finished run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recbias.api import Run, load, run

__version__ = "0.1.0"

__all__ = ["Run", "__version__", "load", "run"]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first asked for: ``recbias --help`` needs none."""
    if name in {"Run", "load", "run"}:
        import recbias.api

        return getattr(recbias.api, name)
    message = f"module 'recbias' has no attribute {name!r}"
    raise AttributeError(message)
