"""Commands that end, as by SIGKILL, before the n-th change that they make to a folder.

Python reports every change of the file system to an audit hook before it is made. A server
imports recbias once, and runs each command in a fork of itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHANGES = frozenset(
    f"os.{name}"
    for name in ("rename", "remove", "mkdir", "rmdir", "symlink", "link", "utime", "truncate")
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def is_change(event: str, arguments: Sequence[Any], folder: str) -> bool:
    """Return whether an audit event is a change of a folder; of names in open folders, always."""
    if event == "open":
        path, _, flags = arguments
        if not isinstance(flags, int) or not flags & WRITES or isinstance(path, int):
            return False
    elif event in CHANGES:
        if event in {"os.remove", "os.rmdir"} and arguments[-1] != -1:
            return True
        path = arguments[1] if event in {"os.rename", "os.symlink", "os.link"} else arguments[0]
    else:
        return False
    return os.path.abspath(os.fsdecode(path)).startswith(folder)  # noqa: PTH100  not resolved


def run_until(words: Sequence[str], folder: Path, last: int) -> int:
    """Run a command; end this process before the change after ``last``; return the number."""
    from recbias.cli.main import app

    n_changes = 0
    prefix = str(folder / "results")

    def count(event: str, arguments: Sequence[Any]) -> None:
        nonlocal n_changes
        if is_change(event, arguments, prefix):
            if n_changes == last:
                os.kill(os.getpid(), signal.SIGKILL)
            n_changes += 1

    os.chdir(folder)
    sys.addaudithook(count)
    try:
        app([*words])
    except SystemExit as end:
        if end.code:
            raise
    return n_changes


def serve() -> None:
    """Answer each request on standard input with the exit code or, after 0, the changes."""
    answers = os.dup(1)
    log = os.open(os.devnull, os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for line in sys.stdin:
        words, folder, last = json.loads(line)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                changes = run_until(words, Path(folder), last)
                os.write(writer, str(changes).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(writer)
        with os.fdopen(reader) as stream:
            changes_text = stream.read()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(answers, f"{json.dumps([code, int(changes_text or 0)])}\n".encode())


@dataclass(frozen=True)
class KillServer:
    """Runs commands of recbias in other processes."""

    process: subprocess.Popen[str]

    def run(self, words: Sequence[str], folder: Path, last: int = -1) -> tuple[int, int]:
        """Run a command, ended before the change after ``last``; by default it is not ended.

        Returns:
            The exit code, -9 if it was ended, and the number of changes if it was not.
        """
        self.process.stdin.write(f"{json.dumps([[*words], str(folder), last])}\n")
        self.process.stdin.flush()
        code, n_changes = json.loads(self.process.stdout.readline())
        return code, n_changes


@contextmanager
def open_kill_server(warm_up: Path) -> Iterator[KillServer]:
    """Start a server, which imports what the run of a folder's ``small.yaml`` needs."""
    code = (
        "import contextlib, os, sys; from support.faults.killed_commands import serve\n"
        "from support.commands import invoke_recbias; from pathlib import Path\n"
        "invoke_recbias('run', 'small.yaml', folder=Path(sys.argv[1])); serve()"
    )
    tests = Path(__file__).parents[2]
    paths = [str(tests), os.environ.get("PYTHONPATH", "")]
    with subprocess.Popen(
        [sys.executable, "-c", code, str(warm_up)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield KillServer(process)
        finally:
            process.kill()
