"""What a command that is ended leaves behind."""

from __future__ import annotations

import subprocess
import sys

ENDED_AT_ONCE = """
import multiprocessing, os
from recbias.core.machine.interrupts import handle_signals

with handle_signals():
    lock = multiprocessing.get_context("spawn").Lock()
    os._exit(143)
"""


def test_no_line_tells_of_the_semaphores_of_a_process_that_was_ended_at_once() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ENDED_AT_ONCE], capture_output=True, text=True, check=False
    )  # until the process that removes the semaphores has closed the stream too
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "", "")
