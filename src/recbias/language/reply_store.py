"""What all processes of a machine share of a language model: its replies, rates and spending.

Each process appends replies to a file of its own, one line of JSON for each in one write, so that
writers need no lock and a line that a killed process left unfinished is the last of its file.
Nothing is replaced or removed. All ``*.jsonl`` files of the folder are read, so a file from
somebody else is used when it is copied there. Of several replies at one address the earliest is
used.

The pause after a rate limit, the rates and the spending are in one small file for each model
beside the replies, which is locked while it is changed.
"""

from __future__ import annotations

import errno
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from recbias.core.context import warn
from recbias.core.errors import MissingFile, Unwritable
from recbias.core.files import compute_digest, open_input
from recbias.core.machine import lock_file, write_to_disk
from recbias.language.endpoints import (
    OUTCOMES,
    Budget,
    ChatReply,
    ChatRequest,
    LanguageModel,
    Prices,
)

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
        with _report_unwritable(self.folder, _NOT_STORED):
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
            with _report_unwritable(self.folder, _NOT_STORED), os.fdopen(descriptor):
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


_NOT_STORED = "a reply cannot be stored"


@contextmanager
def _report_unwritable(path: Path, fault: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{fault}: {error.strerror or error}"
        remedy = "free disk space, or make the folder writable, then run again"
        raise Unwritable(message, where=str(path), remedy=remedy) from error


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


MAX_PAUSE = 600.0
"""A server that asks for a longer pause has a limit of hours or days: all requests stop."""

_PER_MILLION = 1e-6

_MAX_SPACING = 86_400.0  # the longest pause after the tokens of requests, in seconds
_KEPT_SECONDS = 7 * 86_400  # how long the spending of a run is kept after its last request


class Spending(NamedTuple):
    """Requests, tokens and money."""

    requests: int = 0
    tokens: int = 0
    money: float = 0.0

    @classmethod
    def estimate(cls, request: ChatRequest, prices: Prices | None) -> Spending:
        """Return an upper estimate of what a request costs.

        >>> request = ChatRequest(provider="openai", base_url="http://a", model="m", messages=())
        >>> Spending.estimate(request, Prices(input=1, output=2)).money  # 512 tokens of reply
        0.001024
        """
        return cls._price(request.prompt_tokens, request.decoding.max_tokens, prices)

    @classmethod
    def measure(cls, reply: ChatReply, prices: Prices | None) -> Spending:
        """Return what a reply has cost."""
        return cls._price(reply.prompt_tokens, reply.completion_tokens, prices)

    @classmethod
    def _price(cls, n_input: int, n_output: int, prices: Prices | None) -> Spending:
        money = 0.0
        if prices is not None:
            money = _PER_MILLION * (n_input * prices.input + n_output * prices.output)
        return cls(1, n_input + n_output, money)

    def plus(self, other: Spending, sign: int = 1) -> Spending:
        """Return the sum, or with the sign -1 the difference."""
        return Spending(
            self.requests + sign * other.requests,
            self.tokens + sign * other.tokens,
            self.money + sign * other.money,
        )


class _Permission(NamedTuple):
    """Whether a request may be sent.

    Args:
        wait: The seconds to wait before asking again; 0 if it may be sent.
        exceeded: The limit of the budget that it would exceed: ``tokens``; empty if none.
    """

    wait: float = 0.0
    exceeded: str = ""


@dataclass(frozen=True)
class SharedLimits:
    """The pause, the rates and the spending of one model, shared by the processes of a machine.

    Requests are spaced evenly over the minute. A request reserves its estimated tokens and cost;
    its reply corrects them.

    Args:
        path: The file.
        run: The name of the run whose processes share a budget.
        requests_per_minute: The maximum rate, or None.
        tokens_per_minute: The maximum rate, or None.
        budget: The most that the run may spend.
        clock: Returns the time in seconds since 1970.
    """

    path: Path
    run: str
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    budget: Budget = field(default_factory=Budget)
    clock: Callable[[], float] = time.time

    @classmethod
    def of_model(cls, model: LanguageModel, folder: Path, run: str) -> SharedLimits:
        """Return the limits of a model, in the folder of the replies."""
        name = compute_digest([model.provider, model.server, model.model])[:16]
        path, rates = folder / "limits" / f"{name}.json", model.requests_per_minute
        return cls(path, run, rates, model.tokens_per_minute, model.budget or Budget())

    @property
    def _is_counting(self) -> bool:
        return bool(self.requests_per_minute or self.tokens_per_minute or self.budget != Budget())

    @property
    def n_sent(self) -> int:
        """The requests of the run until now, repeated ones included, if there is a budget."""
        return self._get_spent(self._read()).requests

    def _read(self) -> dict[str, Any]:
        return _parse(self.path.read_bytes() if self.path.exists() else b"")

    def reserve(self, estimate: Spending) -> _Permission:
        """Reserve a request, or return when to ask again.

        Raises:
            Unwritable: The folder cannot be written.
        """
        if not self._is_counting:
            return _Permission(wait=self._compute_wait(self._read()))
        with self._change() as state:
            if wait := self._compute_wait(state):
                return _Permission(wait=wait)
            spent = self._get_spent(state).plus(estimate)
            for name, amount in spent._asdict().items():
                limit = getattr(self.budget, name)
                if limit is not None and amount > limit:
                    return _Permission(exceeded=name)
            self._set_spent(state, spent)
            now = self.clock()
            if self.requests_per_minute:
                state["next_request"] = now + 60 / self.requests_per_minute
            if self.tokens_per_minute:
                start = min(max(now, state["next_tokens"]), now + _MAX_SPACING)
                state["next_tokens"] = start + 60 * estimate.tokens / self.tokens_per_minute
            return _Permission()

    def settle(self, estimate: Spending, actual: Spending) -> None:
        """Replace the reserved tokens and cost of a request by those of its reply."""
        if not self._is_counting:
            return
        change = actual.plus(estimate, -1)
        with self._change() as state:
            self._set_spent(state, self._get_spent(state).plus(change))
            if self.tokens_per_minute:
                state["next_tokens"] += 60 * change.tokens / self.tokens_per_minute

    def pause(self, seconds: float) -> None:
        """Let no process send a request for some seconds."""
        with self._change() as state:
            now, earlier = self.clock(), state["paused_until"]
            is_of_this_clock = earlier <= now + MAX_PAUSE + 1
            state["paused_until"] = max(now + seconds, earlier if is_of_this_clock else 0.0)

    def _compute_wait(self, state: Mapping[str, Any]) -> float:
        """Return the seconds until the pause and the spacing of the requests are over."""
        ends: list[tuple[float, float]] = [(state["paused_until"], MAX_PAUSE)]
        if self.requests_per_minute:
            ends.append((state["next_request"], 60 / self.requests_per_minute))
        if self.tokens_per_minute:
            ends.append((state["next_tokens"], _MAX_SPACING))
        now = self.clock()
        return max([0.0, *(end - now for end, longest in ends if end - now <= longest + 1)])

    def _get_spent(self, state: Mapping[str, Any]) -> Spending:
        entry = state["spending"].get(self.run)
        return Spending(**entry["spent"]) if entry else Spending()

    def _set_spent(self, state: dict[str, Any], spent: Spending) -> None:
        now, runs = self.clock(), state["spending"]
        runs[self.run] = {"time": now, "spent": spent._asdict()}
        for run in [name for name, entry in runs.items() if now - entry["time"] > _KEPT_SECONDS]:
            del runs[run]

    @contextmanager
    def _change(self) -> Iterator[dict[str, Any]]:
        """Lock the file, yield its content, and replace it by one write."""
        with _report_unwritable(self.path, "cannot be written"):
            if not self.path.exists():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.touch()
            with self.path.open("r+b") as stream:
                lock_file(stream.fileno())
                content = stream.read()
                state = _parse(content)
                yield state
                stream.seek(0)
                stream.write(json.dumps(state).encode().ljust(len(content)))


def _parse(content: bytes) -> dict[str, Any]:
    """Return the content of a file; one that a killed process left half written is empty."""
    empty = {"paused_until": 0.0, "next_request": 0.0, "next_tokens": 0.0, "spending": {}}
    try:
        return {**empty, **json.loads(content)}
    except (ValueError, TypeError):
        return empty
