"""File names of plots and tables: plain and unique."""

from __future__ import annotations

import re


def make_stem(text: str) -> str:
    """Return a text as a file name: lower case letters, digits and hyphens.

    >>> make_stem("significance-nDCG@10/<x>")
    'significance-ndcg-10-x'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:80] or "figure"


class FileNames:
    """File names that are in use."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def free(self, text: str) -> str:
        """Return an unused file name for a text, without suffix, and mark it as used."""
        stem = name = make_stem(text)
        number = 2
        while name in self._used:
            name, number = f"{stem}-{number}", number + 1
        self._used.add(name)
        return name
