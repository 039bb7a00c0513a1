"""A dataset: ids as integer codes, interactions, attributes, reviews, sentences, splits; queries.

Training sees ``TrainingData``, which has no field for validation and test sets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.errors import (
    BrokenContract,
    Leakage,
    NothingLeft,
    UnknownColumn,
    UnknownIdentifier,
    WrongType,
)
from recbias.core.text import suggest

Codes: TypeAlias = npt.NDArray[np.int32]
"""Integer codes of users, items or queries, from 0; -1 means none."""

FloatArray: TypeAlias = npt.NDArray[np.float64]
"""Real numbers; NaN means undefined."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
"""A boolean mask."""

Ids: TypeAlias = npt.NDArray[np.object_]
"""Identifiers as they stand in the user's files: Python strings."""

AnyArray: TypeAlias = npt.NDArray[Any]
"""An array of any type."""

Matrix: TypeAlias = Any
"""A ``scipy.sparse.csr_array``; scipy is imported only where such a matrix is built."""


def freeze(array: AnyArray) -> AnyArray:
    """Make the array read-only and return it."""
    array.flags.writeable = False
    return array


def divide(numerator: AnyArray, denominator: AnyArray) -> FloatArray:
    """Return the quotient, NaN where the denominator is not above 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    undefined = np.full(shape, np.nan)
    return np.asarray(np.divide(numerator, denominator, out=undefined, where=denominator > 0))


def count_distinct(values: AnyArray) -> int:
    """Return the number of distinct numbers, by a sort: ``np.unique`` takes ten times as long.

    >>> count_distinct(np.array([3, 1, 3]))
    2
    """
    ordered = np.sort(values, kind="stable")
    return int(values.size and 1 + np.count_nonzero(ordered[1:] != ordered[:-1]))


def sort_naturally(ids: Ids) -> npt.NDArray[np.intp]:
    """Return the order of unique identifiers: by number if all are whole numbers, else by text.

    >>> ids = np.array(["10", "9", "2"], dtype=object)
    >>> ids[sort_naturally(ids)].tolist()
    ['2', '9', '10']
    """
    lengths = {*map(len, ids)}
    text = "".join(ids) if ids.size and min(lengths) > 0 and max(lengths) < 18 else ""
    if text.isascii() and text.isdigit():
        numbers = ids.astype(np.int64)
        if len(set(numbers.tolist())) == ids.size:
            return np.argsort(numbers, kind="stable")
    return np.argsort(ids.astype(object), kind="stable")


def _simplify(text: str) -> str:
    """Return an identifier without what other programs change."""
    return text.strip().casefold().removesuffix(".0").lstrip("0")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Unique identifiers, Python strings; the code of an identifier is its position."""

    ids: Ids

    def __post_init__(self) -> None:
        """Freeze the identifiers."""
        freeze(self.ids)

    def __len__(self) -> int:
        """Return the number of identifiers."""
        return int(self.ids.size)

    @classmethod
    def of(cls, ids: object) -> Vocabulary:
        """Return the vocabulary of identifiers in natural order; repeats count once."""
        return cls.encode(np.asarray(list(ids), dtype=object))[0]  # type: ignore[call-overload]

    @classmethod
    def encode(cls, values: AnyArray) -> tuple[Vocabulary, Codes]:
        """Return the vocabulary of whole numbers or strings, and the code of each.

        >>> vocabulary, codes = Vocabulary.encode(np.array(["b", "a", "b"], dtype=object))
        >>> vocabulary.ids.tolist(), codes.tolist()
        (['a', 'b'], [1, 0, 1])
        """
        codes, unique = pd.factorize(values)
        distinct, is_text = np.asarray(unique), values.dtype.kind == "O" and len(unique)
        if is_text and not (distinct[codes] == values)[codes >= 0].all():
            message = "two identifiers differ after a NUL character only"
            raise UnknownIdentifier(message, remedy="remove these characters")
        return cls.ordered(distinct, codes)

    @classmethod
    def ordered(cls, raw: AnyArray, raw_codes: AnyArray) -> tuple[Vocabulary, Codes]:
        """Return the vocabulary of unique values in natural order, and the codes in that order."""
        if raw_codes.size and raw_codes.min() < 0:
            missing = int((raw_codes < 0).sum())
            raise UnknownIdentifier(f"{missing:,} row(s) have no identifier")
        if raw.dtype.kind in "iu":
            order = np.argsort(raw, kind="stable")
            ids = raw[order].astype(str).astype(object)
        else:
            texts = np.array([str(value) for value in raw], dtype=object)
            order = sort_naturally(texts)
            ids = texts[order]
        new_codes = np.empty(order.size, dtype=np.int32)
        new_codes[order] = np.arange(order.size, dtype=np.int32)
        return cls(ids), new_codes[raw_codes]

    @cached_property
    def _index(self) -> pd.Index[str]:
        return pd.Index(self.ids)

    def find(self, ids: AnyArray) -> Codes:
        """Return the code of each identifier, -1 for unknown ones."""
        return self._index.get_indexer(pd.Index(ids)).astype(np.int32)

    def has_any(self, ids: AnyArray) -> bool:
        """Return whether one of the identifiers is here."""
        return bool((self.find(ids) >= 0).any())

    def codes(self, ids: AnyArray, *, kind: str = "identifier") -> Codes:
        """Return the code of each identifier; UnknownIdentifier for one that is not here."""
        codes = self.find(ids)
        unknown = np.flatnonzero(codes < 0)
        if unknown.size:
            name = str(np.asarray(ids)[unknown[0]])
            message = f"{unknown.size:,} unknown {kind}(s), the first is {name!r}"
            raise UnknownIdentifier(message, remedy=suggest(name, self.ids.tolist()))
        return codes

    def take(self, codes: AnyArray) -> Vocabulary:
        """Return the vocabulary of some of the identifiers, in the order of ``codes``."""
        return Vocabulary(self.ids[codes])

    def compare_spelling(self, unknown: Iterable[str]) -> str:
        """Return how identifiers that are not here are written here, with the first as example.

        "" unless that is so for half of them: they differ by white space at the ends, by case, by
        zeros at the start or by ``.0`` at the end.

        >>> Vocabulary.of(["001", "x"]).compare_spelling(["1.0", "X", "y"])
        "'1.0' is written '001' there: 2 of 3 differ by spaces, case, zeros or '.0'"
        """
        spellings = {_simplify(text): text for text in self.ids}
        written = [(text, spellings.get(_simplify(text), text)) for text in unknown]
        pairs = [pair for pair in written if pair[0] != pair[1]]
        if not pairs or 2 * len(pairs) < len(written):
            return ""
        (text, spelling), n = pairs[0], f"{len(pairs):,} of {len(written):,}"
        return f"{text!r} is written {spelling!r} there: {n} differ by spaces, case, zeros or '.0'"

    @cached_property
    def digest(self) -> str:
        """The content address: equal vocabularies have equal digests."""
        sha = hashlib.sha256()
        for start in range(0, len(self), 2**16):
            names = "\0".join([*self.ids[start : start + 2**16], ""])
            sha.update(names.encode("utf-8", "surrogatepass"))
        return sha.hexdigest()


