"""The plan of a run: its options, its stages by data context and model, and what is left of it."""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import (
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    get_args,
    get_type_hints,
)

from recbias.config.entries import AUDITED
from recbias.config.experiment import Experiment, PluginSpec
from recbias.config.settings import read_settings
from recbias.config.specs import ExperimentFile
from recbias.core.context import StageRecord
from recbias.core.errors import OutOfRange, UnknownName
from recbias.core.files import to_local_path
from recbias.core.packages import require_packages
from recbias.core.plugins import OUTPUTS
from recbias.core.registry import locate_code

# ---- options ----

Spec: TypeAlias = Path | str | Mapping[str, Any]
"""The experiment file, the name of a packaged spec, or the content as a mapping."""

_Executor: TypeAlias = Literal["local", "ray"]
_AfterError: TypeAlias = Literal["stop", "continue"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the command line, or a call from Python, adds to a spec.

    All but ``progress`` and ``observer`` are options of ``recbias run`` and ``recbias plan``, with
    this help:

    Args:
        overrides: Settings such as models.1.neighbors=40. Repeatable.
        out: The folder of results.
        data: The folder of datasets; by default $RECBIAS_DATA, else data.
        workers: The number of processes that train and query models in parallel.
        executor: Where models are trained; ray needs the package of that name.
        fresh: Compute every stage again instead of reading the cache.
        offline: Use no network: a pretrained model that is not on this machine, and a request to
            a language model without a stored reply, are errors.
        on_error: Whether the other models finish after one has failed.
        limit: The number of queries to evaluate, from the first, as a smoke test.
        device: The device of the models that name none themselves, instead of that of the spec.
        store: The URL at which results are stored too, such as s3://bucket/recbias.
        progress: Whether to show the progress; by default only in a notebook.
        observer: Receives the progress of the run, instead of showing it.
    """

    overrides: Sequence[str] = ()
    out: Path | str = Path("results")
    data: Path | str | None = None
    workers: int = 1
    executor: _Executor = "local"
    fresh: bool = False
    offline: bool = False
    on_error: _AfterError = "continue"
    limit: int | None = None
    device: str | None = None
    store: str | None = None
    progress: bool | None = None
    observer: Observer | None = None

    def __post_init__(self) -> None:
        """Refuse values that no option has.

        Raises:
            UnknownName: There is no such executor, or no such way to go on after an error.
            OutOfRange: ``workers`` or ``limit`` is below 1.
            MissingExtra: Ray is not installed.
        """
        for option, value, annotation in (
            ("--executor", self.executor, _Executor),
            ("--on-error", self.on_error, _AfterError),
        ):
            if value not in (choices := get_args(annotation)):
                message, remedy = f"must be one of {', '.join(choices)}", " or ".join(choices)
                raise UnknownName(message, where=option, remedy=f"give {option} {remedy}")
        if self.workers < 1:
            raise OutOfRange("must be at least 1", where="--workers", remedy="give --workers 1")
        if self.limit is not None and self.limit < 1:
            remedy = "give a number of queries"
            raise OutOfRange("must be at least 1", where="--limit", remedy=remedy)
        if self.executor == "ray":
            require_packages("--executor ray", "ray")

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that change the files of a run: they stand in its manifest."""
        return {"limit": self.limit, "offline": self.offline}

    @property
    def results_folder(self) -> Path:
        """The folder of results on this machine."""
        return to_local_path(self.out)

    @property
    def data_folder(self) -> Path:
        """The folder of datasets."""
        return data_folder(self.data)


def data_folder(data: Path | str | None = None) -> Path:
    """Return the folder of datasets: the one given, else ``$RECBIAS_DATA``, else ``data``."""
    return to_local_path(data or os.environ.get("RECBIAS_DATA") or "data")


def take_options(
    declaration: Callable[P, RunOptions],
) -> Callable[[Callable[[Spec, RunOptions], R]], Callable[Concatenate[Spec, P], R]]:
    """Let callers of a function give the options of a run as keywords: ``run(spec, limit=10)``.

    ``declaration`` is ``RunOptions``, from which type checkers know the keywords.
    """

    def decorate(act: Callable[[Spec, RunOptions], R]) -> Callable[Concatenate[Spec, P], R]:
        @wraps(act)
        def call(spec: Spec, *arguments: P.args, **options: P.kwargs) -> R:
            return act(spec, declaration(*arguments, **options))

        hints = {"spec": Spec, **get_type_hints(RunOptions)}
        options = signature(declaration).parameters.values()
        parameters = [Parameter("spec", Parameter.POSITIONAL_OR_KEYWORD, annotation=Spec)]
        parameters += [each.replace(annotation=hints[each.name]) for each in options]
        result = act.__annotations__["return"]
        shown: Any = call
        shown.__signature__ = Signature(parameters, return_annotation=result)
        shown.__annotations__ = {**hints, "return": result}
        decorated: Callable[Concatenate[Spec, P], R] = shown
        return decorated

    return decorate


# ---- stages ----


@dataclass(frozen=True)
class Keys:
    """The dataset, seed, fold and model that a result belongs to; blank if one does not apply."""

    dataset: str = ""
    seed: int | None = None
    fold: int | None = None
    model: str = ""


@dataclass(frozen=True)
class Stage:
    """One step of a run.

    Args:
        kind: ``dataset``, ``split``, ``queries``, ``label``, ``baseline``, ``trial``, ``search``,
            ``fit``, ``answer`` or ``measure``.
        title: What users read: ``fit ItemKNN``.
        work: Called with the results of ``inputs``, in order; returns the result.
        digest: The address of its result; blank until it is placed.
        spec_location: The entry of the spec that requests it, for messages:
            ``FILE:LINE:COLUMN: metrics[0]``.
        files: The input files that it reads, with their digests at planning time.
        devices: The devices that its model computes on; empty if it has no choice.
        subject: The name of its plug-in.
        settings: The digest of the settings of its plug-ins.
    """

    kind: str
    title: str
    work: Callable[..., Any] = field(compare=False)
    inputs: tuple[Stage, ...] = field(compare=False, repr=False)
    keys: Keys
    digest: str = ""
    spec_location: str = field(default="", compare=False)
    files: Mapping[Path, str] = field(default_factory=dict, compare=False, repr=False)
    devices: tuple[str, ...] = field(default=(), compare=False)
    subject: str = field(default="", compare=False)
    settings: str = field(default="", compare=False)


@dataclass(frozen=True)
class DataContext:
    """One fold of one dataset under one seed: the stages that all its models share.

    Args:
        sampled: The queries of all folds, if the folds are samples of queries; else None.
    """

    dataset: Stage
    split: Stage
    queries: Stage
    labels: tuple[Stage, ...] = ()
    sampled: Stage | None = None

    @property
    def keys(self) -> Keys:
        """The dataset's label, the seed and the fold."""
        return self.queries.keys

    @property
    def asked(self) -> Stage:
        """The queries that models are run on: those of all folds, if the folds are samples."""
        return self.sampled or self.queries

    @property
    def training_keys(self) -> Keys:
        """The keys of training: without a fold if the folds are samples of queries."""
        return self.split.keys

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of its stages, in order."""
        queries = (self.sampled, self.queries) if self.sampled else (self.queries,)
        return (self.dataset, *self.labels, self.split, *queries)


@dataclass(frozen=True)
class ModelPlan:
    """The stages of one model in one data context.

    Metrics of a dataset alone, such as the agreement of two detectors, have a plan of their own
    under the name ``(dataset)``, without an answer.

    Args:
        fit: Training, None if the learned state cannot be stored.
        answer: The model's output for the queries, None for a dataset alone.
        shared_answer: The output for the queries of all folds, from which ``answer`` is taken, if
            the folds are samples of queries; else None.
        trials: The trials of a search, after the baseline that these are compared with, if any.
        candidates: The stages that ask for the lists to re-rank, for the users with validation
            rows and for the queries; empty for a model by itself.
    """

    data_context: DataContext
    model: PluginSpec
    fit: Stage | None
    answer: Stage | None
    metrics: tuple[PluginSpec, ...] = ()
    measures: tuple[Stage, ...] = ()
    trials: tuple[Stage, ...] = ()
    search: Stage | None = None
    shared_answer: Stage | None = None
    candidates: tuple[Stage, ...] = ()

    @property
    def asking(self) -> Stage | None:
        """The stage that runs queries on the model."""
        return self.shared_answer or self.answer

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of its stages, in order; each metric before its values by group."""
        search, fit = (*self.trials, self.search), (self.fit,)
        # before a re-ranker is searched, the model is trained
        training = (*fit, *self.candidates, *search) if self.candidates else (*search, *fit)
        ungrouped = [each for stage in self.measures for each in stage.inputs]
        measuring = [each for each in ungrouped if each.kind == "measure"] + [*self.measures]
        stages = (*training, self.shared_answer, self.answer, *measuring)
        return tuple({stage.digest: stage for stage in stages if stage}.values())


@dataclass(frozen=True)
class Plan:
    """All stages of a run.

    Args:
        data_contexts: One for each dataset, seed and fold, in this order.
        model_plans: One for each data context and model, in this order.
        files: The digest of each input file of each dataset, by label.
        spec_digest: The digest of the resolved spec.
        skipped: A warning about the datasets of the spec that are skipped, if there are any.
    """

    experiment: Experiment
    options: RunOptions
    data_contexts: tuple[DataContext, ...]
    model_plans: tuple[ModelPlan, ...]
    files: Mapping[str, Mapping[str, str]]
    spec_digest: str
    skipped: tuple[str, ...] = ()

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Every stage once, after the stages that it depends on."""
        stages = [stage for context in self.data_contexts for stage in context.stages]
        stages += [stage for model_plan in self.model_plans for stage in model_plan.stages]
        return tuple({stage.digest: stage for stage in stages}.values())

    @property
    def undefined(self) -> tuple[tuple[PluginSpec, PluginSpec, str], ...]:
        """Each metric and model without its evidence, with the missing outputs."""
        return tuple(
            (metric, model, ", ".join(missing))
            for metric in self.experiment.metrics
            for model in self.experiment.models
            if (missing := list_missing_outputs(metric, model))
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is worth knowing before the run: skipped datasets, parts without effect."""
        experiment, device = self.experiment, self.experiment.device
        warnings = [*self.skipped, *_list_idle(experiment)]
        is_used = any(device in stage.devices for stage in self.stages)
        if device not in {"auto", "cpu"} and not is_used:
            warnings.append(f"device {device} has no effect: no model of the spec uses it")
        return tuple(warnings)


def list_missing_outputs(metric: PluginSpec, model: PluginSpec) -> list[str]:
    """Return the outputs that a metric needs and a model does not provide."""
    return sorted((metric.needs & OUTPUTS) - model.plugin.provides)


NAMED_MODELS = {
    "embeddings_of": ("embeddings", "compare items by"),
    "chosen_in": ("embeddings", "choose members by"),
    "against": ("policy", "compare with"),
}
"""The settings by which a metric names another model, with what it reads of it, and why."""


def find_named_model(metric: PluginSpec) -> tuple[str, str | None]:
    """Return the setting by which a metric names another model, and its label, or None."""
    key = next((name for name in NAMED_MODELS if hasattr(metric.plugin, name)), "")
    return key, getattr(metric.plugin, key, None)


def may_lack_files(source: object) -> bool:
    """Return whether absent files of a dataset are skipped: ``missing: skip``."""
    return getattr(source, "missing", "error") == "skip"


def count_query_folds(experiment: Experiment) -> int:
    """Return into how many disjoint samples the queries are divided, 1 for a single one."""
    return int(getattr(experiment.queries.plugin, "folds", 1))


def _list_idle(experiment: Experiment) -> Iterator[str]:
    """Yield a warning for each part of a spec that no result depends on."""
    default = read_settings(ExperimentFile)["k"].default
    has_lists = any("lists" in model.plugin.provides for model in experiment.models)
    if experiment.k != default and not has_lists:
        yield f"k: {experiment.k} has no effect: no model of the spec recommends lists"
    rerankers = [each for model in experiment.models for each in model.rerankers]
    readers = (*experiment.metrics, *rerankers)
    texts = str([reader.parameters for reader in readers])
    are_known = not any(locate_code(type(reader.plugin)) for reader in readers)
    for labels in experiment.labels:
        is_read = f"{labels.label.removesuffix(AUDITED)}." in texts
        if are_known and not is_read:
            yield f"labels {labels.label} have no effect, as no metric or re-ranker names them"


# ---- what is left of it ----


class Observer:
    """Receives the progress of a run; this one reports nothing."""

    def planned(self, work: RemainingWork) -> None:
        """Receive the stages that the run needs, before it starts."""

    def started(self, stage: Any) -> None:
        """Report that a stage of the plan starts to compute."""

    def progressed(self, what: str, done: int, total: int) -> None:
        """Report the progress of the running stage: ``done`` of ``total`` epochs, batches, ..."""

    def finished(self, record: StageRecord) -> None:
        """Report that a stage was computed, was reused, or failed."""

    def warned(self, warning: str) -> None:
        """Report a warning that is not about one stage."""


_LEAST_SHOWN = 10.0
"""The least seconds that are said to be left: the reports, which are no stages, take some."""

_MINOR = frozenset({"measure", "queries"})
"""Kinds of stages that have no line without ``--verbose``."""


class RemainingWork:
    """The stages of a run, and how many of them are done.

    A stage is expected to take the mean of those of its kind and plug-in that this run has
    computed: of another fold or seed, another setting of the model, the same metric of another
    model. The training of a model that is searched takes as long as a trial. There is no estimate
    before every stage has such a basis.

    Args:
        stages: The stages that the run needs.
        stored: The addresses of those that are not computed again.
        workers: The number of processes.
        clock: Returns the seconds.
    """

    def __init__(
        self,
        stages: Iterable[Stage],
        stored: Collection[str] = (),
        *,
        workers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stages = {stage.digest: stage for stage in stages}
        self._waiting = dict(self._stages)
        self.n_stages = len(self._waiting)
        self._stored = frozenset(stored)
        self._workers, self._clock = workers, clock
        self._running: Stage | None = None
        self._since = 0.0
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)

    @property
    def n_done(self) -> int:
        """The number of stages that are computed, reused, failed or skipped."""
        return self.n_stages - len(self._waiting)

    def count_shown(self, *, verbose: bool) -> str:
        """Return how many of the stages that have a line are done: ``3/12``."""
        shown = {
            digest
            for digest, stage in self._stages.items()
            if verbose or not (stage.kind in _MINOR or digest in self._stored)
        }
        return f"{len(shown - self._waiting.keys())}/{len(shown)}"

    def start(self, stage: Stage) -> None:
        """Take note of a stage that starts to compute."""
        self._running, self._since = stage, self._clock()

    def finish(self, record: StageRecord) -> None:
        """Take note of the record of a stage; those after a failed one are skipped."""
        stage = self._waiting.pop(record.digest, None)
        self._running = None
        if stage is not None and record.failure is None and not record.reused:
            self._seconds[stage.kind, stage.subject].append(record.seconds)
        elif record.failure is not None:
            lost = {record.digest}
            for each in [*self._waiting.values()]:
                if not lost.isdisjoint(source.digest for source in each.inputs):
                    lost.add(each.digest)
                    del self._waiting[each.digest]

    def estimate(self) -> float | None:
        """Return the seconds until the last stage is done; None without a basis or stages."""
        waiting = [stage for name, stage in self._waiting.items() if name not in self._stored]
        estimates = {stage.digest: self._estimate(stage) for stage in waiting}
        seconds = {digest: value for digest, value in estimates.items() if value is not None}
        if not waiting or len(seconds) < len(waiting):
            return None
        running = seconds.get(self._running.digest, 0.0) if self._running is not None else 0.0
        total = sum(seconds.values()) - min(self._clock() - self._since, running)
        return total / min(self._workers, len(waiting))

    def _estimate(self, stage: Stage) -> float | None:
        if stage.kind == "search":  # it compares the trials
            return 0.0
        kinds = (stage.kind, "trial") if stage.kind == "fit" else (stage.kind,)
        similar = (self._seconds.get((kind, stage.subject)) for kind in kinds)
        return next((sum(seconds) / len(seconds) for seconds in similar if seconds), None)

    def describe(self) -> str:
        """Return how many stages are done, and the time that is left if it is known."""
        count = f"{self.n_done:,} of {self.n_stages:,} stages"
        return f"{count}, {left}" if (left := self.describe_time()) else count

    def describe_time(self) -> str:
        """Return the time that is left, as in ``2 min left``; blank if short or unknown."""
        seconds = self.estimate() or 0.0
        return f"about {describe_seconds(seconds)} left" if seconds >= _LEAST_SHOWN else ""


def describe_seconds(seconds: float) -> str:
    """Return a duration that is an estimate, rounded up.

    >>> [describe_seconds(seconds) for seconds in (0.2, 3, 41, 75, 7300)]
    ['1 s', '3 s', '45 s', '2 min', '2 h 2 min']
    """
    if seconds <= 55:
        step = 1 if seconds <= 10 else 5
        return f"{step * max(1, math.ceil(seconds / step))} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


# ---- the lines that a log or a live display shows of a stage ----


def is_notable(record: StageRecord) -> bool:
    """Return whether a stage is shown without ``--verbose``: if it was long, or failed itself."""
    if record.failure is not None:
        return not record.failure.because
    return not (record.reused or record.kind in _MINOR)


def render_title(record: StageRecord) -> str:
    """Return what a stage does, and on which data."""
    fold = f", fold {record.fold}" if record.fold and record.fold > 1 else ""
    seed = f", seed {record.seed}" if record.seed is not None and record.kind != "dataset" else ""
    return f"{record.stage} [{record.dataset}{seed}{fold}]" if record.dataset else record.stage


def render_record(record: StageRecord, messages: set[str]) -> str:
    """Return the line of a stage; a message of failure that was shown before is not repeated."""
    title = render_title(record)
    if record.failure is not None:
        message = record.failure.message
        is_repeated = message in messages
        messages.add(message)
        return f"{title}: failed in the same way" if is_repeated else f"{title}: failed: {message}"
    if record.reused:
        return f"{title}: cached"
    earlier = record.resumed_seconds
    resumed = f" ({earlier:.2f} s of it in an earlier run)" if earlier else ""
    peak = f", {record.peak_memory_mb:,.0f} MB" if record.peak_memory_mb else ""
    return f"{title}: {record.seconds:.2f} s{resumed}{peak}"


def select_new_warnings(record: StageRecord, shown: set[str]) -> list[str]:
    """Return the warnings of a stage that were not shown before, and count them as shown.

    A warning is shown once for each model; one of a metric or a group, which has no line of its
    own, once.

    >>> record = StageRecord("nDCG", "measure", "", model="a", warnings=("no label",))
    >>> shown = set[str]()
    >>> select_new_warnings(record, shown), select_new_warnings(record, shown)
    (['no label'], [])
    """
    model = "" if record.kind == "measure" else record.model
    keys = {f"{model}: {warning}": warning for warning in record.warnings}
    new = [warning for key, warning in keys.items() if key not in shown]
    shown.update(keys)
    return new
