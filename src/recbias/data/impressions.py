"""Logs of impressions: what was shown to whom, at which position, and what came of it.

A log is read in blocks, so that it may be larger than memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, Attributes, Codes, Dataset, Interactions, Vocabulary
from recbias.core.errors import MalformedLine, MissingEvidence, NothingLeft, UnknownColumn
from recbias.core.evidence import Impressions
from recbias.core.plugins import InputFile
from recbias.core.text import suggest
from recbias.formats.delimited import Kind, Layout, read_blocks_of_table, require_columns
from recbias.formats.identifiers import align_columns
from recbias.formats.table_settings import TableSettings
from recbias.formats.tables import (
    PARQUET,
    TableColumns,
    find_suffix,
    list_file_columns,
    read_file,
    read_table_header,
)
from recbias.formats.text_files import TAB, require_file

_BLOCK = 2**20  # rows of a Parquet file at once

_KINDS: Mapping[str, Kind] = {
    "request_id": "text",
    "user_id": "text",
    "item_id": "text",
    "position": "int32",
    "reward": "float64",
    "propensity": "float64",
    "variant": "text",
}
"""The columns of a log; all but ``item_id`` and ``reward`` are optional."""

_TYPES = {"text": pa.string(), "int32": pa.int32(), "float64": pa.float64()}

_OPEN_BANDIT = {"click": "reward", "propensity_score": "propensity"}
_OPEN_BANDIT_LABELS = "user_feature_"
_MIND = ("request_id", "user_id", "time", "history", "shown")
_BOOLEANS = pa.array(["false", "true"])
_CELL = ("item_id", "position", "variant")
_NOBODY = "no user: "  # starts the identifier of a request without a user
_MOST_FAULTS = 10**7  # rows up to which it is checked that the rows of a request stand together


@dataclass(frozen=True, kw_only=True)
class ImpressionTable(TableSettings):
    """A log of impressions: a row for each item that was shown, with the reward that it got.

    The columns are ``item_id``, ``reward`` (any number; true and false are 1 and 0) and, where
    they exist, ``request_id`` (the items that were shown together, whose rows stand together),
    ``user_id``, ``position`` (from 1, or from 0), ``propensity`` (the probability with which the
    item was shown at this position) and ``variant`` (of an A/B test). The file is ``.parquet``,
    ``.csv`` or ``.tsv`` (also with ``.gz``); it is read in blocks, so that it may be larger than
    memory.

    The units of all measures are the users, so that several rows of a user count as one
    observation. A log without ``user_id`` has the requests as units, one without ``request_id``
    the rows; so has a request with a blank ``user_id``.

    Args:
        path: The log.
        layout: ``table`` as above; ``open_bandit`` for files of the Open Bandit Dataset, whose
            ``user_feature_*`` become labels; ``mind`` for ``behaviors.tsv`` of MIND, in which the
            order of the items is shuffled, so that there are no positions.
        users: A table of the users: ``user_id`` and any columns.
        items: A table of the items: ``item_id`` and any columns.
        user_columns: Columns of the log that are labels of its users, of which a user has one
            value; a blank cell is a missing one.

    Raises:
        MissingFile: A file does not exist.
        UnknownColumn: The log lacks ``item_id`` or ``reward``, or a column that is named.
        MalformedLine: A propensity is not above 0 and at most 1, a reward is missing, a position
            is below 0, or the rows of a request do not stand together.

    Source:
        Saito, Aihara, Matsutani and Narita, "Open Bandit Dataset and Pipeline", NeurIPS 2021; Wu
        et al., "MIND: a large-scale dataset for news recommendation", ACL 2020.
    """

    path: InputFile
    layout: Literal["table", "open_bandit", "mind"] = "table"
    users: InputFile | None = None
    items: InputFile | None = None
    user_columns: tuple[str, ...] = ()

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` returns."""
        has_labels = self.users or self.user_columns or self.layout == "open_bandit"
        return frozenset(["users"] * bool(has_labels) + ["items"] * bool(self.items))

    def files(self, data: Path) -> list[Path]:
        """Return the files that are read."""
        paths = (self.path, self.users, self.items)
        return [require_file(path) for path in paths if path is not None]

    def open_log(self, dataset: Dataset) -> _Log:
        """Return the log, with the codes of the dataset."""
        return _Log(self, dataset)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the users and items of the log, and check its rows."""
        self.check_settings(self.files(data)[self.layout == "mind" :], (self.users, self.items))
        names = self.find_columns()
        labels = self._list_labels(names)
        summary = _Summary(self.path, ["user_id"] * ("user_id" in names) + labels)
        for table in self.read_tables(labels):
            summary.add(table)
        summary.finish()
        unit = "request" if "request_id" in names else "row"
        if n_blank := summary.counts.pop("_blank", 0):
            warn(
                f"{self.path.name}: {n_blank:,} of {summary.counts['impressions']:,} rows have no "
                f"user_id; each {unit} of them counts as a user of its own"
            )
        frame = summary.tabulate_users(labels)
        if "user_id" in names:
            unit = "user"
            user_ids, codes = Vocabulary.encode(frame["user_id"].to_numpy(dtype=object))
        else:
            user_ids, codes = Vocabulary.encode(np.arange(1, summary.counts["requests"] + 1))
        columns = {name: frame[name].to_numpy(dtype=object) for name in labels}
        of_log = align_columns(codes, columns, user_ids, "user") if columns else None
        users, items = self._read(self.users, "user"), self._read(self.items, "item")
        self.warn_of_unused((users, items))
        of_users = self._align(users, user_ids, "user", of_log)
        named = [] if items is None else items["item_id"].to_pylist()
        item_ids = Vocabulary.of([*summary.items, *named])
        of_items = self._align(items, item_ids, "item", None)
        rows = Interactions.without_rows(user_ids, item_ids)
        return Dataset(rows, of_users, of_items, counts=dict(summary.counts), unit=unit)

    def _list_labels(self, names: Mapping[str, str]) -> list[str]:
        labels = [*self.user_columns]
        if self.layout == "open_bandit":
            labels += [name for name in names if name.startswith(_OPEN_BANDIT_LABELS)]
        for name in labels:
            if name not in names:
                message = f"the log has no column {name!r}"
                raise UnknownColumn(message, where="user_columns", remedy=suggest(name, [*names]))
        return labels

    def _read(self, path: Path | None, kind: str) -> Any:
        """Return a table of users or items; None without a path."""
        columns = TableColumns(needed={f"{kind}_id": "id"}, others=True, renamed=self.columns)
        return None if path is None else read_file(path, columns)

    def _align(
        self, table: Any, ids: Vocabulary, kind: str, log: Attributes | None
    ) -> Attributes | None:
        """Return the columns of a table of users or items, and those of the log."""
        if table is None:
            return log
        codes = ids.find(np.asarray(table[f"{kind}_id"].to_numpy(), dtype=object))
        known = codes >= 0
        if n := int(np.count_nonzero(~known)):
            name = getattr(self, f"{kind}s").name
            warn(f"{name}: {n:,} {kind}s are not in the log")
        cells = {name: column[known] for name, column in self.read_columns(table).items()}
        attributes = align_columns(codes[known], cells, ids, kind)
        if log is not None:
            frame = pd.concat([log.frame, attributes.frame], axis=1)
            attributes = Attributes(ids, frame, kind)
        return attributes

    def find_columns(self) -> dict[str, str]:
        """Return the name in the file of each column of the log, by its new name."""
        renamed = dict(self.columns)
        if self.layout == "mind":
            return {name: name for name in ("request_id", "user_id", "item_id", "reward")}
        if self.layout == "open_bandit":
            renamed = _OPEN_BANDIT | renamed
        names = {renamed.get(name, name): name for name in list_file_columns(self.path)}
        require_columns(("item_id", "reward"), [*names], str(self.path), renames=True)
        return names

    def read_tables(self, labels: list[str] | None = None) -> Iterator[pa.Table]:
        """Yield the log in tables with the names and types of ``_TYPES``, and labels as text.

        A blank user is named by the request.
        """
        start = 0
        for table in self._read_file(labels):
            yield _name_blank_users(table, start)
            start += table.num_rows

    def _read_file(self, labels: list[str] | None) -> Iterator[pa.Table]:
        if self.layout == "mind":
            yield from _read_mind(self.path)
            return
        names = self.find_columns()
        kinds: dict[str, Kind] = {name: kind for name, kind in _KINDS.items() if name in names}
        kinds |= dict.fromkeys(labels or (), "text")
        if find_suffix(self.path) == PARQUET:
            yield from _read_parquet(self.path, names, kinds)
            return
        header = read_table_header(self.path, announce=False)
        is_boolean = _has_booleans(self.path, header.make_layout({"": (names["reward"], "text")}))
        if is_boolean:
            kinds["reward"] = "text"
        layout = header.make_layout({name: (names[name], kind) for name, kind in kinds.items()})
        for block, _ in read_blocks_of_table(self.path, layout):
            table = block.rename_columns([*kinds])
            if is_boolean:
                clicks = pc.index_in(pc.utf8_lower(table["reward"]), _BOOLEANS)
                at = table.column_names.index("reward")
                table = table.set_column(at, "reward", clicks.cast(pa.float64()))
            yield table


def _has_booleans(path: Path, rewards: Layout) -> bool:
    """Return whether the rewards of a text file are written ``True`` and ``False``."""
    tables = (table for table, _ in read_blocks_of_table(path, rewards) if table.num_rows)
    return any(str(table[0][0]).lower() in {"false", "true"} for table in islice(tables, 1))


def _name_blank_users(table: pa.Table, start: int) -> pa.Table:
    """Return a table with a name for each blank user; ``start`` is the number of its first row."""
    if "user_id" not in table.column_names:
        return table
    users = table["user_id"]
    is_blank = pc.equal(pc.utf8_trim_whitespace(pc.fill_null(users, "")), "")
    if not pc.any(is_blank).as_py():
        return table
    names = pa.array(np.arange(start + 1, start + table.num_rows + 1)).cast(pa.string())
    if "request_id" in table.column_names:
        names = pc.fill_null(table["request_id"], "")
    named = pc.if_else(is_blank, pc.binary_join_element_wise(_NOBODY, names, ""), users)
    return table.set_column(table.column_names.index("user_id"), "user_id", named)


def _read_parquet(
    path: Path, names: Mapping[str, str], kinds: Mapping[str, Kind]
) -> Iterator[pa.Table]:
    from pyarrow import parquet

    schema = pa.schema({name: _TYPES[kind] for name, kind in kinds.items()})
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_BLOCK, columns=[names[name] for name in kinds]):
                table = pa.Table.from_batches([batch]).select([names[name] for name in kinds])
                yield table.rename_columns([*kinds]).cast(schema)
    except pa.ArrowInvalid as error:
        message = f"a cell does not have the type of its column: {error}"
        remedy = "position is a whole number; reward and propensity are numbers"
        raise MalformedLine(message, where=str(path), remedy=remedy) from error


def _read_mind(path: Path) -> Iterator[pa.Table]:
    """Yield the rows of ``behaviors.tsv``, which has the items of a request in one cell."""
    layout = Layout(columns=dict.fromkeys(_MIND, "text"), delimiter=TAB, header=False)
    for block, _ in read_blocks_of_table(require_file(path), layout):
        table = block.combine_chunks()
        shown = pc.split_pattern(table["shown"].combine_chunks(), " ")
        parts = pc.extract_regex(pc.list_flatten(shown), r"^(?P<item>.+)-(?P<click>[01])$")
        if parts.null_count:
            message = f"{parts.null_count:,} impressions are not written as N123-0 or N123-1"
            raise MalformedLine(message, where=str(path), remedy="use a file with the clicks")
        rows = pc.list_parent_indices(shown)
        yield pa.table(
            {
                "request_id": table["request_id"].take(rows),
                "user_id": table["user_id"].take(rows),
                "item_id": parts.field("item"),
                "reward": parts.field("click").cast(pa.float64()),
            }
        )


_RULES: Mapping[str, tuple[Callable[[AnyArray], AnyArray], str]] = {
    "propensity": (
        lambda x: (x <= 0) | (x > 1),
        "a propensity is above 0 and at most 1: remove rows that cannot be shown",
    ),
    "position": (lambda x: ~(x >= 0), "write 1 for the first position"),
    "reward": (np.isnan, "write 0 where there is none"),
}
"""Which values of a column are refused, and what to do."""


class _Summary:
    """Counts the rows of a log, collects its users, and raises the faults of its columns."""

    def __init__(self, path: Path, keys: list[str]) -> None:
        self.counts: Counter[str] = Counter()
        self._path, self._keys = str(path), keys
        self._users: list[pa.Table] = []
        self._cells: pa.Table | None = None
        self._starts: list[AnyArray] = []
        self._requests: list[Any] = []
        self._last: Any = None

    @property
    def items(self) -> list[str]:
        """The items that were shown."""
        return [] if self._cells is None else pc.unique(self._cells["item_id"]).to_pylist()

    def add(self, table: pa.Table) -> None:
        """Check the rows of a table, and count them by item, position and variant."""
        at, names = self.counts["impressions"], table.column_names
        for name, (find_wrong, remedy) in _RULES.items():
            if name not in names or (name == "reward" and "variant" in names):
                continue
            values = table[name].to_numpy()
            if (wrong := np.flatnonzero(find_wrong(values))).size:
                message = f"row {at + wrong[0] + 1:,} has the {name} {values[wrong[0]]:g}"
                raise MalformedLine(message, where=self._path, remedy=remedy)
        if "propensity" in names:
            self.counts["with_propensity"] += len(table) - int(
                np.isnan(table["propensity"].to_numpy()).sum()
            )
        rewards = table["reward"].to_numpy()
        self.counts["rewarded"] += int(np.count_nonzero(rewards > 0))
        self._count_requests(table, at)
        self.counts["impressions"] += table.num_rows
        keys = [name for name in _CELL if name in names]
        cells = table.select(keys).append_column("shown", pa.array(np.ones(rewards.size, int)))
        cells = cells.append_column("with_reward", pa.array((~np.isnan(rewards)).astype(int)))
        self._cells = _add_up(cells, keys, ("shown", "with_reward"), self._cells)
        if "user_id" in self._keys:
            self._users = [_add_up(table.select(self._keys), self._keys, (), *self._users)]
            n_blank = pc.sum(pc.starts_with(table["user_id"], _NOBODY)).as_py()
            self.counts["_blank"] += int(n_blank or 0)
        elif self._keys:
            self._users.append(table.select(self._keys))

    def tabulate_users(self, labels: list[str]) -> pd.DataFrame:
        """Return ``user_id`` and the labels of each user, or else the labels of each request.

        A blank cell is a missing one, and the first other value counts.
        """
        frame = pa.concat_tables(self._users).to_pandas() if self._users else pd.DataFrame()
        frame = frame.astype(object).where(frame.notna() & (frame != ""), None)
        if not labels:
            return frame
        if "user_id" not in self._keys:
            return frame.iloc[np.concatenate(self._starts)] if self._starts else frame
        groups = frame.groupby("user_id", sort=False)[labels]
        if n := int((groups.nunique() > 1).any(axis=1).sum()):  # noqa: PD101  of groups
            name = Path(self._path).name
            warn(f"{name}: {n:,} users have several values of a label; the first is used")
        first = groups.first().reset_index()
        return first.astype(object).where(first.notna(), None)

    def _count_requests(self, table: pa.Table, at: int) -> None:
        if "request_id" not in table.column_names:
            self.counts["requests"] += table.num_rows
            return
        column = table["request_id"].combine_chunks()
        changes = mark_starts(column)
        if len(column):
            changes[0] = column[0] != self._last
            self._last = column[len(column) - 1]
        starts = np.flatnonzero(changes)
        self.counts["requests"] += starts.size
        if at < _MOST_FAULTS:
            self._starts.append(starts + at)
            self._requests.append(column.take(pa.array(starts)))

    def finish(self) -> None:
        """Raise or warn of what only the whole log shows."""
        if self._cells is None or not self.counts["impressions"]:
            raise NothingLeft("the log has no rows", where=self._path)
        requests = pa.chunked_array(self._requests, pa.string())
        if len(requests) > (n_distinct := len(pc.unique(requests))):
            message = f"the rows of {len(requests) - n_distinct:,} requests do not stand together"
            raise MalformedLine(message, where=self._path, remedy="sort the log by request_id")
        cells = self._cells.to_pandas()
        if "variant" in cells:
            self._check_variants(cells.groupby("variant", sort=True)[["shown", "with_reward"]])
        self.counts["_cells"] = len(cells.drop_duplicates([*{*_CELL[:2]} & {*cells.columns}]))
        if "position" in cells:
            self._check_positions(np.unique(cells["position"]))

    def _check_variants(self, variants: Any) -> None:
        table = variants.sum()
        for name, n, n_rewards in table.itertuples():
            if n_rewards < n:
                reason = "rows without a reward" if n_rewards else "no reward at all"
                remedy = "write 0 where nothing was clicked, or leave the variant out"
                message = f"variant {name!r} has {reason}"
                raise MalformedLine(message, where=self._path, remedy=remedy)
            self.counts[f"_variant {name}"] = int(n)

    def _check_positions(self, positions: AnyArray) -> None:
        first = self.counts["_first_position"] = int(positions[0] > 0)
        self.counts["positions"] = positions.size
        if not first:
            warn(
                "the positions of the log begin at 0, which is taken for the first: it is called 1"
            )
        if holes := sorted({*range(first, int(positions[-1]))} - {*positions.tolist()}):
            warn(f"nothing was ever shown at position {holes[0]} of the log, but below it")


def _add_up(
    table: pa.Table, keys: list[str], sums: tuple[str, ...] = (), total: pa.Table | None = None
) -> pa.Table:
    """Return the sums of columns by key, and those of a table that was added up before."""
    rows = table.select([*keys, *sums])
    joined = rows if total is None else pa.concat_tables([total, rows])
    groups = joined.group_by(keys, use_threads=False)
    added = groups.aggregate([(name, "sum") for name in sums])
    return added.select([*keys, *(f"{name}_sum" for name in sums)]).rename_columns([*keys, *sums])


def mark_starts(column: Any) -> AnyArray:
    """Return whether each value differs from the one before, ``bool[n]``."""
    changes = np.ones(len(column), dtype=bool)
    if len(column) > 1:
        changes[1:] = pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    return changes


@dataclass(frozen=True, eq=False)
class _Log:
    """The log of a dataset, with the codes of its users and items."""

    source: ImpressionTable
    dataset: Dataset

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The columns of the log."""
        return self.source.find_columns()

    @property
    def has_positions(self) -> bool:
        """Whether the positions are known."""
        return "position" in self.names

    @property
    def has_propensities(self) -> bool:
        """Whether the propensities are known."""
        return "propensity" in self.names

    def read_lists(self) -> Iterator[Impressions]:
        """Yield the rows in blocks, for what is measured of whole requests."""
        for name in ("request_id", "position"):
            if name not in self.names:
                message = f"what is measured needs the column {name}, which the log does not have"
                raise MissingEvidence(message, remedy=f"give the log a column {name}")
        return self.read_blocks(distinct=True)

    def read_blocks(self, *, distinct: bool = False) -> Iterator[Impressions]:
        """Yield the rows in blocks of whole requests, with ``distinct`` positions."""
        rest: pa.Table | None = None
        n_requests = 0
        for table in self.source.read_tables():
            joined = table if rest is None else pa.concat_tables([rest, table])
            rest, end = None, joined.num_rows
            if "request_id" in self.names and end:
                starts = np.flatnonzero(mark_starts(joined["request_id"].combine_chunks()))
                end = int(starts[-1])
                rest = joined.slice(end)
            if end:
                block = self._encode(joined.slice(0, end), n_requests, distinct=distinct)
                n_requests = int(block.requests[-1]) + 1
                yield block
        if rest is not None:
            yield self._encode(rest, n_requests, distinct=distinct)

    def _encode(self, table: pa.Table, first: int, *, distinct: bool) -> Impressions:
        n = table.num_rows
        requests = np.arange(first, first + n)
        if "request_id" in self.names:
            requests = first - 1 + np.cumsum(mark_starts(table["request_id"].combine_chunks()))
        users = requests.astype(np.int32)
        if "user_id" in self.names:
            users = _find(table["user_id"], self.dataset.user_ids)
        positions = np.zeros(n, dtype=np.int32)
        if self.has_positions:
            first = self.dataset.counts["_first_position"]
            positions = table["position"].to_numpy() + np.int32(1 - first)
        missing = np.full(n, np.nan)
        variants = np.full(n, "", dtype=object)
        block = Impressions(
            users,
            requests,
            _find(table["item_id"], self.dataset.item_ids),
            positions,
            table["reward"].to_numpy(),
            table["propensity"].to_numpy() if self.has_propensities else missing,
            table["variant"].to_numpy() if "variant" in self.names else variants,
        )
        step = np.diff(requests)
        if not (np.diff(positions)[step == 0] >= 0).all():
            block = block.take(np.lexsort((positions, requests)))
        repeats = np.flatnonzero((np.diff(block.positions) == 0) & (step == 0))
        if distinct and repeats.size:
            message = (
                f"request {table['request_id'][int(repeats[0])]} has several items at position "
                f"{block.positions[repeats[0]]}, so that its order is unknown"
            )
            remedy = "give each item of a request its own position, and each list its request_id"
            raise MalformedLine(message, where=str(self.source.path), remedy=remedy)
        return block


def _find(column: Any, ids: Vocabulary) -> Codes:
    """Return the code of each text; a text that is repeated is looked up once."""
    encoded = column.combine_chunks().dictionary_encode()
    codes = ids.find(encoded.dictionary.to_numpy(zero_copy_only=False))
    found: Codes = codes[encoded.indices.to_numpy(zero_copy_only=False)]
    return found
