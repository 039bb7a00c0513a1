"""Outputs of other tools, read from files: lists, responses, scores of sentences, and vectors.

A file is validated before training and used after it; it is parsed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.context import collect_warnings, warn
from recbias.core.dataset import (
    AnyArray,
    BoolArray,
    FloatArray,
    Ids,
    Queries,
    TrainingData,
    Vocabulary,
    count_distinct,
    sort_naturally,
)
from recbias.core.errors import (
    BrokenContract,
    ChangedFile,
    Faults,
    MalformedLine,
    MissingEvidence,
    MissingFile,
    UnknownColumn,
    UserError,
)
from recbias.core.evidence import (
    Embeddings,
    RankedLists,
    Responses,
    SentenceScores,
    mark_contained,
)
from recbias.core.files import digest_file, has_file, read_version
from recbias.core.plugins import InputFile, Output
from recbias.formats.delimited import Layout, Table, parse_numbers, read_table
from recbias.formats.identifiers import check_ids
from recbias.formats.lists import (
    ListLayout,
    ListOrder,
    ListRows,
    check_list_ids,
    check_name,
    order_rows,
    read_rows,
)
from recbias.formats.tables import find_suffix, read_text_table
from recbias.formats.vectors import read_numbers
from recbias.language.likelihood import compute_perplexities
from recbias.models.ranking import rank_rows

Value = TypeVar("Value")

_CACHE_SIZE = 8  # Number of files in memory


def read_once(read: Callable[..., Value], path: Path, *options: Hashable) -> Value:
    """Return what a function reads from a file, from the cache if the content is the same.

    The warnings of the reader are repeated on every call; errors are not cached. Callers share
    the value and must not change it.

    Raises:
        ChangedFile: The file changed while it was read.
    """
    if not has_file(path):
        return read(path, *options)
    value, messages = _read(read, path, digest_file(path), *options)
    for message in messages:
        warn(message)
    return cast("Value", value)


@lru_cache(maxsize=_CACHE_SIZE)
def _read(
    read: Callable[..., Any], path: Path, digest: str, *options: Hashable
) -> tuple[Any, tuple[str, ...]]:
    version = read_version(path)
    with collect_warnings() as messages:
        value = read(path, *options)
    if read_version(path) != version or digest_file(path) != digest:
        raise ChangedFile(f"{path} changed while the run was reading it")
    return value, tuple(messages)


@dataclass(frozen=True, kw_only=True)
class GivenLists:
    """Measure the recommendation lists of another tool, read from a file.

    Identifiers are read exactly as written; the name of a text file may end in ``.gz``. Layouts:

    - ``table``: CSV, TSV or Parquet with one row per item and the columns ``query_id``,
      ``item_id``, and ``rank``, ``score`` or both. Names used by other tools are accepted
      (``user_id``, ``userId``, ``user``, ``q_id``; ``item``, ``doc_id``; ``prediction``,
      ``rating``). Other columns are ignored.
    - ``trec``: a TREC run: query, Q0, item, rank, score, tag.
    - ``elliot``: user, item and score, separated by tabs, without a header.
    - ``recbole``: a table with optional types in the header (``user_id:token``).
    - ``ranx``: JSON, ``{query: {item: score}}`` or ``{query: [item, ...]}``.
    - ``lenskit``: the output of ``ItemListCollection.save_parquet``, or a table.

    ``auto`` detects the layout by the file name (``.trec`` and ``.run`` are ``trec``, ``.json`` is
    ``ranx``, Parquet with a column ``items`` of lists is ``lenskit``), then by the first line:
    names with types are ``recbole``; three tab-separated cells with a number in the third,
    ``elliot``; six cells with numbers in the fourth and fifth, ``trec``; otherwise ``table``.

    Lists are ordered by rank if there are ranks; these may start at any number and have gaps.
    Otherwise they are ordered by descending score; ties are ordered by item identifier (as numbers
    if all are whole numbers, else as text) in a ``table``, and by the order of the file in the
    layouts of Elliot, RecBole and ranx. If there are both, scores must not increase with the rank.
    A TREC run whose ranks are equal within each list is ordered as by trec_eval: by score, equal
    ones by item identifier from the last. Whole numbers of ``elliot`` and ``ranx`` that count up
    in each list may be ranks or scores: ``order`` decides. Rows with a score of -1e8 or less or
    the minimum of float16, which mask items, or with the item -1, which fills a list, are
    excluded.

    A query without a list in the file has an empty list, and lists of other queries are excluded.
    An item that is not in the dataset keeps its rank and is never relevant. Warnings report the
    number of each.

    If a table has a column ``dataset``, its rows are used only for the dataset with that label;
    otherwise all rows are used for every dataset.

    Args:
        path: The file.
        layout: The layout of the file.
        order: What the items of a list are ordered by: the ``rank``, the ``score``, or their
            ``rows`` in the file; ``auto`` is the rank, or the score without ranks.
        seen: Whether an item of the query's own training rows is an error (``refuse``) or keeps
            its rank (``keep``).
        columns: New names of columns, by their names in the file: ``{customer: query_id, sku:
            item_id}``.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: A column is missing, or one that ``columns`` names.
        Contradiction: ``columns`` for a layout without names, or two columns of one name.
        WrongType: The file name does not fit a layout.
        MalformedLine: A line does not fit the layout, two columns match the same role, a rank or
            score is not a number, or the file holds no list.
        AmbiguousLayout: The numbers of ``elliot`` or ``ranx`` may be ranks or scores.
        UnknownIdentifier: No query of the file is a query of the run or a user of the dataset, no
            item is in the dataset, or no row belongs to the dataset.
        BrokenContract: A list repeats an item or a rank, or has a score of NaN, scores that
            increase with the rank, or an item of the query's own history.

    >>> from pathlib import Path
    >>> GivenLists(path=Path("mine.csv")).seen
    'refuse'
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ("pyarrow",)

    path: InputFile
    layout: Literal["auto", ListLayout] = "auto"
    order: ListOrder = "auto"
    seen: Literal["refuse", "keep"] = "refuse"
    columns: dict[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_name(self.path, self.layout)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedLists:
        """Read and validate the file; nothing is trained."""
        rows = order_rows(self._read_rows(), data.dataset)
        counts = np.bincount(rows.queries, minlength=len(rows.query_ids))
        return _FittedLists(rows, np.concatenate([[0], np.cumsum(counts)]), self.seen)

    def check_files(self, datasets: Sequence[str]) -> None:
        """Validate the rows of each dataset."""
        rows = self._read_rows()
        for label in datasets if rows.dataset_ids else datasets[:1]:
            order_rows(rows, label)

    def _read_rows(self) -> ListRows:
        columns = tuple(self.columns.items())
        rows = read_once(read_rows, self.path, self.layout, self.order, columns)
        if not len(rows.query_ids):
            remedy = "add one row per item of each list"
            raise MalformedLine("the file holds no list", where=str(self.path), remedy=remedy)
        return rows


@dataclass(frozen=True, eq=False)
class _FittedLists:
    """The lists of a file.

    Args:
        rows: The rows of the file, by query and rank.
        starts: The start of the list of each query of the file, ``int64[q + 1]``.
        seen: Whether an item of the query's own training rows is an error.
    """

    rows: ListRows
    starts: npt.NDArray[np.int64]
    seen: Literal["refuse", "keep"]

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the first ``k`` items of the list of each query; an empty list if it has none."""
        rows = self.rows
        check_list_ids(rows, queries, data)
        positions, is_listed = self._find_rows(queries, k)
        codes = data.train.item_ids.find(rows.item_ids.ids)
        unknown = np.flatnonzero(codes < 0)
        codes[unknown] = data.train.n_items + np.arange(unknown.size)
        items = np.full(positions.shape, -1, dtype=np.int32)
        items[is_listed] = codes[rows.items[positions[is_listed]]]
        scores = np.full(items.shape, np.nan, dtype=np.float32)
        if rows.scores is not None:
            scores[is_listed] = rows.scores[positions[is_listed]]
        lists = RankedLists(items, scores, rows.item_ids.ids[unknown])
        if self.seen == "refuse" and len(data.train):
            self._refuse_seen(lists, positions, queries, data)
        return lists

    def _find_rows(self, queries: Queries, k: int) -> tuple[AnyArray, BoolArray]:
        """Return the row at each rank, ``int64[q, k]``, and whether the list has that rank."""
        codes, name = self.rows.query_ids.find(queries.ids.ids), self.rows.path.name
        if n_missing := int((codes < 0).sum()):
            warn(f"{name} has no list for {n_missing:,} of {codes.size:,} queries: empty lists")
        if n_excluded := len(self.rows.query_ids) - count_distinct(codes[codes >= 0]):
            warn(f"{name} has lists for {n_excluded:,} queries that are not in the run: excluded")
        lengths = np.where(codes >= 0, np.diff(self.starts)[codes], 0)
        positions = self.starts[codes][:, None] + np.arange(k)
        return positions, np.arange(k) < lengths[:, None]

    def _refuse_seen(
        self, lists: RankedLists, positions: AnyArray, queries: Queries, data: TrainingData
    ) -> None:
        histories = data.train.binary[np.maximum(queries.users, 0)]
        is_seen = mark_contained(histories, lists) & (queries.users >= 0)[:, None]
        if is_seen.any():
            seen = positions[is_seen]
            row = int(seen[self.rows.number(seen).argmin()])
            item = self.rows.item_ids.ids[self.rows.items[row]]
            problem = (
                f"item {item!r} is in the query's own training rows "
                f"({int(is_seen.sum()):,} such items in {int(is_seen.any(axis=1).sum()):,} lists)"
            )
            remedy = "make the lists on the training set of this split, or set seen: keep"
            lowest = np.nanmin(lists.scores) if self.rows.scores is not None else 0.0
            if lowest < 0 and (lists.scores[is_seen] == lowest).all():
                remedy = f"if the score {lowest:g} masks an item, leave out the rows that have it"
            raise BrokenContract(problem, where=self.rows.place(row), remedy=remedy)


_LIST, _SEPARATOR = "recommended", "\x1f"
"""The column of the users table with the list of each sentence, and the separator of its items."""


@dataclass(frozen=True, kw_only=True)
class LMRecLists:
    """Measure the lists published by the LMRec authors, from the dataset ``lmrec-release``.

    The lists are in the order of the published ranks and have no scores. A query that is not a
    sentence of the dataset has an empty list, and a warning reports the number of such queries.

    Raises:
        MissingEvidence: The dataset has no published lists.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended Bias in Language Model-driven
        Conversational Recommendation", 2022; github.com/TinaBBB/Unintended-Bias-LMRec.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"users", "items"})
    libraries: ClassVar[tuple[str, ...]] = ()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _PublishedLists:
        """Read the lists from the users table; nothing is trained."""
        if data.users is None or _LIST not in data.users.names:
            remedy = "choose the dataset lmrec-release, or another model"
            raise MissingEvidence("the dataset has no published lists", remedy=remedy)
        return _PublishedLists(data.users.frame[_LIST].to_numpy(dtype=object))


@dataclass(frozen=True, eq=False)
class _PublishedLists:
    """The lists of the sentences of a dataset."""

    lists: Ids  # The items of each sentence, joined by ``_SEPARATOR``, in the order of the users

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the first ``k`` items of the list of each query."""
        codes = data.train.user_ids.find(queries.ids.ids)
        n_missing = int((codes < 0).sum())
        if n_missing:
            warn(f"{n_missing:,} of {codes.size:,} queries have no published list: empty lists")
        lists = pd.Series(self.lists).reindex(codes).reset_index(drop=True)
        names = lists.str.split(_SEPARATOR).explode().dropna()
        rows = names.index.to_numpy()
        ranks = names.groupby(level=0).cumcount().to_numpy()
        item_codes = data.train.item_ids.codes(names.to_numpy(dtype=object), kind="item")
        is_listed = ranks < k
        items = np.full((codes.size, k), -1, dtype=np.int32)
        items[rows[is_listed], ranks[is_listed]] = item_codes[is_listed]
        return RankedLists(items, np.full(items.shape, np.nan, dtype=np.float32))


_COLUMNS = ("query_id", "response", "reference")


@dataclass(frozen=True, kw_only=True)
class _GivenTable:
    """Base class of what is read from a table; nothing is trained."""

    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ("pyarrow",)

    path: InputFile
    columns: dict[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        find_suffix(self.path)

    def check_files(self, datasets: Sequence[str]) -> None:
        """Validate the table."""
        self._read()

    def _read(self) -> Any:
        raise NotImplementedError

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedTable:
        """Read and validate the table; nothing is trained."""
        return _FittedTable(self._read())


@dataclass(frozen=True, eq=False)
class _FittedTable:
    """The responses or the sentences of a table: all of them, whatever the queries."""

    table: Any

    def responses(self, queries: Queries) -> Responses:
        """Return the responses."""
        return cast("Responses", self.table)

    def sentence_scores(self, queries: Queries) -> SentenceScores:
        """Return the sentences."""
        return cast("SentenceScores", self.table)


@dataclass(frozen=True, kw_only=True)
class GivenResponses(_GivenTable):
    """Measure the responses of a language model that was run elsewhere, read from a table.

    The table is ``.csv``, ``.tsv``, ``.jsonl`` (each optionally with ``.gz``) or ``.parquet``,
    with the columns ``query_id``, ``response`` and, for metrics that compare texts,
    ``reference``. There is one reference per response, used as it is (``a|b`` is one text with a
    bar). An empty response is a response; an empty reference is missing. All other columns are
    labels. All responses of the table are measured, whatever the queries, in the natural order of
    their identifiers.

    Args:
        path: The table.
        columns: New names of columns, by their names in the file.

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

    def _read(self) -> Responses:
        return read_once(_read_responses, self.path, tuple(self.columns.items()))

    def list_labels(self, queries: Queries) -> Sequence[str]:
        """Return the labels of the table, and those of the queries, which responses share."""
        names = map(str, self._read().labels.columns)
        return list(dict.fromkeys([*names, *queries.labels.names]))


def _read_responses(path: Path, columns: tuple[tuple[str, str], ...]) -> Responses:
    """Return the responses of a table, in the natural order of their identifiers.

    Raises:
        UnknownColumn: A column is missing.
        MalformedLine: An identifier is empty or repeated.
    """
    table = read_text_table(path, dict(columns))
    table.need("query_id", "response")
    ids = table.ids("query_id")
    table.refuse_repeats(ids, lambda row: f"query {ids[row]!r} already has a response")
    order = sort_naturally(ids)
    labels = table.labels(_COLUMNS).iloc[order].reset_index(drop=True)
    texts, references = table.texts("response"), table.optional("reference")
    return Responses(ids[order], texts[order], references[order], labels)


_KEYS = ("sentence_id", "pair_id", "group")

_SCORES = ("perplexity", "log_probabilities")
_TOLERANCE = 1e-6  # Largest excess of a probability over 1 that is attributed to rounding


@dataclass(frozen=True, kw_only=True)
class GivenSentences(_GivenTable):
    """Measure sentence scores of a language model that was run elsewhere, read from a table.

        PPL(x) = exp( -(1/n) Σ_i ln p(x_i | x_<i) )

    The table is ``.csv``, ``.tsv``, ``.jsonl`` (each optionally with ``.gz``) or ``.parquet``,
    with the columns ``sentence_id``, ``pair_id`` (shared by the versions of one sentence; empty
    for a sentence without counterpart), ``group`` (the group that the version is about) and one of

    - ``perplexity``;
    - ``log_probabilities``: natural logarithms, one per token, separated by spaces.

    All other columns are labels of the sentences. An empty perplexity is missing, as is that of a
    sentence without a scored token (for example its only token is the first, which has no
    context). All sentences of the table are measured, whatever the queries.

    Args:
        path: The table.
        columns: New names of columns, by their names in the file.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: A column is missing.
        WrongType: The file name has another suffix.
        MalformedLine: A line is malformed; a perplexity is below 1, a log-probability above 0, or
            either not a number, or a pair repeats a group.

    >>> from pathlib import Path
    >>> GivenSentences(path=Path("scores.csv")).path.name
    'scores.csv'
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"sentence_scores"})

    def _read(self) -> SentenceScores:
        columns = tuple(self.columns.items())
        return read_once(_read_sentences, self.path, columns)

    def list_labels(self, queries: Queries) -> Sequence[str]:
        """Return the labels of the table."""
        return [*map(str, self._read().labels.columns)]


def _read_sentences(path: Path, columns: tuple[tuple[str, str], ...]) -> SentenceScores:
    """Return the sentences of a table.

    Raises:
        UnknownColumn: A column is missing.
        MalformedLine: A row is malformed.
    """
    table = read_text_table(path, dict(columns))
    table.need(*_KEYS)
    column = _find_score_column(table)
    ids, groups = table.ids("sentence_id"), table.ids("group")
    pairs = table.optional("pair_id")
    remedy = "leave the cell empty if the perplexity is missing"
    if column == "log_probabilities":
        perplexity = _read_token_lists(table)
    else:
        perplexity = table.numbers("perplexity")
        is_low = perplexity < 1 - _TOLERANCE
        table.refuse(is_low, lambda row: f"a perplexity of {perplexity[row]:g}, below 1", remedy)
    table.refuse(np.isinf(perplexity), "a perplexity that is not finite", remedy)
    for noun, keys in (("pair", pairs), ("sentence", ids)):
        rows = enumerate(zip(keys, groups, strict=True))
        versions = [row if key is None else f"{key}\n{group}" for row, (key, group) in rows]
        table.refuse_repeats(
            np.array(versions, dtype=object),
            lambda row, noun=noun, keys=keys: (  # type: ignore[misc]  # bound to the loop
                f"{noun} {keys[row]!r} already has a row of group {groups[row]!r}"
            ),
        )
    labels = table.labels((*_KEYS, column))
    return SentenceScores(ids, pairs, groups, perplexity, labels)


def _find_score_column(table: Table) -> str:
    columns = [name for name in _SCORES if name in table.columns]
    if len(columns) == 1:
        return columns[0]
    problem = "there is no perplexity"
    if columns:
        problem = f"{columns[0]} and {columns[1]} both give the score of a sentence"
    remedy = f"give one of the columns {', '.join(_SCORES)}"
    raise UnknownColumn(problem, where=str(table.path), remedy=remedy)


def _read_token_lists(table: Table) -> FloatArray:
    from pyarrow import compute

    trimmed = compute.utf8_trim_whitespace(table["log_probabilities"])
    cells = compute.utf8_split_whitespace(trimmed).combine_chunks()
    rows = compute.list_parent_indices(cells).to_numpy()
    numbers = parse_numbers(
        compute.list_flatten(cells), "log_probability", lambda token: table.place(int(rows[token]))
    )
    if (wrong := np.flatnonzero((numbers > _TOLERANCE) | np.isinf(numbers))).size:
        problem, where = f"a log-probability of {numbers[wrong[0]]:g}", table.place(rows[wrong[0]])
        remedy = "write natural logarithms of probabilities: finite, at most 0"
        raise MalformedLine(problem, where=where, remedy=remedy)
    return compute_perplexities(numbers, rows, len(cells))


def read_vectors(path: Path) -> AnyArray:
    """Return the array of a ``.npy`` file, ``(n, d)``.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: It is not a ``.npy`` file with a matrix of real numbers.
        BrokenContract: A vector contains NaN or infinity.
    """
    _require(path)
    vectors = read_numbers(path, 2, "numbers (n, d)", "write it with numpy.save(path, vectors)")
    _refuse_rows(~np.isfinite(vectors).all(axis=1), path, "contain NaN or infinity")
    return vectors


def read_ids(path: Path) -> Ids:
    """Return the identifiers of a text file, one per line, exactly as written.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: An identifier is repeated, or the file is not UTF-8.
    """
    _require(path)
    layout = Layout(columns={"id": "id"}, delimiter="\x1f", header=False)
    table = read_table(path, layout)
    ids = table.texts("id")
    table.refuse_repeats(ids, lambda row: f"id {ids[row]!r} has another line")
    return ids


def _refuse_rows(is_wrong: Any, path: Path, problem: str, remedy: str = "") -> None:
    """Raise BrokenContract if vectors are wrong, with the first of their rows."""
    if (rows := np.flatnonzero(is_wrong)).size:
        message = f"{rows.size:,} vectors {problem}, the first in row {rows[0]} (from 0)"
        raise BrokenContract(message, where=str(path), remedy=remedy)


def _require(path: Path) -> None:
    if not has_file(path):
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")


_Score = Literal["dot", "cosine"]


@dataclass(frozen=True, kw_only=True)
class GivenVectors:
    """Measure user and item embeddings of another tool, and the lists that result from them.

        score(u, i) = p_u · q_i   or   p_u · q_i / (|p_u| |q_i|)

    Embeddings are ``.npy`` files (``numpy.save``) with one row per vector; a text file contains
    the identifiers of the rows, one per line. Vectors of identifiers that are not in the dataset
    are excluded, items without a vector are never recommended, and users without a vector have
    empty lists; warnings report the number of each. The user's training items are excluded.

    Embeddings keep the precision of their file: ``float64`` stays ``float64``. Whole numbers get
    the smallest floating-point type that holds each of their values, at most ``float64``. Scores
    are computed in the more precise type of both files, at least ``float32``, and ranked and
    stored as ``float32``.

    Args:
        users: The user embeddings.
        items: The item embeddings, with the same size as those of the users.
        user_ids: The identifiers of the users, as in the dataset.
        item_ids: The identifiers of the items.
        score: ``dot`` product or ``cosine``.

    Raises:
        MissingFile: A file does not exist.
        MalformedLine: A file is not an array of numbers, or an identifier is empty or repeated.
        BrokenContract: The sizes of the files differ, or a vector contains NaN or infinity or,
            for ``cosine``, is 0.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ()

    users: InputFile
    items: InputFile
    user_ids: InputFile
    item_ids: InputFile
    score: _Score = "dot"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedVectors:
        """Read the files and align the vectors with the dataset; nothing is trained."""
        (users, user_ids), (items, item_ids) = self._read()
        return _FittedVectors(
            align(users, user_ids, data.train.user_ids, "users", where=str(self.user_ids)),
            align(items, item_ids, data.train.item_ids, "items", where=str(self.item_ids)),
            self.score,
        )

    def check_files(self, datasets: Sequence[str]) -> None:
        """Validate each file, and raise all errors at once; then validate them together."""
        errors: list[UserError] = []
        for read, paths in (
            (self._read_vectors, (self.users, self.items)),
            (read_ids, (self.user_ids, self.item_ids)),
        ):
            for path in paths:
                try:
                    read(path)
                except UserError as error:
                    errors.append(error)
        if errors:
            raise Faults(errors)
        self._read()

    def _read(self) -> tuple[tuple[AnyArray, Ids], tuple[AnyArray, Ids]]:
        users, items = self._read_vectors(self.users), self._read_vectors(self.items)
        if users.shape[1] != items.shape[1]:
            problem = f"vectors of size {items.shape[1]}; those of the users have {users.shape[1]}"
            raise BrokenContract(problem, where=str(self.items))
        user_ids = _read_row_ids(self.user_ids, users)
        return (users, user_ids), (items, _read_row_ids(self.item_ids, items))

    def _read_vectors(self, path: Path) -> AnyArray:
        if not len(vectors := read_vectors(path)):
            remedy = "write one row per vector"
            raise MalformedLine("the file holds no vector", where=str(path), remedy=remedy)
        if self.score == "cosine":
            problem = "are 0 and have no cosine"
            _refuse_rows(~vectors.any(axis=1), path, problem, "use score: dot")
        return vectors


@dataclass(frozen=True, eq=False)
class _FittedVectors:
    """The vectors in the order of the dataset; rows without a vector are NaN.

    Args:
        users: ``(n_users, d)``, in the precision of the file.
        items: ``(n_items, d)``, likewise.
        score: ``dot`` product or ``cosine``.
    """

    users: AnyArray
    items: AnyArray
    score: _Score

    def embeddings(self) -> Embeddings:
        """Return the vectors as read, without normalization."""
        return Embeddings(self.users, self.items)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the items with the highest scores; an empty list for a user without a vector.

        If the dataset has no interactions, every item is a candidate.
        """
        dtype = np.result_type(self.users, self.items, np.float32)
        missing = np.full((1, self.users.shape[1]), np.nan, dtype=dtype)
        users = np.vstack([self.users.astype(dtype), missing])[queries.users]
        items = self.items.astype(dtype)
        if self.score == "cosine":
            users, items = _normalize(users), _normalize(items)
        if n_missing := int(np.isnan(users).any(axis=1).sum()):
            n_queries = f"{n_missing:,} of {len(queries):,} queries"
            warn(f"{n_queries} have no vector: their lists are empty")
        candidates = None if len(data.train) else np.ones(data.train.n_items, dtype=bool)
        return rank_rows(
            lambda rows: users[rows] @ items.T, queries.users, k, data, candidates=candidates
        )


def align(
    vectors: AnyArray, ids: Ids, vocabulary: Vocabulary, noun: str, *, where: str = ""
) -> AnyArray:
    """Return the vectors in the order of a vocabulary, NaN for missing ones.

    They keep their floating-point type; whole numbers get one that holds them. ``noun`` is what
    the identifiers denote, and ``where`` their file, for messages.

    Raises:
        UnknownIdentifier: No identifier is in the vocabulary.
    """
    check_ids(ids, vocabulary, noun, where)
    codes = vocabulary.find(ids)
    dtype = np.result_type(vectors, np.float16)
    aligned = np.full((len(vocabulary), vectors.shape[1]), np.nan, dtype=dtype)
    aligned[codes[codes >= 0]] = vectors[codes >= 0]
    if n_missing := len(vocabulary) - int((codes >= 0).sum()):
        warn(f"{n_missing:,} of the {len(vocabulary):,} {noun} of the dataset have no vector")
    return aligned


def _read_row_ids(path: Path, vectors: AnyArray) -> Ids:
    ids = read_ids(path)
    if ids.size != vectors.shape[0]:
        problem = f"{ids.size:,} ids for {vectors.shape[0]:,} vectors"
        remedy = "write one id per line, in the order of the rows"
        raise BrokenContract(problem, where=str(path), remedy=remedy)
    return ids


def _normalize(vectors: AnyArray) -> AnyArray:
    """Divide the vectors by their lengths, scaled first so that no square over- or underflows."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scaled = vectors / np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(lengths > 0, lengths, 1.0)
