"""recbias measures the bias of recommender systems.

``recbias.run(spec)`` runs an experiment like the command; ``recbias.load(folder)`` opens a run;
``recbias.power(run, 0.01)`` counts the units that a difference of 0.01 needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recbias.api import Run, load, power, run

__version__ = "0.1.0"

__all__ = ["Run", "__version__", "load", "power", "run"]


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that ``recbias --help`` stays fast."""
    if name in {"Run", "load", "power", "run"}:
        import recbias.api

        return getattr(recbias.api, name)
    message = f"module 'recbias' has no attribute {name!r}"
    raise AttributeError(message)
