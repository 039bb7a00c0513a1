"""What became of each rank of the replies: an item of the catalogue, or a reason why not.

Without a catalogue, the titles of the replies are one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.dataset import AnyArray, BoolArray, Codes, FloatArray, Ids, Matrix
from recbias.core.evidence import RankedLists, mark_contained
from recbias.core.text import MAX_VALUE_LENGTH, make_printable
from recbias.language.answers import ParsedReply
from recbias.language.titles import (
    MAX_YEAR_DIFFERENCE,
    NO_YEAR,
    CatalogueTitles,
    TitleMatches,
    index_titles,
    list_title_forms,
    normalize_title,
    remove_article,
)


class Reason(IntEnum):
    """Why a rank holds no item. If several reasons apply, the first in this order is recorded."""

    MATCHED = 0
    """It holds one."""
    FORMAT = 1
    """The item of the list has no title, or the whole reply is prose without a list."""
    WATCHED = 2
    """The item is in the history of the query."""
    REPEATED = 3
    """The same item, or the same title outside the catalogue, has an earlier rank."""
    NEWER = 4
    """The year is after the year limit: that of the item, else that of the reply."""
    UNKNOWN = 5
    """The catalogue has no such title."""
    MISSING = 6
    """The reply has fewer titles, or there is none."""


REASONS = tuple(Reason)[1:]
"""The reasons of invalid ranks."""


@dataclass(frozen=True, eq=False)
class ReplyOutcomes:
    """The outcome of each rank of each reply.

    Args:
        items: The item, ``int32[q, k]``; -1 where the rank is invalid.
        reasons: The ``Reason``, ``int8[q, k]``.
        titles: The title and year that was proposed, ``str[q, k]``; the item of the list as
            written if it has no title, blank if there is none.
        n_fuzzy: How many titles matched by similarity only, valid or not.
        n_ambiguous: How many titles matched several items, so that popularity decided.
        similarities: The similarity of each title that matched by similarity only, from 0 to 100,
            ``float64[q, k]``; NaN for the others.
    """

    items: Codes
    reasons: npt.NDArray[np.int8]
    titles: Ids
    n_fuzzy: int
    n_ambiguous: int
    similarities: FloatArray

    def count_reasons(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return how many ranks of each reply are invalid for each reason, ``int64[q]``."""
        return {reason.name.lower(): (self.reasons == reason).sum(axis=1) for reason in REASONS}

    def to_ranked_lists(self, n_items: int) -> RankedLists:
        """Return the lists, in which an invalid rank is an item outside the catalogue.

        It keeps its rank and is never relevant. Its identifier holds the reason, the rank and the
        title, so no list holds an item twice. Missing ranks are the empty end of a list.

        Args:
            n_items: The size of the catalogue.
        """
        items = self.items.copy()
        queries, columns = np.nonzero((items < 0) & (self.reasons != Reason.MISSING))
        codes: dict[str, int] = {}
        for query, column in zip(queries.tolist(), columns.tolist(), strict=True):
            reason = Reason(self.reasons[query, column]).name.lower()
            title = make_printable(self.titles[query, column], MAX_VALUE_LENGTH)
            identifier = f"({reason}, rank {column + 1}) {title}".strip()
            items[query, column] = codes.setdefault(identifier, n_items + len(codes))
        scores = np.full(items.shape, np.nan, dtype=np.float32)
        return RankedLists(items, scores, np.array(list(codes), dtype=object))

    def describe_ranks(self) -> list[str]:
        """Return the outcome of each rank of each reply, a JSON list of ``{title, outcome}``.

        A title that matched an item by similarity only has ``similarity`` besides.
        """
        names = np.array([reason.name.lower() for reason in Reason], dtype=object)
        columns = self.titles, names[self.reasons], self.similarities.round(1)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            json.dumps(
                [
                    {"title": title, "outcome": outcome}
                    | ({} if np.isnan(similarity) else {"similarity": similarity})
                    for title, outcome, similarity in zip(*row, strict=True)
                ],
                ensure_ascii=False,
            )
            for row in rows
        ]

    def list_unmatched_titles(self, n: int = 20) -> pd.DataFrame:
        """Return the commonest titles that are not in the catalogue, or not read as a title.

        Spellings with the same words and year are counted together under the first of them.

        Args:
            n: The largest number of rows.

        Returns:
            The columns ``title`` (printable), ``reason`` and ``count``; the most frequent first.
        """
        unmatched = np.isin(self.reasons, [Reason.FORMAT, Reason.NEWER, Reason.UNKNOWN])
        unmatched &= self.titles != ""
        spellings: dict[tuple[str, int], str] = {}
        counts: Counter[tuple[str, int]] = Counter()
        pairs = zip(self.titles[unmatched], self.reasons[unmatched].tolist(), strict=True)
        for title, reason in pairs:
            name = (normalize_title(title), reason)
            spellings.setdefault(name, title)
            counts[name] += 1
        rows = [
            (
                make_printable(spellings[name], MAX_VALUE_LENGTH),
                Reason(name[1]).name.lower(),
                count,
            )
            for name, count in counts.most_common(n)
        ]
        return pd.DataFrame(rows, columns=["title", "reason", "count"])


