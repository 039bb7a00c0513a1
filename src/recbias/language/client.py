"""Replies to requests: from the reply store, else from the model; each is paid for once."""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from recbias.core.context import get_context, record_fact, report_progress, warn
from recbias.core.errors import BudgetSpent, MissingReplies, RequestRefused, ServiceError
from recbias.core.files import is_network_forbidden
from recbias.core.machine import allow_seconds
from recbias.core.plugins import PlannedRequest
from recbias.core.text import make_printable
from recbias.language.backends import (
    QUOTA,
    Backend,
    Failure,
    is_known_end,
    open_backend,
)
from recbias.language.endpoints import (
    OUTCOMES,
    ChatReply,
    ChatRequest,
    LanguageModel,
    select_repeats,
)
from recbias.language.reply_store import ReplyStore, SharedLimits, Spending

_BASE_DELAY, _MAX_DELAY = 0.5, 60.0
"""The longest delay before the first repetition and before any, in seconds."""

_MAX_REJECTED = 3
"""After so many rejected requests without a reply, the fault is not in single prompts."""

_MAX_UNANSWERED = 20
"""After so many unanswered requests without a reply between them, the server is down."""

_INTERRUPT_SECONDS = 5.0  # how long an interrupted run waits for the replies to requests in flight

_POLL_SECONDS = 0.05
"""How often it is looked whether a request in flight has cost less than was reserved for it."""

_CUT_RATIO = 1.5  # prompts of such different length do not have as many tokens

_MAX_NAME_LENGTH = 80

_REMEDIES = {
    QUOTA: "add credit to the account, then run again: stored replies are used",
    "401": "check the key in the environment variable {variable}",
    "403": "check what the key in the environment variable {variable} is allowed to do",
    "404": "check model and base_url; {url}/models lists the models of many servers",
    "429": "run again later: stored replies are used",
}
"""What to do about a refusal, by its cause."""


def complete(
    requests: Sequence[ChatRequest],
    model: LanguageModel,
    *,
    folder: Path | None = None,
    read: Callable[[str], Sequence[object]] | None = None,
) -> list[ChatReply]:
    """Return the reply to each request, in order.

    Stored replies are used; the others are requested, each once, and stored as they arrive. The
    counts are recorded as facts of the stage, and replies without text are warned of. With
    ``repeatability``, a share of the requests is sent once more, and the facts count the replies
    that are the same.

    Args:
        requests: The requests to the model; those at one address get one reply.
        model: The model.
        folder: The folder of the stored replies; None is that of the stage, or a temporary one.
        read: Returns the titles of an answer: repeated replies are compared by them and by text.

    Raises:
        MissingReplies: The network may not be used and replies are missing, or requests failed
            after all retries.
        RequestRefused: There is no key, or the server refuses all requests.
        BudgetSpent: The budget does not allow all requests.
        MissingExtra: The package of the provider is not installed.
        Unwritable: The replies cannot be stored.
    """
    store = _open_store(folder)
    repeats = select_repeats(requests, model.repeatability)
    asked = {request.address: request for request in [*requests, *repeats.values()]}
    stored = {address: store.find(request) for address, request in asked.items()}
    replies = {address: replace(reply, cached=True) for address, reply in stored.items() if reply}
    missing = [request for address, request in asked.items() if address not in replies]
    if missing:
        if is_network_forbidden():
            message = f"{len(missing):,} replies of {model.model} are not stored in {store.folder}"
            remedy = "run without --offline, or copy the files of the replies there"
            raise MissingReplies(message, where="llm", remedy=remedy)
        dispatch = _Dispatch(model, open_backend(model), store, bool(replies))
        replies |= dispatch.send(missing)
    ordered = [replies[request.address] for request in requests]
    _report_replies(ordered, model)
    _report_cut_prompts(requests, ordered)
    if repeats:
        pairs = [(replies[first], replies[again.address]) for first, again in repeats.items()]
        _report_repeats(pairs, read)
    return ordered


