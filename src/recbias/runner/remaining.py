"""The stages that a run still has to compute, and an estimate of the time that they take.

The lines that a log or a live display shows of a stage.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from recbias.core.context import StageRecord
from recbias.runner.plan import Stage

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
        return f"{describe_seconds(seconds)} left" if seconds >= _LEAST_SHOWN else ""


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
