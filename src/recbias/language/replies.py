"""Replies of language models as lists of titles, and what became of each rank.

A reply is JSON or lines; each title is an item of the catalogue or has a reason why not. Without a
catalogue, the titles of the replies are one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.dataset import AnyArray, BoolArray, Codes, FloatArray, Ids, Matrix
from recbias.core.evidence import RankedLists, mark_contained
from recbias.core.text import MAX_VALUE_LENGTH, make_printable
from recbias.language.titles import (
    MAX_YEAR_DIFFERENCE,
    NO_YEAR,
    CatalogueTitles,
    TitleMatches,
    index_titles,
    list_plain_years,
    list_title_forms,
    normalize_title,
    remove_article,
    split_year,
)

_MAX_TITLE_LENGTH = 200
"""The longest text that is a title; a longer one is an item without a title."""

_LABEL = re.compile(
    r"\**(?:movie |film )?(?:title|movie|film)(?: \d{1,3})?:\** ?(?=.)", re.IGNORECASE
)
"""The label of a title: ``Title:``, ``Movie 1:``."""

_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{1,200})[\"”“»]")
_BETWEEN_TITLES = re.compile(r"\s*(?:[,;/|&•+]|and\b)[\s,;/|&•+]*(?:and\b\s*)?")
_DESCRIPTION = re.compile(r" [–—] ")
_EDGES = ' \t"“”„«»`*_,;|'


@dataclass(frozen=True)
class _Proposal:
    """A title that a reply proposes.

    Args:
        title: The title without year; blank if the item has none that can be read.
        year: The year, None if it is missing.
        line: The item as written.
    """

    title: str
    year: int | None
    line: str


def _parse_item(item: str) -> list[_Proposal]:
    """Return the titles of one item of a list, without what follows them.

    >>> [(proposal.title, proposal.year) for proposal in _parse_item("Heat (1995), Casino (1995)")]
    [('Heat', 1995), ('Casino', 1995)]
    >>> [proposal.title for proposal in _parse_item('"Heat" — a thriller of the year 1995')]
    ['Heat']
    """
    return [_make_proposal(piece, item) for piece in _split_titles(item)]


def _make_proposal(text: str, line: str) -> _Proposal:
    """Return the proposal of a text that holds one title; a blank title if it cannot be one."""
    text = " ".join(text.split())
    label = _LABEL.match(text)
    title, year = split_year((text[label.end() :] if label else text).strip(_EDGES))
    if year is None:
        title = _DESCRIPTION.split(title, maxsplit=1)[0]
    title = title.strip(_EDGES).partition("**")[0].strip(_EDGES).rstrip(":")
    is_title = len(title) <= _MAX_TITLE_LENGTH and any(map(str.isalnum, title))
    return _Proposal(title if is_title else "", year, line)


def _split_titles(item: str) -> list[str]:
    years = [match.end() for match in list_plain_years(item)]
    if years:
        return _split_at_years(item, years)
    quoted = list(_QUOTED.finditer(item))
    if quoted and not item[: quoted[0].start()].strip(_EDGES):
        is_list = all(
            _BETWEEN_TITLES.fullmatch(item[before.end() : after.start()])
            for before, after in pairwise(quoted)
        )
        return [match[1] for match in quoted] if is_list else [_keep_year(item, quoted[0])]
    return [piece for piece in item.split(";") if piece.strip(_EDGES)] or [item]


def _split_at_years(item: str, ends: list[int]) -> list[str]:
    """Return one text for each year that ends a title; text without a separator is description."""
    pieces, start = [item[: ends[0]]], ends[0]
    for end in ends[1:]:
        separator = _BETWEEN_TITLES.match(item, start, end)
        if separator is None:
            break
        pieces.append(item[separator.end() : end])
        start = end
    return pieces


def _keep_year(item: str, quoted: re.Match[str]) -> str:
    """Return the quoted title, with the year that follows it at once."""
    _, year = split_year(f"title {item[quoted.end() :][:40]}")
    return f"{quoted[1]} ({year})" if year else quoted[1]


_TITLE_KEYS = ("title", "name", "movie", "film", "movie_title", "item")
"""The keys of an object for its title; the first that occurs is used."""

_YEAR_KEYS = ("year", "release_year", "released", "release_date", "date")
"""The keys of an object for its year."""

_START = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
_YEAR = re.compile(r"(?<!\d)(?:18|19|20)\d\d(?!\d)")


def _parse_json_entries(text: str) -> list[_Proposal]:
    r"""Return the titles of the JSON values in a reply; empty if there is none with titles.

    Text before, between and after the values is left out. An entry of a list that is neither text
    nor an object with a title keeps its rank without a title.

    >>> reply = 'Here: \n{"movies": [{"title": "Heat", "year": 1995}, "Casino (1995)"]}'
    >>> [(proposal.title, proposal.year) for proposal in _parse_json_entries(reply)]
    [('Heat', 1995), ('Casino', 1995)]
    """
    entries = [entry for value in _iterate_values(text) for entry in _list_entries(value)]
    proposals = [_parse_entry(entry) for entry in entries]
    return proposals if any(proposal.title for proposal in proposals) else []


def _iterate_values(text: str) -> Iterator[Any]:
    """Yield the JSON values that start on a line of their own."""
    decoder, position = json.JSONDecoder(), 0
    while start := _START.search(text, position):
        try:
            value, position = decoder.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            return
        yield value


def _list_entries(value: Any) -> list[Any]:
    """Return the entries of a list, or of the list in an object; or the object, if it is one."""
    if isinstance(value, list):
        return value
    lists = [child for child in value.values() if isinstance(child, list) and child]
    objects = [child for child in lists if isinstance(child[0], dict)]
    if not objects and _get_text(value, _TITLE_KEYS):
        return [value]
    return next(iter([*objects, *lists]), list(value.values()))


def _parse_entry(entry: Any) -> _Proposal:
    line = json.dumps(entry, ensure_ascii=False)
    if isinstance(entry, str):
        return _make_proposal(entry, entry)
    text = _get_text(entry, _TITLE_KEYS)
    match = _YEAR.search(_get_text(entry, _YEAR_KEYS))
    return _make_proposal(f"{split_year(text)[0]} ({match[0]})" if match else text, line)


def _get_text(entry: Any, keys: tuple[str, ...]) -> str:
    """Return the text or number of the first key that occurs, without regard to case."""
    if not isinstance(entry, dict):
        return ""
    values = {key.casefold(): value for key, value in entry.items()}
    present = [values[key] for key in keys if isinstance(values.get(key), (str, int))]
    return str(present[0]) if present else ""


_MAX_REPLY_LENGTH = 100_000  # how many characters of a reply are read
_MAX_PLAIN_LENGTH = 80  # the longest line that may be a title without a marker and without a year

_NUMBER = re.compile(r"(?:\((\d{1,2})\) ?|#?(\d{1,3})(?: ?[.):\]] ?(?!\d)| [-–—] ))")
_BULLET = re.compile(r"[-*+•‣▪●◦·–—] |[•‣▪●◦·]")
_NEXT_NUMBER = re.compile(r"(?<= )(\d{1,3})[.)] ")
_YEAR_LINE = re.compile(
    r"[-*+•]? ?\**(?:release )?(?:year|date)(?: of release)?:\** ?((?:18|19|20)\d\d)\b",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|>~-])")
_SENTENCE_END = (".", ":", "?", "!", ",")


@dataclass(frozen=True)
class ParsedReply:
    """The titles that a reply proposes.

    Args:
        proposals: The titles in order, at most k.
        is_prose: Whether there is text, but no list of titles in it: an apology, for example.
    """

    proposals: tuple[_Proposal, ...]
    is_prose: bool


def parse_reply(text: str, k: int) -> ParsedReply:
    r"""Return the titles that a reply proposes, at most ``k``.

    A reply is JSON, or lines. Of its lines, those of one kind are the list: the first that occurs
    of numbered, rows of a table, bulleted, and unmarked. If the lines of that kind have no year in
    brackets, a later kind with more years than they are lines is the list instead. All other
    lines, such as an introduction, are left out. Unmarked lines count from the first to the last
    with a year, unless they end like a sentence. Without any year, they count if there are at
    least two, or one with two commas, and all are short.

    A label (``Title: A``) counts as a bullet, and a year on a line of its own (``Year: 1995``)
    belongs to the item before it. A line may hold several titles: numbered (``1. A 2. B``), each
    with its year, in quotes, or separated by semicolons.

    >>> reply = parse_reply("Sure! Here you go:\n1. **Heat** (1995)\n2. Casino, 1995", 10)
    >>> [(proposal.title, proposal.year) for proposal in reply.proposals]
    [('Heat', 1995), ('Casino', 1995)]
    >>> parse_reply("I am sorry, I cannot recommend movies.", 10)
    ParsedReply(proposals=(), is_prose=True)

    Args:
        text: The reply.
        k: The largest number of titles.
    """
    text = text[:_MAX_REPLY_LENGTH]
    proposals = _parse_json_entries(text) or _parse_lines(text, k)
    return ParsedReply(tuple(proposals[:k]), bool(text.strip()) and not proposals)


def _parse_lines(text: str, k: int) -> list[_Proposal]:
    proposals: list[_Proposal] = []
    for line in _select_list(text):
        if len(proposals) >= k:
            break
        proposals += _parse_item(line)
    return proposals


def _select_list(text: str) -> list[str]:
    """Return the lines that are the list, without markers."""
    kinds = _group_lines(text)
    plain = kinds["plain"]
    selected: list[str] = []
    for items in (kinds["number"], kinds["row"], kinds["bullet"], _select_dated(plain)):
        if not _count_years(selected) and (_count_years(items) > len(selected) or not selected):
            selected = items
    return selected or _select_titles_without_marker(plain)


def _count_years(lines: Sequence[str]) -> int:
    return sum(bool(list_plain_years(line)) for line in lines)


def _select_dated(lines: Sequence[str]) -> list[str]:
    """Return the unmarked lines from the first to the last with a year, without sentences."""
    titles = [line for line in lines if not line.endswith((".", ":", "?"))]
    dated = [row for row, line in enumerate(titles) if list_plain_years(line)]
    return titles[dated[0] : dated[-1] + 1] if dated else []


def _group_lines(text: str) -> dict[str, list[str]]:
    """Return the items of each kind of line; a year on a line of its own joins the last item."""
    kinds: dict[str, list[str]] = {"number": [], "row": [], "bullet": [], "plain": []}
    items: list[str] = []
    for line in _clean_lines(text):
        year = _YEAR_LINE.match(line)
        if year and items:
            items[-1] += f" ({year[1]})"
        elif _is_table_rule(line):
            kinds["row"].clear()  # the header
        else:
            kind, pieces = _classify(line)
            items = kinds[kind]
            items += pieces
    return kinds


def _clean_lines(text: str) -> list[str]:
    """Return the lines that are not blank, headings or fences, without markdown."""
    lines = []
    for line in text.splitlines():
        plain = " ".join(_ESCAPE.sub(r"\1", line).split()).lstrip("> ")
        title = plain.lstrip("#").lstrip()
        is_heading = plain.startswith(("# ", "##")) and not _NUMBER.match(title)
        if title and not is_heading and not plain.startswith(("```", "~~~")):
            lines.append(title if plain.startswith(("# ", "##")) else plain)
    return lines


def _classify(line: str) -> tuple[str, list[str]]:
    """Return the kind of a line, and the items that it holds."""
    if line.startswith("|"):
        return "row", _read_cells(line)
    bullet = _BULLET.match(line)
    text = line[bullet.end() :] if bullet else line
    label = _LABEL.match(text)
    text = text[label.end() :] if label else text
    number = _NUMBER.match(text.lstrip("_*"))
    if number:
        rest = text.lstrip("_*")[number.end() :]
        return "number", _split_numbered(rest, int(number[1] or number[2]))
    return ("bullet", [text]) if bullet or label else ("plain", [line])


def _split_numbered(text: str, number: int) -> list[str]:
    """Return the items of a line on which the numbering goes on: ``A 2. B 3. C`` after ``1.``."""
    items, start = [], 0
    for match in _NEXT_NUMBER.finditer(text):
        if int(match[1]) == number + 1:
            items.append(text[start : match.start()])
            start, number = match.end(), number + 1
    return [*items, text[start:]]


def _read_cells(line: str) -> list[str]:
    """Return the title and year of a row of a table as one item; a rank comes before the title."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    if re.fullmatch(r"\d{1,3}\.?", cells[0]) and len(cells) > 1:
        cells = cells[1:]
    years = [cell for cell in cells[1:] if re.fullmatch(r"(?:18|19|20)\d\d", cell)]
    return [f"{cells[0]} ({years[0]})" if years else cells[0]]


def _is_table_rule(line: str) -> bool:
    """Return whether a line is the rule below the header of a table: ``|---|---|``."""
    return "-" in line and "|" in line and set(line) <= set("|-: ")


def _select_titles_without_marker(lines: Sequence[str]) -> list[str]:
    """Return unmarked lines without years, if they look like titles."""
    titles = [line for line in lines if not line.endswith(_SENTENCE_END)]
    if len(lines) == 1:
        titles = [title for line in titles for title in _split_line(line)]
    is_list = len(titles) > 1 and all(len(title) <= _MAX_PLAIN_LENGTH for title in titles)
    return titles if is_list else []


def _split_line(line: str) -> list[str]:
    """Return the titles on the only line of a reply, also those separated by commas."""
    titles = [proposal.title for proposal in _parse_item(line)]
    if len(titles) == 1 and line.count(",") > 1 and not line.startswith(("[", "{")):
        return [title.strip() for title in line.split(",")]
    return titles


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