def ask_until(
    requests: Sequence[ChatRequest],
    model: LanguageModel,
    backend: Backend,
    store: ReplyStore,
    watch: Callable[[ChatRequest, ChatReply], bool],
) -> None:
    """Send requests in their order until ``watch`` returns True for a reply that arrived.

    A request that has no reply after all retries is left out.

    Args:
        requests: Requests without a stored reply.
        model: The limits: retries, rates and budget.
        backend: What answers the requests.
        store: Where replies are stored.
        watch: Is called with each request and its reply, after it was stored.

    Raises:
        MissingReplies: The network may not be used, or the server does not answer.
        RequestRefused: The server refuses all requests.
        BudgetSpent: The budget does not allow all requests.
        Unwritable: The replies cannot be stored.
    """
    if is_network_forbidden():
        raise MissingReplies(f"{len(requests):,} replies are not stored", where=str(store.folder))
    has_replied = len(store) > 0
    _Dispatch(model, backend, store, has_replied=has_replied, watch=watch).send(requests)


def plan_requests(
    requests: Sequence[ChatRequest], model: LanguageModel, folder: Path | None = None
) -> list[PlannedRequest]:
    """Return the requests with their tokens and cost, without sending any.

    Args:
        requests: The requests to the model; those that ``repeatability`` repeats are added.
        model: The model.
        folder: The folder of the stored replies; None is that of the stage.
    """
    requests = [*requests, *select_repeats(requests, model.repeatability).values()]
    store, prices = _open_store(folder), model.prices
    return [
        PlannedRequest(
            request.address,
            is_stored=store.find(request) is not None,
            prompt_tokens=request.prompt_tokens,
            completion_tokens=request.decoding.max_tokens,
            money=Spending.estimate(request, prices).money if prices else None,
            budget=model.budget.requests if model.budget else None,
        )
        for request in requests
    ]


def _open_store(folder: Path | None) -> ReplyStore:
    store = ReplyStore(folder or get_context().reply_folder or Path(_make_folder().name))
    store.refresh()
    return store


@cache
def _make_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="recbias-replies-")


@cache
def _name_process() -> str:
    return f"process {os.getpid()} {uuid.uuid4().hex[:8]}"


@dataclass
class _Job:
    """A request that has no reply yet, the number of its failed tries, and when it was sent."""

    request: ChatRequest
    estimate: Spending
    tries: int = 0
    sent_at: float = 0.0


