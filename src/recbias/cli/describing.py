"""The lines of ``recbias data describe``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any

from recbias import api
from recbias.data.describe import describe
from recbias.runner.execution.executor import Executor, Silent

LONGEST = 72
"""The maximum number of characters of a name; a longer text is shortened."""


def describe_datasets(name: str, data: Path | None) -> Iterator[str]:
    """Yield the lines that describe a dataset, or each dataset of a spec file after its filters.

    Raises:
        UserError: The dataset is unknown, or its files are missing or malformed.
    """
    spec: Path | dict[str, Any] = {"name": "describe", "dataset": name, "models": ["MostPop"]}
    if name.endswith((".yaml", ".yml")):
        spec = Path(name)
    plan, store = api.plan(spec, data=data)
    for dataset in plan.experiment.datasets:
        label = dataset.label
        stage = next(world.dataset for world in plan.data_contexts if world.keys.dataset == label)
        yield f"{label}:"
        yield from _render(describe(Executor(store, Silent()).value(stage)), "  ")


def _render(facts: Mapping[Any, Any], margin: str) -> Iterator[str]:
    for name, value in facts.items():
        title = f"{margin}{_render_name(name)}"
        if isinstance(value, Mapping):
            yield f"{title}:"
            yield from _render(value, margin + "  ")
        else:
            yield f"{title}: {_render_value(value)}"


def _render_name(name: object) -> str:
    """Render the name of a count: a rating without trailing zeros, a long text shortened."""
    text = f"{name:g}" if isinstance(name, float) else str(name)
    return shorten(text, LONGEST, placeholder=" ...") or text


def _render_value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
