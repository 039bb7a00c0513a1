"""How likely sentences are to a language model, worked out elsewhere and read from a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.core.outputs.sentences import SentenceScores
from recbias.core.protocols import InputFile, Output
from recbias.core.queries.queries import Queries
from recbias.formats.text_tables import (
    TextTable,
    find_suffix,
    parse_number_column,
    read_text_table,
)
from recbias.models.given.file_cache import read_once
from recbias.numerics.perplexity import compute_perplexities

KEYS = ("sentence_id", "pair_id", "group")
SCORES = ("perplexity", "log_probabilities", "log_probability")
SLACK = 1e-6
"""How far rounding may carry a probability above 1."""


@dataclass(frozen=True, kw_only=True)
class GivenSentences:
    """Measure how likely sentences are to a model that was run elsewhere, read from a table.

        PPL(x) = exp( -(1/n) Σ_i ln p(x_i | x_<i) )

    The table is ``.csv``, ``.tsv``, ``.jsonl`` (each also with ``.gz``) or ``.parquet``, with the
    columns ``sentence_id``, ``pair_id`` (the copies of one sentence share it; empty for a sentence
    without partner), ``group`` (whom the copy is about) and one of

    - ``perplexity``;
    - ``log_probabilities``: of the tokens, natural logarithms, with spaces between;
    - ``log_probability`` and ``position``: one row a token; an empty cell is a token that was not
      scored.

    All other columns are labels of the sentences. An empty perplexity, or a sentence without a
    scored token (one of a single token, where the first is not scored), is missing. All sentences
    of the table are measured, whatever is asked.

    Args:
        path: The table.

    Raises:
        MissingFile: The file is not there.
        UnknownColumn: A column is absent.
        WrongType: The file's name does not say what it is.
        MalformedLine: A line that does not fit; a perplexity below 1, a log-probability above 0,
            or what is no number; a group or a token that stands twice in its pair or sentence.

    >>> from pathlib import Path
    >>> GivenSentences(path=Path("scores.csv")).path.name
    'scores.csv'
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"sentence_scores"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ("pyarrow",)

    path: InputFile

    def __post_init__(self) -> None:
        """Refuse a file whose name is of no known kind."""
        find_suffix(self.path)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedSentences:
        """Read and check the table."""
        return FittedSentences(read_once(_read, self.path))

    def check_files(self, datasets: Sequence[str]) -> None:
        """Raise what is wrong with the table."""
        read_once(_read, self.path)


@dataclass(frozen=True, eq=False)
class FittedSentences:
    """The sentences of a table.

    Args:
        scores: What the table holds.
    """

    scores: SentenceScores

    def sentence_scores(self, queries: Queries) -> SentenceScores:
        """Return the sentences of the table, all of them."""
        return self.scores


def _read(path: Path) -> SentenceScores:
    return read_sentences(read_text_table(path))


def read_sentences(table: TextTable) -> SentenceScores:
    """Return the sentences of a table.

    Raises:
        UnknownColumn: A column is absent.
        MalformedLine: A row cannot be.
    """
    table.need(*KEYS)
    held = [name for name in SCORES if name in table.columns]
    if not held:
        remedy = f"give each sentence one of {', '.join(SCORES)}"
        raise UnknownColumn("there is no perplexity", where=str(table.path), remedy=remedy)
    if len(held) > 1:
        found = f"{held[0]} and {held[1]} both say how likely a sentence is"
        raise MalformedLine(found, where=str(table.path), remedy="keep one of the columns")
    ids, groups = table.ids("sentence_id"), table.ids("group")
    pairs = table.optional("pair_id")
    keys = pd.DataFrame({"id": ids, "pair": pairs, "group": groups})
    rows = np.arange(ids.size)
    if held == ["log_probability"]:
        rows, perplexity = _of_tokens(table, keys)
    else:
        perplexity = _perplexity(table) if held == ["perplexity"] else _of_cells(table)
    _refuse_infinite(table, rows, perplexity)
    _refuse_twice(table, keys.iloc[rows], rows)
    labels = table.labels((*KEYS, *held, "position")).iloc[rows].reset_index(drop=True)
    return SentenceScores(ids[rows], pairs[rows], groups[rows], perplexity, labels)


