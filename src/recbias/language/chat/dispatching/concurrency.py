"""The number of requests at a time: it grows with replies and shrinks with rate limits."""

from __future__ import annotations

from dataclasses import dataclass

START = 20
"""The number of requests at a time after the first reply, if the maximum allows it."""

SHRINKAGE = 0.8
COOLDOWN = 15.0
"""The seconds after a rate limit in which the number neither shrinks again nor grows."""


@dataclass
class AdaptiveConcurrency:
    """The number of requests that may be sent at a time.

    Until the first reply, requests are sent one by one, so that a wrong key or a refused parameter
    costs one request. Each reply then adds ``1 / limit``, up to the maximum. A rate limit (429)
    multiplies the number by 0.8, once in an episode: the cooldown is 15 seconds, or longer if the
    server asks to wait longer. Other failures change nothing.

    Args:
        maximum: The largest number.
        limit: The current number, at least 1.
        cooldown_end: When the current episode ends.
    """

    maximum: int
    limit: float = 1.0
    cooldown_end: float = 0.0
    _has_started: bool = False

    def admits(self, in_flight: int) -> bool:
        """Return whether another request may be sent."""
        return in_flight < int(self.limit)

    def grow(self, now: float) -> None:
        """Record a reply.

        >>> concurrency = AdaptiveConcurrency(maximum=32)
        >>> for _ in range(21):  # 20 after the first, then 20 times about 1/20
        ...     concurrency.grow(now=0.0)
        >>> round(concurrency.limit, 1)
        21.0
        """
        if not self._has_started:
            self._has_started = True
            self.limit = float(min(START, self.maximum))
        elif now >= self.cooldown_end:
            self.limit = min(float(self.maximum), self.limit + 1 / self.limit)

    def shrink(self, now: float, retry_after: float) -> bool:
        """Record a rate limit; return whether it begins an episode.

        >>> concurrency = AdaptiveConcurrency(maximum=32, limit=20.0)
        >>> concurrency.shrink(now=1.0, retry_after=0.0), concurrency.limit
        (True, 16.0)
        >>> concurrency.shrink(now=2.0, retry_after=30.0), concurrency.cooldown_end
        (False, 32.0)
        """
        is_new = now >= self.cooldown_end
        if is_new:
            self.limit = max(1.0, self.limit * SHRINKAGE)
        cooldown = max(COOLDOWN, retry_after) if is_new else retry_after
        self.cooldown_end = max(self.cooldown_end, now + cooldown)
        return is_new
