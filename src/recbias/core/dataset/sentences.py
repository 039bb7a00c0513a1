"""Sentences about groups of people: those to train on, and pairs to validate and test on."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from recbias.core.arrays import Ids
from recbias.core.errors import BrokenContract

KEYS = ("id", "part", "pair_id", "group", "text")
"""The columns of every table of sentences; all others are labels, such as ``category``."""

SENTENCE_PARTS = ("train", "validation", "test")
"""The parts of a table of sentences."""


@dataclass(frozen=True, eq=False)
class Sentences:
    """A table of sentences; the sentences of a pair differ in the group that they mention.

    Args:
        frame: One row per sentence: ``id`` (unique), ``part`` (``train``, ``validation`` or
            ``test``), ``pair_id`` (None for a sentence without counterpart), ``group``,
            ``text``, and any labels; text columns are ``str`` or None.

    Raises:
        BrokenContract: A column is missing, an identifier is repeated, or a part has another name.

    >>> row = {"id": "1", "part": "train", "pair_id": None, "group": "old", "text": "He is 80."}
    >>> len(Sentences(pd.DataFrame([row])).take_part("test"))
    0
    """

    frame: pd.DataFrame

    def __post_init__(self) -> None:
        """Validate the columns, identifiers and parts."""
        missing = [name for name in KEYS if name not in self.frame.columns]
        if missing:
            raise BrokenContract(f"the sentences have no column {', '.join(missing)}")
        repeated = self.frame["id"].duplicated().to_numpy()
        if repeated.any():
            raise BrokenContract(
                f"two sentences have the id {self.frame['id'][repeated].iloc[0]!r}"
            )
        others = set(self.frame["part"]) - set(SENTENCE_PARTS)
        if others:
            remedy = f"use {', '.join(SENTENCE_PARTS)}"
            raise BrokenContract(f"sentences of the part {min(others)!r}", remedy=remedy)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.frame)

    @property
    def texts(self) -> Ids:
        """The texts, in the order of the rows."""
        return self.frame["text"].to_numpy(dtype=object)

    @property
    def labels(self) -> pd.DataFrame:
        """The columns that are labels."""
        return self.frame.drop(columns=list(KEYS))

    def take_part(self, part: str) -> Sentences:
        """Return the sentences of one part."""
        return Sentences(self.frame[self.frame["part"] == part].reset_index(drop=True))

    def without_test(self) -> Sentences:
        """Return the sentences that training may see."""
        return Sentences(self.frame[self.frame["part"] != "test"].reset_index(drop=True))