def resolve_replies(
    replies: Sequence[ParsedReply],
    k: int,
    catalogue: CatalogueTitles,
    *,
    histories: Matrix | None = None,
    year_limit: int | None = None,
) -> ReplyOutcomes:
    """Match the titles of many replies with the catalogue, and return the outcome of each rank.

    Args:
        replies: The reply to each query; its proposals from ``k`` on are not used.
        k: The number of titles that were asked for.
        catalogue: The titles of the catalogue.
        histories: CSR ``(q, n_items)``: the items that each query has watched; None for queries
            without a history.
        year_limit: The latest year that is allowed; None for no limit.
    """
    table = _ProposalTable.build(replies, k)
    matches = catalogue.match(table.titles, table.years.tolist())
    items = np.full((len(replies), k), -1, dtype=np.int32)
    items[table.queries, table.ranks] = matches.codes
    newest = np.iinfo(np.int32).max if year_limit is None else year_limit
    rules = {
        Reason.FORMAT: np.array([not title for title in table.titles], dtype=bool),
        Reason.WATCHED: _mark_watched(items, histories)[table.queries, table.ranks],
        Reason.REPEATED: _mark_repeats(table, matches),
        Reason.NEWER: _get_years(table, matches, catalogue) > newest,
        Reason.UNKNOWN: matches.codes < 0,
    }
    reasons = np.full(items.shape, Reason.MISSING, dtype=np.int8)
    reasons[table.queries, table.ranks] = np.select(list(rules.values()), list(rules), 0)
    reasons[np.array([reply.is_prose for reply in replies], dtype=bool)] = Reason.FORMAT
    items[reasons != Reason.MATCHED] = -1
    titles = np.full(items.shape, "", dtype=object)
    titles[table.queries, table.ranks] = table.labels
    is_fuzzy = (matches.codes >= 0) & ~matches.exact
    similarities = np.full(items.shape, np.nan)
    similarities[table.queries, table.ranks] = np.where(is_fuzzy, matches.scores, np.nan)
    n_fuzzy, n_ambiguous = int(is_fuzzy.sum()), int(matches.ambiguous.sum())
    return ReplyOutcomes(items, reasons, titles, n_fuzzy, n_ambiguous, similarities)