@dataclass
class _Dispatch:
    """Sends requests, many at a time, within the limits and again after failures.

    Each thread takes a request, waits for its reply, stores it and takes the next one; all that
    they share is changed under ``_lock``. The thread of the caller only waits for them, so that an
    interrupt, which is raised there, never falls between the arrival of a reply and its storage.

    Args:
        model: The model.
        backend: What answers the requests.
        store: Where replies are stored.
        has_replied: Whether the model has replied before, so that a rejected request is at fault
            itself.
        watch: Says after each reply whether no other one is needed; a request without a reply is
            then no error.
    """

    model: LanguageModel
    backend: Backend
    store: ReplyStore
    has_replied: bool
    watch: Callable[[ChatRequest, ChatReply], bool] | None = None
    _replies: dict[str, ChatReply] = field(default_factory=dict)
    _jobs: deque[_Job] = field(default_factory=deque)
    _rejected: list[tuple[_Job, Failure]] = field(default_factory=list)
    _unanswered: list[Failure] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _error: Exception | None = None
    _n_requests: int = 0
    _n_threads: int = 0
    _n_in_flight: int = 0
    _n_failures_in_row: int = 0
    _n_limits: int = 0
    _n_limits_in_row: int = 0
    _paused_at: float = 0.0
    _is_over: bool = False

    def __post_init__(self) -> None:
        run = get_context().run_id or _name_process()
        self._limits = SharedLimits.of_model(self.model, self.store.folder, run)
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._done = threading.Event()
        self._chance = random.Random()

    def send(self, requests: Sequence[ChatRequest]) -> dict[str, ChatReply]:
        """Return the replies by address, when each request has one or was rejected."""
        prices, self._n_requests = self.model.prices, len(requests)
        self._jobs = deque(_Job(each, Spending.estimate(each, prices)) for each in requests)
        report_progress(f"ask {self.model.model}", 0, self._n_requests)
        try:
            with self._lock:
                self._add_threads()
            self._wait()
            if self._error is not None:
                raise self._error
            self._settle_rejected()
        finally:
            self._stopped.set()
            with self._lock:
                self._is_over = True
                self.store.close()
            for name, n in sorted(self._counts.items()):
                _count(name, n)
            if self._done.is_set():
                self.backend.close()
        if self._unanswered and self.watch is None:
            raise self._describe_unanswered(is_down=False)
        return self._replies

    @property
    def _limit(self) -> int:
        """The requests at a time: one until the first reply, for a wrong key to cost one only."""
        return self.backend.concurrency if self._replies else 1

    def _wait(self) -> None:
        """Wait for the threads; after an error or an interrupt only for what is in flight."""
        try:
            while not self._done.wait(0.5) and not self._stopped.is_set():
                pass
            if self._stopped.is_set():
                self._done.wait(self.model.timeout_s)
        except KeyboardInterrupt:
            self._stopped.set()
            with allow_seconds(_INTERRUPT_SECONDS):
                self._done.wait(_INTERRUPT_SECONDS)
            raise

    def _add_threads(self) -> None:
        """Start threads until there are as many as requests may be sent at a time."""
        while self._n_threads < min(self._limit, max(len(self._jobs), 1)):
            self._n_threads += 1
            arguments = (self._work,)  # in the context of the caller: its stage
            threading.Thread(target=copy_context().run, args=arguments, daemon=True).start()

    def _work(self) -> None:
        """Send requests until there are none, or fewer may be sent at a time."""
        try:
            while batch := self._take():
                answers = self.backend.answer([job.request for job in batch])
                with self._lock:
                    self._n_in_flight -= len(batch)
                    delays = [self._receive(*pair) for pair in zip(batch, answers, strict=True)]
                again = [(job, delay) for job, delay in zip(batch, delays, strict=True) if delay]
                if again:
                    self._stopped.wait(max(delay for _, delay in again))
                    put = self._jobs.extend if self.watch is None else self._jobs.extendleft
                    with self._lock:
                        put(job for job, _ in again)
        except Exception as error:  # noqa: BLE001  # raised in the thread of the caller
            with self._lock:
                self._n_threads -= 1
            self._error = self._error or error
            self._stopped.set()
        if not self._n_threads:
            self._done.set()

    def _take(self) -> list[_Job]:
        """Return requests to send as soon as the limits allow it; none if the thread has ended."""
        batch: list[_Job] = []
        while not batch:
            with self._lock:
                is_spare = self._n_threads > self._limit
                if is_spare or not self._jobs or self._stopped.is_set():
                    self._n_threads -= 1
                    return []
                wait, exceeded = self._fill(batch)
                if exceeded and not self._n_in_flight:
                    raise self._describe_budget(exceeded)
            if not batch:
                self._stopped.wait(wait or _POLL_SECONDS)
        return batch

    def _fill(self, batch: list[_Job]) -> tuple[float, str]:
        """Move jobs to a batch; return what ``SharedLimits`` says of the first that must wait."""
        while self._jobs and len(batch) < self.backend.batch_size:
            permission = self._limits.reserve(self._jobs[0].estimate)
            if permission.wait or permission.exceeded:
                return (permission.wait, "") if batch else permission
            job = self._jobs.popleft()
            job.sent_at = time.monotonic()
            self._n_in_flight += 1
            self._counts["requests_sent"] += 1
            batch.append(job)
        return 0.0, ""

    def _receive(self, job: _Job, answer: ChatReply | Failure) -> float:
        """Store a reply or react to a failure; return the delay before the job is sent again."""
        if self._is_over:
            return 0.0
        if isinstance(answer, ChatReply):
            self._accept(job, answer)
            return 0.0
        self._counts[f"failed_requests.{answer.cause}"] += 1
        self._limits.settle(job.estimate, Spending(requests=1))
        return 0.0 if self._stopped.is_set() else self._react(job, answer)

    def _accept(self, job: _Job, reply: ChatReply) -> None:
        self._keep(job, reply)
        self.has_replied = True
        self._n_failures_in_row = 0
        self._n_limits, self._n_limits_in_row = max(0, self._n_limits - 1), 0
        self._counts["prompt_tokens"] += reply.prompt_tokens
        self._counts["completion_tokens"] += reply.completion_tokens
        has_usage = reply.prompt_tokens + reply.completion_tokens > 0
        spent = Spending.measure(reply, self.model.prices) if has_usage else job.estimate
        self._limits.settle(job.estimate, spent)
        if self.watch is not None and self.watch(job.request, reply):
            self._jobs.clear()
        if not self._stopped.is_set():
            self._add_threads()

    def _keep(self, job: _Job, reply: ChatReply) -> None:
        reply = replace(reply, time=time.time())
        self.store.append(job.request, reply)
        self._replies[job.request.address] = reply
        report_progress(f"ask {self.model.model}", len(self._replies), self._n_requests)

    def _react(self, job: _Job, failure: Failure) -> float:
        if failure.reaction == "stop":
            raise self._describe_refusal(failure)
        if failure.reaction == "resend":
            self._jobs.appendleft(job)
            return 0.0
        if failure.reaction == "reject":
            self._rejected.append((job, failure))
            if not self.has_replied and len(self._rejected) >= _MAX_REJECTED:
                raise self._describe_refusal(failure)
            return 0.0
        return self._retry(job, failure)

    def _retry(self, job: _Job, failure: Failure) -> float:
        """Let a request be sent again, unless it has failed too often."""
        is_rate_limit, retries = failure.cause == "429", self.model.retries
        if is_rate_limit:
            self._slow_down(job, failure)
        else:
            job.tries += 1
            self._n_failures_in_row += 1
        n_allowed = (retries + 1) * (_MAX_UNANSWERED if self._replies else 1)
        is_down = self._n_failures_in_row >= n_allowed or self._n_limits_in_row > retries
        if is_down or job.tries > retries:
            self._unanswered.append(failure)
        if is_down:
            raise self._describe_unanswered(is_down=True)
        if is_rate_limit:
            self._jobs.appendleft(job)  # the pause of all requests is its delay
        elif job.tries <= retries:
            tries = job.tries if self._replies else self._n_failures_in_row
            return max(failure.retry_after, self._sample_delay(tries))
        return 0.0

    def _slow_down(self, job: _Job, failure: Failure) -> None:
        """Pause all processes; one burst of rate limits counts once."""
        now, pause = time.monotonic(), failure.retry_after
        if job.sent_at >= self._paused_at:
            self._paused_at = now
            self._n_limits += 1
            self._n_limits_in_row += 1
            pause = pause or self._sample_delay(self._n_limits)
        if pause:
            self._limits.pause(pause)

    def _sample_delay(self, tries: int) -> float:
        """Return a delay between half of a bound that doubles with the tries, and all of it."""
        bound = min(_MAX_DELAY, _BASE_DELAY * 2.0 ** min(tries - 1, 30))
        return self._chance.uniform(bound / 2, bound)

    def _settle_rejected(self) -> None:
        """Keep rejected requests as failed replies, unless the server rejects everything."""
        if self._rejected and not self.has_replied:
            raise self._describe_refusal(self._rejected[0][1])
        for job, failure in self._rejected if self.watch is None else ():
            self._keep(job, ChatReply(outcome="failed", finish_reason=failure.message))

    def _describe_refusal(self, failure: Failure) -> ServiceError:
        model = self.model
        remedy = _REMEDIES.get(failure.cause, "correct what the server names, then run again")
        remedy = remedy.format(variable=model.key_variable, url=model.server)
        message = f"{model.server} refuses requests to {model.model}: {failure.message}"
        return RequestRefused(message, where="llm", remedy=remedy)

    def _describe_unanswered(self, *, is_down: bool) -> ServiceError:
        causes = Counter(failure.cause for failure in self._unanswered)
        counts = ", ".join(f"{cause}: {n:,}" for cause, n in sorted(causes.items()))
        message = (
            f"{'' if is_down else f'{len(self._unanswered):,} '}request(s) to {self.model.server} "
            f"have no reply after {self.model.retries} retries ({counts}): "
            f"{self._unanswered[-1].message}"
        )
        remedy = "check base_url, and that the server runs; then run again" if is_down else ""
        return MissingReplies(message, where="llm", remedy=remedy)

    def _describe_budget(self, limit: str) -> ServiceError:
        n_sent = self._counts["requests_sent"]
        sent = f"{n_sent:,} request(s) were sent" if n_sent else "nothing was sent"
        message = (
            f"the budget of {getattr(self.model.budget, limit):,} ({limit}) does not allow the "
            f"next request: {sent}, {self._n_requests - len(self._replies):,} replies are missing"
        )
        remedy = f"raise budget.{limit} and run again: stored replies are used"
        return BudgetSpent(message, where="llm", remedy=remedy)


