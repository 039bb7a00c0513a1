"""recbias measures the bias of recommender systems.

``recbias.run(spec)`` runs an experiment like the command, ``recbias.plan(spec)`` lists its stages;
``recbias.load("name")`` opens a run, ``recbias.compare("before", "after")`` compares several, and
``recbias.list_runs()`` lists them; ``recbias.power(run, 0.01)`` counts the units that a difference
of 0.01 needs; ``recbias.verify("card.json", run)`` computes an audit card again.
"""

from __future__ import annotations

TYPE_CHECKING = False  # without typing, whose import takes most of the time until __main__ begins

if TYPE_CHECKING:
    from typing import Any

    from recbias.api import Run, compare, list_runs, load, power, run, verify
    from recbias.api import list_stages as plan

__version__ = "0.1.0"

_NAMES = ("Run", "compare", "list_runs", "load", "plan", "power", "run", "verify")

__all__ = ["Run", "__version__", "compare", "list_runs", "load", "plan", "power", "run", "verify"]


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that ``recbias --help`` stays fast."""
    if name in _NAMES:
        import recbias.api

        return getattr(recbias.api, "list_stages" if name == "plan" else name)
    message = f"module 'recbias' has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return __all__
