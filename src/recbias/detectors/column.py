"""Labels from a column of the items table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn


@dataclass(frozen=True, kw_only=True)
class Column:
    """Take labels from a column of the items.

        label = 1 if value ≥ threshold else 0

    Without a threshold the column must hold 0 and 1, and is used unchanged. An item with a missing
    value has no label.

    Args:
        from_: The column.
        threshold: The least value that is labelled 1.
        kind: What the labels describe; with it the labels called ``mine`` are ``mine.stereotype``.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.
        OutOfRange: There is no threshold, and a value is neither 0 nor 1.
        NothingLeft: The column is empty.

    >>> import pandas as pd
    >>> from recbias.core.dataset.vocabulary import Vocabulary
    >>> table = pd.DataFrame({"votes": [3.0, 8.0, np.nan]})
    >>> items = Attributes(Vocabulary.of(["1", "2", "3"]), table)
    >>> labels = Column(from_="votes", threshold=5).label(items, np.random.default_rng(0))
    >>> labels["stereotype"].tolist()
    [0.0, 1.0, nan]
    """

    libraries: ClassVar[tuple[str, ...]] = ()

    from_: str
    threshold: float | None = None
    kind: str = "stereotype"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the one kind."""
        return (self.kind,)

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels; ``rng`` is unused: the labels are deterministic."""
        values = self._read_values(items)
        if self.threshold is None:
            return {self.kind: values}
        is_labelled = (values >= self.threshold).astype(np.float64)
        return {self.kind: np.where(np.isnan(values), np.nan, is_labelled)}

    def _read_values(self, items: Attributes) -> FloatArray:
        try:
            values = items.numbers(self.from_)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="from", remedy=error.remedy) from error
        if np.isnan(values).all():
            raise NothingLeft(f"column {self.from_!r} of the items is empty", where="from")
        not_binary = np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1))
        if self.threshold is None and not_binary.size:
            row = not_binary[0]
            message = f"{self.from_!r} of item {items.ids.ids[row]!r} is {values[row]:g}"
            remedy = "set a threshold: the least value that is labelled 1"
            raise OutOfRange(f"{message}, neither 0 nor 1", where="from", remedy=remedy)
        return values
