"""The memory of models and of all stages of a plan, checked before they are trained or run."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from recbias.config.plugin_spec import PluginSpec, Range
from recbias.config.settings import read_settings
from recbias.core.errors import TooLittleMemory, UserError
from recbias.core.machine.expected import Sizes
from recbias.core.machine.memory import VARIABLE, measure_memory_limit, require_memory
from recbias.runner.execution.executor import Executor, Silent
from recbias.runner.planning.expected_memory import PeakPlanner, get_model, replace_model
from recbias.runner.planning.expected_sizes import ExpectedSizes
from recbias.runner.planning.plan import Plan
from recbias.runner.planning.plugin_contracts import raise_faults
from recbias.runner.stage import Stage
from recbias.runner.storage.store import Store

BYTES = 4
"""A weight in single precision."""

BEFORE_MODELS = frozenset({"dataset", "label"})
"""The kinds of stages that are computed before the models are checked."""

COPIES = 4
"""A weight that is trained by torch: itself, its gradient and the two moments of Adam."""


def check_widths(plugin: Any, n_items: int, n_rows: int = 0) -> None:
    """Refuse a model whose weights, or the vectors of a batch, cannot fit into memory.

    The estimate is a lower bound: one table of the items, one matrix for each layer, and one
    vector for each of the ``n_rows`` interactions that are in a batch.

    Raises:
        TooLittleMemory: The location is the setting that is large.
    """
    copies = COPIES if "torch" in getattr(plugin, "libraries", ()) else 1
    for setting, n_weights in _count_weights(plugin, n_items):
        require_memory(
            BYTES * copies * n_weights,
            f"the {n_weights:,} weights of this size",
            where=setting,
            remedy=f"lower {setting}",
        )
    width = max(_get_number(plugin, setting) for setting in ("embedding_size", "hidden_size"))
    batch = min(_get_number(plugin, "batch_size"), n_rows)
    require_memory(
        BYTES * width * batch,
        f"the {width:,} values of each of the {batch:,} interactions of a batch",
        where="batch_size",
        remedy="lower batch_size",
    )


def check_searched_widths(model: PluginSpec, n_items: int, n_rows: int) -> None:
    """Refuse a search that would try a value of a setting that cannot fit into memory.

    Each setting of the model is checked by itself, beside the values of the others that the spec
    gives, then the largest values of all of them together, which a trial may combine; those of
    its re-ranker have no width.

    Raises:
        TooLittleMemory: The location is the setting in the search space.
    """
    cls: type = type(model.plugin)
    settings, largest = read_settings(cls), copy.copy(model.plugin)
    for dimension in model.tune.space if model.tune else ():
        setting = dimension.parameter
        if setting not in settings:
            continue
        values = (dimension.high,) if isinstance(dimension, Range) else dimension.parsed_values
        for value in values:
            plugin = copy.copy(model.plugin)
            object.__setattr__(plugin, settings[setting].field.name, value)
            try:
                check_widths(plugin, n_items, n_rows)
            except TooLittleMemory as error:
                message, remedy = (
                    f"{value!r}: {error.message}",
                    f"search lower values of {setting}",
                )
                where = f"tune.space.{setting}"
                raise TooLittleMemory(message, where=where, remedy=remedy) from error
        if all(isinstance(value, int) for value in values):
            object.__setattr__(largest, settings[setting].field.name, max(values))
    try:
        check_widths(largest, n_items, n_rows)
    except TooLittleMemory as error:
        message = f"the largest values together: {error.message}"
        raise TooLittleMemory(message, where="tune.space", remedy=error.remedy) from error


def _count_weights(plugin: Any, n_items: int) -> Iterator[tuple[str, int]]:
    """Yield the settings of widths with the number of weights that they need at least."""
    width = _get_number(plugin, "embedding_size")
    for setting in ("embedding_size", "factors", "hidden_size"):
        yield setting, _get_number(plugin, setting) * n_items
    hidden = getattr(plugin, "hidden_sizes", None)
    if isinstance(hidden, tuple):
        yield "hidden_sizes", sum(math.prod(pair) for pair in pairwise((max(width, 1), *hidden)))
    words = _get_number(plugin, "word_size")
    yield "word_size", words
    yield "filters", words * _get_number(plugin, "filters")
    if hasattr(plugin, "max_length") and hasattr(plugin, "layers"):  # a model of sequences
        yield "max_length", width * _get_number(plugin, "max_length")
        yield "layers", width**2 * _get_number(plugin, "layers")


def _get_number(plugin: Any, setting: str) -> int:
    value = getattr(plugin, setting, None)
    return value if isinstance(value, int) else 0


def check_loading(plan: Plan, store: Store, *, fresh: bool) -> None:
    """Refuse a dataset or a detector that would not fit into memory, by estimates, before both.

    Raises:
        Faults: There is one or more.
    """
    executor = Executor(store, Silent(), fresh=fresh)
    raise_faults(find_memory_faults(plan, executor, kinds=BEFORE_MODELS))


def find_memory_faults(
    plan: Plan, executor: Executor, *, kinds: frozenset[str] = frozenset()
) -> Iterator[UserError]:
    """Yield the stages to run that do not fit into the memory that this process may use.

    With ``kinds`` only stages of these kinds are checked. If the process without data does not
    fit, the limit is none. A stage that reads the result of a refused one does not count, as
    that is named already.
    """
    limit, planner = measure_memory_limit(), PeakPlanner()
    refused: set[str] = set()
    stored = {
        stage.digest: record
        for stage in plan.stages
        if executor.is_stored(stage) and (record := executor.store.record(stage.digest))
    }
    sizes = ExpectedSizes(stored, executor.records)
    for stage in plan.stages:
        is_done = stage.digest in stored or stage.digest in executor.records
        if is_done or (kinds and stage.kind not in kinds):
            continue
        fault = find_memory_fault(stage, sizes.find(stage), planner, limit)
        follows = any(source.digest in refused for source in stage.inputs)
        if fault is not None and not follows:
            yield fault
        if fault is not None or follows:
            refused.add(stage.digest)


def find_memory_fault(
    stage: Stage, sizes: Sizes, planner: PeakPlanner, limit: float | None
) -> TooLittleMemory | None:
    """Return why a stage does not fit, with the share of its data that would; None if it fits."""
    peak = planner.plan(stage, sizes)
    if not limit or peak is None or not sizes or peak <= limit:
        return None
    if planner.base > limit and peak <= TOLERANCE * planner.base:
        return None
    share = planner.find_share(stage, sizes, limit)
    message = (
        f"{stage.title} needs about {peak / 2**20:,.0f} MB, and there are {limit / 2**20:,.0f} MB"
    )
    counts = (f"{int(n * share):,} {name}" for name, n in sizes.items() if n and name in SHOWN)
    data = "sentences" if sizes.get("sentences") else "fit"
    advice = f"about {', '.join(counts)} would fit: {ADVICE.get(stage.kind, ADVICE[data])}"
    batch = _find_batch(stage, sizes, planner, limit)
    if share < LEAST_SHARE:
        advice = SMALLER if batch else f"it is large whatever the data: {SMALLER}"
    remedy = f"{batch}{advice}; {VARIABLE} states another limit"
    return TooLittleMemory(message, where=stage.spec_location, remedy=remedy)


def _find_batch(stage: Stage, sizes: Sizes, planner: PeakPlanner, limit: float) -> str:
    """Return the size of batches with which a stage would fit, a half, a quarter, and so on."""
    model = get_model(stage)
    setting = next((name for name in BATCHES if isinstance(getattr(model, name, None), int)), "")
    n = getattr(model, setting, 0)
    while n > 1:
        n //= 2
        smaller = copy.copy(model)
        object.__setattr__(smaller, setting, n)
        peak = planner.plan(replace_model(stage, smaller), sizes)
        if peak is not None and peak <= limit:
            return f"lower {setting} to {n:,}; or: "
    return ""


TOLERANCE = 1.25
"""The accuracy of a plan: libraries that seem not to fit may take so much less."""

BATCHES = ("tokens_per_batch", "batch_tokens", "batch_size")
"""The settings of the size of a batch."""

ADVICE = {
    "dataset": "give a file with fewer rows, as filters come after it is read",
    "fit": "filter more (k_core, sample_users), or lower what makes the model large",
    "sentences": "give fewer sentences, or lower what makes the model large",
}
"""What to do about a stage that does not fit, by its kind; ``sentences`` where these are data."""

LEAST_SHARE = 0.001
"""The least share of the data for which it is worth to filter."""

SMALLER = "give a smaller file or language model"
"""What to do about a stage that would not fit with hardly any data."""

SHOWN = ("users", "items", "interactions", "bytes", "texts", "sentences")
"""The sizes that a remedy states."""
