"""Sends requests: many at a time, within the limits, again after failures."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from recbias.core.errors import ServiceError
from recbias.core.machine.interrupts import allow_seconds
from recbias.language.chat.backends.backend import ChatBackend
from recbias.language.chat.budget import estimate_spending, measure_spending
from recbias.language.chat.dispatching.concurrency import AdaptiveConcurrency
from recbias.language.chat.dispatching.jobs import Job, JobQueue
from recbias.language.chat.dispatching.service_errors import (
    describe_budget,
    describe_refusal,
    describe_unanswered,
)
from recbias.language.chat.dispatching.shared_limits import SharedLimits
from recbias.language.chat.dispatching.workers import Workers
from recbias.language.chat.failures import Failure, sample_delay
from recbias.language.chat.requests import ChatReply, ChatRequest
from recbias.language.chat.settings import LanguageModel
from recbias.language.chat.tally import Tally

MAX_REJECTED = 3
"""After so many rejected requests without a reply, the fault is not in single prompts."""

MAX_UNANSWERED = 20
"""After so many unanswered requests without a reply between them, the server is down."""

INTERRUPT_SECONDS = 5.0
"""How long an interrupted run waits for the replies to requests in flight."""


@dataclass
class Dispatcher:
    """Sends the requests to one model, and hands over each reply as it arrives.

    All decisions are made in the thread of the caller; the threads of ``Workers`` only wait for
    the backend.

    Args:
        model: The model.
        backend: Sends the requests.
        limits: What the processes share.
        keep: Receives each reply.
        is_proven: Whether the model has replied before, so that a rejected request is at fault
            itself.
        tally: Counts what is sent.
        chance: The source of the jitter.
    """

    model: LanguageModel
    backend: ChatBackend
    limits: SharedLimits
    keep: Callable[[ChatRequest, ChatReply], None]
    is_proven: bool = False
    tally: Tally = field(default_factory=Tally)
    chance: random.Random = field(default_factory=random.Random)
    _queue: JobQueue = field(default_factory=JobQueue)
    _rejected: list[tuple[Job, Failure]] = field(default_factory=list)
    _unanswered: list[Failure] = field(default_factory=list)
    _n_replies: int = 0
    _n_unanswered_in_row: int = 0
    _n_limits: int = 0
    _n_limits_in_row: int = 0
    _paused_at: float = 0.0

    def __post_init__(self) -> None:
        self._concurrency = AdaptiveConcurrency(self.backend.concurrency)
        self._workers: Workers[Job, ChatReply | Failure] = Workers(
            lambda jobs: self.backend.answer([job.request for job in jobs])
        )

    def send(self, requests: Sequence[ChatRequest]) -> None:
        """Send the requests, and return when each has a reply or was rejected.

        Raises:
            RequestRefused: The server refuses the key, the model, or all requests.
            MissingReplies: Some requests failed after all retries.
            BudgetSpent: The budget does not allow the requests that remain.
        """
        prices = self.model.prices
        self._queue = JobQueue(
            Job(request, estimate_spending(request, prices)) for request in requests
        )
        try:
            with self._workers.defer_interrupts():
                while len(self._queue) or self.is_busy:
                    self._receive(self._send_ready())
        except ServiceError:
            self._collect(self.model.timeout_s)
            raise
        except KeyboardInterrupt:
            with allow_seconds(INTERRUPT_SECONDS):
                self._collect(INTERRUPT_SECONDS)
            raise
        finally:
            self._workers.close()
        self._settle_rejected()
        if self._unanswered:
            raise describe_unanswered(self.model, self._unanswered, is_down=False)

    @property
    def is_busy(self) -> bool:
        """Whether requests are in flight."""
        return self._workers.n_jobs > 0

    @property
    def _has_replied(self) -> bool:
        return self.is_proven or self._n_replies > 0

    def _send_ready(self) -> float | None:
        """Send what may be sent now; return the seconds until more may be, None if unknown."""
        wait = None
        while self._concurrency.admits(self._workers.n_batches) and wait is None:
            batch, wait = self._take_batch()
            if not batch:
                break
            self._workers.submit(batch)
        waits = (wait, self._queue.compute_wait())
        return min((seconds for seconds in waits if seconds is not None), default=None)

    def _take_batch(self) -> tuple[list[Job], float | None]:
        """Return the jobs to send now, and the seconds until more may be sent, if limited."""
        batch: list[Job] = []
        while len(batch) < self.backend.batch_size and (job := self._queue.peek()):
            permission = self.limits.reserve(job.estimate)
            if permission.wait:
                return batch, permission.wait
            if permission.exceeded:
                self._await_budget(permission.exceeded, batch)
                break
            job.sent_at = time.monotonic()
            self.tally.n_sent += 1
            batch.append(self._queue.pop())
        return batch, None

    def _await_budget(self, limit: str, batch: Sequence[Job]) -> None:
        """Stop, unless requests in flight may cost less than was reserved for them."""
        if not batch and not self.is_busy:
            n_missing, n_sent = len(self._queue), self.tally.n_sent
            raise describe_budget(self.model, limit, n_missing=n_missing, n_sent=n_sent)

    def _receive(self, wait: float | None) -> None:
        """Handle the next results, if they arrive within the wait."""
        seconds = wait if self.is_busy else wait or 0.0
        for job, answer in self._workers.receive(seconds):
            if isinstance(answer, ChatReply):
                self._accept(job, answer)
            else:
                self._count_failure(job, answer)
                self._react(job, answer)

    def _accept(self, job: Job, reply: ChatReply) -> None:
        reply = replace(reply, time=time.time())
        self.keep(job.request, reply)
        self._n_replies += 1
        self._n_unanswered_in_row = 0
        self._n_limits, self._n_limits_in_row = max(0, self._n_limits - 1), 0
        self._concurrency.grow(time.monotonic())
        self.tally.add_reply(reply)
        has_usage = reply.prompt_tokens + reply.completion_tokens > 0
        actual = measure_spending(reply, self.model.prices) if has_usage else job.estimate
        self.limits.settle(job.estimate, actual)

    def _count_failure(self, job: Job, failure: Failure) -> None:
        self.tally.failures[failure.cause] += 1
        self.limits.settle(job.estimate, measure_spending(None, self.model.prices))

    def _react(self, job: Job, failure: Failure) -> None:
        if failure.reaction == "stop":
            raise describe_refusal(self.model, failure)
        if failure.reaction == "resend":
            self._queue.put_back(job)
        elif failure.reaction == "reject":
            self._rejected.append((job, failure))
            if not self._has_replied and len(self._rejected) >= MAX_REJECTED:
                raise describe_refusal(self.model, failure)
        else:
            self._retry(job, failure)

    def _retry(self, job: Job, failure: Failure) -> None:
        """Send a request again later, unless it has failed too often.

        Rate limits are counted for all requests together: as long as replies arrive, the server
        works, and the requests share its rate.
        """
        if failure.is_rate_limit:
            self._slow_down(job, failure)
        else:
            job.tries += 1
        if max(job.tries, self._n_limits_in_row) > self.model.retries:
            self._give_up(failure)
        elif failure.is_rate_limit:
            self._queue.put_back(job)  # the pause of all requests is its delay
        else:
            delay = sample_delay(job.tries, self.chance)
            self._queue.put_back(job, max(failure.retry_after, delay))

    def _slow_down(self, job: Job, failure: Failure) -> None:
        """Send less at a time, and pause all processes; one burst of rate limits counts once."""
        now = time.monotonic()
        self._concurrency.shrink(now, failure.retry_after)
        pause = failure.retry_after
        if job.sent_at >= self._paused_at:
            self._paused_at = now
            self._n_limits += 1
            self._n_limits_in_row += 1
            pause = pause or sample_delay(self._n_limits, self.chance)
        if pause:
            self.limits.pause(pause)

    def _give_up(self, failure: Failure) -> None:
        self._unanswered.append(failure)
        self._n_unanswered_in_row += 1
        if self._n_unanswered_in_row >= (MAX_UNANSWERED if self._n_replies else 1):
            raise describe_unanswered(self.model, self._unanswered, is_down=True)

    def _settle_rejected(self) -> None:
        """Keep rejected requests as failed replies, unless the server rejects everything."""
        if self._rejected and not self._has_replied:
            raise describe_refusal(self.model, self._rejected[0][1])
        for job, failure in self._rejected:
            reason = failure.message
            reply = ChatReply(outcome="failed", finish_reason=reason, time=time.time())
            self.keep(job.request, reply)

    def _collect(self, seconds: float) -> None:
        """Keep the replies to requests in flight that arrive within some seconds."""
        end = time.monotonic() + seconds
        while self.is_busy and (remaining := end - time.monotonic()) > 0:
            for job, answer in self._workers.receive(remaining):
                if isinstance(answer, ChatReply):
                    self._accept(job, answer)
                else:
                    self._count_failure(job, answer)
