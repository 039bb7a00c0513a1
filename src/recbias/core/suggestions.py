"""The nearest valid names for an invalid one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import lru_cache

_LEFT_OUT = {ord(mark): None for mark in "-_* "}


@lru_cache(maxsize=4096)  # the names of all plug-ins, for each unknown one
def normalize_name(name: str) -> str:
    """Return a name without case, hyphens, underscores, stars and spaces.

    >>> normalize_name("nDCG"), normalize_name("R-RIPA")
    ('ndcg', 'rripa')
    """
    return name.casefold().translate(_LEFT_OUT)


def find_nearest(name: str, names: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return the names that are most similar to ``name``, the most similar first.

    >>> find_nearest("neighbours", ["neighbors", "shrink"])
    ['neighbors']
    """
    if len(name) > MAX_COMPARED_LENGTH:
        return []
    spellings = {normalize_name(spelling): spelling for spelling in names}
    nearest = difflib.get_close_matches(normalize_name(name), spellings, n=limit, cutoff=0.6)
    return [spellings[normalized] for normalized in nearest]


MAX_COMPARED_LENGTH = 1_000
"""The longest name that is compared with others."""

MAX_NAME_LENGTH = 80
"""The longest name in a help line; a header that is no header may be one name of megabytes."""


def suggest(name: str, names: Iterable[str], *, limit: int = 12) -> str:
    """Return the help line for an unknown name: the nearest valid names, else all of them.

    >>> suggest("neighbours", ["neighbors", "shrink"])
    'did you mean neighbors?'
    >>> suggest("zzz", ["neighbors", "shrink"])
    'the valid names are neighbors, shrink'
    """
    valid = sorted(_shorten(spelling) for spelling in names)
    nearest = find_nearest(name, valid)
    if nearest:
        return f"did you mean {' or '.join(nearest)}?"
    if not valid:
        return "it takes none"
    more = f" and {len(valid) - limit} more" if len(valid) > limit else ""
    return f"the valid names are {', '.join(valid[:limit])}{more}"


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 3]}..."
