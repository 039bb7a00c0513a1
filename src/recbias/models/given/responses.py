"""What a language model wrote elsewhere, read from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import sort_naturally
from recbias.core.outputs.sentences import Responses
from recbias.core.protocols import InputFile, Output
from recbias.core.queries.queries import Queries
from recbias.formats.text_tables import TextTable, find_suffix, read_text_table
from recbias.models.given.file_cache import read_once

COLUMNS = ("query_id", "response", "reference")


@dataclass(frozen=True, kw_only=True)
class GivenResponses:
    """Measure what a model wrote elsewhere, read from a table.

    The table is ``.csv``, ``.tsv``, ``.jsonl`` (each also with ``.gz``) or ``.parquet``, with the
    columns ``query_id``, ``response`` and, for measures that compare, ``reference``. A response
    has one reference, taken as it is (``a|b`` is a text with a bar in it). An empty response is a
    response; an empty reference is none. All other columns are labels. All responses of the table
    are measured, whatever is asked, in the natural order of their ids.

    Args:
        path: The table.

    Raises:
        MissingFile: The file is not there.
        UnknownColumn: ``query_id`` or ``response`` is absent.
        WrongType: The file's name does not say what it is.
        MalformedLine: A line that does not fit, an empty id, or an id that stands twice.

    >>> from pathlib import Path
    >>> GivenResponses(path=Path("replies.jsonl")).path.name
    'replies.jsonl'
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"responses"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ("pyarrow",)

    path: InputFile

    def __post_init__(self) -> None:
        """Refuse a file whose name is of no known kind."""
        find_suffix(self.path)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedResponses:
        """Read and check the table."""
        return FittedResponses(read_once(_read, self.path))

    def check_files(self, datasets: Sequence[str]) -> None:
        """Raise what is wrong with the table."""
        read_once(_read, self.path)


@dataclass(frozen=True, eq=False)
class FittedResponses:
    """The responses of a table.

    Args:
        written: What the table holds.
    """

    written: Responses

    def responses(self, queries: Queries) -> Responses:
        """Return the responses of the table, all of them."""
        return self.written


def _read(path: Path) -> Responses:
    return read_responses(read_text_table(path))


def read_responses(table: TextTable) -> Responses:
    """Return the responses of a table, in the natural order of their ids.

    Raises:
        UnknownColumn: A column is absent.
        MalformedLine: An id is empty or stands twice.
    """
    table.need("query_id", "response")
    ids = table.ids("query_id")
    table.refuse_repeats(ids, lambda row: f"query {ids[row]!r} has a response already")
    order = sort_naturally(ids)
    labels = table.labels(COLUMNS).iloc[order].reset_index(drop=True)
    texts, references = table.texts("response"), table.optional("reference")
    return Responses(ids[order], texts[order], references[order], labels)