@dataclass(frozen=True, eq=False)
class _ProposalTable:
    """The proposals of all replies, one row each."""

    queries: AnyArray
    ranks: AnyArray
    titles: list[str]
    years: Codes
    labels: Ids

    @classmethod
    def build(cls, replies: Sequence[ParsedReply], k: int) -> _ProposalTable:
        proposals = [reply.proposals[:k] for reply in replies]
        listed = [proposal for row in proposals for proposal in row]
        labels = [
            f"{proposal.title or proposal.line}{f' ({proposal.year})' if proposal.year else ''}"
            for proposal in listed
        ]
        return cls(
            np.repeat(np.arange(len(replies)), [len(row) for row in proposals]),
            np.array([rank for row in proposals for rank in range(len(row))], dtype=int),
            [proposal.title for proposal in listed],
            np.array([proposal.year or NO_YEAR for proposal in listed], dtype=np.int32),
            np.array(labels, dtype=object),
        )


def _mark_watched(items: Codes, histories: Matrix | None) -> BoolArray:
    if histories is None:
        return np.zeros(items.shape, dtype=bool)
    scores = np.full(items.shape, np.nan, dtype=np.float32)
    return mark_contained(histories, RankedLists(items.copy(), scores)) & (items >= 0)


def _mark_repeats(table: _ProposalTable, matches: TitleMatches) -> BoolArray:
    """Return which rows hold the same item, or the same words and year, as an earlier rank."""
    seen: set[tuple[int, int | str, int]] = set()
    repeats = np.zeros(len(table.titles), dtype=bool)
    rows = zip(table.queries.tolist(), matches.codes.tolist(), table.years.tolist(), strict=True)
    for row, (query, code, year) in enumerate(rows):
        title = normalize_title(table.titles[row]) if code < 0 else ""
        identity = (query, code, 0) if code >= 0 else (query, title, year)
        repeats[row] = identity in seen
        seen.add(identity)
    return repeats


def _get_years(
    table: _ProposalTable, matches: TitleMatches, catalogue: CatalogueTitles
) -> AnyArray:
    """Return the year of the item of each row, else the year of the reply; 0 without one."""
    if not catalogue.years.size:
        return table.years
    item_years = np.where(matches.codes >= 0, catalogue.years[matches.codes], NO_YEAR)
    return np.where(item_years == NO_YEAR, table.years, item_years)


def index_said_titles(replies: Iterable[ParsedReply]) -> tuple[Ids, CatalogueTitles]:
    """Return the distinct titles of replies, and their index, by which equal titles match.

    Titles are equal if they have the same normalised form without its leading article, and their
    years differ by at most one. A title without year is the one with the most frequent year.

    Returns:
        The titles, as most often written, in the order of their forms, and the index.
    """
    spellings: dict[str, Counter[tuple[str, int | None]]] = {}
    for reply in replies:
        for proposal in reply.proposals:
            for form in list_title_forms(proposal.title)[:1]:
                counts = spellings.setdefault(remove_article(form), Counter())
                counts[proposal.title, proposal.year] += 1
    entries = [
        (*spelling, counts[spelling])
        for _, counts in sorted(spellings.items())
        for spelling in _select_years(counts)
    ]
    names = [f"{title} ({year})" if year else title for title, year, _ in entries]
    catalogue = index_titles(
        [title for title, _, _ in entries],
        [year for _, year, _ in entries],
        np.array([count for _, _, count in entries]),
        threshold=None,
    )
    return np.array(names, dtype=object), catalogue


def _select_years(counts: Counter[tuple[str, int | None]]) -> list[tuple[str, int | None]]:
    """Return a spelling for each year of one title, years that are close together once."""
    years: Counter[int | None] = Counter()
    for (_, year), count in counts.items():
        years[year] += count
    kept: list[int | None] = []
    for year, _ in sorted(years.items(), key=lambda pair: (-pair[1], pair[0] or 0)):
        is_new = year and all(abs(year - other) > MAX_YEAR_DIFFERENCE for other in kept if other)
        kept += [year] if is_new else []
    ordered = sorted(counts, key=lambda spelling: (-counts[spelling], str(spelling)))
    return [
        next(spelling for spelling in ordered if spelling[1] == year) for year in kept or [None]
    ]
