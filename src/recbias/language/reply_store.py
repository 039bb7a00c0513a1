"""The reply store: every reply that arrived, in append-only files of JSON lines.

Each writer appends to a file of its own, one line for each reply in one write, so that writers
need no lock and a line that a killed process left unfinished is the last of its file. Nothing is
replaced or removed. All ``*.jsonl`` files of the folder are read, so a file from somebody else is
used when it is copied there. Of several replies at one address the earliest is used.
"""

from __future__ import annotations

import errno
import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from recbias.core.context import warn
from recbias.core.errors import MissingFile, Unwritable
from recbias.core.files import open_input
from recbias.core.machine import write_to_disk
from recbias.language.endpoints import OUTCOMES, ChatReply, ChatRequest

_PATTERN = "*.jsonl"

_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("text", "outcome", "served_model", "fingerprint", "finish_reason"), str),
    **dict.fromkeys(("prompt_tokens", "completion_tokens"), int),
    "negotiated": list,
    "time": (int, float),
}


@dataclass
class ReplyStore:
    """The stored replies of a folder.

    Args:
        folder: The folder; it is created by the first reply.
    """

    folder: Path
    _replies: dict[str, ChatReply] = field(default_factory=dict)
    _offsets: dict[Path, int] = field(default_factory=dict)
    _descriptor: int | None = None

    def refresh(self) -> None:
        """Read the replies that were stored since the last call, by any process.

        Raises:
            MissingFile: A file cannot be read.
        """
        n_damaged = 0
        for path in sorted(self.folder.glob(_PATTERN)):
            for line in self._read_new_lines(path):
                entry = _parse_line(line)
                if entry is None:
                    n_damaged += 1
                else:
                    self._keep(*entry)
        if n_damaged:
            warn(f"{n_damaged:,} damaged line(s) of the stored replies are skipped")

    def __len__(self) -> int:
        return len(self._replies)

    def find(self, request: ChatRequest) -> ChatReply | None:
        """Return the stored reply to a request, None if there is none."""
        return self._replies.get(request.address)

    def append(self, request: ChatRequest, reply: ChatReply) -> None:
        """Store a reply.

        Raises:
            Unwritable: The folder is read-only or the disk is full.
        """
        origin = {name: getattr(request, name) for name in ("provider", "base_url", "model")}
        entry = {"address": request.address, **origin, "sample": request.sample, **asdict(reply)}
        del entry["cached"]
        line = f"{json.dumps(entry)}\n".encode()
        with _report_unwritable(self.folder):
            if self._descriptor is None:
                self._descriptor = _create_file(self.folder)
            if os.write(self._descriptor, line) < len(line):
                self.close()  # another reply begins a new file
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._keep(request.address, reply)

    def close(self) -> None:
        """Write the replies to the disk and close the file; another reply opens a new one.

        Raises:
            Unwritable: The disk is full.
        """
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with _report_unwritable(self.folder), os.fdopen(descriptor):
                write_to_disk(descriptor)

    def _keep(self, address: str, reply: ChatReply) -> None:
        stored = self._replies.setdefault(address, reply)
        if (reply.time, reply.text) < (stored.time, stored.text):
            self._replies[address] = reply

    def _read_new_lines(self, path: Path) -> Iterator[bytes]:
        """Yield the lines of a file after those that were read before, but no unfinished one."""
        start = self._offsets.get(path, 0)
        try:
            with open_input(path) as stream:
                stream.seek(start)
                for line in stream:
                    is_complete = line.endswith(b"\n")
                    start += len(line) if is_complete else 0
                    if is_complete or _parse_line(line):
                        yield line
        except OSError as error:
            message = f"cannot be read: {error.strerror or error}"
            raise MissingFile(message, where=str(path)) from error
        self._offsets[path] = start


def _create_file(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:8]}.jsonl"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
    return os.open(folder / name, flags, 0o644)


@contextmanager
def _report_unwritable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"a reply cannot be stored: {error.strerror or error}"
        remedy = "free disk space, or make the folder writable, then run again"
        raise Unwritable(message, where=str(folder), remedy=remedy) from error


def _parse_line(line: bytes) -> tuple[str, ChatReply] | None:
    """Return the address and the reply of a line; None if it is damaged."""
    try:
        entry: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("address"), str):
        return None
    values: dict[str, Any] = {name: entry.get(name) for name in _TYPES}
    if not all(isinstance(value, _TYPES[name]) for name, value in values.items()):
        return None
    if values["outcome"] not in OUTCOMES:
        return None
    values["negotiated"] = tuple(map(str, values["negotiated"]))
    return entry["address"], ChatReply(**values)
