"""Ceilings on the requests, tokens and money that a run may spend on a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from recbias.language.chat.requests import ChatReply, ChatRequest

PER_MILLION = 1e-6


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What tokens cost, in any currency.

    Args:
        input: The price of a million tokens of the prompt.
        output: The price of a million tokens of the reply.
    """

    input: Annotated[float, Ge(0)]
    output: Annotated[float, Ge(0)]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that a run may spend on a model; None is no limit.

    Args:
        requests: The number of requests, repeated ones included.
        tokens: The number of tokens of prompts and replies.
        money: The cost by ``prices``.
    """

    requests: Annotated[int, Ge(0)] | None = None
    tokens: Annotated[int, Ge(0)] | None = None
    money: Annotated[float, Ge(0)] | None = None

    def find_exceeded(self, spending: Spending) -> str:
        """Return the name of the first limit that a spending exceeds; empty if there is none."""
        for name in ("requests", "tokens", "money"):
            limit = getattr(self, name)
            if limit is not None and getattr(spending, name) > limit:
                return name
        return ""


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Requests, tokens and money.

    Args:
        requests: The number of requests.
        tokens: The number of tokens of prompts and replies.
        money: The cost.
    """

    requests: int = 0
    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            requests=self.requests + other.requests,
            tokens=self.tokens + other.tokens,
            money=self.money + other.money,
        )

    def __neg__(self) -> Spending:
        return Spending(requests=-self.requests, tokens=-self.tokens, money=-self.money)


def estimate_spending(request: ChatRequest, prices: Prices | None) -> Spending:
    """Return an upper estimate of what a request costs.

    >>> request = ChatRequest(provider="openai", base_url="http://a", model="m", messages=())
    >>> estimate_spending(request, Prices(input=1, output=2)).money  # 512 tokens of reply
    0.001024
    """
    return _price(request.prompt_tokens, request.decoding.max_tokens, prices)


def measure_spending(reply: ChatReply | None, prices: Prices | None) -> Spending:
    """Return what a request has cost; without a reply it is free, but counts."""
    if reply is None:
        return Spending(requests=1)
    return _price(reply.prompt_tokens, reply.completion_tokens, prices)


def _price(input_tokens: int, output_tokens: int, prices: Prices | None) -> Spending:
    money = 0.0
    if prices is not None:
        money = PER_MILLION * (input_tokens * prices.input + output_tokens * prices.output)
    return Spending(requests=1, tokens=input_tokens + output_tokens, money=money)
