"""Responses of a language model, read from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import sort_naturally
from recbias.core.outputs.text_outputs import Responses
from recbias.core.protocols import InputFile, Output
from recbias.core.queries.queries import Queries
from recbias.formats.tables import TextTable, find_suffix, read_text_table
from recbias.models.given.file_cache import read_once

COLUMNS = ("query_id", "response", "reference")


@dataclass(frozen=True, kw_only=True)
class GivenResponses:
    """Measure the responses of a language model that was run elsewhere, read from a table.

    The table is ``.csv``, ``.tsv``, ``.jsonl`` (each optionally with ``.gz``) or ``.parquet``,
    with the columns ``query_id``, ``response`` and, for metrics that compare texts,
    ``reference``. There is one reference per response, used as it is (``a|b`` is one text with a
    bar). An empty response is a response; an empty reference is missing. All other columns are
    labels. All responses of the table are measured, whatever the queries, in the natural order of
    their identifiers.

    Args:
        path: The table.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: ``query_id`` or ``response`` is missing.
        WrongType: The file name has another suffix.
        MalformedLine: A line is malformed, or an identifier is empty or repeated.

    >>> from pathlib import Path
    >>> GivenResponses(path=Path("replies.jsonl")).path.name
    'replies.jsonl'
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"responses"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ("pyarrow",)

    path: InputFile

    def __post_init__(self) -> None:
        find_suffix(self.path)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedResponses:
        """Read and validate the table; nothing is trained."""
        return FittedResponses(read_once(_read, self.path))

    def check_files(self, datasets: Sequence[str]) -> None:
        """Validate the table."""
        read_once(_read, self.path)

    def list_labels(self, queries: Queries) -> Sequence[str]:
        """Return the labels of the table, and those of the queries, which responses share."""
        names = map(str, read_once(_read, self.path).labels.columns)
        return list(dict.fromkeys([*names, *queries.labels.names]))


@dataclass(frozen=True, eq=False)
class FittedResponses:
    """The responses of a table."""

    table: Responses  # The responses

    def responses(self, queries: Queries) -> Responses:
        """Return all responses of the table."""
        return self.table


def _read(path: Path) -> Responses:
    return read_responses(read_text_table(path))


def read_responses(table: TextTable) -> Responses:
    """Return the responses of a table, in the natural order of their identifiers.

    Raises:
        UnknownColumn: A column is missing.
        MalformedLine: An identifier is empty or repeated.
    """
    table.need("query_id", "response")
    ids = table.ids("query_id")
    table.refuse_repeats(ids, lambda row: f"query {ids[row]!r} already has a response")
    order = sort_naturally(ids)
    labels = table.labels(COLUMNS).iloc[order].reset_index(drop=True)
    texts, references = table.texts("response"), table.optional("reference")
    return Responses(ids[order], texts[order], references[order], labels)
