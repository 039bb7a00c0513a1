"""How much is sent in a minute and in a run: one limiter for each model.

The pause after a rate limit, the rates and the spending are in one small file for each model
beside the stored replies, which all processes of the machine share and lock while they change it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from recbias.core.errors import Unwritable
from recbias.core.files import compute_digest
from recbias.core.machine import lock_file
from recbias.language.endpoints import Budget, ChatReply, ChatRequest, LanguageModel, Prices

MAX_PAUSE = 600.0
"""A server that asks for a longer pause has a limit of hours or days: all requests stop."""

_PER_MILLION = 1e-6

_MAX_SPACING = 86_400.0  # the longest pause after the tokens of requests, in seconds
_KEPT_SECONDS = 7 * 86_400  # how long the spending of a run is kept after its last request

_REMEDY = "free disk space, or make the folder writable, then run again"


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
        content = self.path.read_bytes() if self.path.exists() else b""
        return self._get_spent(_parse(content)).requests

    def reserve(self, estimate: Spending) -> _Permission:
        """Reserve a request, or return when to ask again.

        Raises:
            Unwritable: The folder cannot be written.
        """
        if not self._is_counting:
            content = self.path.read_bytes() if self.path.exists() else b""
            return _Permission(wait=self._compute_wait(_parse(content)))
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
        try:
            with _open_file(self.path) as stream:
                lock_file(stream.fileno())
                content = stream.read()
                state = _parse(content)
                yield state
                stream.seek(0)
                stream.write(json.dumps(state).encode().ljust(len(content)))
        except OSError as error:
            message = f"cannot be written: {error.strerror or error}"
            raise Unwritable(message, where=str(self.path), remedy=_REMEDY) from error


def _open_file(path: Path) -> BinaryIO:
    try:
        return path.open("r+b")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path.open("r+b")


def _parse(content: bytes) -> dict[str, Any]:
    """Return the content of a file; one that a killed process left half written is empty."""
    empty = {"paused_until": 0.0, "next_request": 0.0, "next_tokens": 0.0, "spending": {}}
    try:
        return {**empty, **json.loads(content)}
    except (ValueError, TypeError):
        return empty
