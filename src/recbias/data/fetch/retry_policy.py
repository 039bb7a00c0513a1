"""When a download is tried again, and when it is given up."""

from __future__ import annotations

import time
from dataclasses import dataclass

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Status codes after which a retry may succeed."""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """When a transfer is retried and when it is given up.

    Args:
        attempts: Number of consecutive attempts without progress before the transfer fails.
        pause_s: Pause after the first of them; it doubles with every further attempt.
        timeout_s: Longest silence of a server.
        window_s: Length of the windows in which the rate is checked.
        min_bytes: Least number of bytes in each window; an attempt that receives less has made no
            progress.
    """

    attempts: int = 4
    pause_s: float = 1.0
    timeout_s: float = 60.0
    window_s: float = 60.0
    min_bytes: int = 2**16

    def wait(self, failures: int) -> None:
        """Pause after so many failed attempts."""
        if failures:
            time.sleep(self.pause_s * 2 ** (failures - 1))