SEPARATOR = "|"
"""Separates the values of a multi-valued cell: ``Action|Comedy``."""

_TO_CATEGORIES = "make labels of it: {name: mine, detector: column, from: ..., threshold: ...}"
"""What to do with a column of numbers where categories are needed."""


@dataclass(frozen=True, eq=False)
class _Membership:
    """The sorted values of a multi-valued column, and CSR indicators ``bool (rows, values)``."""

    values: tuple[str, ...]
    matrix: Matrix


@dataclass(frozen=True, eq=False)
class Attributes:
    """A table with one row for each identifier of a vocabulary, in its order.

    Args:
        ids: The users, items or queries that the rows describe.
        frame: The columns. Text is ``str`` or None, a number is ``float64`` with NaN for missing;
            a text cell ``a|b|c`` holds several values.
        kind: What the rows are, for messages: ``user``, ``item`` or ``query``.
        value_labels: What the codes in a column mean, by column and code.
    """

    ids: Vocabulary
    frame: pd.DataFrame
    kind: str = "item"
    value_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self.frame.columns]

    @property
    def _plural(self) -> str:
        return "queries" if self.kind == "query" else f"{self.kind}s"

    def column(self, name: str) -> pd.Series[Any]:
        """Return one column; UnknownColumn if the table does not have it."""
        if name not in self.frame.columns:
            message = f"the {self._plural} have no column {name!r}"
            raise UnknownColumn(message, remedy=suggest(name, self.names))
        return self.frame[name]

    def numbers(self, name: str) -> FloatArray:
        """Return a column as numbers, NaN where missing; UnknownColumn if a cell is no number."""
        column = self.column(name)
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
        invalid = np.isnan(numbers) & column.notna().to_numpy()
        if invalid.any():
            cell = column.iloc[int(np.flatnonzero(invalid)[0])]
            message = f"column {name!r} of the {self._plural} is not numeric: {cell!r}"
            raise UnknownColumn(message, remedy="name a column of numbers, or correct the table")
        return numbers

    def membership(self, name: str) -> _Membership:
        """Return the values of a column and the rows that have them; ``a|b`` has both.

        >>> ids = Vocabulary.of(["1", "2", "3"])
        >>> table = Attributes(ids, pd.DataFrame({"genres": ["A|B", "B", None]}))
        >>> table.membership("genres").matrix.toarray().astype(int).tolist()
        [[1, 1], [0, 1], [0, 0]]
        """
        from scipy.sparse import coo_array

        column = self.column(name).reset_index(drop=True)
        if column.dtype.kind == "f":
            column = column.map(lambda cell: np.format_float_positional(cell, trim="-"), "ignore")
        rows, texts = pd.factorize(column.where(column.isna(), column.astype(str)))
        cells = pd.Series([*texts, ""]).str.split(SEPARATOR, regex=False).explode()
        cells = cells[cells != ""]
        codes, values = pd.factorize(cells, sort=True)
        cell_codes = (cells.index.to_numpy(dtype=np.int32), codes.astype(np.int32))
        ones, shape = np.ones(codes.size, dtype=np.int32), (len(texts) + 1, len(values))
        matrix = coo_array((ones, cell_codes), shape=shape).tocsr() > 0
        return _Membership(tuple(str(value) for value in values), matrix[rows])

    def categories(self, name: str) -> _Membership:
        """Return ``membership`` of a column whose values are categories.

        Raises:
            UnknownColumn: There is no such column.
            WrongType: It holds numbers with fractions, of which each would be a category.

        >>> table = Attributes(Vocabulary.of(["1", "2"]), pd.DataFrame({"level": [1.0, 2.0]}))
        >>> table.categories("level").values
        ('1', '2')
        """
        column = self.column(name)
        if column.dtype.kind == "f" and (column.dropna() % 1 != 0).any():
            message = f"{name!r} holds numbers that are no categories"
            raise WrongType(message, remedy=_TO_CATEGORIES)
        return self.membership(name)

    def take(self, codes: AnyArray, ids: Vocabulary) -> Attributes:
        """Return the rows of ``codes`` as the table of ``ids``; code -1 gives a missing row."""
        frame = self.frame.reset_index(drop=True)
        present = np.asarray(codes) >= 0
        if present.all():
            frame = frame.iloc[np.asarray(codes)].reset_index(drop=True)
        else:
            frame = frame.reindex(np.where(present, codes, len(frame))).reset_index(drop=True)
            texts = frame.select_dtypes(object).columns
            frame[texts] = frame[texts].where(frame[texts].notna(), None)
        return replace(self, ids=ids, frame=frame)

    def align(self, ids: Vocabulary) -> Attributes:
        """Return the table of other identifiers; those without a row here get missing cells."""
        return self.take(self.ids.find(ids.ids), ids)


