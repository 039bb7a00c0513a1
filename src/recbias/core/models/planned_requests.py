"""Requests that a plug-in would send to a language model, as known before any is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pandas as pd

from recbias.core.arrays import FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.split import TrainingData
from recbias.core.queries.queries import Queries


@dataclass(frozen=True)
class PlannedRequest:
    """One request.

    Args:
        address: Identifies the reply; requests with one address are sent once.
        is_stored: Whether the reply is stored, so that nothing is sent.
        prompt_tokens: An upper estimate of the tokens of the prompt.
        completion_tokens: The largest number of tokens of the reply.
        money: What these tokens cost by the prices of the spec; None without prices.
    """

    address: str
    is_stored: bool
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float | None = None


@runtime_checkable
class PlansRequests(Protocol):
    """A model that sends requests to a language model and can list them before."""

    def plan_requests(
        self, queries: Queries, k: int, data: TrainingData
    ) -> Sequence[PlannedRequest]:
        """Return the requests for lists of ``k``, without sending any."""


def sends_requests(model: object) -> bool:
    """Return whether a model sends requests; one whose ``llm`` is null is in the process."""
    return isinstance(model, PlansRequests) and getattr(model, "llm", model) is not None


@runtime_checkable
class AsksAboutItems(Protocol):
    """A detector that asks a language model about each item, and keeps what it replied."""

    def plan_label_requests(self, items: Attributes) -> Sequence[PlannedRequest]:
        """Return the requests of ``label``, without sending any."""

    def label_with_replies(
        self, items: Attributes
    ) -> tuple[Mapping[str, FloatArray], pd.DataFrame]:
        """Return the columns of ``label``, and a row for each reply.

        The rows have ``item_id``, ``sample``, ``reply``, ``outcome``, ``reading``, and the columns
        ``probability.KIND`` and ``label.KIND``.
        """
