"""Requests that have no reply yet: those that may be sent now, and those that wait."""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from recbias.language.chat.budget import Spending
from recbias.language.chat.requests import ChatRequest


@dataclass
class Job:
    """A request that has no reply yet.

    Args:
        request: The request.
        estimate: The tokens and the cost that are reserved for it.
        tries: The number of failed tries.
        sent_at: When it was sent last.
    """

    request: ChatRequest
    estimate: Spending
    tries: int = 0
    sent_at: float = 0.0


class JobQueue:
    """Jobs in the order in which they are sent; repeated ones go first when their delay is over.

    Args:
        jobs: The jobs.
    """

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._ready = deque(jobs)
        self._delayed: list[tuple[float, int, Job]] = []
        self._numbers = count()

    def __len__(self) -> int:
        """Return the number of jobs, delayed ones included."""
        return len(self._ready) + len(self._delayed)

    def peek(self) -> Job | None:
        """Return the job to send next, None if all are delayed."""
        while self._delayed and self._delayed[0][0] <= time.monotonic():
            self._ready.appendleft(heapq.heappop(self._delayed)[2])
        return self._ready[0] if self._ready else None

    def pop(self) -> Job:
        """Remove and return the job that ``peek`` has returned."""
        return self._ready.popleft()

    def put_back(self, job: Job, delay: float = 0.0) -> None:
        """Send a job again, after some seconds."""
        if delay:
            heapq.heappush(self._delayed, (time.monotonic() + delay, next(self._numbers), job))
        else:
            self._ready.appendleft(job)

    def compute_wait(self) -> float | None:
        """Return the seconds until the next delay is over, None if no job is delayed."""
        return max(self._delayed[0][0] - time.monotonic(), 0.0) if self._delayed else None