def _report_replies(replies: Sequence[ChatReply], model: LanguageModel) -> None:
    """Record the outcomes of the replies as facts, and warn of what a reader should know."""
    _count("replies_cached", sum(reply.cached for reply in replies))
    outcomes = Counter(str(reply.outcome) for reply in replies)
    for outcome in OUTCOMES:
        if outcomes[outcome]:
            _count(f"replies.{outcome}", outcomes[outcome])
    others = [name for name in OUTCOMES if name != "complete" and outcomes[name]]
    if others:
        counts = ", ".join(f"{outcomes[name]:,} {name}" for name in others)
        remedy = "; raise max_tokens" if outcomes["length"] else ""
        n_others = len(replies) - outcomes["complete"]
        warn(f"{n_others:,} of {len(replies):,} replies have no text to read: {counts}{remedy}")
    ends = Counter(reply.finish_reason for reply in replies if reply.outcome != "failed")
    for end, n in sorted(ends.items()):
        if not is_known_end(end):
            warn(f"{n:,} replies ended by {_show(end)!r}, which is not known: read as complete")
    _report_served(replies, model)
    negotiated = sorted({text for reply in replies for text in reply.negotiated})
    if negotiated:
        record_fact("negotiated", ", ".join(negotiated))
        warn(f"{_show(model.model)} refuses parameters; sent with: {', '.join(negotiated)}")


