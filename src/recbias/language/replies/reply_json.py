"""Titles in a reply that is JSON: a list of texts, a list of objects, an object with a list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from recbias.language.replies.reply_items import Proposal, make_proposal
from recbias.language.replies.title_forms import split_year

TITLE_KEYS = ("title", "name", "movie", "film", "movie_title", "item")
"""The keys of an object for its title; the first that occurs is used."""

YEAR_KEYS = ("year", "release_year", "released", "release_date", "date")
"""The keys of an object for its year."""

_START = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
_YEAR = re.compile(r"(?<!\d)(?:18|19|20)\d\d(?!\d)")


def parse_json_entries(text: str) -> list[Proposal]:
    r"""Return the titles of the JSON values in a reply; empty if there is none with titles.

    Text before, between and after the values is left out. An entry of a list that is neither text
    nor an object with a title keeps its rank without a title.

    >>> reply = 'Here: \n{"movies": [{"title": "Heat", "year": 1995}, "Casino (1995)"]}'
    >>> [(proposal.title, proposal.year) for proposal in parse_json_entries(reply)]
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
    if not objects and _get_text(value, TITLE_KEYS):
        return [value]
    return next(iter([*objects, *lists]), list(value.values()))


def _parse_entry(entry: Any) -> Proposal:
    line = json.dumps(entry, ensure_ascii=False)
    if isinstance(entry, str):
        return make_proposal(entry, entry)
    text = _get_text(entry, TITLE_KEYS)
    match = _YEAR.search(_get_text(entry, YEAR_KEYS))
    return make_proposal(f"{split_year(text)[0]} ({match[0]})" if match else text, line)


def _get_text(entry: Any, keys: tuple[str, ...]) -> str:
    """Return the text or number of the first key that occurs, without regard to case."""
    if not isinstance(entry, dict):
        return ""
    values = {key.casefold(): value for key, value in entry.items()}
    present = [values[key] for key in keys if isinstance(values.get(key), (str, int))]
    return str(present[0]) if present else ""
