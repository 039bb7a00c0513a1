"""The protocols of plug-ins that say how large their result is, and how much memory they need.

Sizes are counts by name: ``users``, ``items``, ``interactions`` of the dataset, those of them with
``times``, ``training`` interactions, ``queries``, ``bytes`` of files, ``reviews`` with their
``characters``, and those of the ``longest``; ``texts`` of queries with their ``text_bytes``, those
of the ``longest_text`` and those of beginnings that they share, ``shared_bytes``; the bytes of
the ``longest_sentence`` of the dataset, its ``sentences`` and their ``sentence_characters``, of
all columns; ``item_characters`` of the texts of items; and ``answers`` of a model with their
``answer_cells``, ``answer_characters`` and ``text_characters``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

Sizes: TypeAlias = Mapping[str, int]


class ModelMemory(NamedTuple):
    """The bytes that a model needs beside the data that it is given.

    Args:
        fit: The peak of ``fit``, with what it returns.
        state: The learned parameters.
        lists: The peak of ``recommend`` beside the learned parameters and the lists, other than
            blocks of scores.
        compiled: Whether ``fit`` uses compiled loops even where it does not name numba.
        ranking: How ``recommend`` ranks many scores: in ``blocks``; in ``tiles`` that fit the
            cache; or, for ``none``, not at all by the loops that models share.
        lists_with: The libraries that ``recommend`` loads, which ``fit`` may load too.
    """

    fit: float
    state: float
    lists: float = 0.0
    compiled: bool = False
    ranking: Literal["blocks", "tiles", "none"] = "blocks"
    lists_with: tuple[str, ...] = ()


def plan_detector(needs: float) -> ModelMemory:
    """Return the memory of a detector that needs so many bytes beside the items.

    >>> plan_detector(80.0).fit
    80.0
    """
    return ModelMemory(fit=needs, state=0.0, ranking="none")


@runtime_checkable
class EstimatesDataset(Protocol):
    """A dataset plug-in that estimates its sizes from its files, without reading them whole."""

    def estimate_dataset(self, data: Path) -> Sizes:
        """Return ``users``, ``items``, ``interactions``, ``times``; nothing if unknown."""


@runtime_checkable
class EstimatesSizes(Protocol):
    """A filter, split or source of queries that changes sizes."""

    def estimate_sizes(self, sizes: Sizes) -> Sizes:
        """Return the sizes after it, such as ``training`` after a split; other sizes stay."""


class PlansMemory(Protocol):
    """A model, a re-ranker or a detector that says how much memory it needs."""

    def plan_memory(self, sizes: Sizes) -> ModelMemory | None:
        """Return the memory for training data with ``users``, ``items`` and ``training`` rows.

        It is None if the sizes do not tell it. What a detector needs is ``fit``.
        """
