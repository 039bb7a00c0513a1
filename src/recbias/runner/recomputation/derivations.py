"""How the values of a run and their intervals follow from its other files: in ``manifest.json``.

A reader could only guess it from the figures, and would take a changed figure for one of its own
kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

ENTRIES = "derivations"
"""The key in ``manifest.json``."""

IntervalKind: TypeAlias = Literal["t", "wilson", "samples", "own"]
"""Student's t or Wilson's interval of values of units; that of bootstrap samples; another one."""

Quantity: TypeAlias = tuple[str, str]
"""The label of a metric and a target."""


@dataclass(frozen=True)
class Derivation:
    """What can be computed again of the values of a metric in single seeds and folds.

    Args:
        value: Whether the value follows from values of units or of groups.
        interval: How the interval follows; ``own`` if not from the files.
        averaged: Whether the interval of a mean over folds is the mean of their intervals.
    """

    value: bool = False
    interval: IntervalKind = "own"
    averaged: bool = False


UNKNOWN = Derivation()
"""Nothing follows from the files."""


def list_entries(derivations: Mapping[Quantity, Derivation]) -> list[dict[str, Any]]:
    """Return the entries of the manifest: one for a metric, or for each target where they differ.

    >>> alike = {("EXP", "genre=a"): Derivation(), ("EXP", "genre=b"): Derivation()}
    >>> list_entries(alike)
    [{'metric': 'EXP', 'value': False, 'interval': 'own', 'averaged': False}]
    """
    by_metric: dict[str, dict[str, Derivation]] = {}
    for (metric, target), derivation in derivations.items():
        by_metric.setdefault(metric, {})[target] = derivation
    entries = []
    for metric, targets in by_metric.items():
        if len(kinds := {*targets.values()}) == 1:
            entries.append({"metric": metric, **asdict(kinds.pop())})
        else:
            entries += [
                {"metric": metric, "target": target, **asdict(derivation)}
                for target, derivation in targets.items()
            ]
    return entries


def read_entries(entries: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str | None], Derivation]:
    """Return the derivations of a manifest by metric and target, None for all targets."""
    names = tuple(asdict(UNKNOWN))
    return {
        (str(entry["metric"]), entry.get("target")): Derivation(*(entry[name] for name in names))
        for entry in entries
    }


def find_common(kinds: Iterable[Derivation]) -> Derivation:
    """Return what holds for all values of a metric and target.

    >>> find_common([Derivation(True, "t"), Derivation(True, "own")])
    Derivation(value=True, interval='own', averaged=False)
    """
    listed = [*kinds]
    if not listed:
        return UNKNOWN
    intervals = {kind.interval for kind in listed}
    return Derivation(
        value=all(kind.value for kind in listed),
        interval=intervals.pop() if len(intervals) == 1 else "own",
        averaged=all(kind.averaged for kind in listed),
    )
