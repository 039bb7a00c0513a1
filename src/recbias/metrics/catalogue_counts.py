"""The size of the catalogue and of its interactions: a property of the dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.errors import UnknownColumn
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence


@dataclass(frozen=True, kw_only=True)
class CatalogueCounts:
    """The numbers of items and interactions, and of the values of an attribute.

        n(i) = interactions of item i in all parts of the split

    - ``items``: the items with an interaction; ``interactions``: Σ_i n(i); ``most interactions of
      an item``: max_i n(i).
    - ``values of categories``: the distinct values of the attribute among these items; ``most
      values of an item``: the largest number that one item has.

    They describe the data after the filters, and belong to no model.

    Args:
        attribute: A column of the items, whose cell ``x|y`` has two values; none by default.

    Raises:
        UnknownColumn: The items have no such column.

    Range:
        0 or more.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, table 2.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    attribute: str | None = None

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return frozenset({"train"} if self.attribute is None else {"train", "items"})

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the attribute."""
        if self.attribute is None:
            return
        evidence.need("items")
        try:
            evidence.items.column(self.attribute)  # type: ignore[union-attr]  # need() raises
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="attribute", remedy=error.remedy) from error

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the counts."""
        self.check(evidence)
        evidence.need("train")
        counts = evidence.item_counts
        if counts is None:
            counts = evidence.popularity
        has_interaction = counts > 0
        numbers = {
            "items": np.count_nonzero(has_interaction),
            "interactions": counts.sum(),
            "most interactions of an item": counts.max(initial=0.0),
        }
        if self.attribute is not None:
            matrix = evidence.items.membership(self.attribute).matrix  # type: ignore[union-attr]
            used = matrix[np.flatnonzero(has_interaction)]
            numbers |= {
                f"values of {self.attribute}": np.count_nonzero(np.diff(used.tocsc().indptr)),
                "most values of an item": np.diff(used.tocsr().indptr).max(initial=0),
            }
        n = int(numbers["items"])
        return [
            Measurement(float(number), n=n, undefined=0, target=name)
            for name, number in numbers.items()
        ]
