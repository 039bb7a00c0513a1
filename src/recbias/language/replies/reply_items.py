"""One item of a list in a reply: its titles and years."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from recbias.language.replies.title_forms import list_plain_years, split_year

MAX_TITLE_LENGTH = 200
"""The longest text that is a title; a longer one is an item without a title."""

LABEL = re.compile(
    r"\**(?:movie |film )?(?:title|movie|film)(?: \d{1,3})?:\** ?(?=.)", re.IGNORECASE
)
"""The label of a title: ``Title:``, ``Movie 1:``."""

_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{1,200})[\"”“»]")
_BETWEEN_TITLES = re.compile(r"\s*(?:[,;/|&•+]|and\b)[\s,;/|&•+]*(?:and\b\s*)?")
_DESCRIPTION = re.compile(r" [–—] ")
_EDGES = ' \t"“”„«»`*_,;|'


@dataclass(frozen=True)
class Proposal:
    """A title that a reply proposes.

    Args:
        title: The title without year; blank if the item has none that can be read.
        year: The year, None if it is missing.
        line: The item as written.
    """

    title: str
    year: int | None
    line: str


def parse_item(item: str) -> list[Proposal]:
    """Return the titles of one item of a list, without what follows them.

    >>> [(proposal.title, proposal.year) for proposal in parse_item("Heat (1995), Casino (1995)")]
    [('Heat', 1995), ('Casino', 1995)]
    >>> [proposal.title for proposal in parse_item('"Heat" — a thriller of the year 1995')]
    ['Heat']
    """
    return [make_proposal(piece, item) for piece in _split_titles(item)]


def make_proposal(text: str, line: str) -> Proposal:
    """Return the proposal of a text that holds one title; a blank title if it cannot be one."""
    text = " ".join(text.split())
    label = LABEL.match(text)
    title, year = split_year((text[label.end() :] if label else text).strip(_EDGES))
    if year is None:
        title = _DESCRIPTION.split(title, maxsplit=1)[0]
    title = title.strip(_EDGES).partition("**")[0].strip(_EDGES).rstrip(":")
    is_title = len(title) <= MAX_TITLE_LENGTH and any(map(str.isalnum, title))
    return Proposal(title if is_title else "", year, line)


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
