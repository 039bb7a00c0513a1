"""An alarm for readers that never end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def end_after(seconds: int) -> Iterator[None]:
    """Raise AssertionError in this block after some seconds of the clock."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        message = f"it did not end in {seconds} s"
        raise AssertionError(message)

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
