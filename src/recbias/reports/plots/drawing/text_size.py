"""Estimated sizes of texts, so that plots need no font files."""

from __future__ import annotations

import unicodedata

from recbias.reports.markup import to_line

TEXT = 13.0
"""Font size of plots."""

_NARROW, _BROAD = frozenset("iIjlftr.,:;|!'()[]/ -"), frozenset("mwMW@%—…")


def estimate_width(text: str, size: float = TEXT) -> float:
    """Return about how wide a text is in a sans-serif font.

    Full-width characters and emoji count as 1.2 of the font size.
    """
    return size * sum(map(_estimate_character, text))


def _estimate_character(character: str) -> float:
    if character in _NARROW:
        return 0.35
    if character in _BROAD:
        return 0.95
    if unicodedata.east_asian_width(character) in "WF":
        return 1.2
    return 0.74 if character.isupper() else 0.58


def shorten(label: object, most: int = 20) -> str:
    """Return a label in one line of at most ``most`` characters.

    >>> shorten("a very long label indeed", 10)
    'a very lo…'
    """
    text = to_line(label)
    return text if len(text) <= most else f"{text[: most - 1]}…"
