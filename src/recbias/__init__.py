"""recbias measures the bias of recommender systems.

``recbias.run(spec)`` runs an experiment like the command, ``recbias.plan(spec)`` lists its stages;
``recbias.load("name")`` opens a run, ``recbias.compare("before", "after")`` compares several, and
``recbias.list_runs()`` lists them; ``recbias.examples(run)`` returns the users
that a metric is worst for; ``recbias.explain(run, "nDCG by gender")`` says what a gap comes
from; ``recbias.multiverse(spec)`` runs a claim in every defensible setting;
``recbias.probe(spec)`` audits a live endpoint, and ``recbias.monitor("name")`` says since when
runs have had a gap; ``recbias.power(run, 0.01)`` counts the units that a difference of 0.01 needs;
``recbias.verify("card.json", run)`` computes an audit card again.
"""

from __future__ import annotations

TYPE_CHECKING = False  # without typing, whose import takes most of the time until __main__ begins

if TYPE_CHECKING:
    from typing import Any

    from recbias.api import list_stages as plan
    from recbias.api import run
    from recbias.audits.monitor import monitor
    from recbias.audits.probe import probe
    from recbias.claims.explain import explain
    from recbias.claims.multiverse import multiverse
    from recbias.runs.power import power
    from recbias.runs.tables import Run, compare, examples, list_runs, load, verify

__version__ = "0.1.0"

_PLACES = {
    "run": "api:run",
    "plan": "api:list_stages",
    **{name: f"runs.tables:{name}" for name in ("Run", "compare", "examples", "list_runs")},
    **{name: f"runs.tables:{name}" for name in ("load", "verify")},
    "monitor": "audits.monitor:monitor",
    "probe": "audits.probe:probe",
    "explain": "claims.explain:explain",
    "multiverse": "claims.multiverse:multiverse",
    "power": "runs.power:power",
}

__all__ = [
    "Run",
    "__version__",
    "compare",
    "examples",
    "explain",
    "list_runs",
    "load",
    "monitor",
    "multiverse",
    "plan",
    "power",
    "probe",
    "run",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that ``recbias --help`` stays fast."""
    if name in _PLACES:
        from importlib import import_module

        module, _, member = _PLACES[name].partition(":")
        return getattr(import_module(f"recbias.{module}"), member)
    message = f"module 'recbias' has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return __all__