def _perplexity(table: TextTable) -> FloatArray:
    found = table.numbers("perplexity")
    low = np.flatnonzero(found < 1 - SLACK)
    if low.size:
        remedy = "it is 1 or more for any model; leave the cell of a sentence that has none empty"
        what = f"a perplexity of {found[low[0]]:g}"
        raise MalformedLine(what, where=table.place(int(low[0])), remedy=remedy)
    return found


def _of_cells(table: TextTable) -> FloatArray:
    """Return the perplexity of cells that hold the log-probabilities of their tokens."""
    from pyarrow import compute

    trimmed = compute.utf8_trim_whitespace(table.columns["log_probabilities"])
    cells = compute.utf8_split_whitespace(trimmed).combine_chunks()
    owners = compute.list_parent_indices(cells).to_numpy()
    place = partial(_place_of_token, table, owners)
    numbers = parse_number_column(compute.list_flatten(cells), "log_probability", place)
    _refuse_above(numbers, place)
    return compute_perplexities(numbers, owners, len(cells))


def _place_of_token(table: TextTable, owners: AnyArray, token: int) -> str:
    return table.place(int(owners[token]))


def _of_tokens(table: TextTable, keys: pd.DataFrame) -> tuple[AnyArray, FloatArray]:
    """Return the first row of each sentence of a table of tokens, and its perplexity."""
    table.need("position")
    sentence = keys.groupby(list(keys.columns), sort=False, dropna=False).ngroup().to_numpy()
    _, rows = np.unique(sentence, return_index=True)
    positions = table.ids("position")
    place = pd.factorize(positions)[0]
    table.refuse_repeats(
        sentence * (int(place.max()) + 1) + place,
        lambda row: f"position {positions[row]} stands twice in sentence {keys['id'].iloc[row]!r}",
    )
    numbers = table.numbers("log_probability")
    _refuse_above(numbers, table.place)
    return rows, compute_perplexities(numbers, sentence, rows.size)


def _refuse_above(numbers: FloatArray, place: Callable[[int], str]) -> None:
    wrong = np.flatnonzero((numbers > SLACK) | np.isinf(numbers))
    if wrong.size:
        found = f"a log-probability of {numbers[wrong[0]]:g}"
        remedy = "give natural logarithms of probabilities: finite, 0 or less"
        raise MalformedLine(found, where=place(int(wrong[0])), remedy=remedy)


def _refuse_infinite(table: TextTable, rows: AnyArray, perplexity: FloatArray) -> None:
    wrong = np.flatnonzero(np.isinf(perplexity))
    if wrong.size:
        where = table.place(int(rows[wrong[0]]))
        remedy = "leave the cell of a sentence that has none empty"
        raise MalformedLine("a perplexity that is not finite", where=where, remedy=remedy)


def _refuse_twice(table: TextTable, keys: pd.DataFrame, rows: AnyArray) -> None:
    """Refuse a pair, or a sentence, that has two rows of one group."""
    for name, what in (("pair", "pair"), ("id", "sentence")):
        known = keys[name].notna().to_numpy()
        codes = keys[known].groupby([name, "group"], sort=False).ngroup().to_numpy()
        again = np.flatnonzero(pd.Series(codes).duplicated())
        if again.size:
            first = int(np.flatnonzero(codes == codes[again[0]])[0])
            own, other = rows[known][[again[0], first]]
            later = keys[known].iloc[int(again[0])]
            found = f"{what} {later[name]!r} has a row of group {later['group']!r} already"
            remedy = f"keep one of the rows; the other is at {table.place(int(other))}"
            raise MalformedLine(found, where=table.place(int(own)), remedy=remedy)
