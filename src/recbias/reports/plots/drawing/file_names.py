"""Names of the figures' files: plain, and none twice."""

from __future__ import annotations

import re


def file_stem(said: str) -> str:
    """Return a text as a file's name: lower case letters, digits and hyphens.

    >>> file_stem("significance-nDCG@10/<x>")
    'significance-ndcg-10-x'
    """
    return re.sub(r"[^a-z0-9]+", "-", said.casefold()).strip("-")[:80] or "figure"


class FileNames:
    """File names, none given twice."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def free(self, said: str) -> str:
        """Return a file name, without its ending, that was not given yet."""
        stem = name = file_stem(said)
        number = 2
        while name in self._taken:
            name, number = f"{stem}-{number}", number + 1
        self._taken.add(name)
        return name
