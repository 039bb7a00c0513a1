"""Scores of sentences by a language model, read from a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.core.outputs.text_outputs import SentenceScores
from recbias.core.protocols import InputFile, Output
from recbias.core.queries.queries import Queries
from recbias.formats.tables import (
    TextTable,
    find_suffix,
    parse_numbers,
    read_text_table,
)
from recbias.models.given.file_cache import read_once
from recbias.numerics.perplexity import compute_perplexities

KEYS = ("sentence_id", "pair_id", "group")

SCORES = ("perplexity", "log_probabilities", "log_probability")
TOLERANCE = 1e-6  # Largest excess of a probability over 1 that is attributed to rounding


@dataclass(frozen=True, kw_only=True)
class GivenSentences:
    """Measure sentence scores of a language model that was run elsewhere, read from a table.

        PPL(x) = exp( -(1/n) Σ_i ln p(x_i | x_<i) )

    The table is ``.csv``, ``.tsv``, ``.jsonl`` (each optionally with ``.gz``) or ``.parquet``,
    with the columns ``sentence_id``, ``pair_id`` (shared by the versions of one sentence; empty
    for a sentence without counterpart), ``group`` (the group that the version is about) and one of

    - ``perplexity``;
    - ``log_probabilities``: natural logarithms, one per token, separated by spaces;
    - ``log_probability`` and ``position``: one row per token; the cell of a token that was not
      scored is empty.

    All other columns are labels of the sentences. An empty perplexity is missing, as is that of a
    sentence without a scored token (for example its only token is the first, which has no
    context). All sentences of the table are measured, whatever the queries.

    Args:
        path: The table.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: A column is missing.
        WrongType: The file name has another suffix.
        MalformedLine: A line is malformed; a perplexity is below 1, a log-probability above 0, or
            either not a number; a pair repeats a group, or a sentence repeats a token.

    >>> from pathlib import Path
    >>> GivenSentences(path=Path("scores.csv")).path.name
    'scores.csv'
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"sentence_scores"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ("pyarrow",)

    path: InputFile

    def __post_init__(self) -> None:
        find_suffix(self.path)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedSentences:
        """Read and validate the table; nothing is trained."""
        return FittedSentences(read_once(_read, self.path))

    def check_files(self, datasets: Sequence[str]) -> None:
        """Validate the table."""
        read_once(_read, self.path)

    def list_labels(self, queries: Queries) -> Sequence[str]:
        """Return the labels of the table."""
        return [*map(str, read_once(_read, self.path).labels.columns)]


@dataclass(frozen=True, eq=False)
class FittedSentences:
    """The sentences of a table."""

    scores: SentenceScores  # The sentences with their scores

    def sentence_scores(self, queries: Queries) -> SentenceScores:
        """Return all sentences of the table."""
        return self.scores


def _read(path: Path) -> SentenceScores:
    return read_sentences(read_text_table(path))


def read_sentences(table: TextTable) -> SentenceScores:
    """Return the sentences of a table.

    Raises:
        UnknownColumn: A column is missing.
        MalformedLine: A row is malformed.
    """
    table.need(*KEYS)
    column = _find_score_column(table)
    ids, groups = table.ids("sentence_id"), table.ids("group")
    pairs = table.optional("pair_id")
    keys = pd.DataFrame({"id": ids, "pair": pairs, "group": groups})
    rows = np.arange(ids.size)
    if column == "log_probability":
        rows, perplexity = _read_tokens(table, keys)
    elif column == "log_probabilities":
        perplexity = _read_token_lists(table)
    else:
        perplexity = table.numbers("perplexity")
        remedy = "a perplexity is at least 1; leave the cell empty if it is missing"
        is_low = perplexity < 1 - TOLERANCE
        _refuse(perplexity, is_low, "a perplexity of {:g}", remedy, table.place)
    remedy = "leave the cell empty if the perplexity is missing"
    problem = "a perplexity that is not finite"
    _refuse(perplexity, np.isinf(perplexity), problem, remedy, lambda row: table.place(rows[row]))
    _refuse_repeated_groups(table, keys.iloc[rows], rows)
    labels = table.labels((*KEYS, column, "position")).iloc[rows].reset_index(drop=True)
    return SentenceScores(ids[rows], pairs[rows], groups[rows], perplexity, labels)