def _report_served(replies: Sequence[ChatReply], model: LanguageModel) -> None:
    """Record the models and configurations that the server says it used."""
    served = Counter(reply.served_model for reply in replies if reply.served_model)
    if served:
        record_fact("served_model", ", ".join(_show(name) for name in sorted(served)))
    for name, n_replies in sorted(served.items()):
        if name != model.model:
            asked = _show(model.model)
            warn(f"{n_replies:,} replies are of the model {_show(name)}, not of {asked}")
    fingerprints = {reply.fingerprint for reply in replies if reply.fingerprint}
    if fingerprints:
        record_fact("system_fingerprints", len(fingerprints))


def _report_cut_prompts(requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> None:
    """Warn of prompts of different length of which the server counted as many tokens."""
    most = max((reply.prompt_tokens for reply in replies), default=0)
    pairs = zip(requests, replies, strict=True)
    lengths = [asked.prompt_tokens for asked, reply in pairs if most == reply.prompt_tokens > 0]
    if lengths and max(lengths) > _CUT_RATIO * min(lengths):
        warn(
            f"{len(lengths):,} prompts of very different length have {most:,} tokens each, as the "
            "server counts them: it seems to cut them to its context; make that longer"
        )


def _report_repeats(
    pairs: Sequence[tuple[ChatReply, ChatReply]], read: Callable[[str], Sequence[object]] | None
) -> None:
    """Record how many replies to repeated requests are the same."""
    _count("repeated_requests", len(pairs))
    same_text = [(a.outcome, a.text) == (b.outcome, b.text) for a, b in pairs]
    _count("repeated_same_text", sum(same_text))
    if read is not None:
        titles = [(read(a.answer), read(b.answer)) for a, b in pairs]
        _count("repeated_same_titles", sum(bool(a) and a == b for a, b in titles))


def _show(name: str) -> str:
    return make_printable(name, _MAX_NAME_LENGTH)


def _count(name: str, n: int) -> None:
    """Add to a number among the facts of the stage, which may ask a model several times."""
    facts = get_context().facts
    before = facts.get(name) if facts is not None else None
    record_fact(name, n + (before if isinstance(before, int) else 0))
