"""Limits that the processes of a machine share: the pause, the rates and the spending of a model.

They are in one small file for each model beside the stored replies, which is locked while it is
read and written, on systems and disks that have locks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from recbias.core.digests import compute_digest
from recbias.core.errors import Unwritable
from recbias.core.machine.operating_system import lock_file
from recbias.language.chat.budget import Budget, Spending
from recbias.language.chat.failures import MAX_RETRY_AFTER
from recbias.language.chat.settings import LanguageModel

FOLDER = "limits"
"""The folder of the files, in that of the replies."""

MAX_SPACING, ROUNDING = 86_400.0, 1.0
"""The longest pause after the tokens of requests, and what is added to each limit, in seconds."""

MAX_AMOUNT = 1e15
"""Larger numbers in the file, in seconds, tokens or money, are none of this program."""

KEPT_SECONDS = 7 * 86_400
"""How long the spending of a run is kept after its last request."""


REMEDY = "free disk space, or make the folder writable, then run again"


@dataclass(frozen=True)
class Permission:
    """Whether a request may be sent.

    Args:
        wait: The seconds to wait before asking again; 0 if it may be sent.
        exceeded: The limit of the budget that it would exceed: ``tokens``; empty if none.
    """

    wait: float = 0.0
    exceeded: str = ""


@dataclass(frozen=True)
class SharedLimits:
    """The limits of one model.

    Requests are spaced evenly over the minute. A request reserves its estimated tokens and cost;
    its reply corrects them.

    Args:
        path: The file.
        run: The name of the run whose processes share a budget.
        requests_per_minute: The maximum rate, or None.
        tokens_per_minute: The maximum rate, or None.
        budget: The most that the run may spend, or None.
        clock: Returns the time in seconds since 1970.
    """

    path: Path
    run: str
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    budget: Budget | None = None
    clock: Callable[[], float] = field(default=time.time)

    @classmethod
    def of_model(cls, model: LanguageModel, folder: Path, run: str) -> SharedLimits:
        """Return the limits of a model, in the folder of the replies."""
        name = compute_digest([model.provider, model.server, model.model])[:16]
        return cls(
            folder / FOLDER / f"{name}.json",
            run,
            model.requests_per_minute,
            model.tokens_per_minute,
            model.budget,
        )

    @property
    def _is_counting(self) -> bool:
        rates = (self.requests_per_minute, self.tokens_per_minute)
        return self.budget is not None or any(rate is not None for rate in rates)

    def reserve(self, estimate: Spending) -> Permission:
        """Reserve a request, or return when to ask again.

        Raises:
            Unwritable: The folder cannot be written.
        """
        if not self._is_counting:
            return Permission(wait=self._compute_wait(self._read()))
        with self._change() as state:
            wait = self._compute_wait(state)
            if wait:
                return Permission(wait=wait)
            spending = self._get_spending(state) + estimate
            if self.budget is not None and (limit := self.budget.find_exceeded(spending)):
                return Permission(exceeded=limit)
            self._set_spending(state, spending)
            self._advance(state, estimate)
            return Permission()

    def settle(self, estimate: Spending, actual: Spending) -> None:
        """Replace the reserved tokens and cost of a request by those of its reply."""
        if not self._is_counting:
            return
        change = actual + -estimate
        with self._change() as state:
            self._set_spending(state, self._get_spending(state) + change)
            if self.tokens_per_minute:
                state["next_tokens"] += 60 * change.tokens / self.tokens_per_minute

    def pause(self, seconds: float) -> None:
        """Let no process send a request for some seconds."""
        with self._change() as state:
            now, earlier = self.clock(), state["paused_until"]
            is_of_this_clock = earlier <= now + MAX_RETRY_AFTER + ROUNDING
            state["paused_until"] = max(earlier if is_of_this_clock else now, now + seconds)

    def _compute_wait(self, state: Mapping[str, Any]) -> float:
        """Return the seconds until the pause and the spacing of the requests are over."""
        now = self.clock()
        times: list[tuple[float, float]] = [(state["paused_until"], MAX_RETRY_AFTER)]
        times += [(state["next_request"], 60 / rate)] if (rate := self.requests_per_minute) else []
        times += [(state["next_tokens"], MAX_SPACING)] if self.tokens_per_minute else []
        waits = [end - now for end, longest in times if end - now <= longest + ROUNDING]
        return min(max(0.0, 0.0, *waits), MAX_RETRY_AFTER)  # later ends are of a clock set back

    def _advance(self, state: dict[str, Any], estimate: Spending) -> None:
        now = self.clock()
        if self.requests_per_minute:
            state["next_request"] = now + 60 / self.requests_per_minute
        if self.tokens_per_minute:
            start = min(max(now, state["next_tokens"]), now + MAX_SPACING)
            state["next_tokens"] = start + 60 * estimate.tokens / self.tokens_per_minute

    def _get_spending(self, state: Mapping[str, Any]) -> Spending:
        entry = state["spending"].get(self.run)
        return Spending(**entry["spent"]) if entry else Spending()

    def _set_spending(self, state: dict[str, Any], spending: Spending) -> None:
        now = self.clock()
        runs = state["spending"]
        runs[self.run] = {"time": now, "spent": asdict(spending)}
        for run in [name for name, entry in runs.items() if now - entry["time"] > KEPT_SECONDS]:
            del runs[run]

    def _read(self) -> dict[str, Any]:
        try:
            return _parse_state(self.path.read_bytes())
        except FileNotFoundError:
            return _parse_state(b"")
        except OSError as error:
            message = f"cannot be read: {error.strerror or error}"
            raise Unwritable(message, where=str(self.path), remedy=REMEDY) from error

    @contextmanager
    def _change(self) -> Iterator[dict[str, Any]]:
        """Lock the file, yield its content, and replace it by one write."""
        try:
            with _open_file(self.path) as stream:
                lock_file(stream.fileno())
                content = stream.read()
                state = _parse_state(content)
                yield state
                stream.seek(0)
                stream.write(json.dumps(state).encode().ljust(len(content)))
        except OSError as error:
            message = f"cannot be written: {error.strerror or error}"
            raise Unwritable(message, where=str(self.path), remedy=REMEDY) from error


def _open_file(path: Path) -> BinaryIO:
    try:
        return path.open("r+b")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path.open("r+b")


def _parse_state(content: bytes) -> dict[str, Any]:
    """Return the content of a file; a damaged one is empty."""
    times, spending = dict.fromkeys(("paused_until", "next_request", "next_tokens"), 0.0), {}
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        stored = json.loads(content)
        times |= {name: _parse_time(stored[name]) for name in times}
        for run, entry in stored["spending"].items():
            spent = asdict(Spending(**entry["spent"]))
            if all(_is_amount(amount) for amount in spent.values()):
                spending[run] = {"time": _parse_time(entry["time"]), "spent": spent}
    return {**times, "spending": spending}


def _parse_time(value: Any) -> float:
    if not _is_amount(value):
        raise ValueError(value)
    return float(value)


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) < MAX_AMOUNT
