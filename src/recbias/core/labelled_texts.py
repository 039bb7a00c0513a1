"""Detectors that label a text of each item: a text is evaluated once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import ClassVar, Protocol, TypeGuard, runtime_checkable

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.core.dataset.attributes import Attributes


@runtime_checkable
class LabelsTexts(Protocol):
    """A detector whose labels follow from values of a text of each item.

    The values are stored by the text, so that other seeds, filters and datasets with the same
    text evaluate it no more. ``after_evaluation`` names the settings that do not affect them.
    """

    libraries: ClassVar[tuple[str, ...]]
    after_evaluation: ClassVar[frozenset[str]]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of label."""

    def texts(self, items: Attributes) -> Ids:
        """Return the text of each item, None where it is missing, ``object[n_items]``."""

    def evaluate(self, texts: Sequence[str]) -> Iterator[FloatArray]:
        """Yield the values of consecutive texts, a row for each: ``float64[m, c]``.

        A text has the same values in any order and company.
        """

    def label_values(self, values: FloatArray) -> Mapping[str, FloatArray]:
        """Return the columns of ``label`` for values of all items; NaN where there is no text."""


@runtime_checkable
class EvaluatesTextsBySettings(Protocol):
    """A detector that has values of texts with some of its settings only."""

    def evaluates_texts(self) -> bool:
        """Return whether the labels follow from values of texts under the current settings."""


def evaluates_texts(detector: object) -> TypeGuard[LabelsTexts]:
    """Return whether the labels of a detector follow from values of a text of each item.

    >>> evaluates_texts(object())
    False
    """
    if not isinstance(detector, LabelsTexts):
        return False
    return not isinstance(detector, EvaluatesTextsBySettings) or detector.evaluates_texts()


class StoredValues(Protocol):
    """Values of texts by the digest of the text."""

    def find(self, digest: str) -> FloatArray | None:
        """Return the values of a text, None if there are none."""

    def append(self, digests: Sequence[str], values: FloatArray) -> None:
        """Store the values of texts."""


def label_texts(
    detector: LabelsTexts, stored: StoredValues | None, items: Attributes
) -> Mapping[str, FloatArray]:
    """Return the columns of a detector; each distinct text that is not stored is evaluated once.

    Args:
        detector: The detector.
        stored: The values of texts that were evaluated before; None to store none.
        items: The items.
    """
    codes, distinct = pd.factorize(detector.texts(items))
    texts = [str(text) for text in distinct]
    digests = [sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts]
    rows = [None if stored is None else stored.find(digest) for digest in digests]
    missing = [at for at, row in enumerate(rows) if row is None]
    start = 0
    for block in detector.evaluate([texts[at] for at in missing]):
        places = missing[start : start + len(block)]
        if stored is not None:
            stored.append([digests[at] for at in places], block)
        for at, row in zip(places, block, strict=True):
            rows[at] = row
        start += len(block)
    return detector.label_values(_spread(rows, codes))


def _spread(rows: Sequence[FloatArray | None], codes: AnyArray) -> FloatArray:
    """Return the values of each item: NaN for code -1, ``float64[n, c]``."""
    present = [row for row in rows if row is not None]
    table = np.full((len(rows) + 1, present[0].size if present else 0), np.nan)
    if present:
        table[:-1] = present
    return np.asarray(table[codes])
