"""What a sweep varies: the settings of models and datasets, and the seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from recbias.config.changes.overrides import take_step
from recbias.core.digests import to_canonical_json
from recbias.core.errors import Contradiction, UnknownKey
from recbias.core.suggestions import suggest
from recbias.formats.yaml.source_map import Document, KeyPath

SEED = "seed"

_ONE_A_RUN = "write a spec for each value and compare the runs: recbias compare A B"
_REMEDIES = {
    "checks": "write a check for each limit under checks",
    "k": "set k to the largest, and give each metric its cutoff under metrics: nDCG@5, nDCG@10",
    "labels": "list the detector once for each setting under labels, each with its own name",
    "metrics": "list the metric once for each setting under metrics",
    "queries": _ONE_A_RUN,
    "seeds": "write sweep: {seed: [1, 2, 3]}",
    "split": _ONE_A_RUN,
    "tests": "list the test once for each setting under tests",
}
"""What to do instead of varying a key that has one value in a run."""


@dataclass(frozen=True)
class Target:
    """An entry of ``models`` or ``dataset``, or the seed.

    Args:
        at: The position of the entry; 0 if there is no list.
    """

    key: str
    at: int = 0


@dataclass(frozen=True)
class SweptValue:
    """One value of one setting.

    Args:
        steps: The path of the setting inside its target; empty for the target itself.
        written: Where the sweep has the value.
    """

    target: Target
    steps: KeyPath
    value: Any
    written: KeyPath

    @property
    def identity(self) -> tuple[object, ...]:
        """What equal values of a setting share: 1 and 1.0 are equal, 1 and true are not."""
        value = self.value
        is_whole = isinstance(value, float) and value.is_integer()
        return self.target, self.steps, to_canonical_json(int(value) if is_whole else value)


Change: TypeAlias = tuple[SweptValue, ...]
"""Values of one target that stand together; an empty change keeps the target as it is."""

Sweep: TypeAlias = Mapping[Target, Sequence[Change]]
"""The changes of each target."""


def find_target(document: Document, key: str, steps: Sequence[str]) -> tuple[Target, KeyPath]:
    """Return the target of a path and the steps inside it.

    Raises:
        UserError: A sweep cannot vary the setting.
    """
    data = document.data
    if key == SEED and not steps:
        if data.get("seeds") is not None:
            raise Contradiction("seeds is set too", remedy="keep one of sweep and seeds")
        return Target(SEED), ()
    if key in _REMEDIES:
        raise Contradiction("has one value in a run", remedy=_REMEDIES[key])
    if key not in {"dataset", "models"}:
        remedy = suggest(key, ["dataset", "models", SEED])
        raise UnknownKey("is not a setting of a model, a dataset or the seed", remedy=remedy)
    entries = data.get(key)
    if key == "dataset" and not isinstance(entries, list):
        return Target(key), _resolve_steps(entries, steps, (key,))
    if not isinstance(entries, list):
        raise UnknownKey(f"{key} is not a list in the spec", remedy="list the models under models")
    if not steps:
        raise UnknownKey("is not one entry", remedy=f"name one by its position: {key}.0")
    entry, rest = take_step(entries, steps, (key,))
    at = int(entry)
    return Target(key, at), _resolve_steps(entries[at], rest, (key, at))


def locate(document: Document, target: Target, steps: KeyPath) -> KeyPath:
    """Return the place of a setting in the document."""
    has_list = isinstance(document.data.get(target.key), list)
    return (target.key, *((target.at,) if has_list else ()), *steps)


def is_grid(value: SweptValue) -> bool:
    """Return whether a value is one of a list of values."""
    return isinstance(value.written[-1], int)


def _resolve_steps(entry: Any, steps: Sequence[str], location: KeyPath) -> KeyPath:
    """Return the steps of a setting inside an entry, by position where they enter a list."""
    resolved: list[str | int] = []
    while steps:
        step, steps = take_step(entry, steps, (*location, *resolved))
        resolved.append(step)
        if isinstance(entry, list):
            entry = entry[int(step)]
        else:
            entry = entry.get(step) if isinstance(entry, dict) else None
    return tuple(resolved)
