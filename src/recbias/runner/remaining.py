"""The stages that a run still has to compute, and an estimate of the time that they take.

The lines that a log or a live display shows of a stage.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from statistics import fmean
from typing import TypeAlias

from recbias.core.context import StageRecord, Stored
from recbias.runner.stage import Stage

_MODEL_KINDS = frozenset({"baseline", "trial", "fit", "answer"})
"""Kinds of stage whose time depends on the model."""

_LEAST_MODELS = 3
"""The least number of models whose mean estimates the time of another one."""

_RENEWED_EVERY = 1.0
"""Seconds between two estimates, since a plan may have many stages."""

_Seconds: TypeAlias = dict[str, list[float]]


class RemainingWork:
    """The stages of a run, and how many of them are done.

    The time that a stage takes is estimated by the mean of the most similar stages: of the same
    title in this run (another fold or seed), else in the store, else of the same kind and model,
    else of the same kind. The training of a model that is searched takes as long as a trial; that
    of a model without any record as long as the mean of at least ``_LEAST_MODELS`` others. Other
    data may have been stored, so the store counts only once a stage of the kind is finished in
    this run. There is no estimate before every stage has such a basis.

    Args:
        stages: The stages that the run needs.
        stored: The addresses of those that are not computed again.
        earlier: The records of stored results.
        workers: The number of processes.
        clock: Returns the seconds.
    """

    def __init__(
        self,
        stages: Iterable[Stage],
        stored: Collection[str] = (),
        earlier: Iterable[Stored] = (),
        *,
        workers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._waiting = {stage.digest: stage for stage in stages}
        self.n_stages = len(self._waiting)
        self._stored = frozenset(stored)
        self._workers, self._clock = workers, clock
        self._running: Stage | None = None
        self._since = 0.0
        self._sum: float | None = None
        self._summed_at = 0.0
        self._by_title: _Seconds = defaultdict(list)
        self._by_model: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._by_kind: dict[str, _Seconds] = defaultdict(lambda: defaultdict(list))
        self._earlier: _Seconds = defaultdict(list)
        for record in earlier:
            self._earlier[record.stage].append(record.seconds)

    @property
    def n_done(self) -> int:
        """The number of stages that are computed, reused, failed or skipped."""
        return self.n_stages - len(self._waiting)

    def start(self, stage: Stage) -> None:
        """Take note of a stage that starts to compute."""
        self._running, self._since = stage, self._clock()

    def finish(self, record: StageRecord) -> None:
        """Take note of the record of a stage; those after a failed one are skipped."""
        self._waiting.pop(record.digest, None)
        self._running = None
        if record.failure is None and not record.reused:
            self._by_title[record.stage].append(record.seconds)
            self._by_model[record.kind, record.model].append(record.seconds)
            self._by_kind[record.kind][_get_subject(record.stage)].append(record.seconds)
        elif record.failure is not None and record.kind != "measure":
            self._skip_after(record)

    def _skip_after(self, record: StageRecord) -> None:
        for stage in list(self._waiting.values()):
            keys = stage.keys
            is_same_run = (keys.dataset, keys.seed, keys.model) == (
                *(record.dataset, record.seed, record.model),
            )
            is_skipped = stage.kind != "trial" or record.kind == "baseline"
            if is_same_run and record.fold in {None, keys.fold} and is_skipped:
                del self._waiting[stage.digest]

    def estimate(self) -> float | None:
        """Return the seconds until the last stage is done; None without a basis or stages.

        The sum over the stages is renewed after ``_RENEWED_EVERY`` seconds.
        """
        now = self._clock()
        if not self._waiting:
            return None
        if self._sum is None or now - self._summed_at >= _RENEWED_EVERY:
            self._sum, self._summed_at = self._sum_stages(now), now
        return None if self._sum is None else max(0.0, self._sum - (now - self._summed_at))

    def _sum_stages(self, now: float) -> float | None:
        waiting = [stage for name, stage in self._waiting.items() if name not in self._stored]
        estimates = {stage.digest: self._estimate(stage) for stage in waiting}
        seconds = {digest: value for digest, value in estimates.items() if value is not None}
        if not waiting or len(seconds) < len(waiting):
            return None
        running = seconds.get(self._running.digest, 0.0) if self._running is not None else 0.0
        total = sum(seconds.values()) - min(now - self._since, running)
        return total / min(self._workers, len(waiting))

    def _estimate(self, stage: Stage) -> float | None:
        if stage.kind == "search":  # it compares the trials
            return 0.0
        kind, model = stage.kind, stage.keys.model
        similar = (
            self._by_title.get(stage.title),
            self._earlier.get(stage.title) if kind in self._by_kind else None,
            self._by_model.get((kind, model)),
            self._by_model.get(("trial", model)) if kind == "fit" else None,
        )
        records = next(filter(None, similar), None)
        if records is None:
            means = [fmean(seconds) for seconds in self._by_kind.get(kind, {}).values()]
            records = (
                means if len(means) >= (_LEAST_MODELS if kind in _MODEL_KINDS else 1) else None
            )
        return fmean(records) if records else None

    def describe(self) -> str:
        """Return how many stages are done, and the time that is left if it is known."""
        count = f"{self.n_done:,} of {self.n_stages:,} stages"
        return f"{count}, {left}" if (left := self.describe_time()) else count

    def describe_time(self) -> str:
        """Return the time that is left, such as ``2 min left``.

        Blank if it is not known, as when the last stage takes longer than was estimated.
        """
        seconds = self.estimate()
        return f"{describe_seconds(seconds)} left" if seconds else ""


def _get_subject(title: str) -> str:
    """Return what a stage is about: ``trial 3 of ItemKNN`` is about the same as trial 4."""
    return title.rpartition(" of ")[2]


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


def is_notable(record: StageRecord) -> bool:
    """Return whether a stage is shown without ``--verbose``: if it was long, or failed itself."""
    if record.failure is not None:
        return not record.failure.because
    return not (record.reused or record.kind in {"measure", "queries"})


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