@dataclass(frozen=True, eq=False)
class Interactions:
    """Interactions as rows of (user, item, value, time).

    Args:
        values: Rating, or 1 if the data has none, ``float32[n]``.
        times: Seconds since 1970, ``int64[n]``, or None if the data has no times.
        user_ids: The users; it may hold users without a row.
        item_ids: The items; it may hold items without a row.
    """

    users: Codes
    items: Codes
    values: npt.NDArray[np.float32]
    times: npt.NDArray[np.int64] | None
    user_ids: Vocabulary
    item_ids: Vocabulary

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for array in (self.users, self.items, self.values, self.times):
            if array is not None:
                freeze(array)

    @classmethod
    def without_rows(cls, user_ids: Vocabulary, item_ids: Vocabulary) -> Interactions:
        """Return no interactions of some users and items."""
        codes = np.empty(0, dtype=np.int32)
        return cls(codes, codes, np.empty(0, dtype=np.float32), None, user_ids, item_ids)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.users.size)

    @property
    def n_users(self) -> int:
        """The number of users in the vocabulary."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """The number of items in the vocabulary."""
        return len(self.item_ids)

    def take(self, rows: AnyArray) -> Interactions:
        """Return some of the rows (a mask or positions) over the same vocabularies."""
        if rows.dtype == np.bool_:  # a mask takes five times as long, for each array
            rows = np.flatnonzero(rows)
        users, items, values = self.users[rows], self.items[rows], self.values[rows]
        times = None if self.times is None else self.times[rows]
        return Interactions(users, items, values, times, self.user_ids, self.item_ids)

    def recode(self, user_ids: Vocabulary, item_ids: Vocabulary) -> Interactions:
        """Return the same rows over other vocabularies, which hold all of their identifiers."""
        users = user_ids.find(self.user_ids.ids)[self.users]
        items = item_ids.find(self.item_ids.ids)[self.items]
        return Interactions(users, items, self.values, self.times, user_ids, item_ids)

    def drop_unused_ids(self) -> Interactions:
        """Return the same rows over vocabularies without the users and items that do not occur."""
        users, new_users = _renumber(self.users, self.n_users)
        items, new_items = _renumber(self.items, self.n_items)
        user_ids, item_ids = self.user_ids.take(users), self.item_ids.take(items)
        return Interactions(new_users, new_items, self.values, self.times, user_ids, item_ids)

    def digest_pairs(self) -> str:
        """Return the content address of the (user, item) pairs, in whatever order they are."""
        used = self.drop_unused_ids()
        pairs = np.sort(used.users.astype(np.int64) * max(used.n_items, 1) + used.items)
        sha = hashlib.sha256((used.user_ids.digest + used.item_ids.digest).encode())
        sha.update(pairs.tobytes())
        return sha.hexdigest()

    def user_counts(self) -> npt.NDArray[np.int64]:
        """Return the number of rows of each user, ``int64[n_users]``."""
        return np.bincount(self.users, minlength=self.n_users)

    def item_counts(self) -> npt.NDArray[np.int64]:
        """Return the number of rows of each item, ``int64[n_items]``."""
        return np.bincount(self.items, minlength=self.n_items)

    @cached_property
    def binary(self) -> Matrix:
        """The CSR matrix (n_users, n_items) of ones, ``float32``; a repeated pair counts once."""
        matrix = self._matrix(np.ones(len(self), dtype=np.float32))
        matrix.data[:] = 1.0
        return matrix

    @cached_property
    def weighted(self) -> Matrix:
        """The CSR matrix (n_users, n_items) of the values, ``float32``; repeated pairs add up."""
        return self._matrix(self.values)

    def _matrix(self, data: npt.NDArray[np.float32]) -> Matrix:
        from scipy.sparse import coo_array

        shape = (self.n_users, self.n_items)
        matrix = coo_array((data, (self.users, self.items)), shape=shape).tocsr()
        matrix.sort_indices()
        return matrix


def _renumber(codes: Codes, n: int) -> tuple[AnyArray, Codes]:
    """Return the codes that occur, ascending, and each row's code counted among them only."""
    occurs = np.zeros(n, dtype=bool)
    occurs[codes] = True
    new_codes = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs), new_codes[codes]


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