def _find_score_column(table: TextTable) -> str:
    columns = [name for name in SCORES if name in table.columns]
    if not columns:
        remedy = f"add one of the columns {', '.join(SCORES)}"
        raise UnknownColumn("there is no perplexity", where=str(table.path), remedy=remedy)
    if len(columns) > 1:
        problem = f"{columns[0]} and {columns[1]} both give the score of a sentence"
        raise MalformedLine(problem, where=str(table.path), remedy="keep one of the columns")
    return columns[0]


def _read_token_lists(table: TextTable) -> FloatArray:
    from pyarrow import compute

    trimmed = compute.utf8_trim_whitespace(table.columns["log_probabilities"])
    cells = compute.utf8_split_whitespace(trimmed).combine_chunks()
    rows = compute.list_parent_indices(cells).to_numpy()

    def locate(token: int) -> str:
        return table.place(int(rows[token]))

    numbers = parse_numbers(compute.list_flatten(cells), "log_probability", locate)
    _refuse_positive(numbers, locate)
    return compute_perplexities(numbers, rows, len(cells))


def _read_tokens(table: TextTable, keys: pd.DataFrame) -> tuple[AnyArray, FloatArray]:
    table.need("position")
    sentences = keys.groupby(list(keys.columns), sort=False, dropna=False).ngroup().to_numpy()
    _, rows = np.unique(sentences, return_index=True)
    positions = table.ids("position")
    codes = pd.factorize(positions)[0]
    table.refuse_repeats(
        sentences * (int(codes.max()) + 1) + codes,
        lambda row: f"position {positions[row]} occurs twice in sentence {keys['id'].iloc[row]!r}",
    )
    numbers = table.numbers("log_probability")
    _refuse_positive(numbers, table.place)
    return rows, compute_perplexities(numbers, sentences, rows.size)


def _refuse_positive(numbers: FloatArray, locate: Callable[[int], str]) -> None:
    is_wrong = (numbers > TOLERANCE) | np.isinf(numbers)
    remedy = "write natural logarithms of probabilities: finite, at most 0"
    _refuse(numbers, is_wrong, "a log-probability of {:g}", remedy, locate)


def _refuse(
    numbers: FloatArray,
    is_wrong: BoolArray,
    problem: str,
    remedy: str,
    locate: Callable[[int], str],
) -> None:
    """Raise MalformedLine for the first wrong number, which the problem shows."""
    positions = np.flatnonzero(is_wrong)
    if positions.size:
        first = int(positions[0])
        raise MalformedLine(problem.format(numbers[first]), where=locate(first), remedy=remedy)


def _refuse_repeated_groups(table: TextTable, keys: pd.DataFrame, rows: AnyArray) -> None:
    for column, noun in (("pair", "pair"), ("id", "sentence")):
        has_key = keys[column].notna().to_numpy()
        groups = keys[has_key].groupby([column, "group"], sort=False).ngroup().to_numpy()
        repeats = np.flatnonzero(pd.Series(groups).duplicated())
        if repeats.size:
            original = int(np.flatnonzero(groups == groups[repeats[0]])[0])
            repeated_row, original_row = rows[has_key][[repeats[0], original]]
            key = keys[has_key].iloc[int(repeats[0])]
            problem = f"{noun} {key[column]!r} already has a row of group {key['group']!r}"
            remedy = f"keep one of the rows; the other is at {table.place(int(original_row))}"
            raise MalformedLine(problem, where=table.place(int(repeated_row)), remedy=remedy)
