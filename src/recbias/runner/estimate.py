"""What a run would do, before it: which stages are stored, what the others take, and requests.

A stage takes the time and memory that stored results of the same kind and plug-in took, in
proportion to the size of their data.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from recbias.core.context import (
    StageRecord,
    Stored,
    collect_facts,
    collect_warnings,
    stage_context,
)
from recbias.core.machine import measure_peak_memory_mb
from recbias.core.plugins import (
    AsksAboutItems,
    PlannedRequest,
    ReordersCandidates,
    get_least_memory,
    sends_requests,
)
from recbias.runner.boundary import attempt
from recbias.runner.execute import Executor, measure_sizes
from recbias.runner.plan import ModelPlan, Plan, Stage
from recbias.runner.stages import make_training_data
from recbias.runner.store import Store, list_checkpoints

_Sizes: TypeAlias = Mapping[str, int]
"""Counts of what a stage reads and makes, by name: ``users``, ``training``, ``bytes``."""

_MOST_RECORDS = 1000
"""The number of stored results that are read; addresses are in random order."""

_EXTENTS: Mapping[str, tuple[str, ...]] = {
    "dataset": ("bytes", "interactions"),
    "split": ("interactions",),
    "queries": ("users",),
    "label": ("items",),
    "answer": ("queries", "training"),
    "measure": ("queries", "training", "interactions"),
}
"""The sizes with which stages of a kind grow: the first that is known."""


@dataclass(frozen=True)
class Step:
    """One stage of a plan.

    Args:
        seconds: The time that the stored result took, None without one.
        memory_mb: The peak memory of the process, as measured for the stored result, or as
            estimated; None if it cannot be told.
        trials: The number of stored trials of a search.
        partial: Whether it was interrupted and resumes from a checkpoint.
        expected_seconds: The time that it will take, if it is to run and the store has a basis.
        n_records: The number of stored results that the expected time follows from.
    """

    stage: Stage
    stored: bool = False
    seconds: float | None = None
    memory_mb: float | None = None
    trials: int = 0
    partial: bool = False
    expected_seconds: float | None = None
    n_records: int = 0


@dataclass(frozen=True)
class Preview:
    """What a run would do, in one process; a search takes no time or memory itself."""

    steps: tuple[Step, ...]

    @property
    def memory_mb(self) -> float | None:
        """The largest peak of a stage; None if one is not known."""
        peaks = [step.memory_mb for step in self.steps if step.memory_mb]
        return max(peaks, default=None) if not self.n_without_memory else None

    @property
    def n_without_memory(self) -> int:
        """The number of stages whose memory is not known."""
        return sum(step.memory_mb is None and step.stage.kind != "search" for step in self.steps)

    @property
    def expected_seconds(self) -> float | None:
        """The time of the stages to run, None if there are none or that of one is not known."""
        seconds = [each for step in self.steps if (each := step.expected_seconds) is not None]
        return sum(seconds) if seconds and not self.n_unexpected else None

    @property
    def n_unexpected(self) -> int:
        """The number of stages to run whose time is not known."""
        return sum(
            not step.stored and step.expected_seconds is None and step.stage.kind != "search"
            for step in self.steps
        )


def preview(
    plan: Plan,
    store: Store,
    *,
    fresh: bool = False,
    rehearsed: Mapping[str, StageRecord] | None = None,
) -> Preview:
    """Return what a run of this plan would do.

    ``rehearsed`` are the records of stages that were computed for the plan, by address.
    """
    digests = [] if fresh else [stage.digest for stage in plan.stages]
    store.look_up(digests)
    stored = {
        digest: record
        for digest in digests
        if store.has(digest) and (record := store.record(digest)) is not None
    }
    known = {digest: record.sizes for digest, record in stored.items()}
    known |= {digest: record.sizes for digest, record in (rehearsed or {}).items()}
    costs = _StoredCosts(record for _, record in islice(store, _MOST_RECORDS))
    unfinished = {path.name.partition("-")[0] for path in list_checkpoints(store)}

    def preview_stage(stage: Stage) -> Step:
        if (record := stored.get(stage.digest)) is not None:
            return Step(stage, True, record.seconds, record.peak_memory_mb)  # noqa: FBT003
        step = costs.estimate(stage, _find_sizes(stage, known))
        if fresh:
            return step
        trials = stage.inputs if stage.kind == "search" else ()
        n_stored = sum(trial.digest in stored for trial in trials)
        return replace(step, trials=n_stored, partial=stage.digest in unfinished)

    return Preview(tuple(map(preview_stage, plan.stages)))


def _find_sizes(stage: Stage, known: dict[str, _Sizes]) -> _Sizes:
    """Return the sizes of a stage, as they are known or else as those of its inputs."""
    if not known.get(stage.digest):
        sizes: dict[str, int] = {}
        for source in stage.inputs:
            if stage.kind == source.kind == "trial":  # earlier ones read the same, and are last
                break
            sizes |= {name: n for name, n in _find_sizes(source, known).items() if name != "bytes"}
        known[stage.digest] = sizes | measure_sizes((), stage.files)
    return known[stage.digest]


def _get_extent(kind: str, sizes: _Sizes) -> int:
    """Return the size with which a stage of a kind grows; 0 if it is not known.

    >>> _get_extent("fit", {"users": 5, "training": 40}), _get_extent("fit", {})
    (40, 0)
    """
    names = _EXTENTS.get(kind, ("training", "interactions"))
    return next((sizes[name] for name in names if sizes.get(name)), 0)


class _StoredCosts:
    """Estimates the time and memory of stages from stored results.

    Those with the same kind, plug-in and settings count, else those with other settings. Both are
    in proportion to the nearest size, memory above the smallest peak of all results, which is that
    of a process without data.
    """

    def __init__(self, records: Iterable[Stored]) -> None:
        self._records: dict[tuple[str, str], list[Stored]] = defaultdict(list)
        self._base_mb = math.inf
        for record in records:
            if record.subject and _get_extent(record.kind, record.sizes):
                self._records[record.kind, record.subject].append(record)
            if record.peak_memory_mb:
                self._base_mb = min(self._base_mb, record.peak_memory_mb)

    def estimate(self, stage: Stage, sizes: _Sizes) -> Step:
        """Return the step of a stage to run: by stored results, else by what its model says."""
        records = self._records.get((stage.kind, stage.subject), [])
        similar = [each for each in records if each.settings == stage.settings] or records
        extent, base = _get_extent(stage.kind, sizes), self._base_mb
        seconds = _extrapolate(similar, extent, lambda record: record.seconds)
        peak = _extrapolate(
            similar, extent, lambda record: (record.peak_memory_mb or math.nan) - base
        )
        memory_mb = None if peak is None else base + peak
        if memory_mb is None and stage.kind in {"fit", "trial"} and "items" in sizes:
            model = getattr(getattr(stage.work, "work", stage.work), "model", None)
            n_bytes = get_least_memory(model, sizes.get("users", 0), sizes["items"])
            memory_mb = n_bytes / 2**20 + measure_peak_memory_mb() if n_bytes else None
        n_records = 0 if seconds is None else len(similar)
        return Step(stage, memory_mb=memory_mb, expected_seconds=seconds, n_records=n_records)


def _extrapolate(
    records: Iterable[Stored], extent: int, measure: Callable[[Stored], float]
) -> float | None:
    """Return the mean of a figure at the nearest size, in proportion; None without a basis."""
    values: dict[int, list[float]] = defaultdict(list)
    for record in records:
        if not math.isnan(value := measure(record)):
            values[_get_extent(record.kind, record.sizes)].append(value)
    if not values or not extent:
        return None
    nearest = min(values, key=lambda size: abs(math.log(size / extent)))
    return sum(values[nearest]) / len(values[nearest]) * extent / nearest


# ---- requests to language models ----


REQUEST_COUNTS = ("requests", "stored", "to_send", "tokens_in", "tokens_out")
"""Requests, those with a stored reply or sent by an earlier model of the spec, the others; and of
these the most tokens of the prompts and of the replies."""


def count_requests(plan: Plan, executor: Executor) -> list[dict[str, Any]]:
    """Return the requests of each detector and model that sends some and has stored no result.

    The dataset, the split and the queries are computed where they are not stored, and a model is
    trained whose candidates another one reorders; without a language model nothing is computed.

    Returns:
        A row for each, over all data contexts, each request once: ``model``, ``REQUEST_COUNTS``,
        ``money`` (by the prices of the spec; None without prices), ``budget``, how many it
        allows, and ``problem``: why the numbers are not known and None, else None.
    """
    rows: list[dict[str, Any]] = []
    sent: set[str] = set()
    for label, list_requests in _iterate_senders(plan, executor):
        requests: dict[str, PlannedRequest] = {}
        problem = None if list_requests else "its settings are searched"
        if list_requests:
            with (
                collect_warnings(),
                collect_facts(),
                stage_context(reply_folder=executor.store.reply_folder),
            ):
                listed, failure = attempt(lambda: [*list_requests()])  # noqa: B023  called at once
            problem = failure.message if failure else None
            requests = {request.address: request for request in listed or ()}
        missing = [
            request
            for request in requests.values()
            if not request.is_stored and request.address not in sent
        ]
        tokens = [(each.prompt_tokens, each.completion_tokens) for each in missing]
        counts = (len(requests), len(requests) - len(missing), len(missing))
        totals = (*counts, *map(sum, zip((0, 0), *tokens, strict=True)))
        money = None
        if all(request.money is not None for request in requests.values()):
            money = sum(request.money or 0.0 for request in missing)
        budget = min((each.budget for each in missing if each.budget is not None), default=None)
        row = dict(zip(REQUEST_COUNTS, totals, strict=True)) | {"money": money, "budget": budget}
        known = dict.fromkeys(row) if problem else row
        rows.append({"model": label, **known, "problem": problem})
        sent |= requests.keys()
    return rows


_ListRequests: TypeAlias = Callable[[], Iterable[PlannedRequest]]


def _iterate_senders(plan: Plan, executor: Executor) -> Iterator[tuple[str, _ListRequests | None]]:
    """Yield the label of each detector and model that sends requests, and what lists them."""
    for at, detector in enumerate(plan.experiment.labels):
        stages = {
            context.dataset.digest: context.dataset
            for context in plan.data_contexts
            if not executor.is_stored(context.labels[at])
        }
        if isinstance(detector.plugin, AsksAboutItems) and stages:
            datasets = stages.values()
            yield detector.label, partial(_list_of_detector, datasets, detector.plugin, executor)
    for model in plan.experiment.models:
        model_plans = [
            model_plan
            for model_plan in plan.model_plans
            if model_plan.model.label == model.label
            if model_plan.asking and not executor.is_stored(model_plan.asking)
        ]
        asked = model.reranked.base.plugin if model.reranked else model.plugin
        if sends_requests(asked) and model_plans:
            lists = partial(_list_of_model, model_plans, plan.experiment.k, executor)
            yield model.label, lists if model.tune is None else None


def _list_of_detector(
    datasets: Iterable[Stage], detector: AsksAboutItems, executor: Executor
) -> Iterator[PlannedRequest]:
    for stage in datasets:
        yield from detector.plan_label_requests(executor.value(stage).items)


def _list_of_model(
    model_plans: Sequence[ModelPlan], k: int, executor: Executor
) -> Iterator[PlannedRequest]:
    """Yield the requests of one model for lists of ``k``, or of candidates if it is re-ranked."""
    for model_plan in model_plans:
        context, reranked = model_plan.data_context, model_plan.model.reranked
        stages = (context.dataset, context.split, context.queries)
        dataset, split, queries = map(executor.value, stages)
        data = make_training_data(dataset, split, context.keys.dataset)
        model = reranked.base.plugin if reranked else model_plan.model.plugin
        if model_plan.answer is not None and isinstance(model, ReordersCandidates):
            state = None if model_plan.fit is None else executor.value(model_plan.fit)
            work: Any = [model_plan.answer, *model_plan.candidates][-1].work
            model = work.fit(data, state)  # its requests depend on the candidates
        n = int(reranked.reranker.plugin.candidates) if reranked else k
        yield from model.plan_requests(queries, n, data)
        executor.forget(stages[1:])
