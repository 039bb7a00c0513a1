"""The words of ``recbias data describe``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any

from recbias import api
from recbias.data.describe import describe
from recbias.runner.execution.executor import Executor, Silent
from recbias.runner.planning.plan import Plan
from recbias.runner.storage.store import Store

LONGEST = 72
"""Characters of a value of a column; the rest of a longer text is left out."""


def described(name: str, data: Path | None) -> Iterator[str]:
    """Yield the lines that describe a dataset, or each dataset of a spec file, filters applied.

    Raises:
        UserError: The dataset is not known, its files are not there or they are malformed.
    """
    spec = _spec(name)
    plan, store = api.plan(spec, data=data)
    for world in _first_worlds(plan):
        dataset = _dataset(plan, store, world)
        yield f"{world}:"
        yield from _lines(describe(dataset), "  ")


def _spec(name: str) -> Path | dict[str, Any]:
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    return {"name": "describe", "dataset": name, "models": ["MostPop"]}


def _first_worlds(plan: Plan) -> list[str]:
    return [each.label for each in plan.experiment.datasets]


def _dataset(plan: Plan, store: Store, label: str) -> Any:
    stage = next(each.dataset for each in plan.worlds if each.keys.dataset == label)
    return Executor(store, Silent()).value(stage)


def _lines(facts: Mapping[Any, Any], indent: str) -> Iterator[str]:
    for name, value in facts.items():
        head = f"{indent}{_name(name)}"
        if isinstance(value, Mapping):
            yield f"{head}:"
            yield from _lines(value, indent + "  ")
        else:
            yield f"{head}: {_shown(value)}"


def _name(name: object) -> str:
    """Return a value that is counted: a rating as people write it, a long text without its end."""
    text = f"{name:g}" if isinstance(name, float) else str(name)
    return shorten(text, LONGEST, placeholder=" ...") or text


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