@dataclass(frozen=True, eq=False)
class Reviews:
    """Review texts, with the codes of their users and items; an empty review is ``""``."""

    users: Codes
    items: Codes
    texts: Ids

    def __len__(self) -> int:
        """Return the number of reviews."""
        return int(self.users.size)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Everything that a dataset plug-in loads; a part that it does not have is None.

    Args:
        interactions: The interactions; their vocabularies are the users and items of the dataset,
            to which the tables of attributes are aligned.
        counts: Counts taken while loading: ``bad_lines``, rows before each filter, and so on;
            reports do not show those that begin with ``_``.
        unit: What a user is: a ``request`` or a ``row`` of a log that does not name the users.
    """

    interactions: Interactions
    users: Attributes | None = None
    items: Attributes | None = None
    reviews: Reviews | None = None
    counts: dict[str, int] = field(default_factory=dict)
    sentences: Sentences | None = None
    unit: str = "user"

    @property
    def user_ids(self) -> Vocabulary:
        """The users."""
        return self.interactions.user_ids

    @property
    def item_ids(self) -> Vocabulary:
        """The items."""
        return self.interactions.item_ids

    def select_rows(self, rows: AnyArray) -> Dataset:
        """Return the dataset of some interactions (a mask or positions) and their users and items.

        Users and items without an interaction are dropped, and their reviews with them.
        """
        interactions = self.interactions.take(rows).drop_unused_ids()
        return replace(
            self,
            interactions=interactions,
            users=self.users.align(interactions.user_ids) if self.users else None,
            items=self.items.align(interactions.item_ids) if self.items else None,
            reviews=self._recode_reviews(interactions),
        )

    def _recode_reviews(self, interactions: Interactions) -> Reviews | None:
        if self.reviews is None:
            return None
        users = interactions.user_ids.find(self.user_ids.ids)[self.reviews.users]
        items = interactions.item_ids.find(self.item_ids.ids)[self.reviews.items]
        present = (users >= 0) & (items >= 0)
        return Reviews(users[present], items[present], self.reviews.texts[np.flatnonzero(present)])


@dataclass(frozen=True, eq=False)
class Odds:
    """Log-odds of picks, ``float64[n_types, n_items]``, and the user types, ``int[n_users]``."""

    by_type: FloatArray
    types: AnyArray


_USERS_AT_ONCE = 2**14
"""Users whose rows of two sets are compared at once."""

_FEW_ROWS = 2**16
"""Fewer rows are compared faster than ``scipy.sparse`` is imported."""


def encode_pairs(rows: Interactions) -> npt.NDArray[np.int64]:
    """Return an integer for each row, equal for equal (user, item) pairs, ``int64[n]``."""
    return rows.users.astype(np.int64) * max(rows.n_items, 1) + rows.items


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The data that models may see; it has no field for the test set.

    The reviews are those of the training and of the validation rows, and ``sentences`` has no test
    part. ``dataset`` is the label of the dataset, for models that read the output of other tools;
    else blank.
    """

    train: Interactions
    validation: Interactions | None = None
    users: Attributes | None = None
    items: Attributes | None = None
    reviews: Reviews | None = None
    validation_reviews: Reviews | None = None
    dataset: str = ""
    sentences: Sentences | None = None

    @cached_property
    def candidates(self) -> BoolArray:
        """The items that may be recommended: those with a training row, ``bool[n_items]``."""
        return self.train.item_counts() > 0


@dataclass(frozen=True, eq=False)
class Split:
    """Train, validation and test sets over the same vocabularies.

    ``test`` is None if no metric needs it; Leakage if a (user, item) pair is in two sets.
    """

    train: Interactions
    test: Interactions | None
    validation: Interactions | None = None

    def __post_init__(self) -> None:
        """Check that the sets are disjoint."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        present = [(name, rows) for name, rows in parts.items() if rows is not None]
        for (name, rows), (later_name, later_rows) in combinations(present, 2):
            shared = _count_shared(rows, later_rows)
            if shared:
                message = f"{shared:,} (user, item) pairs are in both {name} and {later_name}"
                remedy = "write filters: [deduplicate] under dataset, or correct the split"
                raise Leakage(message, remedy=remedy)

    def item_counts(self) -> npt.NDArray[np.int64]:
        """Return the number of rows of each item in all sets, ``int64[n_items]``."""
        sets = (self.train, self.validation, self.test)
        counts = [rows.item_counts() for rows in sets if rows is not None]
        total: npt.NDArray[np.int64] = np.sum(counts, axis=0)
        return total

    def training_data(
        self,
        *,
        users: Attributes | None = None,
        items: Attributes | None = None,
        reviews: Reviews | None = None,
        dataset: str = "",
        sentences: Sentences | None = None,
    ) -> TrainingData:
        """Return what training may see: neither reviews of test rows, nor test sentences."""
        train = select_reviews(reviews, self.train)
        validation = select_reviews(reviews, self.validation)
        rows = (self.train, self.validation)
        visible = None if sentences is None else sentences.without_test()
        return TrainingData(*rows, users, items, train, validation, dataset, visible)


def _count_shared(rows: Interactions, later_rows: Interactions) -> int:
    """Return the number of (user, item) pairs in both, by products of blocks of users."""
    if len(rows) + len(later_rows) <= _FEW_ROWS:
        return np.intersect1d(encode_pairs(rows), encode_pairs(later_rows)).size
    matrices = rows.binary, later_rows.binary
    starts = range(0, rows.n_users if len(later_rows) else 0, _USERS_AT_ONCE)
    blocks = ([matrix[start : start + _USERS_AT_ONCE] for matrix in matrices] for start in starts)
    return sum(int(block.multiply(later).nnz) for block, later in blocks)


def select_reviews(reviews: Reviews | None, rows: Interactions | None) -> Reviews | None:
    """Return the reviews of the (user, item) pairs of some rows; None if either is None."""
    if reviews is None or rows is None:
        return None
    keys = reviews.users.astype(np.int64) * max(rows.n_items, 1) + reviews.items
    positions = np.flatnonzero(np.isin(keys, encode_pairs(rows)))
    return Reviews(reviews.users[positions], reviews.items[positions], reviews.texts[positions])


# ---- queries: users, prompts, or the sentences of a dataset, with their labels ----

SAMPLE = "sample"
"""The label of prompts that are sent several times: 0, or 1, 2, ... where a prompt is repeated."""


@dataclass(frozen=True, eq=False)
class Queries:
    """The queries that a model recommends for.

    Args:
        labels: The labels of the queries (age, gender, template, name, ...), aligned to ``ids``.
        users: The user code of each query, -1 where the query is not a user, ``int32[q]``.
        texts: The prompt of each query, or None if queries are users.
        unit: The unit of statistics: ``user`` or ``prompt``.
    """

    ids: Vocabulary
    labels: Attributes
    users: Codes
    texts: Ids | None = None
    unit: str = "user"

    @classmethod
    def of_prompts(cls, table: pd.DataFrame) -> Queries:
        """Return the prompts of a table: ``id``, ``text``, and the other columns as labels."""
        ids = Vocabulary(table.pop("id").to_numpy(dtype=object).copy())
        texts = table.pop("text").to_numpy(dtype=object)
        users = np.full(len(ids), -1, dtype=np.int32)
        return cls(ids, Attributes(ids, table, "query"), users, texts, "prompt")

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.ids)

    def take(self, rows: AnyArray) -> Queries:
        """Return some of the queries, by position."""
        rows = np.asarray(rows)
        ids = self.ids.take(rows)
        texts = None if self.texts is None else self.texts[rows]
        return Queries(ids, self.labels.take(rows, ids), self.users[rows], texts, self.unit)


def make_sentence_queries(sentences: Sentences, part: str) -> Queries:
    """Return the sentences of a part as queries, the sentences of a pair one after another.

    Labels are ``pair_id``, ``group`` and the labels of the sentences.

    >>> rows = [("a", "test", "1", "old", "He is 80."), ("b", "test", "1", "young", "He is 20.")]
    >>> frame = pd.DataFrame(rows, columns=["id", "part", "pair_id", "group", "text"])
    >>> make_sentence_queries(Sentences(frame), "test").labels.frame["group"].tolist()
    ['old', 'young']

    Raises:
        NothingLeft: The part has no sentences.
    """
    return Queries.of_prompts(tabulate_part(sentences, part))


def tabulate_part(sentences: Sentences, part: str) -> pd.DataFrame:
    """Return the rows of a part for ``Queries.of_prompts``, pair by pair.

    Raises:
        NothingLeft: The part has no sentences.
    """
    frame = sentences.take_part(part).frame.drop(columns="part")
    if frame.empty:
        parts = [str(name) for name in sentences.frame["part"].unique()]
        remedy = f"the dataset has sentences for {', '.join(parts)}" if parts else ""
        raise NothingLeft(f"there are no sentences for {part}", where="part", remedy=remedy)
    positions = pd.Series(range(len(frame)), dtype=int)
    first_of_pair = positions.groupby(frame["pair_id"].to_numpy()).transform("min")
    order = first_of_pair.fillna(positions).sort_values(kind="stable").index
    return frame.iloc[order].reset_index(drop=True)
